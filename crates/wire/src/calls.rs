//! The requests that are not answered yet: one registry for cancellation, duplicate ids and the way back of replies.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use pintle_contract::{Fault, Stage};
use pintle_rpc::RequestId;
use pintle_tool::{Cancel, CancelReason};

/// The calls of one pipe, of one session, or those of a server that belong to no session. `T` is what is needed to answer
/// one of them.
pub(crate) struct Calls<T> {
    state: Mutex<CallTable<T>>,
    /// Whether two calls may not have the same id: those of one client may not, those of several clients may.
    ids_are_unique: bool,
}

struct CallTable<T> {
    last: i64,
    calls: HashMap<i64, PendingCall<T>>,
    /// The numbers of calls by the meaning of their ids.
    numbers: HashMap<Box<str>, i64>,
}

/// One call that is not answered yet.
pub(crate) struct PendingCall<T> {
    /// The id as the client wrote it.
    pub(crate) id: Option<RequestId>,
    /// The call's switch.
    pub(crate) cancel: Arc<Cancel>,
    /// What is needed to answer it; none if whoever runs the call has that.
    pub(crate) answer: Option<T>,
}

/// A call's registration, ended when dropped.
pub(crate) struct Registration<T> {
    calls: Arc<Calls<T>>,
    number: i64,
}

impl<T> Drop for Registration<T> {
    fn drop(&mut self) {
        self.calls.remove(self.number);
    }
}

impl<T> Calls<T> {
    /// The calls of one client.
    pub(crate) fn of_one_client() -> Arc<Self> {
        Self::new(true)
    }

    /// Calls that have nothing to do with each other.
    pub(crate) fn of_many_clients() -> Arc<Self> {
        Self::new(false)
    }

    fn new(ids_are_unique: bool) -> Arc<Self> {
        let state = CallTable { last: -1, calls: HashMap::new(), numbers: HashMap::new() };
        Arc::new(Self { state: Mutex::new(state), ids_are_unique })
    }

    /// Registers a call and gives its number. `None` if its id belongs to one that has not been answered yet.
    pub(crate) fn enter(&self, call: PendingCall<T>) -> Option<i64> {
        let mut state = self.state.lock();
        let number = state.last + 1;
        if let Some(id) = call.id.as_ref().filter(|_| self.ids_are_unique) {
            if state.numbers.contains_key(id.key()) {
                return None;
            }
            state.numbers.insert(id.key().into(), number);
        }
        state.last = number;
        state.calls.insert(number, call);
        Some(number)
    }

    /// Registers a call that whoever runs it answers.
    pub(crate) fn register(
        self: &Arc<Self>,
        id: Option<RequestId>,
        cancel: Arc<Cancel>,
    ) -> Option<Registration<T>> {
        let number = self.enter(PendingCall { id, cancel, answer: None })?;
        Some(Registration { calls: Arc::clone(self), number })
    }

    /// Removes a call. To be done before its reply can be seen, so that the id is free by then.
    pub(crate) fn remove(&self, number: i64) -> Option<PendingCall<T>> {
        let mut state = self.state.lock();
        let call = state.calls.remove(&number)?;
        if let Some(id) = call.id.as_ref().filter(|_| self.ids_are_unique) {
            state.numbers.remove(id.key());
        }
        Some(call)
    }

    /// Whether a call with this id is not answered yet.
    pub(crate) fn contains(&self, id: &RequestId) -> bool {
        self.state.lock().numbers.contains_key(id.key())
    }

    /// The number of the call with this id.
    pub(crate) fn number_of(&self, id: &RequestId) -> Option<i64> {
        self.state.lock().numbers.get(id.key()).copied()
    }

    /// Cancels the call with this id, if it is not answered yet.
    pub(crate) fn cancel(&self, id: &RequestId, reason: CancelReason) {
        let state = self.state.lock();
        let call = state.numbers.get(id.key()).and_then(|number| state.calls.get(number));
        let cancel = call.map(|call| Arc::clone(&call.cancel));
        drop(state);
        if let Some(cancel) = cancel {
            cancel.cancel(reason);
        }
    }

    /// Cancels every call.
    pub(crate) fn cancel_all(&self, reason: CancelReason) {
        let cancels: Vec<_> = self.state.lock().calls.values().map(|call| Arc::clone(&call.cancel)).collect();
        for cancel in cancels {
            cancel.cancel(reason);
        }
    }

    /// What `inspect` returns for the call with this number.
    pub(crate) fn inspect<R>(&self, number: i64, inspect: impl FnOnce(&PendingCall<T>) -> R) -> Option<R> {
        self.state.lock().calls.get(&number).map(inspect)
    }

    /// What `pick` returns for the first call for which it returns anything.
    pub(crate) fn find<R>(&self, pick: impl Fn(i64, &PendingCall<T>) -> Option<R>) -> Option<R> {
        self.state.lock().calls.iter().find_map(|(number, call)| pick(*number, call))
    }
}

/// The fault of a request whose id is in use.
pub(crate) fn id_taken() -> Fault {
    Fault::invalid(
        Stage::Envelope,
        "this id belongs to a request that has not been answered yet; use another",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(raw: &str) -> Option<RequestId> {
        Some(RequestId::from_json(raw).expect("an id"))
    }

    #[test]
    fn ids_of_one_client_are_matched_by_meaning_and_free_again_after_the_reply() {
        let calls = Calls::<()>::of_one_client();
        let cancel = Arc::new(Cancel::default());
        let registration = calls.register(id("1"), Arc::clone(&cancel)).expect("free");
        for same in ["1.0", "\"1\""] {
            assert!(calls.register(id(same), Arc::default()).is_none(), "{same}");
        }
        calls.cancel(&id("\"1\"").expect("an id"), CancelReason::Asked);
        assert_eq!(cancel.reason(), Some(CancelReason::Asked));
        drop(registration);
        assert!(calls.register(id("\"1\""), Arc::default()).is_some());
    }

    #[test]
    fn several_clients_may_use_the_same_id_and_all_their_calls_can_be_cancelled() {
        let calls = Calls::<()>::of_many_clients();
        let cancels = [Arc::new(Cancel::default()), Arc::new(Cancel::default())];
        let registrations = cancels.clone().map(|cancel| calls.register(id("1"), cancel).expect("free"));
        calls.cancel_all(CancelReason::Stopping);
        assert!(cancels.iter().all(|cancel| cancel.reason() == Some(CancelReason::Stopping)));
        drop(registrations);
        assert!(calls.find(|_, _| Some(())).is_none());
    }
}
