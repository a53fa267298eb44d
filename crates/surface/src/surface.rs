//! A surface, and its lock: the canonical form in a file.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

/// The number of the lock's format.
pub const LOCK_VERSION: u64 = 1;

/// What the clients of a server rely on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Surface {
    /// The version of what belongs to no single tool: error codes, defaults, timeouts, resource templates.
    pub version: u64,
    /// The tools by their stable names.
    pub tools: BTreeMap<String, SurfaceTool>,
    /// Resource templates by their URI templates.
    pub resource_templates: BTreeMap<String, Value>,
    /// Error codes with their numbers.
    pub error_codes: BTreeMap<String, Value>,
    /// Defaults that callers can observe.
    pub defaults: BTreeMap<String, Value>,
    /// Timeouts that callers can observe.
    pub timeouts: BTreeMap<String, Value>,
    /// The text that clients give to the model.
    pub instructions: Option<String>,
}

/// One tool of a surface.
#[derive(Clone, Debug, PartialEq)]
pub struct SurfaceTool {
    /// The name that clients list, where it differs from the stable one.
    pub listed_name: Option<String>,
    /// A short name for people.
    pub title: Option<String>,
    /// What the model reads.
    pub description: Option<String>,
    /// The schema of the arguments.
    pub input_schema: Value,
    /// The schema of the result, if there is one.
    pub output_schema: Option<Value>,
    /// Hints for clients.
    pub annotations: BTreeMap<String, Value>,
    /// The declared version; 0 if there is none.
    pub schema_version: u64,
    /// Older names that still work.
    pub aliases: BTreeSet<String>,
    /// Since when the tool should not be used.
    pub deprecated: Option<String>,
    /// How long a call may run, in milliseconds.
    pub timeout_ms: Option<u64>,
    /// The error codes that it returns, where it names them.
    pub error_codes: BTreeSet<String>,
}

impl Surface {
    /// The lock: sorted, without what is absent.
    pub fn to_lock(&self) -> Value {
        let mut lock = Map::new();
        lock.insert("lockVersion".to_owned(), json!(LOCK_VERSION));
        lock.insert("surfaceVersion".to_owned(), json!(self.version));
        if let Some(instructions) = &self.instructions {
            lock.insert("instructions".to_owned(), json!(instructions));
        }
        let sections = [
            ("errorCodes", &self.error_codes),
            ("defaults", &self.defaults),
            ("timeouts", &self.timeouts),
            ("resourceTemplates", &self.resource_templates),
        ];
        for (name, section) in sections.into_iter().filter(|(_, section)| !section.is_empty()) {
            lock.insert(name.to_owned(), json!(section));
        }
        let tools: Vec<Value> = self.tools.iter().map(|(name, tool)| tool.to_json(name)).collect();
        lock.insert("tools".to_owned(), Value::Array(tools));
        let mut lock = Value::Object(lock);
        sort_schemas(&mut lock);
        lock
    }
}

impl SurfaceTool {
    fn to_json(&self, name: &str) -> Value {
        let mut tool = Map::new();
        tool.insert("name".to_owned(), json!(name));
        let mut add = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                tool.insert(name.to_owned(), value);
            }
        };
        add("listedName", self.listed_name.as_ref().map(|name| json!(name)));
        add("schemaVersion", Some(json!(self.schema_version)));
        add("title", self.title.as_ref().map(|title| json!(title)));
        add("description", self.description.as_ref().map(|text| json!(text)));
        add("deprecated", self.deprecated.as_ref().map(|since| json!(since)));
        add("aliases", (!self.aliases.is_empty()).then(|| json!(self.aliases)));
        add("annotations", (!self.annotations.is_empty()).then(|| json!(self.annotations)));
        add("timeoutMs", self.timeout_ms.map(|timeout| json!(timeout)));
        add("errorCodes", (!self.error_codes.is_empty()).then(|| json!(self.error_codes)));
        add("inputSchema", Some(self.input_schema.clone()));
        add("outputSchema", self.output_schema.clone());
        Value::Object(tool)
    }
}

/// Sorts the keys inside of schemas, so that a lock changes only where the surface does.
fn sort_schemas(lock: &mut Value) {
    let tools = lock.get_mut("tools").and_then(Value::as_array_mut).into_iter().flatten();
    for tool in tools {
        for schema in ["inputSchema", "outputSchema"] {
            if let Some(schema) = tool.get_mut(schema) {
                schema.sort_all_objects();
            }
        }
    }
}
