//! `get_schema`: returns one schema.

use std::sync::Arc;

use pintle_contract::{Annotations, Fault, Permission};
use pintle_tool::{CallContext, Failure, Tool, ToolOutput};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    Assets,
    output::{NotFound, Yes, shared},
};

pub(crate) struct GetSchema(pub(crate) Arc<Assets>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The schema's name from list_schemas.
    name: String,
}

#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Output {
    Found(SchemaResult),
    NotFound(NotFound),
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct SchemaResult {
    ok: Yes,
    /// The JSON Schema as it is in its file.
    #[serde(serialize_with = "shared")]
    #[schemars(schema_with = "any_schema")]
    schema: Arc<Value>,
    /// Empty if the schema states none.
    version: String,
}

fn any_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["object", "boolean"] })
}

impl ToolOutput for Output {
    fn failure(&self) -> Option<Failure> {
        match self {
            Self::Found(_) => None,
            Self::NotFound(not_found) => Some(not_found.failure()),
        }
    }
}

impl Tool for GetSchema {
    type Input = Input;
    type Output = Output;

    const NAME: &'static str = "get_schema";
    const TITLE: &'static str = "Get a schema";
    const DESCRIPTION: &'static str = "Returns one JSON Schema, by its name; of several versions the \
        highest. Read it before writing an asset that has to match it.";
    const ANNOTATIONS: Annotations = Annotations::READ_ONLY;
    const PERMISSIONS: &'static [Permission] = &[Permission::AnyCaller];

    async fn run(&self, input: Input, _: CallContext) -> Result<Output, Fault> {
        let schemas = self.0.schemas();
        Ok(match schemas.get(&input.name) {
            Some(schema) => Output::Found(SchemaResult {
                ok: Yes,
                schema: Arc::clone(&schema.document),
                version: schema.version.clone(),
            }),
            None => Output::NotFound(NotFound::new(schemas.unknown_message(&input.name))),
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{answer, assets_of, failure_message};
    use pintle_contract::ErrorCode;
    use serde_json::json;

    #[tokio::test]
    async fn a_schema_comes_as_it_is_in_its_file_with_its_version() {
        let assets = assets_of(
            &[
                ("synesthetic-asset.json", json!({"$id": "https://h/0.7.3/x.json", "z": 1, "a": 2})),
                ("yes.json", json!(true)),
            ],
            &[],
        );
        let expected =
            r#"{"ok":true,"schema":{"$id":"https://h/0.7.3/x.json","z":1,"a":2},"version":"0.7.3"}"#;
        for name in ["synesthetic-asset", "nested-synesthetic-asset"] {
            assert_eq!(answer(&assets, "get_schema", json!({"name": name})).await, (expected.into(), None));
        }
        let expected = r#"{"ok":true,"schema":true,"version":""}"#;
        assert_eq!(answer(&assets, "get_schema", json!({"name": "yes"})).await, (expected.into(), None));
    }

    #[tokio::test]
    async fn an_unknown_name_is_not_found_and_the_nearest_is_named() {
        let assets = assets_of(&[("tone.schema.json", json!({}))], &[]);
        let expected = r#"{"ok":false,"reason":"not_found"}"#;
        for name in ["tune", "tone.schema.json", "", "nested-synesthetic-asset", "../tone"] {
            let (result, code) = answer(&assets, "get_schema", json!({"name": name})).await;
            assert_eq!((result.as_str(), code), (expected, Some(ErrorCode::NotFound)), "{name}");
        }
        let message = failure_message(&assets, "get_schema", json!({"name": "tune"})).await;
        assert!(message.contains("`tune`") && message.contains("`tone`"), "{message}");
    }
}
