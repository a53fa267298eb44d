//! What the tools report that does not change while the server runs.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Serialize;

/// Where the workspace is, and how the server was set up for it.
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
    /// What the server warned of when it started.
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

/// What the server refuses to exceed.
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
    /// How long a call may run, in milliseconds; 0 is for ever.
    pub timeout_ms: u64,
}
