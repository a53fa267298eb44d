//! The facts that the tools report and that do not change while the server runs.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Serialize;

/// Where the workspace is, and how the server is configured for it.
#[derive(Clone, Debug, Default)]
pub struct WorkspaceConfig {
    /// The root.
    pub root: PathBuf,
    /// The names of the schemas.
    pub schemas: Vec<String>,
    /// Files that are bound to a schema.
    pub bindings: Vec<Binding>,
    /// The server's limits.
    pub limits: Limits,
    /// Whether assets can be published.
    pub has_backend: bool,
    /// The warnings that the server logged at start.
    pub warnings: Vec<String>,
}

/// Files that must match a schema.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Binding {
    /// A glob over paths in the root.
    pub path: String,
    /// The schema's name.
    pub schema: String,
}

/// The limits of the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub struct Limits {
    /// The largest result, in bytes.
    pub max_result_bytes: u64,
    /// The largest file that is searched, in bytes.
    pub max_file_bytes: u64,
    /// How many calls run at the same time.
    pub running: u64,
    /// How many calls wait for a slot.
    pub waiting: u64,
    /// The deadline of a call, in milliseconds; 0 is none.
    pub timeout_ms: u64,
}
