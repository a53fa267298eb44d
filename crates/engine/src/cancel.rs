//! Ending a call early, and knowing which calls are under way.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU8, Ordering},
    },
};

use pintle_contract::{ErrorCode, Fault, RequestId};
use tokio_util::sync::CancellationToken;

/// Why a call ends early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum CancelReason {
    /// The client asked, and waits for the reply that says so.
    Asked = 2,
    /// The client asked, and wants no reply, or is gone.
    Silent = 3,
    /// The server is stopping.
    Stopping = 4,
}

const OPEN: u8 = 0;
/// It has finished, or can no longer be kept from it.
const FINISHED: u8 = 1;
const EXPIRED: u8 = 5;

/// The one switch of one call: it is either cancelled or over its deadline or finished, never two of these.
#[derive(Debug)]
pub struct Cancel {
    state: AtomicU8,
    token: CancellationToken,
}

impl Default for Cancel {
    fn default() -> Self {
        Self { state: AtomicU8::new(OPEN), token: CancellationToken::new() }
    }
}

impl Cancel {
    /// Cancels the call unless it has finished. Says whether it did.
    pub fn cancel(&self, reason: CancelReason) -> bool {
        let done = self.settle(reason as u8);
        if done {
            self.token.cancel();
        }
        done
    }

    /// Why the call was cancelled, if it was.
    pub fn reason(&self) -> Option<CancelReason> {
        match self.state.load(Ordering::Acquire) {
            2 => Some(CancelReason::Asked),
            3 => Some(CancelReason::Silent),
            4 => Some(CancelReason::Stopping),
            _ => None,
        }
    }

    /// The fault of a cancelled call.
    pub fn fault(&self) -> Option<Fault> {
        let message = match self.reason()? {
            CancelReason::Asked | CancelReason::Silent => "the call was cancelled by the client",
            CancelReason::Stopping => "the server is stopping; try again once it is back",
        };
        Some(Fault::new(ErrorCode::Cancelled, message))
    }

    /// The fault of a call whose token has fired.
    pub(crate) fn cancelled_fault(&self) -> Fault {
        self.fault().unwrap_or_else(|| Fault::internal("a call ended without a reason"))
    }

    /// A token for the work to watch.
    pub fn token(&self) -> &CancellationToken {
        &self.token
    }

    /// Marks the call as finished. `Err` if it was cancelled first: then no success may be told.
    pub(crate) fn finish(&self) -> Result<(), Fault> {
        if self.settle(FINISHED) {
            return Ok(());
        }
        self.fault().map_or(Ok(()), Err)
    }

    /// Makes the call one that comes to its own end. Says whether it does: not if it was cancelled or is over
    /// its deadline.
    pub(crate) fn commit(&self) -> bool {
        self.settle(FINISHED)
    }

    /// Whether the call comes to its own end, whatever happens.
    pub(crate) fn is_committed(&self) -> bool {
        self.state.load(Ordering::Acquire) == FINISHED
    }

    /// Marks the call as over its deadline. Says whether it is: not if it was cancelled or comes to its own end.
    pub(crate) fn expire(&self) -> bool {
        self.settle(EXPIRED)
    }

    fn settle(&self, state: u8) -> bool {
        self.state.compare_exchange(OPEN, state, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

/// The calls of one pipe or session that are running or queued, by the meaning of their ids.
#[derive(Debug, Default)]
pub struct InFlight {
    calls: Mutex<HashMap<Box<str>, Arc<Cancel>>>,
}

impl InFlight {
    /// Registers a call. `None` if its id is taken by one that has not been answered yet.
    pub fn enter(&self, id: &RequestId) -> Option<Arc<Cancel>> {
        let mut calls = self.lock();
        if calls.contains_key(id.key()) {
            return None;
        }
        let cancel = Arc::new(Cancel::default());
        calls.insert(id.key().into(), Arc::clone(&cancel));
        Some(cancel)
    }

    /// Whether a call with this id is under way.
    pub fn contains(&self, id: &RequestId) -> bool {
        self.lock().contains_key(id.key())
    }

    /// Forgets a call. To be called before its reply can be seen, so that the id is free by then.
    pub fn leave(&self, id: &RequestId) -> Option<Arc<Cancel>> {
        self.lock().remove(id.key())
    }

    /// Cancels the call with this id, if it is under way.
    pub fn cancel(&self, id: &RequestId, reason: CancelReason) -> bool {
        let cancel = self.lock().get(id.key()).cloned();
        cancel.is_some_and(|cancel| cancel.cancel(reason))
    }

    /// Cancels every call that is under way.
    pub fn cancel_all(&self, reason: CancelReason) {
        let calls: Vec<_> = self.lock().values().cloned().collect();
        for cancel in calls {
            cancel.cancel(reason);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Box<str>, Arc<Cancel>>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(raw: &str) -> RequestId {
        RequestId::from_json(raw).expect("an id")
    }

    #[test]
    fn a_finished_call_cannot_be_cancelled_and_a_cancelled_one_cannot_finish() {
        let finished = Cancel::default();
        assert!(finished.finish().is_ok());
        assert!(!finished.cancel(CancelReason::Asked));
        assert!(finished.reason().is_none());

        let cancelled = Cancel::default();
        assert!(cancelled.cancel(CancelReason::Asked));
        assert!(!cancelled.cancel(CancelReason::Stopping));
        let fault = cancelled.finish().expect_err("cancelled");
        assert_eq!(fault.code, ErrorCode::Cancelled);
    }

    #[test]
    fn ids_are_matched_by_meaning_and_free_again_after_leaving() {
        let calls = InFlight::default();
        let cancel = calls.enter(&id("1")).expect("free");
        assert!(calls.enter(&id("1.0")).is_none());
        assert!(calls.enter(&id("\"1\"")).is_none());
        assert!(calls.cancel(&id("\"1\""), CancelReason::Asked));
        assert_eq!(cancel.reason(), Some(CancelReason::Asked));
        calls.leave(&id("1"));
        assert!(calls.enter(&id("\"1\"")).is_some());
        assert!(!calls.cancel(&id("2"), CancelReason::Asked));
    }
}
