//! Turns: how several callers share the processor.
//!
//! The runtime knows no callers: it would work off a thousand requests of one before it looks at the socket of another.
//! So while several callers use the server, the requests of each are read, checked and begun one after the other, and
//! before the next one the runtime looks at all sockets. A caller who has no other request there begins at once.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use pintle_tool::Caller;
use tokio::sync::oneshot;

use super::ServerState;

/// How long a request waits for its turn at the most. A turn takes milliseconds; one that takes this long is stuck.
const PATIENCE: Duration = Duration::from_secs(10);

/// The callers who have a request that begins, each with the requests that wait for it.
#[derive(Clone, Default)]
pub(crate) struct Turns(Arc<Mutex<HashMap<Arc<str>, Waiting>>>);

type Waiting = VecDeque<oneshot::Sender<Turn>>;

/// The right to begin a request, passed on to the next request of the same caller when dropped.
struct Turn {
    turns: Turns,
    caller: Arc<str>,
    is_over: bool,
}

impl ServerState {
    /// The next turn of a caller. A caller who is alone needs none.
    pub(crate) async fn turn(&self, caller: &Caller) -> Option<pintle_engine::Turn> {
        if !self.engine.has_other_callers(caller) {
            return None;
        }
        let turn = self.turns.next(caller.identity()).await?;
        Some(Box::new(turn))
    }
}

impl Turns {
    async fn next(&self, caller: &str) -> Option<Turn> {
        let receiver = {
            let mut callers = self.0.lock();
            match callers.get_mut(caller) {
                Some(waiting) => {
                    let (sender, receiver) = oneshot::channel();
                    waiting.push_back(sender);
                    receiver
                }
                None => {
                    let caller: Arc<str> = caller.into();
                    callers.insert(Arc::clone(&caller), VecDeque::new());
                    return Some(Turn { turns: self.clone(), caller, is_over: false });
                }
            }
        };
        let turn = tokio::time::timeout(PATIENCE, receiver).await.ok()?.ok();
        // The runtime looks at all sockets before it goes on with a task that yields.
        tokio::task::yield_now().await;
        turn
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let mut callers = self.turns.0.lock();
        let Some(waiting) = callers.get_mut(&self.caller) else { return };
        while let Some(next) = waiting.pop_front() {
            let (turns, caller) = (self.turns.clone(), Arc::clone(&self.caller));
            match next.send(Turn { turns, caller, is_over: false }) {
                Ok(()) => return,
                // The request was given up, and the turn that it was sent is nobody's.
                Err(mut unsent) => unsent.is_over = true,
            }
        }
        callers.remove(&self.caller);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use futures_util::{FutureExt, future::join_all};

    use super::*;

    #[tokio::test]
    async fn requests_of_one_caller_begin_one_after_the_other_and_other_tasks_run_between_them() {
        let (turns, begun, between) = (Turns::default(), RefCell::new(Vec::new()), Cell::new(0));
        let request = |number: usize| {
            let (turns, begun, between) = (&turns, &begun, &between);
            async move {
                let turn = turns.next("flood").await;
                begun.borrow_mut().push((number, between.get()));
                // Reading and checking it takes more than one step.
                tokio::task::yield_now().await;
                drop(turn);
            }
        };
        let other_task = async {
            for _ in 0..10 {
                between.set(between.get() + 1);
                tokio::task::yield_now().await;
            }
        };
        // The futures of `join` are one task, which runs again after each time that one of them has yielded.
        futures_util::join!(join_all((0..4).map(request)), other_task);
        let (numbers, others): (Vec<_>, Vec<_>) = begun.into_inner().into_iter().unzip();
        assert_eq!(numbers, [0, 1, 2, 3]);
        assert!(others.is_sorted_by(|earlier, later| earlier < later), "{others:?}");
        assert!(turns.0.lock().is_empty());
    }

    #[tokio::test]
    async fn a_request_of_another_caller_begins_at_once() {
        let turns = Turns::default();
        let first = turns.next("flood").await;
        let mut waiting = Box::pin(turns.next("flood"));
        assert!((&mut waiting).now_or_never().is_none());
        assert!(turns.next("calm").now_or_never().is_some());
        drop(first);
        assert!(waiting.await.is_some());
    }

    #[tokio::test]
    async fn a_request_that_is_given_up_passes_its_turn_on() {
        let turns = Turns::default();
        let first = turns.next("a").await;
        let [mut before_its_turn, mut after_it, mut last] = [0, 1, 2].map(|_| Box::pin(turns.next("a")));
        for waiting in [&mut before_its_turn, &mut after_it, &mut last] {
            assert!(waiting.now_or_never().is_none());
        }
        drop(before_its_turn);
        drop(first);
        drop(after_it);
        drop(last.await);
        assert!(turns.0.lock().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_turn_that_is_stuck_is_not_waited_for_forever() {
        let turns = Turns::default();
        let _stuck = turns.next("a").await;
        assert!(turns.next("a").await.is_none());
    }
}
