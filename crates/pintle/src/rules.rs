//! What holds of the workspace's files besides what the files toolset itself demands.

use pintle_assets::Bindings;
use pintle_contract::{ErrorCode, Fault, WorkspacePath};
use pintle_files::Rules;

use crate::{config::ConfigFile, settings::Workspace};

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
        let schemas = workspace.schemas_dir.iter().map(|path| (path.clone(), "the folder of schemas in use"));
        // The one in use, and those that would be in use at another start.
        let default = ConfigFile::path(None);
        let config = [workspace.config_file.clone(), default.to_owned(), workspace.root.join(default)];
        let config = config.into_iter().map(|path| (path, "the server's configuration"));
        let own = workspace.own_files.iter().map(|path| (path.clone(), "a file that the server writes"));
        let read_only = schemas.chain(config).chain(own).flat_map(|(path, what)| {
            // The name may be that of a link: neither it nor what it leads to is to be changed.
            let places = [workspace.name_in_root(&path), workspace.place_in_root(&path)];
            places.into_iter().flatten().map(move |place| ReadOnly { place, what })
        });
        Self { bindings, read_only: read_only.collect() }
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
                    .hint("a person has to change it and restart the server"))
            }
            None => Ok(()),
        }
    }
}
