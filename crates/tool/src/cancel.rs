//! Ending a call early.

use std::sync::atomic::{AtomicU8, Ordering};

use pintle_contract::{ErrorCode, Fault};
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
    /// Cancels the call unless it has finished. Returns whether it did.
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
    pub fn cancelled_fault(&self) -> Fault {
        self.fault().unwrap_or_else(|| Fault::internal("a call ended without a reason"))
    }

    /// A token for the work to watch.
    pub fn token(&self) -> &CancellationToken {
        &self.token
    }

    /// Marks the call as finished. `Err` if it was cancelled first: then no success may be reported.
    pub fn finish(&self) -> Result<(), Fault> {
        if self.settle(FINISHED) {
            return Ok(());
        }
        self.fault().map_or(Ok(()), Err)
    }

    /// Makes the call one that comes to its own end. Returns whether it does: not if it was cancelled or is over
    /// its deadline.
    pub fn commit(&self) -> bool {
        self.settle(FINISHED)
    }

    /// Whether the call comes to its own end, whatever happens.
    pub fn is_committed(&self) -> bool {
        self.state.load(Ordering::Acquire) == FINISHED
    }

    /// Marks the call as over its deadline. Returns whether it is: not if it was cancelled or comes to its own end.
    pub fn expire(&self) -> bool {
        self.settle(EXPIRED)
    }

    fn settle(&self, state: u8) -> bool {
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
}
