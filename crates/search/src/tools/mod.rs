//! The tools, one file each.

mod check_status;
mod hint;
mod index_build;
mod index_status;
mod search;
mod show_file;
mod workspace_status;

use std::{collections::BTreeMap, sync::Arc};

use pintle_files::Files;
use pintle_tool::{DynTool, erase};
use schemars::JsonSchema;
use serde::Serialize;

pub(crate) use search::{filter_of, pattern_of, reach_of, search_now};

use crate::{search::Search, summary::Summary, surroundings::Surroundings};

/// The tools of search.
pub(crate) fn search_tools(search: &Arc<Search>) -> Vec<Arc<dyn DynTool>> {
    let search = || Arc::clone(search);
    vec![
        erase(index_build::IndexBuild(search())),
        erase(index_status::IndexStatus(search())),
        erase(search::SearchTool(search())),
    ]
}

/// The tools that show the workspace and how the server is.
pub(crate) fn workspace_tools(
    search: &Arc<Search>,
    files: &Arc<Files>,
    surroundings: Surroundings,
) -> Vec<Arc<dyn DynTool>> {
    let search = || Arc::clone(search);
    let surroundings = Arc::new(surroundings);
    let around = || Arc::clone(&surroundings);
    vec![
        erase(check_status::CheckStatus(search(), around())),
        erase(show_file::ShowFile(Arc::clone(files))),
        erase(workspace_status::WorkspaceStatus(search(), around())),
    ]
}

/// What a search looked at.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Coverage {
    /// How many files were searched, of those that the caller may read.
    files: u64,
    /// How many files were not, by reason.
    skipped: BTreeMap<&'static str, u64>,
    /// Whether these are all: a search without an index ends where its page is full.
    complete: bool,
}

impl Coverage {
    fn new(summary: &Summary, complete: bool) -> Self {
        Self { files: summary.files, skipped: summary.skipped.clone(), complete }
    }
}
