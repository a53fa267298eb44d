//! The resources, one scheme to a file: the same things that the tools give, by address.

mod asset;
mod example;
mod schema;

use std::sync::Arc;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use pintle_contract::{ErrorCode, Fault};
use pintle_engine::Resources;

use crate::Assets;

/// What an address may hold as it is, besides letters and digits.
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

/// A name as one segment of an address.
fn encode_segment(name: &str) -> String {
    utf8_percent_encode(name, SEGMENT).to_string()
}

/// A path as the rest of an address.
fn encode_path(path: &str) -> String {
    utf8_percent_encode(path, PATH).to_string()
}

/// What an encoded part of an address says.
fn decode(text: &str) -> Result<String, Fault> {
    let decoded = percent_decode_str(text).decode_utf8();
    decoded.map(String::from).map_err(|_| {
        Fault::new(ErrorCode::InvalidRequest, "the address is not UTF-8 once its percent signs are decoded")
    })
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
