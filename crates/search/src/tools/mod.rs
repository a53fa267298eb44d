//! The tools, one file each.

mod hint;
mod index_build;
mod index_status;
mod search;

use std::{collections::BTreeMap, sync::Arc};

use pintle_tool::{DynTool, erase};
use schemars::JsonSchema;
use serde::Serialize;

pub use index_status::IndexState;
pub(crate) use index_status::index_state;
pub use search::Match;
pub(crate) use search::{filter_of, pattern_of, search_now, walk_within};

use crate::{search::Search, summary::Summary};

/// The tools of this toolset.
pub(crate) fn search_tools(search: &Arc<Search>) -> Vec<Arc<dyn DynTool>> {
    let search = || Arc::clone(search);
    vec![
        erase(index_build::IndexBuild(search())),
        erase(index_status::IndexStatus(search())),
        erase(search::SearchTool(search())),
    ]
}

/// What a search covered.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Coverage {
    /// How many files were searched, of those that the caller may read.
    files: u64,
    /// How many files were skipped, by reason.
    skipped: BTreeMap<&'static str, u64>,
    /// Whether these are all: a search without an index ends when its page is full.
    complete: bool,
}

impl Coverage {
    fn new(summary: &Summary, complete: bool) -> Self {
        Self { files: summary.files, skipped: summary.skipped.clone(), complete }
    }
}
