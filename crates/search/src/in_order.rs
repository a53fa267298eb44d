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
    run_in_order(
        verifiers,
        chunks.len(),
        MAX_AHEAD,
        |verifier, number| verify_all(verifier, chunks[number]),
        |sinks| Ok(sinks?.into_iter().all(&mut *take)),
    )
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
