//! One spelling for each JSON value, so that equal values have equal fingerprints.

use std::fmt;

use serde_json::Value;
use sha2::{Digest, Sha256};

/// The SHA-256 of a value's canonical spelling.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint([u8; 32]);

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
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
    let mut out = String::new();
    write_canonical(value, &mut out);
    out
}

fn write_canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(map) => {
            let mut members: Vec<_> = map.iter().collect();
            members.sort_by(|a, b| a.0.cmp(b.0));
            write_list(out, ('{', '}'), members, |(key, member), out| {
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push(':');
                write_canonical(member, out);
            });
        }
        Value::Array(items) => write_list(out, ('[', ']'), items, write_canonical),
        scalar => out.push_str(&scalar.to_string()),
    }
}

fn write_list<T>(
    out: &mut String,
    (open, close): (char, char),
    items: impl IntoIterator<Item = T>,
    write: impl Fn(T, &mut String),
) {
    out.push(open);
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write(item, out);
    }
    out.push(close);
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
