//! Slots for running calls, and a bounded queue for those that wait.
//!
//! A call needs two things to run. Its **slot** is free again when the tool has finished. Its **result permit** is free
//! again when the result has its reservation in the reply budget, or needs none. So clients that do not read keep no slot,
//! and still the results that wait for memory are bounded in number.
//!
//! When all result permits are taken and none comes back for a while, clients leave their replies unread. Then calls are
//! admitted without one: a short result has a share of the budget of its own, and a large one that finds no memory at
//! once is refused. So nobody waits for those who do not read.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use pintle_contract::{Fault, Stage};
use tokio::{
    sync::{AcquireError, OwnedSemaphorePermit, Semaphore},
    time::Instant,
};

use tokio_util::sync::CancellationToken;

use futures_util::{FutureExt, future::OptionFuture};
use pintle_tool::{Boxed, Cancel, CancelReason};

use crate::{
    caller_limits::{RETRY_AFTER, overloaded},
    fair_queue::{FairQueue, QueueFull},
    recent_callers::RecentCallers,
    slots::{Slot, Slots},
};

/// How many results there may be for each slot that are not reserved yet: one that is being made, one that waits.
const RESULTS_PER_SLOT: usize = 2;

/// After so long without a result that got its reservation, clients count as not reading.
const STALL: Duration = Duration::from_millis(500);

/// What a call holds that may run.
pub(crate) struct Admitted {
    /// Given back when the tool has finished.
    pub(crate) slot: SlotAndTurn,
    /// Given back when the result is reserved. Without one, the result must not wait for memory.
    pub(crate) result: Option<ResultPermit>,
}

/// A slot, and the call's turn among those of its tool.
pub(crate) struct SlotAndTurn {
    _slot: Slot,
    _turn: Option<Box<dyn Send + Sync>>,
}

/// The right to a result that may wait for memory, given back when dropped.
#[derive(Debug)]
pub(crate) struct ResultPermit {
    _permit: OwnedSemaphorePermit,
    given_back: Arc<Mutex<Instant>>,
}

impl Drop for ResultPermit {
    fn drop(&mut self) {
        *self.given_back.lock() = Instant::now();
    }
}

/// Admission control: who may run now, who waits in the queue, and who is turned away.
pub(crate) struct Admission {
    slots: Slots,
    results: Arc<Semaphore>,
    /// When a result permit was last given back.
    given_back: Arc<Mutex<Instant>>,
    running_limit: usize,
    queue: FairQueue,
    waiting_limit: usize,
    stopped: CancellationToken,
}

impl Admission {
    pub(crate) fn new(
        running_limit: usize,
        waiting_limit: usize,
        recent_callers: Arc<RecentCallers>,
    ) -> Self {
        Self {
            slots: Slots::new(running_limit, recent_callers),
            results: Arc::new(Semaphore::new(RESULTS_PER_SLOT * running_limit)),
            given_back: Arc::new(Mutex::new(Instant::now())),
            running_limit,
            queue: FairQueue::new(waiting_limit),
            waiting_limit,
            stopped: CancellationToken::new(),
        }
    }

    /// How many calls run, and how many wait.
    pub(crate) fn load(&self) -> (usize, usize) {
        (self.slots.taken(), self.queue.len())
    }

    /// Turns away those who wait, and whoever would have to wait from here on.
    pub(crate) fn stop_waiting(&self) {
        self.stopped.cancel();
    }

    /// A slot and, unless results have stalled, a result permit; at once or after waiting in the queue. `turn` is that
    /// of the call among those of its tool: whoever waits for it holds no slot meanwhile. `caller` is an identity.
    pub(crate) async fn admit(
        &self,
        caller: &str,
        cancel: &Cancel,
        turn: Option<Boxed<'_, Box<dyn Send + Sync>>>,
    ) -> Result<Admitted, Fault> {
        let mut turn = OptionFuture::from(turn);
        let ready_turn = (&mut turn).now_or_never();
        if ready_turn.is_some()
            && (self.queue.len() == 0 || self.slots.has_precedence(caller))
            && let Ok(result) = Arc::clone(&self.results).try_acquire_owned()
            && let Some(slot) = self.slots.try_take(caller)
        {
            let slot = SlotAndTurn { _slot: slot, _turn: ready_turn.flatten() };
            return Ok(Admitted { slot, result: Some(self.permit(result)) });
        }
        let place = self.queue.enter(caller).map_err(|QueueFull| self.overloaded())?;
        let admitted = async {
            let turn = match ready_turn {
                Some(turn) => turn,
                None => turn.await,
            };
            let queued_at = Instant::now();
            let _head = place.next().await.map_err(|QueueFull| self.overloaded())?;
            let result = tokio::select! {
                biased;
                result = Arc::clone(&self.results).acquire_owned() => Some(self.permit(result.map_err(closed)?)),
                () = self.stalled(queued_at) => None,
            };
            let slot = self.slots.take(caller).await.map_err(closed)?;
            Ok(Admitted { slot: SlotAndTurn { _slot: slot, _turn: turn }, result })
        };
        tokio::select! {
            biased;
            () = cancel.token().cancelled() => Err(cancel.cancelled_fault().at(Stage::Admission)),
            () = self.stopped.cancelled() => {
                cancel.cancel(CancelReason::Stopping);
                Err(cancel.cancelled_fault().at(Stage::Admission))
            }
            admitted = admitted => admitted,
        }
    }

    fn permit(&self, permit: OwnedSemaphorePermit) -> ResultPermit {
        ResultPermit { _permit: permit, given_back: Arc::clone(&self.given_back) }
    }

    /// Resolves when no result permit has been given back for a while, counted from a moment on.
    async fn stalled(&self, since: Instant) {
        loop {
            let last = *self.given_back.lock();
            let deadline = last.max(since) + STALL;
            if Instant::now() >= deadline {
                return;
            }
            tokio::time::sleep_until(deadline).await;
        }
    }

    fn overloaded(&self) -> Fault {
        let (running, waiting) = (self.running_limit, self.waiting_limit);
        let message = format!("{running} calls are running and {waiting} are waiting; no more can wait");
        overloaded(message, RETRY_AFTER)
    }
}

fn closed(_: AcquireError) -> Fault {
    Fault::internal("the queue is closed")
}

#[cfg(test)]
mod tests {
    use pintle_contract::ErrorCode;

    use super::*;

    const ME: &str = "me";

    fn admission(running: usize, waiting: usize) -> Admission {
        Admission::new(running, waiting, Arc::default())
    }

    #[tokio::test]
    async fn a_full_queue_turns_away_and_a_freed_slot_lets_in() {
        let admission = Arc::new(admission(1, 1));
        let cancel = Arc::new(Cancel::default());
        let slot = admission.admit(ME, &cancel, None).await.expect("the first runs");
        let waiter = tokio::spawn({
            let (admission, cancel) = (Arc::clone(&admission), Arc::clone(&cancel));
            async move { admission.admit(ME, &cancel, None).await.map(|_| ()) }
        });
        while admission.queue.len() == 0 {
            tokio::task::yield_now().await;
        }
        let refused = admission.admit(ME, &cancel, None).await.err().expect("the third is turned away");
        assert_eq!(refused.code, ErrorCode::QueueOverloaded);
        drop(slot);
        waiter.await.expect("joins").expect("the second runs");
        assert_eq!(admission.queue.len(), 0);
    }

    #[tokio::test]
    async fn results_that_wait_for_memory_keep_new_calls_in_the_queue_although_slots_are_free() {
        let (admission, cancel) = (admission(1, 1), Cancel::default());
        let mut unreserved = Vec::new();
        for _ in 0..RESULTS_PER_SLOT {
            let Admitted { slot, result } = admission.admit(ME, &cancel, None).await.expect("runs");
            drop(slot);
            unreserved.push(result);
        }
        let mut next = std::pin::pin!(admission.admit(ME, &cancel, None));
        assert!(next.as_mut().now_or_never().is_none());
        assert_eq!(admission.load(), (0, 1));
        unreserved.pop();
        assert!(next.await.is_ok_and(|admitted| admitted.result.is_some()));
    }

    #[tokio::test(start_paused = true)]
    async fn calls_are_admitted_without_a_result_permit_when_results_have_stalled() {
        let (admission, cancel) = (admission(1, 2), Cancel::default());
        let mut unreserved = Vec::new();
        for _ in 0..RESULTS_PER_SLOT {
            let Admitted { slot, result } = admission.admit(ME, &cancel, None).await.expect("runs");
            drop(slot);
            unreserved.push(result);
        }
        let begun = Instant::now();
        let overflow = admission.admit(ME, &cancel, None).await.expect("is admitted all the same");
        assert!(overflow.result.is_none() && begun.elapsed() >= STALL);
        // As long as results get their reservations, whoever waits goes on waiting for a permit.
        drop(overflow);
        tokio::time::advance(STALL).await;
        unreserved.pop();
        let again = admission.admit(ME, &cancel, None).await.expect("runs");
        assert!(again.result.is_some());
    }

    #[tokio::test]
    async fn a_waiting_call_can_be_cancelled_and_gives_its_place_back() {
        let admission = admission(1, 1);
        let _slot = admission.admit(ME, &Cancel::default(), None).await.expect("runs");
        let cancel = Cancel::default();
        cancel.cancel(CancelReason::Asked);
        let fault = admission.admit(ME, &cancel, None).await.err().expect("cancelled");
        assert_eq!(fault.code, ErrorCode::Cancelled);
        assert_eq!(admission.queue.len(), 0);
    }

    /// A turn among calls of which one may run at a time.
    fn turn(limit: &Arc<Semaphore>) -> Option<Boxed<'static, Box<dyn Send + Sync>>> {
        let limit = Arc::clone(limit);
        Some(Box::pin(async move {
            let permit: Box<dyn Send + Sync> = Box::new(limit.acquire_owned().await);
            permit
        }))
    }

    #[tokio::test]
    async fn a_call_that_waits_for_its_turn_holds_no_slot() {
        let (admission, cancel) = (admission(2, 2), Cancel::default());
        let limit = Arc::new(Semaphore::new(1));
        let first = admission.admit(ME, &cancel, turn(&limit)).await.expect("runs");
        let mut second = std::pin::pin!(admission.admit(ME, &cancel, turn(&limit)));
        assert!(second.as_mut().now_or_never().is_none());
        assert_eq!(admission.load(), (1, 1));
        let other = admission.admit(ME, &cancel, None).now_or_never().expect("there is a slot");
        drop((first, other));
        assert!(second.await.is_ok());
    }
}
