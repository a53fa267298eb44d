//! What must hold of headers and MCP messages whatever a client sends: the properties that the fuzz targets assert.

use crate::{http, mcp};

/// Reads the headers of a request. The module `http::fuzzing` says what the input is and what must hold.
pub fn http_headers(bytes: &[u8]) {
    http::fuzzing::http_headers(bytes);
}

/// Reads an MCP message. The module `mcp::fuzzing` says what must hold.
pub fn mcp_message(bytes: &[u8]) {
    mcp::fuzzing::mcp_message(bytes);
}

#[cfg(test)]
#[path = "../../../fuzz/seeds.rs"]
mod seeds;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_properties_hold_for_the_seeds() {
        seeds::each_seed("http_headers", http_headers);
        seeds::each_seed("mcp_message", mcp_message);
    }
}
