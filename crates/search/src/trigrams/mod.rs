//! Trigrams: three bytes in a row, within one line.

pub(crate) mod codec;
mod collect;
mod merge;

pub(crate) use collect::{Collector, Run};
pub(crate) use merge::merge;

/// Three bytes, the first one highest.
pub(crate) type Trigram = u32;

/// How many trigrams there can be.
pub(crate) const TRIGRAMS: usize = 1 << 24;

pub(crate) fn trigram(bytes: [u8; 3]) -> Trigram {
    u32::from_be_bytes([0, bytes[0], bytes[1], bytes[2]])
}
