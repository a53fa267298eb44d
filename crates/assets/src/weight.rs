//! Estimates how large a value is without serializing it, to decide where work on it runs.

use serde_json::Value;

/// Work on values above about this many bytes of JSON goes to a blocking thread, off the async runtime.
const HEAVY_BYTES: usize = 16 << 10;

/// Whether work on a value should go to a blocking thread.
pub(crate) fn is_heavy(value: &Value) -> bool {
    let mut budget = HEAVY_BYTES;
    let mut pending = vec![value];
    while let Some(value) = pending.pop() {
        let bytes = match value {
            Value::String(text) => text.len() + 2,
            Value::Array(items) => {
                pending.extend(items);
                items.len() + 2
            }
            Value::Object(members) => {
                pending.extend(members.values());
                members.keys().map(|key| key.len() + 4).sum::<usize>() + 2
            }
            _ => 4,
        };
        match budget.checked_sub(bytes) {
            Some(left) => budget = left,
            None => return true,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_value_is_heavy_by_its_text_whatever_its_shape() {
        assert!(!is_heavy(&json!({"a": ["b", 1, null]})));
        assert!(!is_heavy(&json!("x".repeat(16_000))));
        assert!(is_heavy(&json!("x".repeat(17_000))));
        assert!(is_heavy(&json!(vec![0; 10_000])));
        assert!(is_heavy(&json!({"k".repeat(17_000): 1})));
    }
}
