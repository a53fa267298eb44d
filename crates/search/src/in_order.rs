//! Looking into many files on several threads, and taking what they have in order.

use crate::{
    build::threads,
    candidate_files::CandidateFiles,
    index::Index,
    ordered::run_in_order,
    segment::Torn,
    verify::{ActualFile, CandidateFile, LineSink, Verified, Verifier},
};

/// How many blocks are looked at in one go.
const CHUNK_BLOCKS: usize = 48;
/// So many blocks are looked at right here: that takes less time than to start threads.
const INLINE_BLOCKS: usize = 160;
/// How far threads may be ahead of what was taken.
const MAX_AHEAD: usize = 64;

/// Looks into the files of all candidates. `take` gets what was gathered, in order, until it says that it is enough.
pub(crate) fn verify_in_order<'a, G: LineSink>(
    index: &Index,
    candidates: &mut CandidateFiles<'_>,
    verifier: impl Fn() -> Verifier<'a> + Sync,
    gather: impl Fn() -> G + Sync,
    mut take: impl FnMut(G) -> bool,
) -> Result<(), Torn> {
    // Looks into files until that is enough to be taken, and tells how many they were.
    let some = |verifier: &mut Verifier<'a>, candidates: &[CandidateFile<'_>]| -> Result<(G, usize), Torn> {
        let mut gathered = gather();
        for (candidate, number) in candidates.iter().zip(1..) {
            let verified =
                verifier.verify(candidate.path, index.candidate_blocks(candidate)?.as_ref(), &mut gathered);
            gathered.file_verified(verified);
            if verified == Verified::Differs(ActualFile::Unreadable) {
                gathered.file_unreadable(candidate.path);
            }
            if gathered.is_full() || gathered.should_flush() {
                return Ok((gathered, number));
            }
        }
        Ok((gathered, candidates.len()))
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
                let (gathered, count) = some(&mut verifiers[0], rest)?;
                if !take(gathered) {
                    return Ok(());
                }
                rest = &rest[count..];
            }
            next += 1;
        }
        if next < chunks.len() {
            verifiers.resize_with(threads(), &verifier);
            if !verify_with_threads(&chunks[next..], &mut verifiers, &some, &mut take)? {
                return Ok(());
            }
        }
    }
}

/// The same for some chunks, with a thread for each verifier. Tells whether more is wanted.
fn verify_with_threads<'a, G: LineSink>(
    chunks: &[&[CandidateFile<'_>]],
    verifiers: &mut [Verifier<'a>],
    some: &(impl Fn(&mut Verifier<'a>, &[CandidateFile<'_>]) -> Result<(G, usize), Torn> + Sync),
    take: &mut impl FnMut(G) -> bool,
) -> Result<bool, Torn> {
    let all = |verifier: &mut Verifier<'a>, mut candidates: &[CandidateFile<'_>]| -> Result<Vec<G>, Torn> {
        let mut pieces = Vec::new();
        while !candidates.is_empty() {
            let (gathered, count) = some(verifier, candidates)?;
            let is_full = gathered.is_full();
            pieces.push(gathered);
            candidates = if is_full { &[] } else { &candidates[count..] };
        }
        Ok(pieces)
    };
    run_in_order(
        verifiers,
        chunks.len(),
        MAX_AHEAD,
        |verifier, number| all(verifier, chunks[number]),
        |pieces| Ok(pieces?.into_iter().all(&mut *take)),
    )
}

/// CandidateFiles in chunks of about the same weight.
fn chunks<'j, 'a>(candidates: &'j [CandidateFile<'a>]) -> Vec<&'j [CandidateFile<'a>]> {
    let mut chunks = Vec::new();
    let (mut start, mut weight) = (0, 0);
    for (number, candidate) in candidates.iter().enumerate() {
        // Opening a file takes as long as reading another block.
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
