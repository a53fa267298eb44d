//! The calls that belong to no session.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use pintle_engine::{Cancel, CancelReason};

/// Calls by a number of their own, so that all of them can be cancelled when the server stops.
#[derive(Default)]
pub(crate) struct Running {
    calls: Mutex<Calls>,
}

#[derive(Default)]
struct Calls {
    last: u64,
    cancels: HashMap<u64, Arc<Cancel>>,
}

/// One call's place among those that run, given back when dropped.
pub(crate) struct Ticket {
    running: Arc<Running>,
    number: u64,
}

impl Running {
    pub(crate) fn enter(self: &Arc<Self>) -> (Arc<Cancel>, Ticket) {
        let cancel = Arc::new(Cancel::default());
        let mut calls = self.lock();
        calls.last += 1;
        let number = calls.last;
        calls.cancels.insert(number, Arc::clone(&cancel));
        (cancel, Ticket { running: Arc::clone(self), number })
    }

    pub(crate) fn cancel_all(&self, reason: CancelReason) {
        let cancels: Vec<_> = self.lock().cancels.values().cloned().collect();
        for cancel in cancels {
            cancel.cancel(reason);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.running.lock().cancels.remove(&self.number);
    }
}
