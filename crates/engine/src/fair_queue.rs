//! The queue of calls that wait for a slot, fair between callers.
//!
//! The callers take turns: whoever has few calls waiting is not behind all calls of somebody who sends a flood. When the
//! queue is full, the caller with the most calls in it loses its newest, unless that is who comes. With one caller this is
//! a plain queue: first come, first served, and nobody is let in when it is full.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// The queue.
pub(crate) struct FairQueue {
    limit: usize,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// How many calls each caller has in the queue.
    waiting: HashMap<Arc<str>, usize>,
    total: usize,
    /// Those who wait to be the next, by caller; the first caller is the next one whose turn it is.
    callers: VecDeque<(Arc<str>, VecDeque<Waiter>)>,
    /// Whether somebody is the next.
    has_head: bool,
    last_number: u64,
}

struct Waiter {
    number: u64,
    call: oneshot::Sender<Head>,
}

/// The queue is full, and nobody has more calls in it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct QueueFull;

impl FairQueue {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, state: Arc::default() }
    }

    /// How many calls are in the queue.
    pub(crate) fn len(&self) -> usize {
        self.state.lock().total
    }

    /// Enters the queue.
    pub(crate) fn enter(&self, caller: &str) -> Result<Place, QueueFull> {
        let mut state = self.state.lock();
        if state.total >= self.limit && !state.evict_for(caller) {
            return Err(QueueFull);
        }
        let caller: Arc<str> = match state.waiting.get_key_value(caller) {
            Some((known, _)) => Arc::clone(known),
            None => caller.into(),
        };
        *state.waiting.entry(Arc::clone(&caller)).or_default() += 1;
        state.total += 1;
        Ok(Place { state: Arc::clone(&self.state), caller })
    }
}

/// A place in the queue, given up when dropped.
pub(crate) struct Place {
    state: Arc<Mutex<State>>,
    caller: Arc<str>,
}

impl Place {
    /// Waits to be the next for a slot. Fails if the place is lost to another caller.
    pub(crate) async fn next(&self) -> Result<Head, QueueFull> {
        let receiver = {
            let mut state = self.state.lock();
            if !state.has_head {
                state.has_head = true;
                return Ok(Head(Some(Arc::clone(&self.state))));
            }
            state.wait(&self.caller)
        };
        receiver.await.map_err(|_| QueueFull)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.state.lock();
        state.total -= 1;
        if let Some(count) = state.waiting.get_mut(&self.caller) {
            *count -= 1;
            if *count == 0 {
                state.waiting.remove(&self.caller);
            }
        }
    }
}

/// The next one for a slot. When dropped, another is.
#[derive(Debug)]
pub(crate) struct Head(Option<Arc<Mutex<State>>>);

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("total", &self.total).finish_non_exhaustive()
    }
}

impl Drop for Head {
    fn drop(&mut self) {
        let Some(state) = self.0.take() else { return };
        while let Some(waiter) = next_waiter(&state) {
            match waiter.call.send(Head(Some(Arc::clone(&state)))) {
                Ok(()) => return,
                // The waiter is gone, and the head that it was sent is nobody's.
                Err(mut unsent) => drop(unsent.0.take()),
            }
        }
    }
}

fn next_waiter(state: &Mutex<State>) -> Option<Waiter> {
    state.lock().next_waiter()
}

impl State {
    fn wait(&mut self, caller: &Arc<str>) -> oneshot::Receiver<Head> {
        let (call, receiver) = oneshot::channel();
        self.last_number += 1;
        let waiter = Waiter { number: self.last_number, call };
        match self.callers.iter_mut().find(|(waiting, _)| waiting == caller) {
            Some((_, waiters)) => waiters.push_back(waiter),
            None => self.callers.push_back((Arc::clone(caller), VecDeque::from([waiter]))),
        }
        receiver
    }

    /// The waiter whose turn it is. If there is none, nobody is the next.
    fn next_waiter(&mut self) -> Option<Waiter> {
        while let Some((caller, mut waiters)) = self.callers.pop_front() {
            let waiter = waiters.pop_front();
            if !waiters.is_empty() {
                self.callers.push_back((caller, waiters));
            }
            if waiter.is_some() {
                return waiter;
            }
        }
        self.has_head = false;
        None
    }

    /// Takes a place from the caller with the most calls in the queue, if it has at least two more than this one has.
    fn evict_for(&mut self, caller: &str) -> bool {
        let own = self.waiting.get(caller).copied().unwrap_or_default();
        let waiting = &self.waiting;
        let count = |name: &Arc<str>| waiting.get(name).copied().unwrap_or_default();
        let most = self.callers.iter_mut().max_by_key(|(name, _)| count(name));
        let Some((name, waiters)) = most else { return false };
        if count(name) < own + 2 {
            return false;
        }
        // Its call returns, and gives its place up.
        let newest = (0..waiters.len()).max_by_key(|&index| waiters[index].number);
        newest.and_then(|index| waiters.remove(index)).is_some()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    /// Enters and waits; returns the place and the future that resolves when it is the next.
    macro_rules! waiting {
        ($queue:expr, $caller:expr, $place:ident, $next:ident) => {
            let $place = $queue.enter($caller).expect("a place");
            let mut $next = Box::pin($place.next());
            assert!((&mut $next).now_or_never().is_none(), "somebody else is the next");
        };
    }

    #[test]
    fn callers_take_turns() {
        let queue = FairQueue::new(10);
        let first = queue.enter("flood").expect("a place");
        let head = first.next().now_or_never().expect("nobody waits").expect("the next");
        waiting!(queue, "flood", _p1, flood1);
        waiting!(queue, "flood", _p2, flood2);
        waiting!(queue, "calm", _p3, calm);
        assert_eq!(queue.len(), 4);
        drop(head);
        let head = (&mut flood1).now_or_never().expect("its turn").expect("the next");
        assert!((&mut flood2).now_or_never().is_none() && (&mut calm).now_or_never().is_none());
        drop(head);
        let head = (&mut calm).now_or_never().expect("its turn").expect("the next");
        assert!((&mut flood2).now_or_never().is_none());
        drop(head);
        assert!((&mut flood2).now_or_never().is_some_and(|head| head.is_ok()));
    }

    #[test]
    fn a_waiter_that_is_gone_is_passed_over() {
        let queue = FairQueue::new(10);
        let first = queue.enter("a").expect("a place");
        let head = first.next().now_or_never().expect("nobody waits").expect("the next");
        {
            waiting!(queue, "b", _place, _gone);
        }
        waiting!(queue, "c", _place, next);
        drop(head);
        let head = (&mut next).now_or_never().expect("its turn").expect("the next");
        drop((head, next));
        // Nobody waits, so whoever comes is the next.
        assert!(queue.enter("d").expect("a place").next().now_or_never().is_some());
    }

    #[test]
    fn a_full_queue_takes_from_whoever_has_the_most_in_it() {
        let queue = FairQueue::new(4);
        let first = queue.enter("flood").expect("a place");
        let _head = first.next().now_or_never().expect("nobody waits").expect("the next");
        waiting!(queue, "flood", _p1, older);
        waiting!(queue, "flood", _p2, newer);
        waiting!(queue, "flood", _p3, newest);
        assert_eq!(queue.enter("flood").err(), Some(QueueFull));
        let calm = queue.enter("calm").expect("a place");
        assert!((&mut newest).now_or_never().is_some_and(|next| next.is_err()));
        assert!((&mut older).now_or_never().is_none());
        drop(newest);
        drop(_p3);
        assert_eq!(queue.len(), 4);
        // Once both have the same, nobody loses a place.
        let second = queue.enter("calm").expect("a place");
        assert!((&mut newer).now_or_never().is_some_and(|next| next.is_err()));
        drop(newer);
        drop(_p2);
        assert_eq!(queue.enter("calm").err(), Some(QueueFull));
        drop((calm, second));
    }
}
