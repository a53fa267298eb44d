//! The requests that the SDK has not answered yet.

use std::{
    collections::HashMap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicI64, Ordering},
    },
};

use pintle_contract::RequestId;
use rmcp::model::NumberOrString;
use tokio::sync::Notify;

use super::Asked;

/// Requests by a number of our own: the SDK cannot hold every id that JSON-RPC allows, so it sees the
/// number, and the client's id is put back on the way out.
pub(crate) struct Pending<T> {
    waiting: Mutex<HashMap<i64, Waiting<T>>>,
    last: AtomicI64,
    /// Tells that a request was taken out.
    left: Notify,
}

/// One request that waits for its reply.
pub(crate) struct Waiting<T> {
    /// The id as the client wrote it.
    pub(crate) id: RequestId,
    /// What was asked.
    pub(crate) asked: Asked,
    /// Where the reply goes.
    pub(crate) reply_to: T,
}

impl<T> Default for Pending<T> {
    fn default() -> Self {
        Self { waiting: Mutex::default(), last: AtomicI64::default(), left: Notify::new() }
    }
}

impl<T> Pending<T> {
    /// Notes a request and gives it its number.
    pub(crate) fn enter(&self, id: RequestId, asked: Asked, reply_to: T) -> i64 {
        let number = self.last.fetch_add(1, Ordering::Relaxed);
        self.lock().insert(number, Waiting { id, asked, reply_to });
        number
    }

    /// Takes out a request that the SDK has answered, if it still waits.
    pub(crate) fn settle(&self, number: &NumberOrString) -> Option<Waiting<T>> {
        match number {
            NumberOrString::Number(number) => self.leave(*number),
            NumberOrString::String(_) => None,
        }
    }

    /// Takes out a request.
    pub(crate) fn leave(&self, number: i64) -> Option<Waiting<T>> {
        let left = self.lock().remove(&number);
        self.left.notify_waiters();
        left
    }

    /// The id of the request that we have this number for.
    pub(crate) fn id_of(&self, number: i64) -> Option<RequestId> {
        self.lock().get(&number).map(|waiting| waiting.id.clone())
    }

    /// Our number for the request with this id.
    pub(crate) fn number_of(&self, id: &RequestId) -> Option<i64> {
        self.lock().iter().find(|(_, waiting)| waiting.id == *id).map(|(number, _)| *number)
    }

    /// Our number for the request whose reply goes where it should.
    pub(crate) fn find(&self, is_meant: impl Fn(&T) -> bool) -> Option<i64> {
        self.lock().iter().find(|(_, waiting)| is_meant(&waiting.reply_to)).map(|(number, _)| *number)
    }

    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    pub(crate) async fn until_empty(&self) {
        self.until(|waiting| waiting.is_empty()).await;
    }

    /// Resolves when fewer than `limit` requests wait, of those that are counted.
    pub(crate) async fn until_below(&self, limit: usize, is_counted: impl Fn(&T) -> bool) {
        let is_below = |waiting: &HashMap<i64, Waiting<T>>| {
            let counted = || waiting.values().filter(|waiting| is_counted(&waiting.reply_to)).count();
            waiting.len() < limit || counted() < limit
        };
        self.until(is_below).await;
    }

    async fn until(&self, is_met: impl Fn(&HashMap<i64, Waiting<T>>) -> bool) {
        loop {
            let left = self.left.notified();
            if is_met(&self.lock()) {
                return;
            }
            left.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<i64, Waiting<T>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Clone> Pending<T> {
    /// Where the reply to a request goes.
    pub(crate) fn reply_to(&self, number: &NumberOrString) -> Option<T> {
        let NumberOrString::Number(number) = number else { return None };
        self.lock().get(number).map(|waiting| waiting.reply_to.clone())
    }

    /// Where the replies to all requests go.
    pub(crate) fn all(&self) -> Vec<T> {
        self.lock().values().map(|waiting| waiting.reply_to.clone()).collect()
    }
}
