//! `get_example`: returns one example and validates it against its schema.

use std::sync::Arc;

use pintle_contract::{Annotations, Fault, Permission};
use pintle_tool::{CallContext, Failure, Tool, ToolOutput};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    Assets,
    output::{NotFound, Yes, shared},
};

pub(crate) struct GetExample(pub(crate) Arc<Assets>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The example's path from list_examples, or relative to the examples folder.
    path: String,
}

#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Output {
    Found(ExampleResult),
    NotFound(NotFound),
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct ExampleResult {
    ok: Yes,
    /// The example as it is in its file.
    #[serde(serialize_with = "shared")]
    #[schemars(with = "Value")]
    example: Arc<Value>,
    /// The schema it was validated against; empty if none was found.
    schema: String,
    /// Whether it matches that schema.
    validated: bool,
}

impl ToolOutput for Output {
    fn failure(&self) -> Option<Failure> {
        match self {
            Self::Found(_) => None,
            Self::NotFound(not_found) => Some(not_found.failure()),
        }
    }
}

impl Tool for GetExample {
    type Input = Input;
    type Output = Output;

    const NAME: &'static str = "get_example";
    const TITLE: &'static str = "Get an example";
    const DESCRIPTION: &'static str = "Returns one example asset, by its path, with the schema it belongs to \
        and whether it matches that schema now.";
    const ANNOTATIONS: Annotations = Annotations::READ_ONLY;
    const PERMISSIONS: &'static [Permission] = &[Permission::AnyCaller];

    async fn run(&self, input: Input, call: CallContext) -> Result<Output, Fault> {
        let Some(example) = self.0.examples().get(&input.path) else {
            let message = self.0.examples().unknown_message(&input.path);
            return Ok(Output::NotFound(NotFound::new(message)));
        };
        let document = Arc::clone(&example.document);
        let (schema, validated) = match self.0.schemas().find_for(&document, &example.component) {
            Some(found) => {
                let schema = found.document_name().to_owned();
                let issues = found.issues_in_call(Arc::clone(&document), &call).await?;
                (schema, issues.is_empty())
            }
            None => (String::new(), false),
        };
        Ok(Output::Found(ExampleResult { ok: Yes, example: document, schema, validated }))
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{answer, assets_in_workspace, assets_of, failure_message};
    use pintle_contract::ErrorCode;
    use serde_json::json;

    #[tokio::test]
    async fn an_example_comes_with_its_schema_and_the_verdict() {
        let closed = json!({"additionalProperties": false, "properties": {"a": {"type": "number"}}});
        let assets = assets_of(
            &[
                ("synesthetic-asset.schema.json", closed.clone()),
                ("tone.schema.json", closed),
                ("broken.json", json!({"type": 7})),
            ],
            &[
                (
                    "SynestheticAsset_1.json",
                    json!({"$schemaRef": "jsonschema/synesthetic-asset.schema.json", "a": 1}),
                ),
                ("Tone_1.json", json!({"a": "x"})),
                ("Broken_1.json", json!(1)),
                ("_skip/Other.json", json!([1])),
            ],
        );
        for (path, expected) in [
            (
                "SynestheticAsset_1.json",
                r#"{"$schemaRef":"jsonschema/synesthetic-asset.schema.json","a":1},"schema":"nested-synesthetic-asset","validated":true"#,
            ),
            ("Tone_1.json", r#"{"a":"x"},"schema":"tone","validated":false"#),
            ("./Tone_1.json", r#"{"a":"x"},"schema":"tone","validated":false"#),
            ("Broken_1.json", r#"1,"schema":"broken","validated":false"#),
            ("_skip/Other.json", r#"[1],"schema":"","validated":false"#),
        ] {
            let expected = format!(r#"{{"ok":true,"example":{expected}}}"#);
            assert_eq!(answer(&assets, "get_example", json!({"path": path})).await, (expected, None));
        }
    }

    #[tokio::test]
    async fn a_path_may_be_seen_from_the_root_or_from_the_examples_folder() {
        let examples = [
            ("a/x.json", json!(1)),
            ("x.json", json!(2)),
            ("examples/x.json", json!(3)),
            ("b.json", json!(4)),
        ];
        let assets = assets_in_workspace(&[], &examples);
        for (path, example) in [
            ("examples/a/x.json", 1),
            ("a/x.json", 1),
            // The path from list_examples comes first.
            ("examples/x.json", 2),
            ("examples/examples/x.json", 3),
            ("x.json", 2),
            ("./examples//b.json", 4),
            ("/examples/b.json", 4),
            ("b.json", 4),
        ] {
            let expected = format!(r#"{{"ok":true,"example":{example},"schema":"","validated":false}}"#);
            assert_eq!(
                answer(&assets, "get_example", json!({"path": path})).await,
                (expected, None),
                "{path}"
            );
        }
        for path in ["/b.json", "examples/../examples/b.json", "examples", "schemas/b.json", "xamples/b.json"]
        {
            let (_, code) = answer(&assets, "get_example", json!({"path": path})).await;
            assert_eq!(code, Some(ErrorCode::NotFound), "{path}");
        }
        let message = failure_message(&assets, "get_example", json!({"path": "examples/bb.json"})).await;
        assert!(message.contains("the nearest is `examples/b.json`"), "{message}");
    }

    #[tokio::test]
    async fn a_path_that_was_not_loaded_is_not_found() {
        let assets = assets_of(&[], &[("a/Tone_1.json", json!({}))]);
        let expected = r#"{"ok":false,"reason":"not_found"}"#;
        for path in ["a/../a/Tone_1.json", "../a/Tone_1.json", "/etc/passwd", "/a/Tone_1.json", "a", ""] {
            let (result, code) = answer(&assets, "get_example", json!({"path": path})).await;
            assert_eq!((result.as_str(), code), (expected, Some(ErrorCode::NotFound)), "{path}");
        }
        let message = failure_message(&assets, "get_example", json!({"path": "a/Tone_2.json"})).await;
        assert!(message.contains("the nearest is `a/Tone_1.json`"), "{message}");
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_link_out_of_the_folder_is_not_found() {
        let outside = crate::testing::folder_of(&[("secret.json", "{}".to_owned())]);
        let folder = tempfile::tempdir().expect("a folder");
        std::os::unix::fs::symlink(outside.path().join("secret.json"), folder.path().join("x.json"))
            .expect("linked");
        let config = crate::AssetsConfig { examples_dir: Some(folder.path().into()), ..Default::default() };
        let assets = std::sync::Arc::new(crate::Assets::load(config));
        let (_, code) = answer(&assets, "get_example", json!({"path": "x.json"})).await;
        assert_eq!(code, Some(ErrorCode::NotFound));
    }
}
