//! The queue of a pipe's direct requests: one at a time, in order, never dropped.
//!
//! Filled by the thread that reads, which waits when the lane is full: that is the pipe's
//! back-pressure. Bounded by bytes too, because a parsed request takes many times its length.

use std::{
    collections::VecDeque,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;

const JOBS: usize = 64;
const BYTES: usize = 4 << 20;

/// Jobs in the order in which their frames came.
pub(crate) struct Lane<T> {
    state: Mutex<State<T>>,
    room: Condvar,
    arrived: Notify,
}

struct State<T> {
    jobs: VecDeque<(T, usize)>,
    bytes: usize,
    closed: bool,
}

impl<T> Default for Lane<T> {
    fn default() -> Self {
        let state = State { jobs: VecDeque::new(), bytes: 0, closed: false };
        Self { state: Mutex::new(state), room: Condvar::new(), arrived: Notify::new() }
    }
}

impl<T> Lane<T> {
    /// Adds a job made from a frame of `bytes` bytes, once there is room. `false` if the lane is closed.
    pub(crate) fn push(&self, job: T, bytes: usize) -> bool {
        let full = |state: &mut State<T>| {
            !state.closed
                && (state.jobs.len() >= JOBS || (state.bytes + bytes > BYTES && !state.jobs.is_empty()))
        };
        let waited = self.room.wait_while(self.lock(), full);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        if state.closed {
            return false;
        }
        state.bytes += bytes;
        state.jobs.push_back((job, bytes));
        drop(state);
        self.arrived.notify_one();
        true
    }

    /// The next job, or `None` once the lane is closed and empty. For one consumer.
    pub(crate) async fn next(&self) -> Option<T> {
        loop {
            {
                let mut state = self.lock();
                if let Some((job, bytes)) = state.jobs.pop_front() {
                    state.bytes -= bytes;
                    // Woken for every single place, the reader would sleep and wake with each job.
                    if state.jobs.len() <= JOBS / 2 && state.bytes <= BYTES / 2 {
                        self.room.notify_one();
                    }
                    return Some(job);
                }
                if state.closed {
                    return None;
                }
            }
            self.arrived.notified().await;
        }
    }

    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().jobs.is_empty()
    }

    /// Takes no more jobs. Those that wait are still given out.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.room.notify_all();
        self.arrived.notify_one();
    }

    /// Looks at each job that waits.
    pub(crate) fn for_each_waiting(&self, look: impl FnMut(&T)) {
        self.lock().jobs.iter().map(|(job, _)| job).for_each(look);
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[tokio::test]
    async fn a_full_lane_makes_the_reader_wait_and_keeps_the_order() {
        let lane = Arc::new(Lane::default());
        let reader = std::thread::spawn({
            let lane = Arc::clone(&lane);
            move || {
                (0..1000).all(|number| lane.push(number, 1)) && {
                    lane.close();
                    true
                }
            }
        });
        let mut seen = Vec::new();
        while let Some(number) = lane.next().await {
            assert!(lane.lock().jobs.len() <= JOBS);
            seen.push(number);
        }
        assert!(reader.join().expect("joins"));
        assert_eq!(seen, (0..1000).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn a_job_larger_than_the_lane_passes_alone() {
        let lane = Lane::default();
        assert!(lane.push(1, 10 * BYTES));
        assert_eq!(lane.next().await, Some(1));
        lane.close();
        assert!(!lane.push(2, 1));
        assert_eq!(lane.next().await, None);
    }
}
