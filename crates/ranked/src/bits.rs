//! Numbers as bits and as bytes: a writer and a reader of bits, lowest bit first, and LEB128 varints.
//!
//! The reader of bits never fails. Past the end it reads zeros, and [`BitReader::is_overrun`] reports that; whoever
//! reads a count bounds it before looping over it.

/// Quotients of this size and more are written as this many zeros and then the number in full.
const ESCAPE: u32 = 32;
/// How many bits a number may have.
pub const MAX_BITS: u32 = 56;

/// Writes bits into a vector of bytes.
#[derive(Default)]
pub struct BitWriter {
    bytes: Vec<u8>,
    pending: u64,
    filled: u32,
}

impl BitWriter {
    /// Writes after the bytes that are there.
    pub fn after(bytes: Vec<u8>) -> Self {
        Self { bytes, pending: 0, filled: 0 }
    }

    /// All bytes; the last one is filled with zeros.
    pub fn into_bytes(mut self) -> Vec<u8> {
        self.align();
        self.bytes
    }

    /// Writes the low `width` bits of a value; at most [`MAX_BITS`].
    #[inline]
    pub fn put(&mut self, value: u64, width: u32) {
        debug_assert!(width <= MAX_BITS && value >> width == 0);
        self.pending |= value << self.filled;
        self.filled += width;
        while self.filled >= 8 {
            self.bytes.push(self.pending as u8);
            self.pending >>= 8;
            self.filled -= 8;
        }
    }

    /// Writes a number by the code of Rice: the quotient by `2^k` in unary, then the `k` low bits.
    pub(crate) fn put_rice(&mut self, value: u64, k: u32) {
        let quotient = value >> k;
        if quotient < u64::from(ESCAPE) {
            self.put(1 << quotient, quotient as u32 + 1);
            self.put(value & ((1 << k) - 1), k);
        } else {
            self.put(0, ESCAPE);
            self.put(value, MAX_BITS);
        }
    }

    /// Writes a number above zero by Elias' gamma code.
    pub(crate) fn put_gamma(&mut self, value: u64) {
        debug_assert!(value > 0);
        let width = value.ilog2();
        self.put_rice(u64::from(width), 0);
        self.put(value & ((1 << width) - 1), width);
    }

    /// Fills the last byte with zeros.
    pub(crate) fn align(&mut self) {
        if self.filled > 0 {
            self.put(0, 8 - self.filled);
        }
    }

    /// What was written since the last call, up to a whole byte.
    pub(crate) fn drain_into(&mut self, out: &mut Vec<u8>) {
        self.align();
        out.append(&mut self.bytes);
    }
}

/// Reads what a [`BitWriter`] wrote.
#[derive(Clone)]
pub(crate) struct BitReader<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> BitReader<'a> {
    /// Reads from the first bit.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0 }
    }

    /// The next 57 bits at least, without taking them.
    #[inline]
    pub(crate) fn peek(&self) -> u64 {
        let start = self.position / 8;
        let word = match self.bytes.get(start..).and_then(|rest| rest.first_chunk::<8>()) {
            Some(bytes) => u64::from_le_bytes(*bytes),
            None => self.peek_at_the_end(start),
        };
        word >> (self.position % 8)
    }

    #[cold]
    fn peek_at_the_end(&self, start: usize) -> u64 {
        let rest = self.bytes.get(start..).unwrap_or_default();
        rest.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte))
    }

    /// Goes on by some bits.
    #[inline]
    pub(crate) fn skip(&mut self, bits: usize) {
        self.position = self.position.saturating_add(bits);
    }

    /// Takes `width` bits; at most [`MAX_BITS`].
    #[inline]
    pub(crate) fn take(&mut self, width: u32) -> u64 {
        let width = width.min(MAX_BITS);
        let value = self.peek() & ((1 << width) - 1);
        self.skip(width as usize);
        value
    }

    /// Takes a number in the code of Rice.
    #[inline]
    pub(crate) fn take_rice(&mut self, k: u32) -> u64 {
        let bits = self.peek();
        let quotient = bits.trailing_zeros();
        if quotient + 1 + k <= MAX_BITS && quotient < ESCAPE {
            // Both halves are in the word already read: the usual case.
            self.skip((quotient + 1 + k) as usize);
            let low = (bits >> (quotient + 1)) & ((1 << k) - 1);
            return u64::from(quotient) << k | low;
        }
        if quotient >= ESCAPE {
            self.skip(ESCAPE as usize);
            return self.take(MAX_BITS);
        }
        self.skip(quotient as usize + 1);
        let k = k.min(MAX_BITS);
        u64::from(quotient) << k | self.take(k)
    }

    /// Takes a number in Elias' gamma code.
    #[inline]
    pub(crate) fn take_gamma(&mut self) -> u64 {
        let width = self.take_rice(0).min(u64::from(MAX_BITS)) as u32;
        1 << width | self.take(width)
    }

    /// Goes on to the next whole byte and returns its index.
    pub(crate) fn align(&mut self) -> usize {
        self.position = self.position.div_ceil(8).saturating_mul(8);
        self.position / 8
    }

    /// Whether more was read than there is.
    pub(crate) fn is_overrun(&self) -> bool {
        self.position > self.bytes.len().saturating_mul(8)
    }
}

/// Appends a number in LEB128: seven bits a byte, the lowest first.
#[inline]
pub fn push_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Takes a number in LEB128 off the front; `None` if it does not end, or not within ten bytes.
#[inline]
pub fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// The parameter with which [`BitWriter::put_rice`] writes values of this sum and number about shortest.
pub(crate) fn rice_parameter(sum: u64, count: u64) -> u32 {
    // The mean times ln 2, rounded down to a power of two.
    let mean = (sum as f64 / count.max(1) as f64) * std::f64::consts::LN_2;
    if mean < 1.0 { 0 } else { (mean as u64).ilog2() }
}

/// How many bits it takes to write every number up to this one.
pub(crate) fn width_of(largest: u64) -> u32 {
    u64::BITS - largest.leading_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read() {
        let values = [0, 1, 2, 5, 63, 64, 1000, u64::from(u32::MAX), (1 << MAX_BITS) - 1];
        let mut writer = BitWriter::default();
        for &value in &values {
            for k in [0, 1, 7, 30, 50] {
                writer.put_rice(value, k);
            }
            writer.put(value, MAX_BITS);
            if value > 0 {
                writer.put_gamma(value);
            }
        }
        let mut bytes = Vec::new();
        writer.drain_into(&mut bytes);
        let mut reader = BitReader::new(&bytes);
        for &value in &values {
            for k in [0, 1, 7, 30, 50] {
                assert_eq!(reader.take_rice(k), value, "k = {k}");
            }
            assert_eq!(reader.take(MAX_BITS), value);
            if value > 0 {
                assert_eq!(reader.take_gamma(), value);
            }
        }
        assert_eq!(reader.align(), bytes.len());
        assert!(!reader.is_overrun());
    }

    #[test]
    fn varints_are_read_back_and_what_does_not_end_is_refused() {
        for value in [0, 1, 0x7f, 0x80, 0x3fff, 0x4000, u64::MAX] {
            let mut bytes = Vec::new();
            push_varint(&mut bytes, value);
            assert_eq!(take_varint(&mut &bytes[..bytes.len() - 1]), None);
            bytes.push(7);
            let mut rest = &bytes[..];
            assert_eq!((take_varint(&mut rest), rest), (Some(value), &[7][..]));
        }
        assert_eq!(take_varint(&mut &[0xff; 20][..]), None);
    }

    #[test]
    fn bits_are_written_after_what_is_there() {
        let mut writer = BitWriter::after(vec![9]);
        writer.put(5, 3);
        assert_eq!(writer.into_bytes(), [9, 5]);
    }

    #[test]
    fn past_the_end_are_zeros() {
        let mut reader = BitReader::new(&[0xff]);
        assert_eq!(reader.take(8), 0xff);
        assert!(!reader.is_overrun());
        assert_eq!(reader.take(9), 0);
        assert!(reader.is_overrun());
        assert_eq!(reader.take_rice(3), 0);
        assert_eq!(reader.take_gamma(), 1);
    }
}
