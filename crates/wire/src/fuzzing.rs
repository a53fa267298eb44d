//! What must hold of the headers of a request whatever a client sends: the properties that the fuzz targets assert.

use crate::http::fuzzing;

/// Reads the headers of a request. The module `http::fuzzing` says what the input is and what must hold.
pub fn http_headers(bytes: &[u8]) {
    fuzzing::http_headers(bytes);
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
    }
}
