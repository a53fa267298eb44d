//! The store of outcomes by key: the same call with the same key runs once.

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use pintle_contract::{ErrorCode, Fault, Fingerprint, Stage};
use tokio::{sync::watch, time::Instant};

use crate::outcome::Outcome;

const KEPT_FOR: Duration = Duration::from_secs(600);
const KEPT_BYTES: usize = 64 << 20;
/// What an entry costs beside its outcome.
const ENTRY_OVERHEAD: usize = 512;

/// Outcomes of finished calls, and the calls whose outcome is awaited.
#[derive(Default)]
pub(crate) struct IdempotencyStore {
    state: Mutex<State>,
    /// How many calls wait for the outcome of another one.
    waiting: AtomicUsize,
}

#[derive(Default)]
struct State {
    entries: HashMap<Key, StoredCall>,
    /// Finished entries, the oldest first: the order of eviction.
    order: VecDeque<(Instant, Key)>,
    bytes: usize,
}

/// A key belongs to one caller.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) caller: Arc<str>,
    pub(crate) key: Arc<str>,
}

struct StoredCall {
    call: Fingerprint,
    attempts: u32,
    outcome: CallState,
}

enum CallState {
    Running(watch::Receiver<()>),
    Finished(Outcome, usize),
}

/// What is known of the calls with a key.
pub(crate) enum Known<'a> {
    /// There was none: run the call, and finish the ticket with its outcome.
    Nothing(Ticket<'a>),
    /// It has run, with this outcome.
    Outcome { outcome: Outcome, attempt: u32 },
}

impl IdempotencyStore {
    /// Looks the key up; waits while the first call with it is still running, unless `most_waiting` calls do so already.
    /// Dropping the future gives up waiting.
    pub(crate) async fn look_up(
        &self,
        key: Key,
        call: Fingerprint,
        most_waiting: usize,
    ) -> Result<Known<'_>, Fault> {
        let mut waiting = None;
        loop {
            let mut running = match self.try_look_up(&key, call)? {
                Found::Known(known) => return Ok(known),
                Found::Running(running) => running,
            };
            if waiting.is_none() {
                waiting = Some(self.begin_waiting(most_waiting)?);
            }
            // The sender never sends: it is dropped when the first call has ended.
            let _ = running.changed().await;
        }
    }

    fn begin_waiting(&self, most: usize) -> Result<Waiting<'_>, Fault> {
        let waiting = Waiting(self);
        if self.waiting.fetch_add(1, Ordering::AcqRel) < most {
            return Ok(waiting);
        }
        Err(Fault::new(
            ErrorCode::QueueOverloaded,
            format!("{most} calls wait for another call with the same idempotency key; no more can wait"),
        )
        .at(Stage::Admission)
        .hint("try again in a moment; one call with a key is enough"))
    }

    fn try_look_up(&self, key: &Key, call: Fingerprint) -> Result<Found<'_>, Fault> {
        let mut state = self.state.lock();
        state.expire(Instant::now());
        if let Some(entry) = state.entries.get_mut(key) {
            if entry.call != call {
                return Err(Fault::new(
                    ErrorCode::Conflict,
                    "this idempotency key was used for another tool or other arguments",
                )
                .hint("use a new key for a new call; keys are kept for 10 minutes"));
            }
            return Ok(match &entry.outcome {
                CallState::Running(running) => Found::Running(running.clone()),
                CallState::Finished(outcome, _) => {
                    entry.attempts += 1;
                    let (outcome, attempt) = (outcome.clone(), entry.attempts);
                    Found::Known(Known::Outcome { outcome, attempt })
                }
            });
        }
        let (ended, running) = watch::channel(());
        let entry = StoredCall { call, attempts: 1, outcome: CallState::Running(running) };
        state.entries.insert(key.clone(), entry);
        Ok(Found::Known(Known::Nothing(Ticket { store: self, key: key.clone(), _ended: ended })))
    }
}

/// A call that waits for the outcome of another one, until this is dropped.
struct Waiting<'a>(&'a IdempotencyStore);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::AcqRel);
    }
}

enum Found<'a> {
    Known(Known<'a>),
    Running(watch::Receiver<()>),
}

impl State {
    fn expire(&mut self, now: Instant) {
        while let Some((finished, _)) = self.order.front() {
            if self.bytes <= KEPT_BYTES && now.duration_since(*finished) < KEPT_FOR {
                return;
            }
            if let Some((_, key)) = self.order.pop_front()
                && let Some(StoredCall { outcome: CallState::Finished(_, bytes), .. }) =
                    self.entries.remove(&key)
            {
                self.bytes -= bytes;
            }
        }
    }
}

/// The right and the duty to run a call with a key.
pub(crate) struct Ticket<'a> {
    store: &'a IdempotencyStore,
    key: Key,
    /// Dropped last: wakes those who wait for the outcome.
    _ended: watch::Sender<()>,
}

impl Ticket<'_> {
    /// Keeps the outcome if it is final.
    pub(crate) fn finish(self, outcome: &Outcome) {
        if !outcome.is_final() {
            return;
        }
        let bytes = outcome.bytes() + self.key.key.len() + self.key.caller.len() + ENTRY_OVERHEAD;
        let mut state = self.store.state.lock();
        let now = Instant::now();
        if let Some(entry) = state.entries.get_mut(&self.key) {
            entry.outcome = CallState::Finished(outcome.clone(), bytes);
            state.bytes += bytes;
            state.order.push_back((now, self.key.clone()));
            state.expire(now);
        }
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        let mut state = self.store.state.lock();
        let unfinished =
            matches!(state.entries.get(&self.key), Some(StoredCall { outcome: CallState::Running(_), .. }));
        if unfinished {
            state.entries.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_contract::fingerprint;
    use serde_json::{Value, json, value::RawValue};

    fn key(name: &str) -> Key {
        Key { caller: "me".into(), key: name.into() }
    }

    fn call(arguments: Value) -> Fingerprint {
        fingerprint(&arguments)
    }

    async fn run(store: &IdempotencyStore, name: &str, outcome: Outcome) {
        match store.look_up(key(name), call(json!(1)), 9).await.expect("no conflict") {
            Known::Nothing(ticket) => ticket.finish(&outcome),
            Known::Outcome { .. } => panic!("unexpectedly known"),
        }
    }

    #[tokio::test]
    async fn a_finished_call_answers_from_the_store_and_other_arguments_conflict() {
        let store = IdempotencyStore::default();
        run(&store, "k", Outcome::success(&json!({"n": 1}))).await;
        match store.look_up(key("k"), call(json!(1)), 9).await.expect("no conflict") {
            Known::Outcome { outcome, attempt } => {
                assert!(matches!(outcome, Outcome::Success(json) if json.get() == r#"{"n":1}"#));
                assert_eq!(attempt, 2);
            }
            Known::Nothing(_) => panic!("forgotten"),
        }
        let refused = store.look_up(key("k"), call(json!(2)), 9).await.err().expect("conflict");
        assert_eq!(refused.code, ErrorCode::Conflict);
    }

    #[tokio::test]
    async fn a_retryable_outcome_is_not_kept() {
        let store = IdempotencyStore::default();
        let fault = Fault::new(ErrorCode::ToolTimeout, "slow");
        run(&store, "k", Outcome::Fault(fault)).await;
        run(&store, "k", Outcome::success(&json!(1))).await;
    }

    #[tokio::test]
    async fn a_failure_whose_effect_took_place_is_kept() {
        let store = IdempotencyStore::default();
        let failure = pintle_tool::Failure {
            code: ErrorCode::UpstreamFailed,
            message: String::new(),
            took_effect: true,
        };
        run(
            &store,
            "k",
            Outcome::Declined(RawValue::from_string("{}".into()).expect("JSON").into(), failure),
        )
        .await;
        let known = store.look_up(key("k"), call(json!(1)), 9).await;
        assert!(matches!(known, Ok(Known::Outcome { .. })));
    }

    #[tokio::test]
    async fn who_waits_for_a_call_that_is_given_up_runs_it_again() {
        let store = Arc::new(IdempotencyStore::default());
        let Ok(Known::Nothing(ticket)) = store.look_up(key("k"), call(json!(1)), 9).await else {
            panic!("fresh")
        };
        let waiter = tokio::spawn({
            let store = Arc::clone(&store);
            async move { matches!(store.look_up(key("k"), call(json!(1)), 9).await, Ok(Known::Nothing(_))) }
        });
        tokio::task::yield_now().await;
        drop(ticket);
        assert!(waiter.await.expect("joins"));
    }

    #[tokio::test(start_paused = true)]
    async fn outcomes_are_forgotten_after_ten_minutes_and_past_the_size() {
        let store = IdempotencyStore::default();
        run(&store, "old", Outcome::success(&json!(1))).await;
        tokio::time::advance(KEPT_FOR).await;
        run(&store, "old", Outcome::success(&json!(1))).await;
        let large = "x".repeat(KEPT_BYTES / 2);
        for name in ["a", "b", "c"] {
            run(&store, name, Outcome::success(&json!(large))).await;
        }
        assert!(store.state.lock().bytes <= KEPT_BYTES);
        run(&store, "a", Outcome::success(&json!(1))).await;
        let last = store.look_up(key("c"), call(json!(1)), 9).await;
        assert!(matches!(last, Ok(Known::Outcome { .. })));
    }

    #[tokio::test]
    async fn only_so_many_calls_wait_for_another_one_with_their_key() {
        let store = IdempotencyStore::default();
        let first = store.look_up(key("k"), call(json!(1)), 1).await.expect("runs");
        let mut second = std::pin::pin!(store.look_up(key("k"), call(json!(1)), 1));
        assert!(futures_util::FutureExt::now_or_never(second.as_mut()).is_none());
        let third = store.look_up(key("k"), call(json!(1)), 1).await.err().expect("refused");
        assert_eq!(third.code, ErrorCode::QueueOverloaded);
        drop(first);
        assert!(matches!(second.await, Ok(Known::Nothing(_))));
        assert_eq!(store.waiting.load(Ordering::Acquire), 0);
    }
}
