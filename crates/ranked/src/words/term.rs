//! What a term is in the index: a number of 56 bits.
//!
//! The index holds no text. Of two terms the chance to be the same number is 1 in 2^56; among five million
//! terms that happens to any two in one index of six thousand, and then those two words are taken for one
//! another. For that the index is small, and is built and merged without comparing text.

use super::classes::load;
use crate::bits::MAX_BITS;

/// How many bits of the hash are kept.
pub(crate) const TERM_BITS: u32 = MAX_BITS;

/// A term: the hash of its text in lower case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Term(pub(crate) u64);

const SEED: u64 = 0x9e37_79b9_7f4a_7c15;
const MULTIPLIER: u64 = 0xd6e8_feb8_6659_fd93;
/// The bit by which small and capital letters differ. All digits have it.
const SMALL: u64 = 0x2020_2020_2020_2020;
/// What an underscore becomes by that bit; no other byte of a word does.
const UNDERSCORE: u8 = b'_' | 0x20;

impl Term {
    /// The term of a stretch of ASCII letters, digits and underscores, in any case.
    #[inline]
    pub(crate) fn of_ascii(text: &[u8], start: usize, end: usize) -> Self {
        let mut hash = SEED ^ (end - start) as u64;
        let mut position = start;
        while position < end {
            let count = (end - position).min(8);
            let word = load(text, position) | SMALL;
            hash = step(hash, word & (u64::MAX >> (64 - 8 * count)));
            position += 8;
        }
        Self(finish(hash))
    }

    /// The term of a text that is in lower case already.
    pub(crate) fn of_lower(text: &str) -> Self {
        let mut hash = SEED ^ text.len() as u64;
        for chunk in text.as_bytes().chunks(8) {
            let byte = |byte: &u8| u64::from(if *byte == b'_' { UNDERSCORE } else { *byte });
            hash = step(hash, chunk.iter().rev().fold(0, |word, next| word << 8 | byte(next)));
        }
        Self(finish(hash))
    }
}

/// A hash of a stretch of text as it is, to know it again.
#[inline]
pub(crate) fn hash_of(text: &[u8], start: usize, end: usize) -> u64 {
    let mut hash = SEED ^ (end - start) as u64;
    let mut position = start;
    while position < end {
        let count = (end - position).min(8);
        hash = step(hash, load(text, position) & (u64::MAX >> (64 - 8 * count)));
        position += 8;
    }
    hash.wrapping_mul(MULTIPLIER)
}

// Each step loses nothing, so terms of the same length up to eight bytes differ before the last cut.
#[inline]
fn step(hash: u64, word: u64) -> u64 {
    let hash = (hash ^ word).wrapping_mul(MULTIPLIER);
    hash ^ (hash >> 32)
}

#[inline]
fn finish(hash: u64) -> u64 {
    let hash = hash.wrapping_mul(MULTIPLIER);
    (hash ^ (hash >> 29)).wrapping_mul(SEED) >> (64 - TERM_BITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_and_surroundings_make_no_difference() {
        for text in ["a", "file", "file_name", "12345678", "a_rather_long_name_9", "_"] {
            let term = Term::of_lower(text);
            let upper = text.to_uppercase();
            assert_eq!(Term::of_ascii(upper.as_bytes(), 0, upper.len()), term);
            let padded = format!("(({text}  and more");
            assert_eq!(Term::of_ascii(padded.as_bytes(), 2, 2 + text.len()), term);
        }
        assert_ne!(Term::of_lower("ab"), Term::of_lower("ba"));
    }

    #[test]
    fn a_million_terms_are_all_different() {
        let mut terms: Vec<Term> = (0..1_000_000).map(|n| Term::of_lower(&format!("reg_{n}_mask"))).collect();
        terms.sort_unstable();
        terms.dedup();
        assert_eq!(terms.len(), 1_000_000);
    }
}
