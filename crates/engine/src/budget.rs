//! The memory that replies may take between the tool and the client: one budget for the whole server.
//!
//! A result **reserves** its bytes before it is serialized and gives them back when its frame is written or dropped.
//! A result that finds the budget full waits in line. While results wait, they keep their result permits (see
//! [`crate::admission`]), so that new calls stay in the queue instead of producing more results: back-pressure.
//!
//! Replies that are not large have a share of their own: a client that leaves megabytes unread does not hold up
//! another one's short replies.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use pintle_contract::{ErrorCode, Fault, Stage};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use pintle_tool::{Cancel, LARGE};

/// A reply of up to this size is not counted. What holds such replies is bounded in number: connections, the streams
/// of a session, the buffer of a pipe.
const UNCOUNTED: usize = 4 << 10;

/// The budget. Permits of the two semaphores are bytes.
pub struct ReplyBudget {
    large: Arc<Semaphore>,
    large_total: usize,
    small: Arc<Semaphore>,
    small_total: usize,
    /// How many results wait for their reservation.
    waiting: AtomicUsize,
    pressure: Notify,
    patience: Duration,
}

/// Bytes of the budget that belong to one reply, given back when dropped.
#[derive(Debug, Default)]
pub struct Reservation(Option<OwnedSemaphorePermit>);

impl Reservation {
    /// Gives back what is not needed after all.
    pub fn shrink_to(&mut self, bytes: usize) {
        if let Some(permit) = &mut self.0 {
            let excess = permit.num_permits().saturating_sub(bytes);
            drop(permit.split(excess));
        }
    }
}

impl ReplyBudget {
    /// A budget of so many bytes, an eighth of which is for replies that are not large. A result that finds no capacity
    /// within `patience` is given up.
    pub(crate) fn new(bytes: usize, patience: Duration) -> Self {
        let bytes = bytes.min(u32::MAX as usize);
        let small_total = (bytes / 8).max(1);
        let large_total = (bytes - small_total).max(1);
        Self {
            large: Arc::new(Semaphore::new(large_total)),
            large_total,
            small: Arc::new(Semaphore::new(small_total)),
            small_total,
            waiting: AtomicUsize::new(0),
            pressure: Notify::new(),
            patience,
        }
    }

    /// Reserves the bytes of one reply, waiting in line for them. A reply that is larger than the whole budget takes
    /// all of it.
    pub(crate) async fn reserve(&self, bytes: usize, cancel: &Cancel) -> Result<Reservation, Fault> {
        if bytes <= UNCOUNTED {
            return Ok(Reservation::default());
        }
        let (share, total) = match bytes > LARGE {
            true => (&self.large, self.large_total),
            false => (&self.small, self.small_total),
        };
        let permits = u32::try_from(bytes.min(total)).unwrap_or(u32::MAX);
        if let Ok(permit) = Arc::clone(share).try_acquire_many_owned(permits) {
            return Ok(Reservation(Some(permit)));
        }
        let _waiting = Waiting::new(self);
        let reserved = tokio::time::timeout(self.patience, Arc::clone(share).acquire_many_owned(permits));
        tokio::select! {
            biased;
            () = cancel.token().cancelled() => Err(cancel.cancelled_fault()),
            permit = reserved => match permit {
                Ok(Ok(permit)) => Ok(Reservation(Some(permit))),
                _ => Err(unread_replies()),
            },
        }
    }

    /// The same for a result that must not wait: a large one that finds no memory is refused.
    pub(crate) async fn reserve_at_once(&self, bytes: usize, cancel: &Cancel) -> Result<Reservation, Fault> {
        if bytes <= LARGE {
            return self.reserve(bytes, cancel).await;
        }
        let permits = u32::try_from(bytes.min(self.large_total)).unwrap_or(u32::MAX);
        match Arc::clone(&self.large).try_acquire_many_owned(permits) {
            Ok(permit) => Ok(Reservation(Some(permit))),
            Err(_) => Err(unread_replies()),
        }
    }

    /// Resolves when a result waits for its reservation: now is the time to evict a client that does not read.
    pub async fn under_pressure(&self) {
        loop {
            let pressed = self.pressure.notified();
            if self.is_under_pressure() {
                return;
            }
            pressed.await;
        }
    }

    /// Whether a result waits for its reservation.
    pub fn is_under_pressure(&self) -> bool {
        self.waiting.load(Ordering::Acquire) > 0
    }
}

/// The fault of a call whose result finds no memory, because clients leave too much unread.
pub fn unread_replies() -> Fault {
    Fault::new(ErrorCode::QueueOverloaded, "replies that clients have not read fill the memory for replies")
        .at(Stage::Admission)
        .hint("read the replies that are waiting, then send this call again; ask for less at a time")
}

/// Counts a result that waits, until dropped.
struct Waiting<'a>(&'a ReplyBudget);

impl<'a> Waiting<'a> {
    fn new(budget: &'a ReplyBudget) -> Self {
        budget.waiting.fetch_add(1, Ordering::AcqRel);
        budget.pressure.notify_waiters();
        Self(budget)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use pintle_tool::CancelReason;

    const BUDGET: usize = 8 << 20;

    fn budget() -> ReplyBudget {
        ReplyBudget::new(BUDGET, Duration::from_secs(60))
    }

    #[tokio::test(start_paused = true)]
    async fn a_full_budget_makes_large_results_wait_until_a_reply_is_written_and_small_ones_pass() {
        let (budget, cancel) = (budget(), Cancel::default());
        let mut first = budget.reserve(BUDGET, &cancel).await.expect("an empty budget takes any reply");
        {
            let mut second = std::pin::pin!(budget.reserve(1 << 20, &cancel));
            assert!(second.as_mut().now_or_never().is_none());
            assert!(budget.is_under_pressure());
            budget.reserve(LARGE, &cancel).await.expect("a small reply has a share of its own");
            first.shrink_to(BUDGET / 2);
            second.await.expect("what was given back is enough");
        }
        assert!(!budget.is_under_pressure());
        drop(first);
        assert_eq!(budget.large.available_permits(), budget.large_total);
    }

    #[tokio::test(start_paused = true)]
    async fn a_result_that_never_finds_room_is_refused_and_a_cancelled_one_stops_waiting() {
        let (budget, cancel) = (budget(), Cancel::default());
        let _all = budget.reserve(BUDGET, &cancel).await.expect("fits");
        let refused = budget.reserve(BUDGET, &cancel).await.expect_err("nothing is given back");
        assert_eq!(refused.code, ErrorCode::QueueOverloaded);
        cancel.cancel(CancelReason::Asked);
        let cancelled = budget.reserve(BUDGET, &cancel).await.expect_err("cancelled");
        assert_eq!(cancelled.code, ErrorCode::Cancelled);
        assert!(!budget.is_under_pressure());
    }
}
