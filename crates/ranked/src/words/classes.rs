//! What the bytes of a text are, eight at a time.
//!
//! Eight bytes are one number. A mask has the highest bit of each byte that is of the class. That works for the
//! seven bits of ASCII, because a sum of two such bytes stays in its byte.

/// The highest bit of each byte.
pub(crate) const HIGH: u64 = 0x8080_8080_8080_8080;
const LOW: u64 = 0x0101_0101_0101_0101;

/// Masks of eight bytes.
#[derive(Clone, Copy)]
pub(crate) struct Classes {
    /// `A` to `Z`.
    pub(crate) upper: u64,
    /// `a` to `z`.
    pub(crate) lower: u64,
    /// `0` to `9`.
    pub(crate) digit: u64,
    /// `_`.
    pub(crate) underscore: u64,
    /// Everything that is not ASCII.
    pub(crate) beyond: u64,
}

/// The classes of eight bytes, the first of which is the lowest of the number.
#[inline]
pub(crate) fn classes_of(bytes: u64) -> Classes {
    let beyond = bytes & HIGH;
    let seven = bytes & !HIGH;
    // The highest bit of `byte + (128 - n)` says whether the byte is at least `n`.
    let at_least = |first: u8| seven.wrapping_add(LOW * u64::from(128 - first));
    let between = |first: u8, last: u8| at_least(first) & !at_least(last + 1) & HIGH & !beyond;
    Classes {
        upper: between(b'A', b'Z'),
        lower: between(b'a', b'z'),
        digit: between(b'0', b'9'),
        underscore: between(b'_', b'_'),
        beyond,
    }
}

/// Eight bytes from this offset on; zeros past the end.
#[inline]
pub(crate) fn load(text: &[u8], position: usize) -> u64 {
    let rest = text.get(position..).unwrap_or_default();
    match rest.first_chunk::<8>() {
        Some(bytes) => u64::from_le_bytes(*bytes),
        None => rest.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)),
    }
}

/// The bits of a mask side by side.
#[inline]
pub(crate) fn gather(mask: u64) -> u64 {
    // Each product of a bit and a factor falls on another bit of the highest byte.
    (mask >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_of_its_class_wherever_it_stands() {
        for byte in 0..=255u8 {
            for lane in 0..8 {
                let classes =
                    classes_of(0x205a_7a39_30ff_5f00 & !(0xff << (8 * lane)) | u64::from(byte) << (8 * lane));
                let is_set = |mask: u64| gather(mask) >> lane & 1 == 1;
                assert_eq!(is_set(classes.upper), byte.is_ascii_uppercase());
                assert_eq!(is_set(classes.lower), byte.is_ascii_lowercase());
                assert_eq!(is_set(classes.digit), byte.is_ascii_digit());
                assert_eq!(is_set(classes.underscore), byte == b'_');
                assert_eq!(is_set(classes.beyond), !byte.is_ascii());
            }
        }
    }
}
