//! `validate_asset`: validates an asset against a schema and lists the errors.

use std::sync::Arc;

use pintle_contract::{Annotations, Fault, Permission};
use pintle_tool::{CallContext, Tool, ToolOutput};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    Assets,
    issue::Issue,
    output::{No, ValidationFailed, Yes},
};

pub(crate) struct ValidateAsset(pub(crate) Arc<Assets>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The asset: any JSON value.
    asset: Value,
    /// The name of the schema, from list_schemas.
    schema: String,
}

#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Output {
    Valid(Valid),
    Invalid(Invalid),
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Valid {
    ok: Yes,
    /// Always empty.
    #[schemars(schema_with = "no_items")]
    errors: Vec<Issue>,
}

fn no_items(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "maxItems": 0 })
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Invalid {
    ok: No,
    reason: ValidationFailed,
    /// What is wrong, sorted by path, then message; 1,000 at most.
    errors: Vec<Issue>,
}

// Invalid is a verdict, not a failure of the tool, so `failure` keeps its default.
impl ToolOutput for Output {}

impl Tool for ValidateAsset {
    type Input = Input;
    type Output = Output;

    const NAME: &'static str = "validate_asset";
    const TITLE: &'static str = "Validate an asset";
    const DESCRIPTION: &'static str = "Checks an asset against a schema (JSON Schema, formats included) and lists \
        what is wrong: a JSON Pointer to each value and what was expected. An unknown schema is \
        `schema_not_found`. Nothing is stored.";
    const ANNOTATIONS: Annotations = Annotations::READ_ONLY;
    const PERMISSIONS: &'static [Permission] = &[Permission::AnyCaller];

    fn read_input(mut arguments: Value) -> Result<Input, serde_json::Error> {
        let asset = arguments["asset"].take();
        Ok(Input { asset, ..serde_json::from_value(arguments)? })
    }

    async fn run(&self, input: Input, call: CallContext) -> Result<Output, Fault> {
        let errors = match self.0.schemas().find(&input.schema) {
            Some(found) => found.issues_in_call(Arc::new(input.asset), &call).await?,
            None => vec![Issue::schema_not_found()],
        };
        Ok(match errors.is_empty() {
            true => Output::Valid(Valid { ok: Yes, errors }),
            false => Output::Invalid(Invalid { ok: No, reason: ValidationFailed::ValidationFailed, errors }),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use crate::{
        Assets,
        testing::{answer, assets_of, call_within},
    };
    use pintle_contract::ErrorCode;
    use pintle_tool::{CallContext, Caller};
    use serde_json::{Value, json};

    fn assets() -> Arc<Assets> {
        assets_of(
            &[
                ("tone.schema.json", json!({"properties": {"a": {"items": {"type": "number"}}}})),
                ("nothing.json", json!({"type": "null"})),
                ("synesthetic-asset.json", json!({"type": "object", "additionalProperties": false})),
                ("bad.json", json!({"type": "strin"})),
            ],
            &[],
        )
    }

    async fn verdict(asset: Value, schema: &str) -> String {
        let (result, code) =
            answer(&assets(), "validate_asset", json!({"asset": asset, "schema": schema})).await;
        assert_eq!(code, None, "a verdict is an answer: {result}");
        result
    }

    const VALID: &str = r#"{"ok":true,"errors":[]}"#;

    #[tokio::test]
    async fn a_valid_asset_has_no_errors() {
        assert_eq!(verdict(json!({"a": [1, 2.5]}), "tone").await, VALID);
        assert_eq!(verdict(json!(null), "nothing").await, VALID);
        assert_eq!(verdict(json!({"$schemaRef": "x"}), "nested-synesthetic-asset").await, VALID);
    }

    #[tokio::test]
    async fn an_invalid_asset_gets_errors_that_say_where_and_why() {
        let expected = r#"{"ok":false,"reason":"validation_failed","errors":[{"path":"/a/1","msg":"\"x\" is not of type \"number\"","keyword":"type","schemaPath":"/properties/a/items/type"}]}"#;
        assert_eq!(verdict(json!({"a": [1, "x"]}), "tone").await, expected);
    }

    #[tokio::test]
    async fn a_large_asset_gets_the_same_verdict() {
        let mut items = vec![json!(1); 20_000];
        assert_eq!(verdict(json!({"a": items}), "tone").await, VALID);
        items[19_999] = json!("x");
        assert!(verdict(json!({"a": items}), "tone").await.contains(r#""path":"/a/19999""#));
    }

    #[tokio::test]
    async fn of_too_many_errors_the_first_is_reported() {
        let result = verdict(json!({"a": vec!["x"; 300_000]}), "tone").await;
        assert!(result.contains(r#""path":"/a/0""#) && result.contains("too large to list"), "{result}");
    }

    #[tokio::test]
    async fn an_endless_validation_is_cancelled_when_its_call_ends() {
        // Each definition asks the next one twice, and so does each branch for the child.
        let mut definitions: serde_json::Map<String, Value> = (0..60)
            .map(|number| {
                let next = json!({"$ref": format!("#/$defs/d{}", number + 1)});
                (format!("d{number}"), json!({"allOf": [next, next]}))
            })
            .collect();
        definitions.insert("d60".into(), json!({"type": "number"}));
        let branch = json!({"properties": {"child": {"$ref": "#"}}});
        let assets = assets_of(
            &[
                ("doubled.json", json!({"$ref": "#/$defs/d0", "$defs": definitions})),
                (
                    "overlapping.json",
                    json!({"properties": {"name": {"type": "string"}}, "allOf": [branch, branch]}),
                ),
            ],
            &[],
        );
        let nested = (0..40).fold(json!({"name": 1}), |child, _| json!({"child": child}));
        for (asset, schema) in [(json!(1), "doubled"), (nested, "overlapping")] {
            let arguments = json!({"asset": asset, "schema": schema});
            let context = CallContext::detached(Caller::local());
            let ended = context.ended().clone();
            // The validation has begun by then, and does not come to an end by itself.
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(5)).await;
                ended.cancel();
            });
            let _left = call_within(context, &assets, "validate_asset", arguments).await;
        }
    }

    #[tokio::test]
    async fn an_unknown_or_unusable_schema_is_a_verdict_too() {
        let expected =
            r#"{"ok":false,"reason":"validation_failed","errors":[{"path":"","msg":"schema_not_found"}]}"#;
        assert_eq!(verdict(json!(1), "none").await, expected);
        let result = verdict(json!(1), "bad").await;
        let expected =
            r#"{"ok":false,"reason":"validation_failed","errors":[{"path":"","msg":"schema_invalid: /type"#;
        assert!(result.starts_with(expected), "{result}");
    }

    #[tokio::test]
    async fn the_asset_may_be_null_but_must_be_there_and_so_must_the_schema() {
        assert!(verdict(json!(null), "tone").await.starts_with(r#"{"ok":"#));
        for arguments in
            [json!({"schema": "tone"}), json!({"asset": 1}), json!({"asset": 1, "schema": "tone", "x": 1})]
        {
            let (result, code) = answer(&assets(), "validate_asset", arguments).await;
            assert_eq!(code, Some(ErrorCode::InvalidRequest), "{result}");
        }
    }
}
