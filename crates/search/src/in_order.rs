//! Looking into many files on several threads, and taking what they have in order.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
};

use crate::{
    build::threads,
    index::Index,
    jobs::Jobs,
    look::{Changed, Gather, Job, Looked, Looker},
    segment::Torn,
};
use parking_lot::{Condvar, Mutex};

/// How many blocks are looked at in one go.
const CHUNK: usize = 48;
/// So many blocks are looked at right here: that takes less time than to start threads.
const AT_ONCE: usize = 160;
/// How far threads may be ahead of what was taken.
const AHEAD: usize = 64;

/// Looks into the files of all jobs. `take` gets what was gathered, in order, until it says that it is enough.
pub(crate) fn look_in_order<'a, G: Gather>(
    index: &Index,
    jobs: &mut Jobs<'_>,
    looker: impl Fn() -> Looker<'a> + Sync,
    gather: impl Fn() -> G + Sync,
    mut take: impl FnMut(G) -> bool,
) -> Result<(), Torn> {
    // Looks into files until that is enough to be taken, and tells how many they were.
    let some = |looker: &mut Looker<'a>, jobs: &[Job<'_>]| -> Result<(G, usize), Torn> {
        let mut gathered = gather();
        for (job, number) in jobs.iter().zip(1..) {
            let looked = looker.look(job.path, index.known(job)?.as_ref(), &mut gathered);
            gathered.saw(looked);
            if looked == Looked::Changed(Changed::Unreadable) {
                gathered.missed(job.path);
            }
            if gathered.is_full() || gathered.is_heavy() {
                return Ok((gathered, number));
            }
        }
        Ok((gathered, jobs.len()))
    };
    let mut lookers = Vec::new();
    let mut spent = 0;
    loop {
        let batch = jobs.next()?;
        if batch.is_empty() {
            return Ok(());
        }
        let chunks = chunks(&batch);
        let mut next = 0;
        while next < chunks.len() && (spent < AT_ONCE || next + 1 == chunks.len() || threads() < 2) {
            spent += chunks[next].iter().map(|job| job.weight).sum::<usize>();
            if lookers.is_empty() {
                lookers.push(looker());
            }
            let mut rest = chunks[next];
            while !rest.is_empty() {
                let (gathered, count) = some(&mut lookers[0], rest)?;
                if !take(gathered) {
                    return Ok(());
                }
                rest = &rest[count..];
            }
            next += 1;
        }
        if next < chunks.len() {
            lookers.resize_with(threads(), &looker);
            if !look_with_threads(&chunks[next..], &mut lookers, &some, &mut take)? {
                return Ok(());
            }
        }
    }
}

/// The same for some chunks, with a thread for each looker. Tells whether more is wanted.
fn look_with_threads<'a, G: Gather>(
    chunks: &[&[Job<'_>]],
    lookers: &mut [Looker<'a>],
    some: &(impl Fn(&mut Looker<'a>, &[Job<'_>]) -> Result<(G, usize), Torn> + Sync),
    take: &mut impl FnMut(G) -> bool,
) -> Result<bool, Torn> {
    let queue = Queue::new();
    let all = |looker: &mut Looker<'a>, mut jobs: &[Job<'_>]| -> Result<Vec<G>, Torn> {
        let mut pieces = Vec::new();
        while !jobs.is_empty() {
            let (gathered, count) = some(looker, jobs)?;
            let is_full = gathered.is_full();
            pieces.push(gathered);
            jobs = if is_full { &[] } else { &jobs[count..] };
        }
        Ok(pieces)
    };
    let run = |looker: &mut Looker<'a>| {
        while let Some(number) = queue.begin(chunks.len()) {
            queue.end(number, all(looker, chunks[number]));
        }
    };
    let run = &run;
    std::thread::scope(|scope| {
        for looker in lookers {
            scope.spawn(move || run(looker));
        }
        // Whatever happens, the threads must not wait for somebody who is gone.
        let _stop = Stop(&queue);
        for number in 0..chunks.len() {
            if !queue.wait_for(number)?.into_iter().all(&mut *take) {
                return Ok(false);
            }
        }
        Ok(true)
    })
}

/// Jobs in chunks of about the same weight.
fn chunks<'j, 'a>(jobs: &'j [Job<'a>]) -> Vec<&'j [Job<'a>]> {
    let mut chunks = Vec::new();
    let (mut start, mut weight) = (0, 0);
    for (number, job) in jobs.iter().enumerate() {
        // Opening a file takes as long as reading another block.
        weight += job.weight + 1;
        if weight >= CHUNK {
            chunks.push(&jobs[start..=number]);
            (start, weight) = (number + 1, 0);
        }
    }
    if start < jobs.len() {
        chunks.push(&jobs[start..]);
    }
    chunks
}

/// What is begun, done and taken.
struct Queue<G> {
    next: AtomicUsize,
    is_stopped: AtomicBool,
    done: Mutex<Done<G>>,
    changed: Condvar,
}

struct Done<G> {
    results: BTreeMap<usize, Result<G, Torn>>,
    taken: usize,
}

impl<G> Queue<G> {
    fn new() -> Self {
        Self {
            next: AtomicUsize::new(0),
            is_stopped: AtomicBool::new(false),
            done: Mutex::new(Done { results: BTreeMap::new(), taken: 0 }),
            changed: Condvar::new(),
        }
    }

    /// The number of a chunk to be worked on; waits while too much is not yet taken.
    fn begin(&self, count: usize) -> Option<usize> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        if number >= count {
            return None;
        }
        let mut done = self.done.lock();
        while number >= done.taken + AHEAD && !self.is_stopped.load(Ordering::Relaxed) {
            self.changed.wait(&mut done);
        }
        (!self.is_stopped.load(Ordering::Relaxed)).then_some(number)
    }

    fn end(&self, number: usize, result: Result<G, Torn>) {
        let mut done = self.done.lock();
        done.results.insert(number, result);
        self.changed.notify_all();
    }

    fn wait_for(&self, number: usize) -> Result<G, Torn> {
        let mut done = self.done.lock();
        loop {
            if let Some(result) = done.results.remove(&number) {
                done.taken = number + 1;
                self.changed.notify_all();
                return result;
            }
            self.changed.wait(&mut done);
        }
    }
}

/// Stops the threads of a queue when it goes out of scope.
struct Stop<'a, G>(&'a Queue<G>);

impl<G> Drop for Stop<'_, G> {
    fn drop(&mut self) {
        let _done = self.0.done.lock();
        self.0.is_stopped.store(true, Ordering::Relaxed);
        self.0.changed.notify_all();
    }
}
