//! Looking through all names: first at their letters, then at those names that may match.

use super::block::NAMES;
use super::letters::Letters;
use super::matching::{Class, Pattern};
use super::section::Names;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Blocks are given out so many at a time.
const BLOCKS_AT_A_TIME: usize = 1024;
/// With fewer blocks than this a second thread is not worth its start.
const FEW_BLOCKS: usize = 4 * BLOCKS_AT_A_TIME;

/// A name that matches: its class, its length and its number in one number, which sorts as results do.
pub(crate) type Candidate = u64;

/// Puts a candidate together.
pub(crate) fn candidate(class: Class, length: usize, ordinal: u64) -> Candidate {
    (class as u64) << 56 | (length as u64) << 48 | ordinal
}

/// Takes a candidate apart: the class as a number, and the number of the name.
pub(crate) fn class_and_ordinal(candidate: Candidate) -> (u8, u64) {
    ((candidate >> 56) as u8, candidate & ((1 << 48) - 1))
}

/// All names with such letters that have a class, in no order; with a pattern, only those that have its letters
/// in their order. When `has_ended` says so, some may be missing.
pub(crate) fn scan(
    names: Names<'_>,
    letters: Letters,
    pattern: Option<&Pattern<'_>>,
    class_of: &(dyn Fn(&[u8]) -> Option<Class> + Sync),
    has_ended: &dyn Fn() -> bool,
) -> Vec<Candidate> {
    let next = AtomicUsize::new(0);
    let is_over = AtomicBool::new(false);
    let work = |has_ended: &dyn Fn() -> bool| {
        let mut found = Vec::new();
        let mut name = Vec::new();
        let mut order = pattern.map(Pattern::order);
        loop {
            let first = next.fetch_add(BLOCKS_AT_A_TIME, Ordering::Relaxed);
            if first >= names.block_count() || is_over.load(Ordering::Relaxed) {
                return found;
            }
            if has_ended() {
                is_over.store(true, Ordering::Relaxed);
            }
            for block in first..names.block_count().min(first + BLOCKS_AT_A_TIME) {
                let mut wanted = letters.of_block(names.letters(block));
                if wanted == 0 {
                    continue;
                }
                for (index, (shared, more)) in names.block(block).names().enumerate() {
                    name.truncate(shared);
                    name.extend_from_slice(more);
                    if let Some(order) = &mut order {
                        order.keep(shared);
                    }
                    if wanted & 1 == 1
                        && order.as_mut().is_none_or(|order| order.is_kept_by(&name))
                        && let Some(class) = class_of(&name)
                    {
                        found.push(candidate(class, name.len(), (block * NAMES + index) as u64));
                    }
                    wanted >>= 1;
                    if wanted == 0 {
                        break;
                    }
                }
            }
        }
    };
    if names.block_count() < FEW_BLOCKS {
        return work(has_ended);
    }
    std::thread::scope(|scope| {
        let other = scope.spawn(|| work(&|| false));
        let mut found = work(has_ended);
        // A panic there is a bug here, and is passed on as one.
        found.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        found
    })
}
