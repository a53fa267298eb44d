//! How much work a value is, guessed without writing it out.

use serde_json::Value;

/// Values above about this many bytes are worked on where they block nobody.
const HEAVY_BYTES: usize = 16 << 10;

/// Whether a value is large enough to be worked on elsewhere.
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

/// The validator lists every error at once, each with its whole path. An asset may hold this much of
/// that, if each of its values were an error; beyond, listing could take more memory than there is.
const FLOOD_BYTES: usize = 64 << 20;
/// What an error takes besides its path, and how often its path is copied on the way out.
const ERROR_BYTES: usize = 600;
const PATH_COPIES: usize = 4;

/// Whether listing all errors of a value might take far more memory than the value itself.
pub(crate) fn would_flood(value: &Value) -> bool {
    let mut budget = FLOOD_BYTES;
    let mut pending = vec![(value, 0)];
    while let Some((value, path_bytes)) = pending.pop() {
        match budget.checked_sub(PATH_COPIES * path_bytes + ERROR_BYTES) {
            Some(left) => budget = left,
            None => return true,
        }
        match value {
            Value::Array(items) => pending.extend(items.iter().map(|item| (item, path_bytes + 6))),
            Value::Object(members) => {
                pending.extend(members.iter().map(|(key, member)| (member, path_bytes + key.len() + 1)));
            }
            _ => {}
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

    #[test]
    fn a_flood_is_many_values_or_long_paths_to_many() {
        assert!(!would_flood(&json!(vec![0; 100_000])));
        assert!(would_flood(&json!(vec![0; 500_000])));
        assert!(!would_flood(&json!({"k".repeat(500_000): [1, 2, 3]})));
        assert!(would_flood(&json!({"k".repeat(500_000): vec![0; 1_000]})));
    }
}
