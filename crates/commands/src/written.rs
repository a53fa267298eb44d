//! A manifest as it is written. What it means is decided in `manifest`, which also says what is wrong with a value: better
//! than a schema could.

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
    pub(crate) command: Value,
    pub(crate) stdin: Option<Value>,
    pub(crate) cwd: Option<String>,
    pub(crate) env: Option<Value>,
    pub(crate) timeout: Option<Value>,
    pub(crate) grace: Option<Value>,
    pub(crate) max_output: Option<Value>,
    pub(crate) max_parallel: Option<Value>,
    pub(crate) schema_version: Option<Value>,
    #[schemars(with = "Option<AnyTable>")]
    pub(crate) input: Option<Map<String, Value>>,
    #[schemars(with = "Option<AnyTable>")]
    pub(crate) output: Option<Map<String, Value>>,
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
