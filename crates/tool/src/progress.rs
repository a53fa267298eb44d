//! Progress notifications: throttled, in order, and never after the reply.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use serde_json::Value;
use tokio::{runtime::Handle, time::Instant};

/// The least time between two notifications: at most four a second.
const INTERVAL: Duration = Duration::from_millis(250);

/// Where a line of progress comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// The tool itself.
    Info,
    /// A command's error output.
    Stderr,
    /// A command's output.
    Stdout,
    /// Details for debugging.
    Debug,
}

impl Stream {
    /// The name in the protocol.
    pub fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Stderr => "stderr",
            Self::Stdout => "stdout",
            Self::Debug => "debug",
        }
    }
}

/// One progress event.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgressEvent {
    /// Rises with every event.
    pub progress: f64,
    /// What `progress` will be at the end, if known.
    pub total: Option<f64>,
    /// A sentence for people.
    pub message: String,
    /// Where it comes from.
    pub stream: Stream,
    /// Which part of the work.
    pub phase: &'static str,
}

/// Sends progress events to one caller. Must not block.
///
/// ```
/// use std::sync::Mutex;
///
/// use pintle_tool::{ProgressEvent, ProgressSink};
/// use serde_json::Value;
///
/// /// Keeps the latest message.
/// #[derive(Default)]
/// struct Latest(Mutex<String>);
///
/// impl ProgressSink for Latest {
///     fn emit(&self, _token: &Value, tool: &str, event: &ProgressEvent) {
///         *self.0.lock().unwrap() = format!("{tool}: {}", event.message);
///     }
/// }
/// # let _: &dyn ProgressSink = &Latest::default();
/// ```
pub trait ProgressSink: Send + Sync {
    /// Sends one event of `tool`; `token` is the caller's progress token.
    fn emit(&self, token: &Value, tool: &str, event: &ProgressEvent);

    /// Called when the call is authorized and is about to run. Until then a transport may hold back its response, for
    /// example its HTTP status.
    fn authorized(&self) {}
}

/// Reports the progress of a call. Cheap to clone.
#[derive(Clone)]
pub struct Progress(Option<Arc<Gate>>);

struct Gate {
    sink: Arc<dyn ProgressSink>,
    token: Value,
    tool: String,
    runtime: Handle,
    state: Mutex<GateState>,
}

struct GateState {
    /// Starts with the call, so that a run of n seconds sends at most 4 n events, and one at its end.
    last_sent: Instant,
    highest: f64,
    pending: Option<ProgressEvent>,
    timer_set: bool,
    closed: bool,
}

impl Progress {
    /// Reports to `sink` under `token`, if the caller has both.
    pub fn new(sink: Option<Arc<dyn ProgressSink>>, token: Option<&Value>, tool: &str) -> Self {
        Self(sink.zip(token).map(|(sink, token)| {
            Arc::new(Gate {
                sink,
                token: token.clone(),
                tool: tool.to_owned(),
                runtime: Handle::current(),
                state: Mutex::new(GateState {
                    last_sent: Instant::now(),
                    highest: f64::NEG_INFINITY,
                    pending: None,
                    timer_set: false,
                    closed: false,
                }),
            })
        }))
    }

    /// Progress without a listener: every report is dropped.
    pub fn silent() -> Self {
        Self(None)
    }

    /// Whether anyone listens; check it before building an expensive message.
    pub fn is_wanted(&self) -> bool {
        self.0.is_some()
    }

    /// Reports an event. An event that does not rise is skipped; of events that come too fast the latest is kept.
    pub fn report(&self, event: ProgressEvent) {
        let Some(gate) = &self.0 else { return };
        let mut state = gate.state.lock();
        let rises = event.progress > state.highest;
        if state.closed || !rises {
            return;
        }
        state.highest = event.progress;
        state.pending = Some(event);
        let due = state.last_sent + INTERVAL;
        if Instant::now() >= due {
            gate.send(&mut state);
        } else if !state.timer_set {
            state.timer_set = true;
            gate.runtime.spawn(Arc::clone(gate).send_when_due(due));
        }
    }

    /// Ends the reports. The latest event is still sent if the work finished by itself.
    pub fn close(&self, work_ended: bool) {
        let Some(gate) = &self.0 else { return };
        let mut state = gate.state.lock();
        if work_ended {
            gate.send(&mut state);
        }
        state.closed = true;
    }
}

impl Gate {
    async fn send_when_due(self: Arc<Self>, mut due: Instant) {
        loop {
            tokio::time::sleep_until(due).await;
            let mut state = self.state.lock();
            // A report that came while this task was late may already have been sent.
            due = state.last_sent + INTERVAL;
            if Instant::now() >= due {
                state.timer_set = false;
                self.send(&mut state);
                return;
            }
        }
    }

    fn send(&self, state: &mut GateState) {
        if state.closed {
            return;
        }
        if let Some(event) = state.pending.take() {
            state.last_sent = Instant::now();
            self.sink.emit(&self.token, &self.tool, &event);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Seen(Mutex<Vec<f64>>);

    impl ProgressSink for Seen {
        fn emit(&self, _: &Value, _: &str, event: &ProgressEvent) {
            self.0.lock().push(event.progress);
        }
    }

    fn event(progress: f64) -> ProgressEvent {
        let message = String::new();
        ProgressEvent { progress, total: None, message, stream: Stream::Info, phase: "test" }
    }

    #[tokio::test(start_paused = true)]
    async fn four_a_second_the_latest_wins_and_nothing_follows_the_end() {
        let seen = Arc::new(Seen::default());
        let progress = Progress::new(Some(seen.clone()), Some(&Value::from(1)), "test");
        for step in 0..1000 {
            progress.report(event(f64::from(step)));
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        progress.report(event(5.0));
        progress.close(true);
        progress.report(event(2000.0));
        tokio::time::sleep(Duration::from_secs(1)).await;
        let seen = seen.0.lock().clone();
        assert!(seen.len() <= 5, "{seen:?}");
        assert!(seen.is_sorted() && seen.last() == Some(&999.0), "{seen:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_late_timer_does_not_send_right_after_a_report_that_was_sent() {
        let seen = Arc::new(Seen::default());
        let progress = Progress::new(Some(seen.clone()), Some(&Value::from(1)), "test");
        let gate = progress.0.expect("it is wanted");
        gate.state.lock().pending = Some(event(1.0));
        // Its time was long ago, but something was sent just now.
        let timer = tokio::spawn(Arc::clone(&gate).send_when_due(Instant::now() - INTERVAL));
        tokio::task::yield_now().await;
        assert!(seen.0.lock().is_empty());
        timer.await.expect("joins");
        assert_eq!(*seen.0.lock(), [1.0]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_quiet_call_still_tells_its_latest_event_in_time() {
        let seen = Arc::new(Seen::default());
        let progress = Progress::new(Some(seen.clone()), Some(&Value::from(1)), "test");
        progress.report(event(1.0));
        progress.report(event(2.0));
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(*seen.0.lock(), [2.0]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_cancelled_call_says_nothing_more() {
        let seen = Arc::new(Seen::default());
        let progress = Progress::new(Some(seen.clone()), Some(&Value::from(1)), "test");
        progress.report(event(1.0));
        progress.close(false);
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(seen.0.lock().is_empty());
    }
}
