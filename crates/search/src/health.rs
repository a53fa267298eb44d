//! Health: which kinds of search work now, and what an operator should do about the others.

use pintle_contract::{ErrorCode, Fault};
use pintle_tool::CallContext;

use crate::{search::Search, snapshot::Watching, summary::Ready};

/// The health of search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchHealth {
    /// Each capability by name, and whether it works now.
    pub capabilities: Vec<(&'static str, WorkState)>,
    /// Problems that an operator should see to.
    pub warnings: Vec<HealthWarning>,
}

/// Whether a capability works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkState {
    /// It works.
    Works,
    /// It is not set up.
    Off,
    /// It is set up but does not work.
    Broken,
}

/// A problem that an operator should see to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthWarning {
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub remedy: String,
}

/// Checks search within the limits of a call.
pub(crate) fn check(search: &Search, call: &CallContext) -> Result<SearchHealth, Fault> {
    let mut health = SearchHealth::default();
    match search.snapshot(call) {
        Ok(snapshot) => {
            health.add_searches(Ready::of(&snapshot));
            if let Some(message) = search.other_limit(&snapshot) {
                health.warn(message, "call index_build");
            }
        }
        Err(fault) if fault.code == ErrorCode::Cancelled => return Err(fault),
        Err(fault) => health.add_searches_without_index(search, &fault),
    }
    if let Some(progress) = search.build_progress() {
        health.warn(
            format!("the index is being built in the background ({})", progress.phase.name()),
            "wait for it: text searches work meanwhile, word and symbol searches start when their part is ready",
        );
    }
    health.add_watching(search.watching());
    Ok(health)
}

impl SearchHealth {
    fn add(&mut self, name: &'static str, state: WorkState) {
        self.capabilities.push((name, state));
    }

    fn warn(&mut self, message: impl Into<String>, remedy: &str) {
        self.warnings.push(HealthWarning { message: message.into(), remedy: remedy.to_owned() });
    }

    fn add_searches(&mut self, ready: Ready) {
        let state = |is_ready| if is_ready { WorkState::Works } else { WorkState::Off };
        self.add("text search", state(ready.text));
        self.add("word search", state(ready.words));
        self.add("symbol search", state(ready.symbols));
        if !(ready.words && ready.symbols) {
            self.warn("words or symbols are not built yet", "wait for the build to end, or call index_build");
        }
    }

    /// Adds what works without a usable index. `fault` is why there is none.
    fn add_searches_without_index(&mut self, search: &Search, fault: &Fault) {
        let state = if fault.code == ErrorCode::NoIndex { WorkState::Off } else { WorkState::Broken };
        let is_scanned = search.scans_without_index();
        let is_built_automatically = search.builds_automatically();
        self.add("text search", if is_scanned { WorkState::Works } else { state });
        for name in ["word search", "symbol search"] {
            self.add(name, if is_built_automatically { WorkState::Works } else { state });
        }
        if !is_built_automatically {
            let remedy = fault.hint.as_deref().unwrap_or("call index_build");
            let reason = search.why_unindexed().filter(|_| is_scanned);
            let reason = reason.map(|reason| format!("no index is built automatically: {reason}"));
            self.warn(reason.unwrap_or_else(|| fault.message.clone()), remedy);
        }
    }

    fn add_watching(&mut self, watching: Watching) {
        match watching {
            Watching::Events => self.add("watching", WorkState::Works),
            Watching::NotYet => self.add("watching", WorkState::Off),
            Watching::Walking(problem) => {
                self.add("watching", WorkState::Broken);
                self.warn(
                    format!(
                        "the root is walked before each search, because changes cannot be watched: {problem}"
                    ),
                    "raise fs.inotify.max_user_watches (sysctl), then restart the server",
                );
            }
        }
    }
}
