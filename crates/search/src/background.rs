//! Builds that nobody asked for, while calls go on: the first one, which a search begins, and refreshes.
//!
//! There is one at a time. It runs at low priority, so that searches that scan meanwhile are not held up, and ends when
//! the server does; the lock of the store keeps it from other builds.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex};
use rustix::process::{getpriority_process, setpriority_process};

use crate::build::{Built, Observer, Phase};

/// How much lower the priority of a build is than that of calls, in steps of `nice`.
const NICE: i32 = 10;
/// After a build that has failed, the next one is tried no sooner than this.
const RETRY_DELAY: Duration = Duration::from_secs(60);
/// How long the end of the server waits for a build to clean up. What it leaves is removed by the next one.
const STOP_TIMEOUT: Duration = Duration::from_millis(500);

/// The build that is going on behind the calls, and what came of the last one.
#[derive(Default)]
pub(crate) struct Background {
    state: Mutex<BuildState>,
    changed: Condvar,
    is_stopping: AtomicBool,
}

#[derive(Default)]
struct BuildState {
    running: Option<Progress>,
    last: Option<Outcome>,
}

/// How far a build is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Progress {
    pub(crate) phase: Phase,
    pub(crate) done: u64,
    pub(crate) total: u64,
}

/// What came of a build that did not make an index.
#[derive(Clone, Debug)]
enum Outcome {
    /// The tree is larger than what is indexed unasked.
    Declined(String),
    Failed(String, Instant),
}

impl Background {
    /// Begins a build, unless one is going on or the server is stopping.
    pub(crate) fn begin(
        self: &Arc<Self>,
        work: impl FnOnce(&dyn Observer) -> io::Result<Built> + Send + 'static,
    ) {
        {
            let mut state = self.state.lock();
            if state.running.is_some() || self.is_stopping.load(Ordering::Acquire) {
                return;
            }
            state.running = Some(Progress { phase: Phase::Waiting, done: 0, total: 0 });
        }
        let background = Arc::clone(self);
        let run = move || {
            // Whatever happens, nobody must wait for a build that is over.
            let _guard = RunningGuard(&background);
            // Threads that this one starts have its priority, too. Where it cannot be lowered, the build goes on.
            if let Ok(priority) = getpriority_process(None) {
                let _ = setpriority_process(None, (priority + NICE).min(19));
            }
            let outcome = match work(&*background) {
                Ok(Built { declined: Some(reason), .. }) => Some(Outcome::Declined(reason)),
                Ok(_) => None,
                Err(error) => Some(Outcome::Failed(error.to_string(), Instant::now())),
            };
            background.state.lock().last = outcome;
        };
        if let Err(error) = std::thread::Builder::new().name("build".into()).spawn(run) {
            let mut state = self.state.lock();
            state.running = None;
            state.last = Some(Outcome::Failed(error.to_string(), Instant::now()));
        }
    }

    /// The build that is going on.
    pub(crate) fn progress(&self) -> Option<Progress> {
        self.state.lock().running
    }

    /// Why the last build made no index.
    pub(crate) fn problem(&self) -> Option<String> {
        self.state.lock().last.as_ref().map(|last| match last {
            Outcome::Declined(reason) => reason.clone(),
            Outcome::Failed(problem, _) => format!("the last build failed: {problem}"),
        })
    }

    /// Whether it is of no use to begin another build by now.
    pub(crate) fn is_suspended(&self) -> bool {
        match &self.state.lock().last {
            None => false,
            Some(Outcome::Declined(_)) => true,
            Some(Outcome::Failed(_, at)) => at.elapsed() < RETRY_DELAY,
        }
    }

    /// Waits for the next phase of a build, for its end, or for a while.
    pub(crate) fn wait(&self, longest: Duration) {
        let mut state = self.state.lock();
        if state.running.is_some() {
            self.changed.wait_for(&mut state, longest);
        }
    }

    /// Ends the build.
    pub(crate) fn stop(&self) {
        self.is_stopping.store(true, Ordering::Release);
        let mut state = self.state.lock();
        self.changed.wait_while_for(&mut state, |state| state.running.is_some(), STOP_TIMEOUT);
    }
}

impl Observer for Background {
    fn step(&self, phase: Phase, done: u64, total: u64) {
        self.state.lock().running = Some(Progress { phase, done, total });
    }

    fn ready(&self, _: Phase) {
        self.changed.notify_all();
    }

    fn has_ended(&self) -> bool {
        self.is_stopping.load(Ordering::Acquire)
    }
}

/// Marks the end of a build.
struct RunningGuard<'a>(&'a Background);

impl Drop for RunningGuard<'_> {
    fn drop(&mut self) {
        self.0.state.lock().running = None;
        self.0.changed.notify_all();
    }
}
