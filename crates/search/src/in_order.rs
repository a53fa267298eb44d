//! Verifies candidate files on several threads and returns the results in the order of paths.

use crate::{
    build::threads,
    candidate_files::CandidateFiles,
    index::Index,
    ordered::run_in_order,
    segment::Torn,
    verify::{ActualFile, CandidateFile, LineSink, Verified, Verifier},
};

/// How many blocks are verified as one unit of work.
const CHUNK_BLOCKS: usize = 48;
/// The first blocks, up to this many, are verified on the calling thread: that takes less time than starting threads.
const INLINE_BLOCKS: usize = 160;
/// Back-pressure: how many units of work may be finished or under way before their results are taken.
const MAX_AHEAD: usize = 64;

/// Verifies all candidates. `take` receives the sinks in order, until it returns false.
pub(crate) fn verify_in_order<'a, S: LineSink>(
    index: &Index,
    candidates: &mut CandidateFiles<'_>,
    verifier: impl Fn() -> Verifier<'a> + Sync,
    make_sink: impl Fn() -> S + Sync,
    mut take: impl FnMut(S) -> bool,
) -> Result<(), Torn> {
    // Verifies files until the sink is full enough to be handed over. Returns the sink and the number of files.
    let verify_some =
        |verifier: &mut Verifier<'a>, candidates: &[CandidateFile<'_>]| -> Result<(S, usize), Torn> {
            let mut sink = make_sink();
            for (candidate, number) in candidates.iter().zip(1..) {
                let verified =
                    verifier.verify(candidate.path, index.candidate_blocks(candidate)?.as_ref(), &mut sink);
                sink.file_verified(verified);
                if verified == Verified::Differs(ActualFile::Unreadable) {
                    sink.file_unreadable(candidate.path);
                }
                if sink.is_full() || sink.should_flush() {
                    return Ok((sink, number));
                }
            }
            Ok((sink, candidates.len()))
        };
    let mut verifiers = Vec::new();
    let mut spent = 0;
    loop {
        let batch = candidates.next()?;
        if batch.is_empty() {
            return Ok(());
        }
        let chunks = chunks(&batch);
        let mut next = 0;
        while next < chunks.len() && (spent < INLINE_BLOCKS || next + 1 == chunks.len() || threads() < 2) {
            spent += chunks[next].iter().map(|candidate| candidate.weight).sum::<usize>();
            if verifiers.is_empty() {
                verifiers.push(verifier());
            }
            let mut rest = chunks[next];
            while !rest.is_empty() {
                let (sink, count) = verify_some(&mut verifiers[0], rest)?;
                if !take(sink) {
                    return Ok(());
                }
                rest = &rest[count..];
            }
            next += 1;
        }
        if next < chunks.len() {
            verifiers.resize_with(threads(), &verifier);
            if !verify_with_threads(&chunks[next..], &mut verifiers, &verify_some, &mut take)? {
                return Ok(());
            }
        }
    }
}

/// Verifies some chunks with one thread for each verifier. Returns whether more results are wanted.
fn verify_with_threads<'a, S: LineSink>(
    chunks: &[&[CandidateFile<'_>]],
    verifiers: &mut [Verifier<'a>],
    verify_some: &(impl Fn(&mut Verifier<'a>, &[CandidateFile<'_>]) -> Result<(S, usize), Torn> + Sync),
    take: &mut impl FnMut(S) -> bool,
) -> Result<bool, Torn> {
    let queue = Queue::new();
    let verify_all =
        |verifier: &mut Verifier<'a>, mut candidates: &[CandidateFile<'_>]| -> Result<Vec<S>, Torn> {
            let mut sinks = Vec::new();
            while !candidates.is_empty() {
                let (sink, count) = verify_some(verifier, candidates)?;
                let is_full = sink.is_full();
                sinks.push(sink);
                candidates = if is_full { &[] } else { &candidates[count..] };
            }
            Ok(sinks)
        };
    let run = |verifier: &mut Verifier<'a>| {
        while let Some(number) = queue.begin(chunks.len()) {
            queue.end(number, verify_all(verifier, chunks[number]));
        }
    };
    let run = &run;
    std::thread::scope(|scope| {
        for verifier in verifiers {
            scope.spawn(move || run(verifier));
        }
        // Stop the threads however this scope is left, so that none waits for results to be taken.
        let _stop = StopGuard(&queue);
        for number in 0..chunks.len() {
            if !queue.wait_for(number)?.into_iter().all(&mut *take) {
                return Ok(false);
            }
        }
        Ok(true)
    })
}

/// Splits candidates into chunks of about the same weight.
fn chunks<'j, 'a>(candidates: &'j [CandidateFile<'a>]) -> Vec<&'j [CandidateFile<'a>]> {
    let mut chunks = Vec::new();
    let (mut start, mut weight) = (0, 0);
    for (number, candidate) in candidates.iter().enumerate() {
        // Opening a file takes about as long as reading another block.
        weight += candidate.weight + 1;
        if weight >= CHUNK_BLOCKS {
            chunks.push(&candidates[start..=number]);
            (start, weight) = (number + 1, 0);
        }
    }
    if start < candidates.len() {
        chunks.push(&candidates[start..]);
    }
    chunks
}

/// Hands chunks to threads, and their results back in order.
struct Queue<S> {
    next: AtomicUsize,
    is_stopped: AtomicBool,
    done: Mutex<Done<S>>,
    changed: Condvar,
}

struct Done<S> {
    results: BTreeMap<usize, Result<S, Torn>>,
    taken: usize,
}

impl<S> Queue<S> {
    fn new() -> Self {
        Self {
            next: AtomicUsize::new(0),
            is_stopped: AtomicBool::new(false),
            done: Mutex::new(Done { results: BTreeMap::new(), taken: 0 }),
            changed: Condvar::new(),
        }
    }

    /// The next chunk for a thread to work on. Waits while too many results have not been taken yet.
    fn begin(&self, count: usize) -> Option<usize> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        if number >= count {
            return None;
        }
        let mut done = self.done.lock();
        while number >= done.taken + MAX_AHEAD && !self.is_stopped.load(Ordering::Relaxed) {
            self.changed.wait(&mut done);
        }
        (!self.is_stopped.load(Ordering::Relaxed)).then_some(number)
    }

    fn end(&self, number: usize, result: Result<S, Torn>) {
        let mut done = self.done.lock();
        done.results.insert(number, result);
        self.changed.notify_all();
    }

    fn wait_for(&self, number: usize) -> Result<S, Torn> {
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

/// Stops the threads of a queue when it is dropped.
struct StopGuard<'a, S>(&'a Queue<S>);

impl<S> Drop for StopGuard<'_, S> {
    fn drop(&mut self) {
        let _done = self.0.done.lock();
        self.0.is_stopped.store(true, Ordering::Relaxed);
        self.0.changed.notify_all();
    }
}
