//! Computes the difference of two JSON values as a JSON Patch (RFC 6902).
//!
//! Objects are compared member by member, everything else as a whole. No operation's path is inside another's, so they
//! can be applied in any order; they are sorted so that the same values always give the same patch.

use pintle_contract::pointer_segment;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// One step of a patch. Steps are ordered by path, then `remove`, `add`, `replace`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "op", rename_all = "lowercase")]
#[schemars(deny_unknown_fields)]
pub enum PatchOperation {
    /// Removes a member.
    Remove {
        /// RFC 6901 pointer to the member.
        path: String,
    },
    /// Adds a member.
    Add {
        /// RFC 6901 pointer to the member.
        path: String,
        /// Its value.
        value: Value,
    },
    /// Replaces a value.
    Replace {
        /// RFC 6901 pointer to the value; empty for the whole.
        path: String,
        /// The new value.
        value: Value,
    },
}

impl PatchOperation {
    /// JSON Pointer (RFC 6901) to the value that it changes.
    pub fn path(&self) -> &str {
        match self {
            Self::Remove { path } | Self::Add { path, .. } | Self::Replace { path, .. } => path,
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Remove { .. } => 0,
            Self::Add { .. } => 1,
            Self::Replace { .. } => 2,
        }
    }
}

/// The patch that turns `base` into `new`; empty if they are equal.
///
/// ```
/// use pintle_assets::diff;
/// use serde_json::json;
///
/// let patch = diff(&json!({"a": 1, "b": [1]}), &json!({"b": [1, 2], "c/d": null}));
/// assert_eq!(
///     serde_json::to_value(patch).unwrap(),
///     json!([
///         {"op": "remove", "path": "/a"},
///         {"op": "replace", "path": "/b", "value": [1, 2]},
///         {"op": "add", "path": "/c~1d", "value": null},
///     ])
/// );
/// ```
pub fn diff(base: &Value, new: &Value) -> Vec<PatchOperation> {
    let mut patch = Vec::new();
    let mut pending = vec![(String::new(), base, new)];
    while let Some((path, base, new)) = pending.pop() {
        match (base, new) {
            (Value::Object(base), Value::Object(new)) => {
                diff_members(&path, base, new, &mut patch, &mut pending);
            }
            _ if base == new => {}
            _ => patch.push(PatchOperation::Replace { path, value: new.clone() }),
        }
    }
    patch.sort_by(|a, b| (a.path(), a.rank()).cmp(&(b.path(), b.rank())));
    patch
}

fn diff_members<'a>(
    path: &str,
    base: &'a Map<String, Value>,
    new: &'a Map<String, Value>,
    patch: &mut Vec<PatchOperation>,
    pending: &mut Vec<(String, &'a Value, &'a Value)>,
) {
    let member_path = |key: &str| format!("{path}/{}", pointer_segment(key));
    for (key, value) in base {
        match new.get(key) {
            Some(other) => pending.push((member_path(key), value, other)),
            None => patch.push(PatchOperation::Remove { path: member_path(key) }),
        }
    }
    for (key, value) in new.iter().filter(|(key, _)| !base.contains_key(*key)) {
        patch.push(PatchOperation::Add { path: member_path(key), value: value.clone() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::any_json;
    use proptest::prelude::*;
    use serde_json::json;

    fn patch(base: Value, new: Value) -> Value {
        serde_json::to_value(diff(&base, &new)).expect("serializes")
    }

    #[test]
    fn equal_values_need_no_patch_whatever_the_order_of_their_members() {
        assert_eq!(patch(json!({"a": 1, "b": 2}), json!({"b": 2, "a": 1})), json!([]));
        assert_eq!(patch(json!(null), json!(null)), json!([]));
    }

    #[test]
    fn objects_are_compared_member_by_member() {
        assert_eq!(
            patch(json!({"k": {"x": 1, "y": {"z": 1}}}), json!({"k": {"y": {"z": 2}, "w": 3}})),
            json!([
                {"op": "add", "path": "/k/w", "value": 3},
                {"op": "remove", "path": "/k/x"},
                {"op": "replace", "path": "/k/y/z", "value": 2},
            ])
        );
    }

    #[test]
    fn arrays_and_changes_of_type_are_replaced_as_a_whole() {
        assert_eq!(
            patch(json!({"a": [1, {"b": 2}], "c": {}}), json!({"a": [1, {"b": 3}], "c": []})),
            json!([
                {"op": "replace", "path": "/a", "value": [1, {"b": 3}]},
                {"op": "replace", "path": "/c", "value": []},
            ])
        );
    }

    #[test]
    fn the_root_is_replaced_at_the_empty_path() {
        assert_eq!(patch(json!({"a": 1}), json!([])), json!([{"op": "replace", "path": "", "value": []}]));
        assert_eq!(patch(json!(1), json!(null)), json!([{"op": "replace", "path": "", "value": null}]));
    }

    #[test]
    fn a_number_written_otherwise_is_another_number() {
        assert_eq!(
            patch(json!({"a": 1}), json!({"a": 1.0})),
            json!([{"op": "replace", "path": "/a", "value": 1.0}])
        );
    }

    #[test]
    fn a_member_set_to_null_is_not_removed() {
        assert_eq!(
            patch(json!({"a": 1}), json!({"a": null})),
            json!([{"op": "replace", "path": "/a", "value": null}])
        );
    }

    #[test]
    fn operations_are_sorted_by_the_bytes_of_their_path() {
        let operations = diff(&json!({}), &json!({"é": 1, "b": 1, "a/": 1, "a0": 1, "a~": 1, "": 1}));
        let paths: Vec<_> = operations.iter().map(PatchOperation::path).collect();
        assert_eq!(paths, ["/", "/a0", "/a~0", "/a~1", "/b", "/é"]);
    }

    #[test]
    fn deep_values_are_no_problem() {
        let nested = |leaf: Value| (0..127).fold(leaf, |inner, _| json!({ "k": inner }));
        let patch = diff(&nested(json!(1)), &nested(json!(2)));
        assert_eq!(patch, [PatchOperation::Replace { path: "/k".repeat(127), value: json!(2) }]);
    }

    proptest! {
        #[test]
        fn the_patch_turns_base_into_new_always(base in any_json(), new in any_json()) {
            let operations = diff(&base, &new);
            let order: Vec<_> = operations.iter().map(|step| (step.path().to_owned(), step.rank())).collect();
            prop_assert!(order.is_sorted());
            let patch = serde_json::to_value(&operations).expect("serializes");
            for step in patch.as_array().expect("a list") {
                let members: Vec<_> = step.as_object().expect("an object").keys().map(String::as_str).collect();
                match step["op"].as_str() {
                    Some("remove") => prop_assert_eq!(members, ["op", "path"]),
                    Some("add" | "replace") => prop_assert_eq!(members, ["op", "path", "value"]),
                    other => prop_assert!(false, "{:?}", other),
                }
            }
            let patch: json_patch::Patch = serde_json::from_value(patch).expect("a patch");
            let mut patched = base.clone();
            json_patch::patch(&mut patched, &patch).expect("applies");
            prop_assert_eq!(&patched, &new);
            prop_assert_eq!(base == new, operations.is_empty());
        }
    }
}
