//! `workspace_status`: reports the state of the workspace.

use std::sync::Arc;

use bstr::ByteSlice;
use pintle_contract::{Access, Annotations, Fault, Permission, Permissions, Verb, WorkspacePath};
use pintle_git::GitStatus;
use pintle_root::is_reserved_path;
use pintle_tool::{CallContext, NoArguments, Tool, ToolOutput};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    config::{Binding, Limits, WorkspaceConfig},
    search_reporter::SearchReporter,
};

pub(crate) struct WorkspaceStatus<S> {
    pub(crate) config: Arc<WorkspaceConfig>,
    pub(crate) search: Arc<S>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub(crate) struct Output<I> {
    /// The folder that the tools see as `/`.
    root: String,
    /// The state of the git work tree that the root is, or is a folder of; also in linked worktrees and submodules.
    #[serde(skip_serializing_if = "Option::is_none")]
    git: Option<GitReport>,
    /// Why the state of git is missing although there is a repository in the root or above it.
    #[serde(skip_serializing_if = "Option::is_none")]
    git_problem: Option<String>,
    /// The search index, as in `index_status`.
    index: I,
    /// The names of the schemas.
    schemas: Vec<String>,
    /// The files that are bound to a schema.
    bindings: Vec<Binding>,
    /// The server's limits.
    limits: Limits,
}

/// The state of git.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
struct GitReport {
    /// The commit; only for callers that may read the root.
    #[serde(skip_serializing_if = "Option::is_none")]
    head: Option<String>,
    /// The branch, unless the head is detached; only for callers that may read the root.
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<String>,
    /// The files that differ from the commit, of those that the caller may read; at most 200 of them.
    dirty: Vec<DirtyFile>,
    /// How many there are in all, if they could be counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<u64>,
    /// Without `total`: how many there are at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    at_least: Option<u64>,
    /// Whether there are more than these.
    truncated: bool,
}

/// The most dirty files in one report.
const MAX_DIRTY: usize = 200;

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct DirtyFile {
    /// The file, relative to the root.
    path: String,
    /// `added`, `modified`, `deleted`, `untracked` or `conflicted`.
    change: &'static str,
}

impl<I: Serialize + JsonSchema + Send> ToolOutput for Output<I> {}

impl<S: SearchReporter> Tool for WorkspaceStatus<S> {
    type Input = NoArguments;
    type Output = Output<S::IndexState>;

    const NAME: &'static str = "workspace_status";
    const TITLE: &'static str = "State of the workspace";
    const SCHEMA_VERSION: u32 = 2;
    const DESCRIPTION: &'static str = "Reports where the workspace is and its state: git's head, branch and dirty files, the search index, schemas, bound files and limits.";
    const ANNOTATIONS: Annotations = Annotations::READ_ONLY;
    const PERMISSIONS: &'static [Permission] = &[Permission::AnyCaller];

    async fn run(&self, _: NoArguments, call: CallContext) -> Result<Self::Output, Fault> {
        let (config, search) = (Arc::clone(&self.config), Arc::clone(&self.search));
        call.compute(move |call| status(&config, search.as_ref(), call)).await?
    }
}

fn status<S: SearchReporter>(
    config: &WorkspaceConfig,
    search: &S,
    call: &CallContext,
) -> Result<Output<S::IndexState>, Fault> {
    let permissions = call.caller().permissions();
    // Temporary and staged files are no files of the user's.
    let admits = |path: &[u8]| permissions.may_read_bytes(path) && !is_reserved_path(path);
    let (git, git_problem) = match pintle_git::status_of(&config.root, &admits, &|| call.has_ended()) {
        Ok(status) => (status.map(|status| git_report(status, permissions)), None),
        // The message may name files that the caller may not read, because of its scopes or of a deny rule.
        Err(problem) if may_read_every_file(permissions) => (None, Some(problem.to_string())),
        Err(_) => {
            let reason = "there is a repository, but its state is not available; a caller that may read everything can see why, and so can `git status`";
            (None, Some(reason.to_owned()))
        }
    };
    Ok(Output {
        root: config.root.display().to_string(),
        git,
        git_problem,
        index: search.index_state(call)?,
        schemas: config.schemas.clone(),
        bindings: config.bindings.iter().filter(|binding| may_know(permissions, binding)).cloned().collect(),
        limits: config.limits,
    })
}

/// Whether no scope and no deny rule keeps any file from the caller.
fn may_read_every_file(permissions: &Permissions) -> bool {
    let root = WorkspacePath::root();
    permissions.may_read_all_in(&root) && permissions.check(&Access::Tree(Verb::Read, root)).is_ok()
}

/// A caller that may read this file may see which commit and branch are checked out.
const GIT_HEAD: &[u8] = b".git/HEAD";

fn git_report(status: GitStatus, permissions: &Permissions) -> GitReport {
    let may_read_head = permissions.may_read_bytes(GIT_HEAD);
    let count = status.dirty.len();
    let dirty = status.dirty.iter().take(MAX_DIRTY);
    let dirty = dirty
        .map(|dirty| DirtyFile { path: dirty.path.to_str_lossy().into_owned(), change: dirty.change.name() });
    GitReport {
        head: status.head.filter(|_| may_read_head),
        branch: status.branch.filter(|_| may_read_head),
        dirty: dirty.collect(),
        total: (!status.truncated).then_some(count as u64),
        at_least: status.truncated.then_some(count as u64),
        truncated: count > MAX_DIRTY,
    }
}

/// Whether a caller may see a binding: if it may read the folder of the bound files.
fn may_know(permissions: &Permissions, binding: &Binding) -> bool {
    let plain = binding.path.split(['*', '?', '[', '{']).next().unwrap_or_default();
    let folder = plain.rsplit_once('/').map_or("", |(folder, _)| folder);
    let folder = if plain == binding.path { plain } else { folder };
    WorkspacePath::parse(folder).is_ok_and(|folder| permissions.may_read(&folder))
}
