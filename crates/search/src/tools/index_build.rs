//! `index_build`.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use pintle_contract::{Annotations, ErrorCode, Fault, Permission, Verb, WorkspacePath};
use pintle_tool::{CallContext, ProgressEvent, Stream, Tool, ToolOutput};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    build::{self, Observer, Phase},
    search::Search,
    summary::Ready,
};

pub(crate) struct IndexBuild(pub(crate) Arc<Search>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// A file or folder: refreshes only this part of an existing index. Default: everything.
    #[serde(default)]
    path: Option<String>,
    /// `incremental`, the default, reads what has changed; `full` reads everything.
    #[serde(default)]
    mode: ModeInput,
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ModeInput {
    #[default]
    Incremental,
    Full,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Output {
    /// Rises with each build that found changes.
    generation: u64,
    /// How many files were read.
    read: u64,
    /// How many files were removed from the index.
    removed: u64,
    /// Why everything was read although only changes were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    rebuilt: Option<&'static str>,
    /// How many files are searched now.
    files: u64,
    /// How many files under the root are skipped, by reason.
    skipped: BTreeMap<&'static str, u64>,
    /// How many there are in all.
    found: u64,
    /// Which searches work now.
    ready: Ready,
}

impl ToolOutput for Output {}

impl Tool for IndexBuild {
    type Input = Input;
    type Output = Output;

    const NAME: &'static str = "index_build";
    const TITLE: &'static str = "Build the index";
    const DESCRIPTION: &'static str = "Builds or refreshes the search index and waits for it. Searches do this automatically: call it where `index_status` says that they do not, or after large changes. A cancelled build keeps the old index.";
    const SCHEMA_VERSION: u32 = 2;
    const ANNOTATIONS: Annotations = Annotations {
        read_only_hint: false,
        destructive_hint: false,
        idempotent_hint: true,
        open_world_hint: false,
    };
    const PERMISSIONS: &'static [Permission] =
        &[Permission::Workspace(Verb::Write), Permission::Argument(Verb::Read, "/path")];
    const MAY_BE_TASK: bool = true;
    /// Reading a large tree for the first time takes longer than most calls.
    const TIMEOUT: Option<Duration> = Some(Duration::from_secs(600));

    async fn run(&self, input: Input, call: CallContext) -> Result<Output, Fault> {
        let search = Arc::clone(&self.0);
        let path = input.path.as_deref().map(parse).transpose()?;
        let mode = match input.mode {
            ModeInput::Incremental => build::Mode::Incremental,
            ModeInput::Full => build::Mode::Full,
        };
        let work = move |call: &CallContext| {
            let built = search.build(mode, path.as_ref(), &ProgressReporter(call))?;
            let snapshot = search.snapshot(call)?;
            let summary = search.summary(&snapshot, call.caller().permissions())?;
            // What the caller may not read is not counted.
            let may_count_all = call.caller().permissions().may_read_everything();
            Ok(Output {
                generation: built.generation,
                read: if may_count_all { built.read } else { built.read.min(summary.files) },
                removed: built.removed,
                rebuilt: built.rebuilt,
                files: summary.files,
                skipped: summary.skipped.clone(),
                found: summary.found(),
                ready: Ready::of(&snapshot),
            })
        };
        call.compute(work).await?
    }
}

fn parse(path: &str) -> Result<WorkspacePath, Fault> {
    WorkspacePath::parse(path).map_err(|problem| {
        Fault::new(ErrorCode::InvalidRequest, format!("the path cannot be used: {problem}"))
            .hint("paths are relative to the root of the workspace, such as `src`")
    })
}

/// Reports the progress of a build to the caller.
struct ProgressReporter<'a>(&'a CallContext);

impl Observer for ProgressReporter<'_> {
    fn step(&self, phase: Phase, done: u64, total: u64) {
        if !self.0.progress().is_wanted() {
            return;
        }
        // The size of everything would also count what the caller may not read.
        let may_count_all = self.0.caller().permissions().may_read_everything();
        let sized = |name: &str| match may_count_all {
            true => format!("{name}: {} of {} MB", done >> 20, total >> 20),
            false => name.to_owned(),
        };
        // Each phase's rough share of the time.
        let (start, share, message) = match phase {
            Phase::Waiting => (0.0, 0.0, "waiting for another build".to_owned()),
            Phase::Walk => (0.0, 2.0, "looking for files".to_owned()),
            Phase::Text => (2.0, 18.0, sized("text")),
            Phase::Words => (20.0, 15.0, sized("words")),
            Phase::Symbols => (35.0, 65.0, sized("symbols")),
        };
        let part = if total == 0 { 0.0 } else { done as f64 / total as f64 };
        self.0.progress().report(ProgressEvent {
            progress: start + share * part,
            total: Some(100.0),
            message,
            stream: Stream::Info,
            phase: phase.name(),
        });
    }

    fn has_ended(&self) -> bool {
        self.0.has_ended()
    }
}
