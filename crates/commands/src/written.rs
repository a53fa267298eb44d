//! A manifest as it is written. What it means is decided in `manifest`.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

/// The keys of a manifest.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WrittenManifest {
    pub(crate) name: String,
    pub(crate) title: Option<String>,
    pub(crate) description: String,
    #[schemars(length(min = 1))]
    pub(crate) command: Vec<String>,
    pub(crate) stdin: Option<StdinForm>,
    pub(crate) cwd: Option<String>,
    #[serde(default)]
    pub(crate) env: Vec<String>,
    pub(crate) timeout: Option<String>,
    pub(crate) grace: Option<String>,
    pub(crate) max_output: Option<usize>,
    pub(crate) max_parallel: Option<usize>,
    pub(crate) schema_version: Option<u32>,
    #[schemars(with = "Option<AnyTable>")]
    pub(crate) input: Option<Map<String, Value>>,
    #[schemars(with = "Option<AnyTable>")]
    pub(crate) output: Option<Map<String, Value>>,
}

/// What a program finds on standard input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum StdinForm {
    /// All arguments, as one JSON object.
    Json,
}

/// A table with any keys, as a JSON Schema is.
struct AnyTable;

impl JsonSchema for AnyTable {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "table".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "object" })
    }
}
