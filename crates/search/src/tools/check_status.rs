//! `check_status`.

use std::sync::Arc;

use pintle_contract::{Annotations, ErrorCode, Fault};
use pintle_git::Problem;
use pintle_tool::{CallContext, NoArguments, Tool, ToolOutput};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    live::{Snapshot, Watching},
    search::Search,
    summary::Ready,
    surroundings::Surroundings,
};

pub(crate) struct CheckStatus(pub(crate) Arc<Search>, pub(crate) Arc<Surroundings>);

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Output {
    /// Whether nothing is broken.
    ok: bool,
    /// Each thing that the server can do, and whether it can do it now.
    capabilities: Vec<Capability>,
    /// What a person should see to.
    warnings: Vec<Warning>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Capability {
    /// What it is.
    name: &'static str,
    /// Whether it works.
    state: State,
}

/// Whether something works.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum State {
    /// It works.
    Works,
    /// It was not set up.
    Off,
    /// It is set up and does not work.
    Broken,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Warning {
    /// What is wrong.
    message: String,
    /// What to do about it.
    remedy: String,
}

impl ToolOutput for Output {}

impl Tool for CheckStatus {
    type Input = NoArguments;
    type Output = Output;

    const NAME: &'static str = "check_status";
    const TITLE: &'static str = "Check health";
    const DESCRIPTION: &'static str =
        "Checks each capability of the server and tells whether it works, and each warning with its remedy.";
    const ANNOTATIONS: Annotations = Annotations::READ_ONLY;

    async fn run(&self, _: NoArguments, call: CallContext) -> Result<Output, Fault> {
        let (search, around) = (Arc::clone(&self.0), Arc::clone(&self.1));
        call.compute(move |call| check(&search, &around, call)).await?
    }
}

fn check(search: &Arc<Search>, around: &Surroundings, call: &CallContext) -> Result<Output, Fault> {
    let mut checks = Checks::default();
    let can_read = std::fs::read_dir(search.root_path()).map(drop);
    checks.add("files", if can_read.is_ok() { State::Works } else { State::Broken });
    if let Err(error) = can_read {
        checks.warn(format!("the root cannot be read: {error}"), "see that it exists and may be read");
    }
    match search.snapshot(call) {
        Ok(snapshot) => {
            checks.searches(&snapshot);
            if let Some(message) = search.other_limit(&snapshot) {
                checks.warn(message, "call index_build");
            }
        }
        Err(fault) if fault.code == ErrorCode::Cancelled => return Err(fault),
        Err(fault) => {
            let state = if fault.code == ErrorCode::NoIndex { State::Off } else { State::Broken };
            let is_scanned = search.scans_without_index();
            let will_come = search.builds_by_itself();
            checks.add("text search", if is_scanned { State::Works } else { state });
            for name in ["word search", "symbol search"] {
                checks.add(name, if will_come { State::Works } else { state });
            }
            if !will_come {
                let remedy = fault.hint.as_deref().unwrap_or("call index_build");
                let reason = search.why_unindexed().filter(|_| is_scanned);
                let reason = reason.map(|reason| format!("no index is built by itself: {reason}"));
                checks.warn(reason.unwrap_or_else(|| fault.message.clone()), remedy);
            }
        }
    }
    if let Some(progress) = search.build_progress() {
        let message = format!("the index is being built in the background ({})", progress.phase.name());
        checks.warn(
            message,
            "nothing is to be done: text is searched meanwhile, words and symbols wait for it",
        );
    }
    match search.watching() {
        Watching::Events => checks.add("watching", State::Works),
        Watching::NotYet => checks.add("watching", State::Off),
        Watching::Walking(problem) => {
            checks.add("watching", State::Broken);
            let message = format!("changes from outside are looked for before each search: {problem}");
            checks.warn(message, "raise fs.inotify.max_user_watches (sysctl), then start the server again");
        }
    }
    let git = match pintle_git::status(search.root_path(), &|| call.has_ended()) {
        Ok(Some(_)) => State::Works,
        Ok(None) => State::Off,
        Err(problem) => {
            // The problem may name files that this caller must not know of; workspace_status looks at that.
            let message = "the state of the git repository is not available".to_owned();
            checks.warn(message, "see `gitProblem` in the result of workspace_status");
            if matches!(problem, Problem::NotUsed(_)) { State::Off } else { State::Broken }
        }
    };
    checks.add("git", git);
    checks.add("schemas", if around.schemas.is_empty() { State::Off } else { State::Works });
    checks.add("backend", if around.has_backend { State::Works } else { State::Off });
    for warning in &around.warnings {
        checks.warn(warning.clone(), "mend it and start the server again");
    }
    let ok = checks.capabilities.iter().all(|capability| capability.state != State::Broken);
    Ok(Output { ok, capabilities: checks.capabilities, warnings: checks.warnings })
}

#[derive(Default)]
struct Checks {
    capabilities: Vec<Capability>,
    warnings: Vec<Warning>,
}

impl Checks {
    fn add(&mut self, name: &'static str, state: State) {
        self.capabilities.push(Capability { name, state });
    }

    fn warn(&mut self, message: String, remedy: &str) {
        self.warnings.push(Warning { message, remedy: remedy.to_owned() });
    }

    fn searches(&mut self, snapshot: &Snapshot) {
        let ready = Ready::of(snapshot);
        let searches =
            [("text search", ready.text), ("word search", ready.words), ("symbol search", ready.symbols)];
        for (name, is_ready) in searches {
            self.add(name, if is_ready { State::Works } else { State::Off });
        }
        if !(ready.words && ready.symbols) {
            let message = "words or symbols are not built yet".to_owned();
            self.warn(message, "wait for the build to end, or call index_build");
        }
    }
}
