//! `list_schemas`: lists the schemas.

use std::sync::Arc;

use pintle_contract::{Annotations, Fault, Permission};
use pintle_tool::{CallContext, NoArguments, Tool, ToolOutput};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{Assets, output::Yes};

pub(crate) struct ListSchemas(pub(crate) Arc<Assets>);

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Output {
    ok: Yes,
    /// Sorted by name, then version, then path.
    schemas: Vec<ListedSchema>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct ListedSchema {
    /// The name that other tools take.
    name: String,
    /// Empty if the schema states none.
    version: String,
    /// The file, from the root; relative to the schemas folder if that is outside the root.
    path: String,
}

impl ToolOutput for Output {}

impl Tool for ListSchemas {
    type Input = NoArguments;
    type Output = Output;

    const NAME: &'static str = "list_schemas";
    const TITLE: &'static str = "List schemas";
    const DESCRIPTION: &'static str = "Lists the JSON Schemas that assets can be validated against: name, \
        version and file of each. get_schema returns one of them.";
    const ANNOTATIONS: Annotations = Annotations::READ_ONLY;
    const PERMISSIONS: &'static [Permission] = &[Permission::AnyCaller];

    async fn run(&self, _: NoArguments, _: CallContext) -> Result<Output, Fault> {
        let entry = |schema: &crate::schema::Schema| ListedSchema {
            name: schema.name.clone(),
            version: schema.version.clone(),
            path: schema.listed_path.clone(),
        };
        Ok(Output { ok: Yes, schemas: self.0.schemas().list().into_iter().map(entry).collect() })
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{answer, assets_in_workspace, assets_of};
    use serde_json::json;

    #[tokio::test]
    async fn the_list_has_name_version_and_path_of_each() {
        let assets = assets_of(&[("b.json", json!({})), ("x/a.schema.json", json!({"version": 2}))], &[]);
        let expected = r#"{"ok":true,"schemas":[{"name":"a","version":"2","path":"x/a.schema.json"},{"name":"b","version":"","path":"b.json"}]}"#;
        assert_eq!(answer(&assets, "list_schemas", json!({})).await, (expected.into(), None));
    }

    #[tokio::test]
    async fn a_path_is_seen_from_the_root_if_the_folder_lies_inside_it() {
        let assets = assets_in_workspace(&[("x/a.schema.json", json!({}))], &[]);
        let expected =
            r#"{"ok":true,"schemas":[{"name":"a","version":"","path":"schemas/x/a.schema.json"}]}"#;
        assert_eq!(answer(&assets, "list_schemas", json!({})).await, (expected.into(), None));
    }

    #[tokio::test]
    async fn without_schemas_the_list_is_empty() {
        let assets = std::sync::Arc::new(crate::Assets::load(crate::AssetsConfig::default()));
        assert_eq!(
            answer(&assets, "list_schemas", json!({})).await,
            (r#"{"ok":true,"schemas":[]}"#.into(), None)
        );
    }
}
