//! The queue of a pipe's direct requests: one at a time, in order, never dropped.
//!
//! Filled by the thread that reads, which waits when the lane is full: that is the pipe's
//! back-pressure. Bounded by weight too, because a parsed request may take many times its length.

use std::{
    collections::VecDeque,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;

const JOBS: usize = 64;
const WEIGHT: usize = 64 << 20;

/// About how much memory a frame takes once it is parsed: its texts, and a place for each value.
pub(crate) fn weight(frame: &[u8]) -> usize {
    const VALUE: usize = size_of::<serde_json::Value>();
    frame.len() + VALUE * (1 + memchr::memchr_iter(b',', frame).count())
}

/// Jobs in the order in which their frames came.
pub(crate) struct Lane<T> {
    state: Mutex<State<T>>,
    room: Condvar,
    arrived: Notify,
}

struct State<T> {
    jobs: VecDeque<(T, usize)>,
    weight: usize,
    closed: bool,
    /// The consumer works on a job.
    working: bool,
    /// Somebody else works in its place.
    claimed: bool,
}

impl<T> Default for Lane<T> {
    fn default() -> Self {
        let state = State { jobs: VecDeque::new(), weight: 0, closed: false, working: false, claimed: false };
        Self { state: Mutex::new(state), room: Condvar::new(), arrived: Notify::new() }
    }
}

impl<T> Lane<T> {
    /// Adds a job of this weight, once there is room. `false` if the lane is closed.
    pub(crate) fn push(&self, job: T, weight: usize) -> bool {
        let full = |state: &mut State<T>| {
            !state.closed
                && (state.jobs.len() >= JOBS || (state.weight + weight > WEIGHT && !state.jobs.is_empty()))
        };
        let waited = self.room.wait_while(self.lock(), full);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        if state.closed {
            return false;
        }
        state.weight += weight;
        state.jobs.push_back((job, weight));
        drop(state);
        self.arrived.notify_one();
        true
    }

    /// Takes the place of the consumer for one job, if it has nothing to do. Says whether that was so.
    pub(crate) fn claim(&self) -> bool {
        let mut state = self.lock();
        let is_idle = !state.working && !state.claimed && !state.closed && state.jobs.is_empty();
        state.claimed |= is_idle;
        is_idle
    }

    /// Gives the place back, with what is left of the job.
    pub(crate) fn release(&self, rest: Option<T>) {
        let mut state = self.lock();
        state.claimed = false;
        let is_wanted = rest.is_some() || state.closed || !state.jobs.is_empty();
        if let Some(rest) = rest {
            state.jobs.push_front((rest, 0));
        }
        drop(state);
        if is_wanted {
            self.arrived.notify_one();
        }
    }

    /// The next job, or `None` once the lane is closed and empty. For one consumer, who has done the one before.
    pub(crate) async fn next(&self) -> Option<T> {
        self.lock().working = false;
        loop {
            {
                let mut state = self.lock();
                if state.claimed {
                    // Whoever claimed the place gives it back.
                } else if let Some((job, weight)) = state.jobs.pop_front() {
                    state.working = true;
                    state.weight -= weight;
                    // Woken for every single place, the reader would sleep and wake with each job.
                    if state.jobs.len() <= JOBS / 2 && state.weight <= WEIGHT / 2 {
                        self.room.notify_one();
                    }
                    return Some(job);
                } else if state.closed {
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
    async fn whoever_claims_an_idle_lane_comes_before_the_rest_and_leaves_the_rest_in_order() {
        let lane = Arc::new(Lane::default());
        assert!(lane.claim());
        assert!(!lane.claim(), "taken");
        assert!(lane.push(2, 1) && lane.push(3, 1));
        let consumer = tokio::spawn({
            let lane = Arc::clone(&lane);
            async move { [lane.next().await, lane.next().await, lane.next().await, lane.next().await] }
        });
        tokio::task::yield_now().await;
        lane.release(Some(1));
        lane.close();
        assert_eq!(consumer.await.expect("ends"), [Some(1), Some(2), Some(3), None]);
        assert!(!lane.claim(), "closed");
    }

    #[test]
    fn many_small_values_weigh_more_than_one_long_text() {
        let text = format!("\"{}\"", "x".repeat(1000));
        let list = format!("[{}0]", "0,".repeat(500));
        assert!(weight(list.as_bytes()) > 10 * weight(text.as_bytes()));
    }

    #[tokio::test]
    async fn a_job_larger_than_the_lane_passes_alone() {
        let lane = Lane::default();
        assert!(lane.push(1, 10 * WEIGHT));
        assert_eq!(lane.next().await, Some(1));
        lane.close();
        assert!(!lane.push(2, 1));
        assert_eq!(lane.next().await, None);
    }
}
