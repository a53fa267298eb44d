//! The queue of a pipe's direct requests: one at a time, in order, never dropped.
//!
//! Filled by the thread that reads, which waits when the lane is full: that is the pipe's back-pressure. Bounded by
//! weight too, because a parsed request may take many times its length.

use std::sync::Arc;

use tokio::{
    runtime::Handle,
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
};

const JOBS: usize = 64;
const WEIGHT: u32 = 64 << 20;

/// An estimate of the memory that a frame takes once it is parsed: its texts, and a node for each value.
pub(crate) fn weight(frame: &[u8]) -> usize {
    const VALUE: usize = size_of::<serde_json::Value>();
    frame.len() + VALUE * (1 + memchr::memchr_iter(b',', frame).count())
}

/// The reader's end.
pub(crate) struct LaneSender<T> {
    jobs: mpsc::Sender<QueuedJob<T>>,
    weights: Arc<Semaphore>,
    runtime: Handle,
}

/// The worker's end.
pub(crate) struct LaneReceiver<T> {
    jobs: mpsc::Receiver<QueuedJob<T>>,
}

/// A job, with its share of the lane's capacity.
struct QueuedJob<T> {
    job: T,
    _weight: OwnedSemaphorePermit,
}

/// Both ends of a lane. Once the sender is dropped, the receiver still gives out the jobs that wait.
pub(crate) fn lane<T>(runtime: Handle) -> (LaneSender<T>, LaneReceiver<T>) {
    let (sender, receiver) = mpsc::channel(JOBS);
    let weights = Arc::new(Semaphore::new(WEIGHT as usize));
    (LaneSender { jobs: sender, weights, runtime }, LaneReceiver { jobs: receiver })
}

impl<T> LaneSender<T> {
    /// Adds a job, once there is capacity for it. A job that is heavier than the lane passes alone. Returns the job if
    /// the worker has gone.
    pub(crate) fn push(&self, job: T, weight: usize) -> Result<(), T> {
        let permits = u32::try_from(weight).unwrap_or(WEIGHT).min(WEIGHT);
        let acquired = match Arc::clone(&self.weights).try_acquire_many_owned(permits) {
            Ok(permit) => Ok(permit),
            Err(_) => self.runtime.block_on(Arc::clone(&self.weights).acquire_many_owned(permits)),
        };
        let Ok(permit) = acquired else { return Err(job) };
        self.jobs.blocking_send(QueuedJob { job, _weight: permit }).map_err(|error| error.0.job)
    }
}

impl<T> LaneReceiver<T> {
    /// The next job, or `None` once the sender is gone and all jobs were given out.
    pub(crate) async fn next(&mut self) -> Option<T> {
        self.jobs.recv().await.map(|job| job.job)
    }

    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn a_full_lane_makes_the_reader_wait_and_keeps_the_order() {
        let (sender, mut receiver) = lane(Handle::current());
        let reader = std::thread::spawn(move || (0..1000).all(|number| sender.push(number, 1).is_ok()));
        let mut seen = Vec::new();
        while let Some(number) = receiver.next().await {
            assert!(receiver.jobs.len() <= JOBS);
            seen.push(number);
        }
        assert!(reader.join().expect("joins"));
        assert_eq!(seen, (0..1000).collect::<Vec<_>>());
    }

    #[test]
    fn many_small_values_weigh_more_than_one_long_text() {
        let text = format!("\"{}\"", "x".repeat(1000));
        let list = format!("[{}0]", "0,".repeat(500));
        assert!(weight(list.as_bytes()) > 10 * weight(text.as_bytes()));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_job_heavier_than_the_lane_passes_alone() {
        let (sender, mut receiver) = lane(Handle::current());
        let pushed = std::thread::spawn(move || sender.push(1, 10 * WEIGHT as usize));
        assert_eq!(receiver.next().await, Some(1));
        assert_eq!(pushed.join().expect("joins"), Ok(()));
        assert_eq!(receiver.next().await, None);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn heavy_jobs_wait_until_what_is_before_them_was_given_out() {
        let (sender, mut receiver) = lane(Handle::current());
        let weights = Arc::clone(&sender.weights);
        let half = WEIGHT as usize / 2;
        let pushed = std::thread::spawn(move || {
            let all = (0..3).all(|number| sender.push(number, half).is_ok());
            drop(sender);
            all
        });
        for number in 0..3 {
            // Two halves fit, so the third job is pushed only once the first was given out.
            let waiting = receiver.jobs.len();
            assert!(waiting <= 2, "{waiting} jobs of half the weight wait");
            assert_eq!(receiver.next().await, Some(number));
        }
        assert_eq!(receiver.next().await, None);
        assert!(pushed.join().expect("joins"));
        assert_eq!(weights.available_permits(), WEIGHT as usize, "the whole weight is free again");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_lane_without_a_worker_takes_nothing() {
        let (sender, receiver) = lane(Handle::current());
        drop(receiver);
        assert_eq!(std::thread::spawn(move || sender.push(1, 1)).join().expect("joins"), Err(1));
    }
}
