//! The order of names: by their letters whatever their case, then by their bytes.
//!
//! Case means that of ASCII: names are bytes and need be no UTF-8.

use std::cmp::Ordering;

/// A byte in lower case.
#[inline]
pub(crate) fn fold(byte: u8) -> u8 {
    byte.to_ascii_lowercase()
}

/// Compares two names as they stand in the index.
pub(crate) fn compare(one: &[u8], other: &[u8]) -> Ordering {
    compare_folded(one, other).then_with(|| one.cmp(other))
}

/// Compares two names whatever their case.
pub(crate) fn compare_folded(one: &[u8], other: &[u8]) -> Ordering {
    let same = one.iter().zip(other).take_while(|(one, other)| fold(**one) == fold(**other)).count();
    match (one.get(same), other.get(same)) {
        (Some(&one), Some(&other)) => fold(one).cmp(&fold(other)),
        _ => one.len().cmp(&other.len()),
    }
}

/// The first bytes of a name in lower case as a number, which is in the same order.
pub(crate) fn leading(name: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    for (byte, next) in bytes.iter_mut().zip(name) {
        *byte = fold(*next);
    }
    u64::from_be_bytes(bytes)
}
