//! `index_status`.

use std::{collections::BTreeMap, sync::Arc};

use pintle_contract::{Annotations, Fault, Permission};
use pintle_tool::{CallContext, NoArguments, Tool, ToolOutput};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    search::Search,
    snapshot::{Snapshot, Watching},
    summary::Ready,
};

pub(crate) struct IndexStatus(pub(crate) Arc<Search>);

/// The state of the index, for what the caller may read.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub struct IndexState {
    /// Whether there is an index.
    exists: bool,
    /// Rises with each build that found changes.
    generation: u64,
    /// How many files are searched.
    files: u64,
    /// How many bytes they have.
    bytes: u64,
    /// The size of the index on disk; only for callers that may read everything.
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    /// The part of `size` that text searches need.
    #[serde(skip_serializing_if = "Option::is_none")]
    text_size: Option<u64>,
    /// When it was built.
    #[serde(skip_serializing_if = "Option::is_none")]
    built_at: Option<String>,
    /// How many files have changed since then; searches see them as they are now.
    pending: u64,
    /// How many files, by language.
    languages: BTreeMap<&'static str, u64>,
    /// How many files under the root are skipped, by reason.
    skipped: BTreeMap<&'static str, u64>,
    /// How many files there are in all.
    found: u64,
    /// Which searches the index can answer.
    ready: Option<Ready>,
    /// The build that is running in the background.
    #[serde(skip_serializing_if = "Option::is_none")]
    building: Option<Building>,
    /// Without an index: why none is built automatically, although that is set. Text is scanned meanwhile.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_built: Option<String>,
    /// How changes from outside are found: `events`, `walking` or, before the first search, `not yet`.
    watching: &'static str,
    /// Files over this size are not searched.
    max_file_bytes: u64,
}

/// The progress of a build in the background.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Building {
    /// `wait` for another build, `walk`, `text`, `words` or `symbols`.
    phase: &'static str,
    /// The progress of the phase, in percent; only for callers that may read everything.
    #[serde(skip_serializing_if = "Option::is_none")]
    percent: Option<u64>,
}

impl ToolOutput for IndexState {}

impl Tool for IndexStatus {
    type Input = NoArguments;
    type Output = IndexState;

    const NAME: &'static str = "index_status";
    const TITLE: &'static str = "State of the index";
    const SCHEMA_VERSION: u32 = 2;
    const DESCRIPTION: &'static str = "Reports whether there is a search index, what it covers, what it skips and why, and how fresh it is.";
    const ANNOTATIONS: Annotations = Annotations::READ_ONLY;
    const PERMISSIONS: &'static [Permission] = &[Permission::AnyCaller];

    async fn run(&self, _: NoArguments, call: CallContext) -> Result<IndexState, Fault> {
        let search = Arc::clone(&self.0);
        call.compute(move |call| index_state(&search, call)).await?
    }
}

/// The state of the index, for what a caller may read.
pub(crate) fn index_state(search: &Search, call: &CallContext) -> Result<IndexState, Fault> {
    let mut state =
        IndexState { max_file_bytes: search.limit(), watching: "not yet", ..IndexState::default() };
    let permissions = call.caller().permissions();
    state.building = search.build_progress().map(|progress| Building {
        phase: progress.phase.name(),
        percent: (permissions.may_read_everything() && progress.total > 0)
            .then(|| progress.done.saturating_mul(100) / progress.total),
    });
    let Some(snapshot) = search.snapshot_if_any(call)? else {
        state.not_built = search.why_unindexed();
        return Ok(state);
    };
    // If counting fails, the state shows the last count.
    let _ = search.count_skipped(&snapshot, &|| call.has_ended());
    let summary = search.summary(&snapshot, permissions)?;
    state.exists = true;
    state.max_file_bytes = snapshot.manifest.limit;
    state.generation = snapshot.index.generation;
    state.files = summary.files;
    state.bytes = summary.bytes;
    if permissions.may_read_everything() {
        let (text, all) = snapshot.index.bytes();
        (state.size, state.text_size) = (Some(all), Some(text));
    }
    state.built_at = built_at(&snapshot);
    state.pending = summary.pending;
    state.languages.clone_from(&summary.languages);
    state.skipped.clone_from(&summary.skipped);
    state.found = summary.found();
    state.ready = Some(Ready::of(&snapshot));
    state.watching = match search.watching() {
        Watching::Events => "events",
        Watching::Walking(_) => "walking",
        Watching::NotYet => "not yet",
    };
    Ok(state)
}

fn built_at(snapshot: &Snapshot) -> Option<String> {
    let milliseconds = i64::try_from(snapshot.manifest.built_at).ok()?;
    jiff::Timestamp::from_millisecond(milliseconds).ok().map(|time| format!("{time:.3}"))
}
