//! What holds of the workspace's files besides what the files toolset itself demands.

use std::path::Path;

use pintle_assets::Bindings;
use pintle_contract::{ErrorCode, Fault, WorkspacePath};
use pintle_files::Rules;

use crate::settings::Workspace;

/// Files that are bound to a schema, and places that the tools only read.
pub struct WorkspaceRules {
    bindings: Bindings,
    read_only: Vec<ReadOnly>,
}

/// A place that the server itself is made by: a tool that could change it could change what the server does.
struct ReadOnly {
    place: WorkspacePath,
    what: &'static str,
}

impl WorkspaceRules {
    /// The rules of a workspace.
    pub fn new(workspace: &Workspace, bindings: Bindings) -> Self {
        let place = |path: Option<&Path>, what| {
            let place = workspace.place_in_root(path?)?;
            Some(ReadOnly { place, what })
        };
        let schemas = place(workspace.schemas_dir.as_deref(), "the folder of schemas in use");
        let config = place(Some(&workspace.config_file), "the server's configuration");
        Self { bindings, read_only: schemas.into_iter().chain(config).collect() }
    }
}

impl Rules for WorkspaceRules {
    fn apply_to(&self, path: &WorkspacePath) -> bool {
        self.bindings.schemas_of(path.as_str()).next().is_some()
    }

    fn judge(
        &self,
        path: &WorkspacePath,
        before: Option<&[u8]>,
        after: &[u8],
        has_ended: &dyn Fn() -> bool,
    ) -> Result<(), Fault> {
        self.bindings.judge(path.as_str(), before, after, has_ended)
    }

    fn may_change(&self, path: &WorkspacePath) -> Result<(), Fault> {
        match self.read_only.iter().find(|read_only| path.is_within(&read_only.place)) {
            Some(ReadOnly { place, what }) => {
                let message = format!("{path} cannot be changed by tools: {place} is {what}");
                Err(Fault::new(ErrorCode::Forbidden, message)
                    .hint("a person has to change it, and to start the server anew"))
            }
            None => Ok(()),
        }
    }
}
