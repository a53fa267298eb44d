//! Canonical JSON, so that equal values have equal fingerprints.

use std::fmt;

use serde_json::Value;
use sha2::{Digest, Sha256};

/// The SHA-256 of a value's canonical JSON.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint([u8; 32]);

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}", base16ct::HexDisplay(&self.0))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Fingerprints a value; the order of object keys does not matter.
///
/// ```
/// use pintle_contract::fingerprint;
/// use serde_json::json;
///
/// assert_eq!(fingerprint(&json!({"a": 1, "b": 2})), fingerprint(&json!({"b": 2, "a": 1})));
/// assert_ne!(fingerprint(&json!([1, 2])), fingerprint(&json!([2, 1])));
/// ```
pub fn fingerprint(value: &Value) -> Fingerprint {
    Fingerprint(Sha256::digest(canonical_json(value).as_bytes()).into())
}

/// Compact JSON with object keys sorted by their bytes.
pub fn canonical_json(value: &Value) -> String {
    let mut sorted = value.clone();
    sorted.sort_all_objects();
    sorted.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn canonical_json_sorts_keys_at_every_depth_and_keeps_arrays() {
        let value = json!({"b": [{"z": 1, "a": null}], "a": "x\n"});
        assert_eq!(canonical_json(&value), r#"{"a":"x\n","b":[{"a":null,"z":1}]}"#);
    }
}
