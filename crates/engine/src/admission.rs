//! Slots for running calls, and a bounded queue for those that wait.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use pintle_contract::{ErrorCode, Fault, Stage};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use tokio_util::sync::CancellationToken;

use crate::cancel::{Cancel, CancelReason};

/// Who may run now, who waits, and who is turned away.
pub(crate) struct Admission {
    slots: Arc<Semaphore>,
    running_limit: usize,
    waiting: AtomicUsize,
    waiting_limit: usize,
    stopped: CancellationToken,
}

impl Admission {
    pub(crate) fn new(running_limit: usize, waiting_limit: usize) -> Self {
        Self {
            slots: Arc::new(Semaphore::new(running_limit)),
            running_limit,
            waiting: AtomicUsize::new(0),
            waiting_limit,
            stopped: CancellationToken::new(),
        }
    }

    /// How many calls run, and how many wait.
    pub(crate) fn load(&self) -> (usize, usize) {
        let running = self.running_limit - self.slots.available_permits();
        (running, self.waiting.load(Ordering::Acquire))
    }

    /// Turns away those who wait, and whoever would have to wait from here on.
    pub(crate) fn stop_waiting(&self) {
        self.stopped.cancel();
    }

    /// A slot, at once or after waiting in the queue.
    pub(crate) async fn admit(&self, cancel: &Cancel) -> Result<OwnedSemaphorePermit, Fault> {
        if let Ok(slot) = Arc::clone(&self.slots).try_acquire_owned() {
            return Ok(slot);
        }
        let _place = self.take_place()?;
        tokio::select! {
            biased;
            () = cancel.token().cancelled() => Err(cancel.cancelled_fault().at(Stage::Admission)),
            () = self.stopped.cancelled() => {
                cancel.cancel(CancelReason::Stopping);
                Err(cancel.cancelled_fault().at(Stage::Admission))
            }
            slot = Arc::clone(&self.slots).acquire_owned() => {
                slot.map_err(|_| Fault::internal("the queue is closed"))
            }
        }
    }

    fn take_place(&self) -> Result<Place<'_>, Fault> {
        let place = Place(&self.waiting);
        if self.waiting.fetch_add(1, Ordering::AcqRel) < self.waiting_limit {
            return Ok(place);
        }
        let (running, waiting) = (self.running_limit, self.waiting_limit);
        Err(Fault::new(
            ErrorCode::QueueOverloaded,
            format!("{running} calls are running and {waiting} are waiting; no more can wait"),
        )
        .at(Stage::Admission)
        .hint("try again in a moment, with fewer calls at once"))
    }
}

/// A place in the queue, given back when dropped.
struct Place<'a>(&'a AtomicUsize);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_full_queue_turns_away_and_a_freed_slot_lets_in() {
        let admission = Arc::new(Admission::new(1, 1));
        let cancel = Arc::new(Cancel::default());
        let slot = admission.admit(&cancel).await.expect("the first runs");
        let waiter = tokio::spawn({
            let (admission, cancel) = (Arc::clone(&admission), Arc::clone(&cancel));
            async move { admission.admit(&cancel).await.map(|_| ()) }
        });
        while admission.waiting.load(Ordering::Acquire) == 0 {
            tokio::task::yield_now().await;
        }
        let refused = admission.admit(&cancel).await.expect_err("the third is turned away");
        assert_eq!(refused.code, ErrorCode::QueueOverloaded);
        drop(slot);
        waiter.await.expect("joins").expect("the second runs");
        assert_eq!(admission.waiting.load(Ordering::Acquire), 0);
    }

    #[tokio::test]
    async fn a_waiting_call_can_be_cancelled_and_gives_its_place_back() {
        let admission = Admission::new(1, 1);
        let _slot = admission.admit(&Cancel::default()).await.expect("runs");
        let cancel = Cancel::default();
        cancel.cancel(CancelReason::Asked);
        let fault = admission.admit(&cancel).await.expect_err("cancelled");
        assert_eq!(fault.code, ErrorCode::Cancelled);
        assert_eq!(admission.waiting.load(Ordering::Acquire), 0);
    }
}
