//! The MCP resources, one URI scheme a file: the same schemas, examples and assets that the tools return.

mod asset;
mod example;
mod schema;

use std::sync::Arc;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use pintle_tool::Resources;

use crate::Assets;

/// The characters that are percent-encoded: all but letters, digits and these four.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
const PATH: &AsciiSet = &SEGMENT.remove(b'/');

/// All resources of the toolset.
pub(crate) fn all(assets: &Arc<Assets>) -> Vec<Arc<dyn Resources>> {
    vec![
        Arc::new(asset::AssetResources(Arc::clone(assets))),
        Arc::new(example::ExampleResources(Arc::clone(assets))),
        Arc::new(schema::SchemaResources(Arc::clone(assets))),
    ]
}

/// Percent-encodes a name as one segment of a URI.
fn encode_segment(name: &str) -> String {
    utf8_percent_encode(name, SEGMENT).to_string()
}

/// Percent-encodes a path, whose slashes stay.
fn encode_path(path: &str) -> String {
    utf8_percent_encode(path, PATH).to_string()
}

#[cfg(test)]
mod tests {
    use crate::testing::assets_of;

    #[test]
    fn each_scheme_is_served_once() {
        let schemes: Vec<_> = assets_of(&[], &[]).resources().iter().map(|one| one.scheme()).collect();
        assert_eq!(schemes, ["asset", "example", "schema"]);
    }
}
