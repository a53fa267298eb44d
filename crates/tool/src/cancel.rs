//! Cancellation: ends a call early, exactly once.

use std::sync::atomic::{AtomicU8, Ordering};

use pintle_contract::{ErrorCode, Fault};
use tokio_util::{
    sync::CancellationToken,
    task::{TaskTracker, task_tracker::TaskTrackerToken},
};

/// Why a call ends early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum CancelReason {
    /// The client asked for it, and waits for the `CANCELLED` reply.
    Asked = 2,
    /// The client asked for it and wants no reply, or is gone.
    Silent = 3,
    /// The server shuts down.
    Stopping = 4,
}

const OPEN: u8 = 0;
/// The call has finished, or is past its point of no return.
const FINISHED: u8 = 1;
const EXPIRED: u8 = 5;

/// The state of one call: running, cancelled, past its deadline or finished. The first transition wins; it never changes
/// again.
#[derive(Debug)]
pub struct Cancel {
    state: AtomicU8,
    token: CancellationToken,
    cleanups: TaskTracker,
}

/// Held by work that cleans up after itself if its call ends early: the reply waits until it is dropped.
pub struct CleanupGuard {
    _token: TaskTrackerToken,
}

impl Default for Cancel {
    fn default() -> Self {
        Self { state: AtomicU8::new(OPEN), token: CancellationToken::new(), cleanups: TaskTracker::new() }
    }
}

impl Cancel {
    /// Cancels the call. Returns false if it has already ended.
    pub fn cancel(&self, reason: CancelReason) -> bool {
        let done = self.end_as(reason as u8);
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

    /// The fault of the call, if it was cancelled.
    pub fn fault(&self) -> Option<Fault> {
        let message = match self.reason()? {
            CancelReason::Asked | CancelReason::Silent => "the call was cancelled by the client",
            CancelReason::Stopping => "the server is stopping; try again once it is back",
        };
        Some(Fault::new(ErrorCode::Cancelled, message))
    }

    /// The fault of a call whose token has fired.
    pub fn cancelled_fault(&self) -> Fault {
        self.fault().unwrap_or_else(|| Fault::internal("a call ended without a reason"))
    }

    /// The cancellation token for the work.
    pub fn token(&self) -> &CancellationToken {
        &self.token
    }

    /// Marks the call as finished. `Err` if it was cancelled first: then no success may be reported.
    pub fn finish(&self) -> Result<(), Fault> {
        if self.end_as(FINISHED) {
            return Ok(());
        }
        self.fault().map_or(Ok(()), Err)
    }

    /// The point of no return: from now on the call can be neither cancelled nor timed out. Returns false if it already
    /// was.
    pub fn commit(&self) -> bool {
        self.end_as(FINISHED)
    }

    /// Whether the call is past its point of no return.
    pub fn is_committed(&self) -> bool {
        self.state.load(Ordering::Acquire) == FINISHED
    }

    /// Marks the call as past its deadline. Returns false if it has already ended or is past its point of no return.
    pub fn expire(&self) -> bool {
        self.end_as(EXPIRED)
    }

    /// Makes the reply wait for work that cleans up after itself if the call ends early.
    pub fn cleanup_guard(&self) -> CleanupGuard {
        CleanupGuard { _token: self.cleanups.token() }
    }

    /// Waits until all work has cleaned up.
    pub async fn cleaned_up(&self) {
        self.cleanups.close();
        self.cleanups.wait().await;
    }

    fn end_as(&self, state: u8) -> bool {
        self.state.compare_exchange(OPEN, state, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn all_that_cleans_up_is_waited_for() {
        use std::{
            pin::pin,
            task::{Context, Waker},
        };

        let cancel = Cancel::default();
        let guards = [cancel.cleanup_guard(), cancel.cleanup_guard()];
        let mut waiting = pin!(cancel.cleaned_up());
        let mut is_over = || waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready();
        for guard in guards {
            assert!(!is_over());
            drop(guard);
        }
        assert!(is_over());
    }
}
