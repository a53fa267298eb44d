//! Numbered jobs on several threads, whose results are taken in the order of the numbers.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicUsize, Ordering},
};

use parking_lot::{Condvar, Mutex};

/// Runs `work` for each number below `count`, with a thread for each worker. `take` gets the results in order, on the
/// thread of the caller, until it returns false or an error.
///
/// Workers are at most `ahead` jobs ahead of `take` (back-pressure), so results that wait stay few. Returns whether all
/// results were taken.
pub(crate) fn run_in_order<W: Send, T: Send, E>(
    workers: &mut [W],
    count: usize,
    ahead: usize,
    work: impl Fn(&mut W, usize) -> T + Sync,
    mut take: impl FnMut(T) -> Result<bool, E>,
) -> Result<bool, E> {
    debug_assert!(!workers.is_empty(), "somebody has to do the work");
    let queue = Queue::new();
    let run = |worker: &mut W| {
        let _stop = StopOnPanic(&queue);
        while let Some(number) = queue.begin(count, ahead) {
            queue.end(number, work(worker, number));
        }
    };
    let run = &run;
    std::thread::scope(|scope| {
        for worker in workers {
            scope.spawn(move || run(worker));
        }
        // However the caller leaves, the workers must not wait for it any longer.
        let _stop = Stop(&queue);
        for number in 0..count {
            let Some(result) = queue.wait_for(number) else { return Ok(false) };
            if !take(result)? {
                return Ok(false);
            }
        }
        Ok(true)
    })
}

/// Which jobs are begun, done and taken.
struct Queue<T> {
    next: AtomicUsize,
    state: Mutex<FileState<T>>,
    changed: Condvar,
}

struct FileState<T> {
    results: BTreeMap<usize, T>,
    taken: usize,
    is_stopped: bool,
}

impl<T> Queue<T> {
    fn new() -> Self {
        Self {
            next: AtomicUsize::new(0),
            state: Mutex::new(FileState { results: BTreeMap::new(), taken: 0, is_stopped: false }),
            changed: Condvar::new(),
        }
    }

    /// The number of the next job; waits while too many results are not yet taken.
    fn begin(&self, count: usize, ahead: usize) -> Option<usize> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        if number >= count {
            return None;
        }
        let mut state = self.state.lock();
        while number >= state.taken + ahead && !state.is_stopped {
            self.changed.wait(&mut state);
        }
        (!state.is_stopped).then_some(number)
    }

    fn end(&self, number: usize, result: T) {
        self.state.lock().results.insert(number, result);
        self.changed.notify_all();
    }

    /// The result of a job; `None` if a worker has panicked, which the end of the scope passes on.
    fn wait_for(&self, number: usize) -> Option<T> {
        let mut state = self.state.lock();
        loop {
            if let Some(result) = state.results.remove(&number) {
                state.taken = number + 1;
                self.changed.notify_all();
                return Some(result);
            }
            if state.is_stopped {
                return None;
            }
            self.changed.wait(&mut state);
        }
    }

    fn stop(&self) {
        self.state.lock().is_stopped = true;
        self.changed.notify_all();
    }
}

/// Stops the workers of a queue when it goes out of scope.
struct Stop<'a, T>(&'a Queue<T>);

impl<T> Drop for Stop<'_, T> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Stops the queue when a worker panics: its result will never come.
struct StopOnPanic<'a, T>(&'a Queue<T>);

impl<T> Drop for StopOnPanic<'_, T> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, panic::catch_unwind};

    use super::*;

    #[test]
    fn results_are_taken_in_order_and_workers_are_not_far_ahead() {
        const AHEAD: usize = 4;
        let (taken, mut results) = (AtomicUsize::new(0), Vec::new());
        let work = |_: &mut (), number: usize| {
            assert!(number < taken.load(Ordering::SeqCst) + AHEAD + 1, "too far ahead");
            number
        };
        let all = run_in_order::<_, _, Infallible>(&mut [(); 3], 200, AHEAD, work, |number| {
            results.push(number);
            taken.fetch_add(1, Ordering::SeqCst);
            Ok(true)
        });
        assert_eq!(all, Ok(true));
        assert!(results.into_iter().eq(0..200));
    }

    #[test]
    fn workers_end_when_enough_was_taken_or_taking_fails() {
        let enough =
            run_in_order::<_, _, Infallible>(&mut [(); 2], 1000, 2, |_, number| number, |n| Ok(n < 5));
        assert_eq!(enough, Ok(false));
        assert_eq!(run_in_order(&mut [(); 2], 1000, 2, |_, number| number, Err), Err(0));
    }

    #[test]
    fn a_panic_of_a_worker_reaches_the_caller() {
        let run = || {
            let work = |_: &mut (), number: usize| assert_ne!(number, 7, "on purpose");
            run_in_order::<_, _, Infallible>(&mut [(); 2], 100, 2, work, |()| Ok(true))
        };
        assert!(catch_unwind(run).is_err());
    }
}
