//! Looking into many files on several threads, and taking what they have in order.

use crate::{
    build::threads,
    index::Index,
    jobs::Jobs,
    look::{Changed, Gather, Job, Looked, Looker},
    ordered::run_in_order,
    segment::Torn,
};

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
    run_in_order(
        lookers,
        chunks.len(),
        AHEAD,
        |looker, number| all(looker, chunks[number]),
        |pieces| Ok(pieces?.into_iter().all(&mut *take)),
    )
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
