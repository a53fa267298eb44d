//! Trigrams and their posting lists.
//!
//! A trigram is three bytes in a row within one line. The index stores, for each trigram, a posting list of the
//! blocks that contain it.

pub(crate) mod codec;
mod collect;
mod merge;

pub(crate) use collect::{Collector, Run};
pub(crate) use merge::merge;

/// A trigram as a number: the first byte is the highest of the lower three.
pub(crate) type Trigram = u32;

/// How many different trigrams there are.
pub(crate) const TRIGRAMS: usize = 1 << 24;

pub(crate) fn trigram(bytes: [u8; 3]) -> Trigram {
    u32::from_be_bytes([0, bytes[0], bytes[1], bytes[2]])
}
