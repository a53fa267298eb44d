//! Builds in the background: the first index, which a search starts, and refreshes.
//!
//! At most one build runs at a time, at low priority, so that it does not slow down searches that scan meanwhile. It
//! stops at shutdown. The lock of the store excludes builds by other processes.

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

/// How much the build's priority is lowered, in steps of `nice`.
const NICE: i32 = 10;
/// After a failed build, the next one is not started sooner than this.
const RETRY_DELAY: Duration = Duration::from_secs(60);
/// How long shutdown waits for a build to clean up. The next build removes what remains.
const STOP_TIMEOUT: Duration = Duration::from_millis(500);

/// The build in the background, and the outcome of the last one.
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

/// The progress of a build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Progress {
    pub(crate) phase: Phase,
    pub(crate) done: u64,
    pub(crate) total: u64,
}

/// Why a build made no index.
#[derive(Clone, Debug)]
enum Outcome {
    /// The tree is larger than what is indexed automatically.
    Declined(String),
    Failed(String, Instant),
}

impl Background {
    /// Starts a build, unless one is running or the server is shutting down.
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
            // However the build ends, waiting callers must be woken up.
            let _guard = RunningGuard(&background);
            // The threads of the build inherit this priority. If it cannot be lowered, the build runs all the same.
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

    /// The progress of the build that is running.
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

    /// Whether another build should not be started now, because the last one failed or was declined.
    pub(crate) fn is_suspended(&self) -> bool {
        match &self.state.lock().last {
            None => false,
            Some(Outcome::Declined(_)) => true,
            Some(Outcome::Failed(_, at)) => at.elapsed() < RETRY_DELAY,
        }
    }

    /// Waits for the next phase of the build, for its end, or for `longest`.
    pub(crate) fn wait(&self, longest: Duration) {
        let mut state = self.state.lock();
        if state.running.is_some() {
            self.changed.wait_for(&mut state, longest);
        }
    }

    /// Stops the build.
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

/// Marks the build as ended when it is dropped.
struct RunningGuard<'a>(&'a Background);

impl Drop for RunningGuard<'_> {
    fn drop(&mut self) {
        self.0.state.lock().running = None;
        self.0.changed.notify_all();
    }
}
