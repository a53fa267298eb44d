//! `diff_assets`: the patch that turns one asset into another.

use pintle_contract::{Annotations, Fault, Permission};
use pintle_tool::{CallContext, Tool, ToolOutput};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    diff::{PatchOperation, diff},
    output::Yes,
    weight::is_heavy,
};

pub(crate) struct DiffAssets;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The old value: any JSON value.
    base: Value,
    /// The new value: any JSON value.
    new: Value,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Output {
    ok: Yes,
    /// Sorted by path; empty if the two are equal.
    patch: Vec<PatchOperation>,
}

impl ToolOutput for Output {}

impl Tool for DiffAssets {
    type Input = Input;
    type Output = Output;

    const NAME: &'static str = "diff_assets";
    const TITLE: &'static str = "Compare two assets";
    const DESCRIPTION: &'static str = "Returns the JSON Patch (RFC 6902) that turns `base` into `new`, with add, \
        remove and replace. Objects are compared member by member; an array that differs is replaced whole.";
    const ANNOTATIONS: Annotations = Annotations::READ_ONLY;
    const PERMISSIONS: &'static [Permission] = &[Permission::AnyCaller];

    fn read_input(mut arguments: Value) -> Result<Input, serde_json::Error> {
        Ok(Input { base: arguments["base"].take(), new: arguments["new"].take() })
    }

    async fn run(&self, input: Input, call: CallContext) -> Result<Output, Fault> {
        let Input { base, new } = input;
        let patch = match is_heavy(&base) || is_heavy(&new) {
            true => call.compute(move |_| diff(&base, &new)).await?,
            false => diff(&base, &new),
        };
        Ok(Output { ok: Yes, patch })
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{answer, assets_of};
    use pintle_contract::ErrorCode;
    use serde_json::json;

    #[tokio::test]
    async fn the_patch_is_given_for_any_two_values() {
        let assets = assets_of(&[], &[]);
        for (base, new, expected) in [
            (json!({"a": 1}), json!({"a": 1}), ""),
            (json!(null), json!([]), r#"{"op":"replace","path":"","value":[]}"#),
            (
                json!({"a": 1, "b": 2}),
                json!({"b": null, "c": {}}),
                r#"{"op":"remove","path":"/a"},{"op":"replace","path":"/b","value":null},{"op":"add","path":"/c","value":{}}"#,
            ),
        ] {
            let expected = format!(r#"{{"ok":true,"patch":[{expected}]}}"#);
            assert_eq!(
                answer(&assets, "diff_assets", json!({"base": base, "new": new})).await,
                (expected, None)
            );
        }
        let large = json!({"base": {"k": "x".repeat(50_000)}, "new": {}});
        let expected = r#"{"ok":true,"patch":[{"op":"remove","path":"/k"}]}"#;
        assert_eq!(answer(&assets, "diff_assets", large).await, (expected.into(), None));
    }

    #[tokio::test]
    async fn both_values_must_be_there() {
        let assets = assets_of(&[], &[]);
        for arguments in [json!({"base": 1}), json!({"new": null})] {
            let (result, code) = answer(&assets, "diff_assets", arguments).await;
            assert_eq!(code, Some(ErrorCode::InvalidRequest), "{result}");
        }
    }
}
