//! Slots: the right of a call to run.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

use crate::recent_callers::RecentCallers;

/// The slots. A caller who is alone may hold all of them. While several callers use the server, none takes the last
/// free one if it has another already: long calls of one caller do not keep the others waiting.
pub(crate) struct Slots {
    limit: usize,
    shared: Arc<Semaphore>,
    last: Arc<Semaphore>,
    /// How many slots each caller holds.
    held: Arc<Mutex<HashMap<Arc<str>, usize>>>,
    recent_callers: Arc<RecentCallers>,
}

/// A slot, given back when dropped.
pub(crate) struct Slot {
    _permit: OwnedSemaphorePermit,
    caller: Arc<str>,
    held: Arc<Mutex<HashMap<Arc<str>, usize>>>,
}

impl Slots {
    pub(crate) fn new(limit: usize, recent_callers: Arc<RecentCallers>) -> Self {
        // A single slot is for everybody.
        let last = usize::from(limit > 1);
        Self {
            limit,
            shared: Arc::new(Semaphore::new(limit - last)),
            last: Arc::new(Semaphore::new(last)),
            held: Arc::default(),
            recent_callers,
        }
    }

    /// How many are taken.
    pub(crate) fn taken(&self) -> usize {
        self.limit - self.shared.available_permits() - self.last.available_permits()
    }

    /// Whether the caller has none, while others use the server: then it need not queue behind them for a free slot.
    pub(crate) fn has_precedence(&self, caller: &str) -> bool {
        !self.held.lock().contains_key(caller) && self.recent_callers.others_than(caller)
    }

    /// A slot that is free now.
    pub(crate) fn try_take(&self, caller: &str) -> Option<Slot> {
        let permit = Arc::clone(&self.shared).try_acquire_owned().ok().or_else(|| {
            self.may_take_last(caller).then(|| Arc::clone(&self.last).try_acquire_owned().ok()).flatten()
        })?;
        Some(self.hold(permit, caller))
    }

    /// A slot, after waiting for it.
    pub(crate) async fn take(&self, caller: &str) -> Result<Slot, AcquireError> {
        let shared = Arc::clone(&self.shared).acquire_owned();
        let permit = if self.may_take_last(caller) {
            tokio::select! {
                biased;
                shared = shared => shared?,
                last = Arc::clone(&self.last).acquire_owned() => last?,
            }
        } else {
            shared.await?
        };
        Ok(self.hold(permit, caller))
    }

    fn may_take_last(&self, caller: &str) -> bool {
        !self.held.lock().contains_key(caller) || !self.recent_callers.others_than(caller)
    }

    fn hold(&self, permit: OwnedSemaphorePermit, caller: &str) -> Slot {
        let mut held = self.held.lock();
        let caller = held.get_key_value(caller).map_or_else(|| caller.into(), |(known, _)| Arc::clone(known));
        *held.entry(Arc::clone(&caller)).or_default() += 1;
        Slot { _permit: permit, caller, held: Arc::clone(&self.held) }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut held = self.held.lock();
        if let Some(count) = held.get_mut(&self.caller) {
            *count -= 1;
            if *count == 0 {
                held.remove(&self.caller);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn slots(limit: usize, callers: &[&str]) -> Slots {
        let recent_callers = Arc::<RecentCallers>::default();
        callers.iter().for_each(|caller| recent_callers.saw(caller));
        Slots::new(limit, recent_callers)
    }

    #[tokio::test]
    async fn a_lone_caller_has_all_slots_and_one_of_several_leaves_the_last() {
        let alone = slots(3, &["a"]);
        let held: Vec<_> = std::iter::from_fn(|| alone.try_take("a")).collect();
        assert_eq!((held.len(), alone.taken()), (3, 3));
        drop(held);
        assert_eq!(alone.taken(), 0);

        let both = slots(3, &["calm", "flood"]);
        let held: Vec<_> = std::iter::from_fn(|| both.try_take("flood")).collect();
        assert_eq!(held.len(), 2);
        let mut next = Box::pin(both.take("flood"));
        assert!((&mut next).now_or_never().is_none());
        assert!(both.has_precedence("calm") && !both.has_precedence("flood"));
        let last = both.try_take("calm").expect("the last one is free");
        assert!(both.try_take("calm").is_none() && !both.has_precedence("calm"));
        drop(last);
        assert!((&mut next).now_or_never().is_none(), "the last one stays free");
        drop(held);
        assert!((&mut next).now_or_never().is_some());
    }

    #[tokio::test]
    async fn a_single_slot_is_for_everybody() {
        let slots = slots(1, &["a", "b"]);
        let held = slots.try_take("a").expect("it is free");
        let mut next = Box::pin(slots.take("b"));
        assert!(slots.try_take("b").is_none() && (&mut next).now_or_never().is_none());
        drop(held);
        assert!((&mut next).now_or_never().is_some());
    }
}
