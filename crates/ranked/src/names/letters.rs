//! Which letters a name has, as bits: a quick check that rules out most names.

use super::block::NAMES;

/// The bit of each byte: the letters whatever their case, the digits in five groups, what is beyond ASCII.
/// Everything else has none.
const BITS: [u32; 256] = {
    let mut bits = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        bits[byte] = match byte as u8 {
            letter @ b'a'..=b'z' => 1 << (letter - b'a'),
            letter @ b'A'..=b'Z' => 1 << (letter - b'A'),
            b'0' => 1 << 26,
            b'1' => 1 << 27,
            b'2' => 1 << 28,
            b'3'..=b'5' => 1 << 29,
            b'6'..=b'9' => 1 << 30,
            0x80.. => 1 << 31,
            _ => 0,
        };
        byte += 1;
    }
    bits
};

/// The letters of a name.
pub(crate) fn letters_of(name: &[u8]) -> u32 {
    name.iter().fold(0, |letters, &byte| letters | BITS[byte as usize])
}

/// What the letters of a name must be like.
#[derive(Clone, Copy)]
pub(crate) enum Letters {
    /// All of these are there.
    All(u32),
    /// Of these and of the name's, not more than so many are only there or only here.
    Nearly(u32, u32),
}

impl Letters {
    /// Which names of a block may match, as bits.
    #[inline]
    pub(crate) fn of_block(self, block: &[[u8; 4]]) -> u32 {
        match self {
            Self::All(wanted) => those(block, |letters| wanted & !letters == 0),
            Self::Nearly(wanted, 0 | 1) => {
                those(block, |letters| (without_one(wanted & !letters) | without_one(letters & !wanted)) == 0)
            }
            Self::Nearly(wanted, _) => those(block, |letters| {
                let [missing, more] = [wanted & !letters, letters & !wanted].map(without_one);
                (without_one(missing) | without_one(more)) == 0
            }),
        }
    }
}

/// The bits without the lowest of them. (There is no quick way to count bits on every processor.)
#[inline]
fn without_one(bits: u32) -> u32 {
    bits & bits.wrapping_sub(1)
}

#[inline]
fn those(block: &[[u8; 4]], may_match: impl Fn(u32) -> bool) -> u32 {
    if let Ok(block) = <&[[u8; 4]; NAMES]>::try_from(block) {
        // Most blocks have none, and to know only that is much quicker.
        let is_any = block.iter().fold(false, |any, letters| any | may_match(u32::from_le_bytes(*letters)));
        if !is_any {
            return 0;
        }
    }
    let bit =
        |(index, letters): (usize, &[u8; 4])| u32::from(may_match(u32::from_le_bytes(*letters))) << index;
    block.iter().enumerate().map(bit).fold(0, |bits, bit| bits | bit)
}
