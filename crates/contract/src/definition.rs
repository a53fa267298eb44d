//! The definition of a tool, as clients see it.

use serde::Serialize;
use serde_json::{Value, json};

/// The version of what clients rely on and what belongs to no single tool: error codes, defaults, timeouts, resource
/// templates. Incremented whenever one of them changes.
pub const SURFACE_VERSION: u32 = 1;

/// The prefix of a tool id as `mcp.tool.invoke` takes it.
pub const TOOL_ID_PREFIX: &str = "mcp.tool:";

/// The id of a tool: `mcp.tool:<name>`.
pub fn tool_id(name: &str) -> String {
    format!("{TOOL_ID_PREFIX}{name}")
}

/// The spelling of a tool's name for clients that refuse dots.
pub fn underscore_name(name: &str) -> String {
    name.replace('.', "_")
}

/// Hints for clients on what a call may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Annotations {
    /// The tool changes nothing.
    pub read_only_hint: bool,
    /// The tool may destroy or overwrite data.
    pub destructive_hint: bool,
    /// Calling it twice with the same arguments has no further effect.
    pub idempotent_hint: bool,
    /// It reaches beyond this machine.
    pub open_world_hint: bool,
}

impl Annotations {
    /// A tool that only reads, and only on this machine.
    pub const READ_ONLY: Self =
        Self { read_only_hint: true, destructive_hint: false, idempotent_hint: true, open_world_hint: false };
}

/// Hints for clients on how to load a tool and show its results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientHints {
    /// A client that defers the definitions of tools should load this one at once.
    pub always_load: bool,
    /// Clients should not cut results of up to this many characters.
    pub max_result_chars: Option<u32>,
}

impl ClientHints {
    /// How many characters of a file, or of hits, a client should show a model before it cuts them.
    pub const LARGE_RESULT_CHARS: u32 = 200_000;
}

/// A tool as clients see it.
#[derive(Clone, Debug)]
pub struct ToolDefinition {
    /// The stable identifier, with dots where the toolset has them.
    pub name: String,
    /// A short name for people.
    pub title: String,
    /// What the tool does, for the model that chooses it.
    pub description: String,
    /// JSON Schema of the arguments.
    pub input_schema: Value,
    /// JSON Schema of the result.
    pub output_schema: Value,
    /// Hints for clients.
    pub annotations: Annotations,
    /// How clients are asked to treat it.
    pub client_hints: ClientHints,
    /// Incremented whenever arguments, results, errors, defaults or timing change their meaning.
    pub schema_version: u32,
    /// Older names of the tool, which still work and are deprecated.
    pub aliases: Vec<String>,
    /// Since which version the tool itself is deprecated.
    pub deprecated: Option<String>,
}

impl ToolDefinition {
    /// The definition as JSON for clients; `tooling_version` is the version and commit of the server.
    pub fn to_json(&self, tooling_version: &str) -> Value {
        let mut definition = json!({
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": self.input_schema,
            "outputSchema": self.output_schema,
            "annotations": self.annotations,
            "schemaVersion": self.schema_version,
            "toolingVersion": tooling_version,
            "_meta": {
                "pintle/schemaVersion": self.schema_version,
                "pintle/toolingVersion": tooling_version,
            },
        });
        if !self.aliases.is_empty() {
            definition["aliases"] = json!(self.aliases);
        }
        if let Some(deprecated) = &self.deprecated {
            definition["deprecated"] = json!(deprecated);
        }
        definition
    }
}
