//! `list_examples`: lists the examples, all or those of one component.

use std::sync::Arc;

use pintle_contract::{Annotations, Fault, Permission};
use pintle_tool::{CallContext, Tool, ToolOutput};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Assets, output::Yes};

/// The value of `component` that selects every component.
const ALL: &str = "all";

pub(crate) struct ListExamples(pub(crate) Arc<Assets>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// Only the examples of this component, such as `synesthetic-asset`; `all` for every one.
    #[serde(default = "all")]
    component: String,
}

fn all() -> String {
    ALL.into()
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Output {
    ok: Yes,
    /// Sorted by component, then path.
    examples: Vec<ListedExample>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct ListedExample {
    /// The kind of asset that the example shows.
    component: String,
    /// The file, from the root; relative to the examples folder if that is outside the root. get_example takes it.
    path: String,
}

impl ToolOutput for Output {}

impl Tool for ListExamples {
    type Input = Input;
    type Output = Output;

    const NAME: &'static str = "list_examples";
    const TITLE: &'static str = "List examples";
    const DESCRIPTION: &'static str = "Lists example assets, of one component or of all. get_example returns one \
        of them.";
    const ANNOTATIONS: Annotations = Annotations::READ_ONLY;
    const PERMISSIONS: &'static [Permission] = &[Permission::AnyCaller];

    async fn run(&self, input: Input, _: CallContext) -> Result<Output, Fault> {
        let examples = self.0.examples().list().into_iter();
        let wanted =
            examples.filter(|example| input.component == ALL || input.component == example.component);
        let entry = |example: &crate::examples::Example| ListedExample {
            component: example.component.clone(),
            path: example.listed_path.clone(),
        };
        Ok(Output { ok: Yes, examples: wanted.map(entry).collect() })
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{answer, assets_in_workspace, assets_of};
    use serde_json::json;

    #[tokio::test]
    async fn a_path_is_seen_from_the_root_and_the_component_is_still_that_of_the_examples_folder() {
        let examples = [("shader/foo.json", json!({})), ("Tone_1.json", json!({}))];
        let assets = assets_in_workspace(&[], &examples);
        let expected = r#"{"ok":true,"examples":[{"component":"shader","path":"examples/shader/foo.json"},{"component":"tone","path":"examples/Tone_1.json"}]}"#;
        assert_eq!(answer(&assets, "list_examples", json!({})).await, (expected.into(), None));
    }

    #[tokio::test]
    async fn examples_are_listed_by_component_and_all_is_the_default() {
        let examples = [("Tone_1.json", json!({})), ("SynestheticAsset_1.json", json!({}))];
        let assets = assets_of(&[], &examples);
        let asset = r#"{"component":"synesthetic-asset","path":"SynestheticAsset_1.json"}"#;
        let tone = r#"{"component":"tone","path":"Tone_1.json"}"#;
        for (arguments, expected) in [
            (json!({}), format!("{asset},{tone}")),
            (json!({"component": "all"}), format!("{asset},{tone}")),
            (json!({"component": "tone"}), tone.into()),
            (json!({"component": "none"}), String::new()),
        ] {
            let expected = format!(r#"{{"ok":true,"examples":[{expected}]}}"#);
            assert_eq!(answer(&assets, "list_examples", arguments).await, (expected, None));
        }
    }
}
