//! The encoding of posting lists: ascending block numbers as bits.
//!
//! A posting list is written in whichever way is shorter: as a bitmap of all blocks, or as the gaps between its
//! numbers in exponential Golomb code with a parameter for each list. A trigram occurs in bursts (the blocks of one
//! file, the files of one folder), and long gaps between bursts take fewer bits in this code than in Rice code.

use std::ops::Range;

use pintle_ranked::bits::{BitWriter, push_varint, take_varint};

#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;

/// The value in place of a Golomb parameter that marks a bitmap.
const BITMAP: u8 = 63;
/// No gap between 32-bit numbers needs a larger parameter.
const LARGEST_PARAMETER: u8 = 31;

/// Appends a posting list: ascending block numbers, each below `bound`. The list must not be empty.
pub(crate) fn encode(list: &[u32], bound: u32, out: &mut Vec<u8>) {
    push_varint(out, list.len() as u64);
    let parameter = best_parameter(list, bound);
    let length = gap_bits(list, parameter).div_ceil(8);
    let bitmap = bound.div_ceil(8) as usize;
    if bitmap <= length {
        out.push(BITMAP);
        let start = out.len();
        out.resize(start + bitmap, 0);
        for &number in list {
            out[start + number as usize / 8] |= 1 << (number % 8);
        }
        return;
    }
    out.push(parameter);
    let mut bits = BitWriter::after(std::mem::take(out));
    for gap in gaps(list) {
        let lifted = u64::from(gap) + (1 << parameter);
        let width = 63 - lifted.leading_zeros();
        let zeros = width - u32::from(parameter);
        // Exponential Golomb: one zero for each bit beyond the parameter's width, a one, then the number without its
        // highest bit.
        bits.put(1 << zeros, zeros + 1);
        bits.put(lifted & !(1 << width), width);
    }
    *out = bits.into_bytes();
}

/// An encoded posting list, decoded window by window. Corrupt bytes are safe: decoding always ends, and every number
/// that it returns is below the bound.
pub(crate) struct PostingList<'a> {
    bound: u32,
    numbers: Numbers<'a>,
}

enum Numbers<'a> {
    Bitmap(&'a [u8]),
    Gaps(Gaps<'a>),
}

/// The decoding state of a list of gaps.
struct Gaps<'a> {
    parameter: u8,
    bits: BitReader<'a>,
    /// How many numbers are still to be decoded.
    left: u32,
    /// The smallest possible next number.
    least: u64,
    /// A number that was decoded but lies beyond the last window.
    ahead: Option<u32>,
}

impl<'a> PostingList<'a> {
    /// Returns `None` if the bytes are not a posting list.
    pub(crate) fn read(bytes: &'a [u8], bound: u32) -> Option<Self> {
        let mut rest = bytes;
        let count = u32::try_from(take_varint(&mut rest)?).ok()?;
        let (&parameter, rest) = rest.split_first()?;
        let numbers = match parameter {
            BITMAP => Numbers::Bitmap(rest.get(..bound.div_ceil(8) as usize)?),
            0..=LARGEST_PARAMETER => {
                let bits = BitReader { bytes: rest, held: 0, count: 0 };
                Numbers::Gaps(Gaps { parameter, bits, left: count, least: 0, ahead: None })
            }
            _ => return None,
        };
        (count <= bound).then_some(Self { bound, numbers })
    }

    /// Calls `found` for each number within the window, ascending. A window must not begin before the end of the
    /// previous one.
    pub(crate) fn each(&mut self, window: Range<u32>, mut found: impl FnMut(u32)) {
        let window = window.start..window.end.min(self.bound);
        match &mut self.numbers {
            Numbers::Bitmap(bitmap) => {
                let mut position = window.start;
                while position < window.end {
                    let start = position as usize / 64 * 8;
                    let word = &bitmap[start..(start + 8).min(bitmap.len())];
                    let mut word = word.iter().rev().fold(0_u64, |word, &byte| word << 8 | u64::from(byte));
                    word &= u64::MAX << (position % 64);
                    while word != 0 {
                        let number = start as u32 * 8 + word.trailing_zeros();
                        if number >= window.end {
                            return;
                        }
                        found(number);
                        word &= word - 1;
                    }
                    position = (position / 64 + 1).saturating_mul(64);
                }
            }
            Numbers::Gaps(gaps) => {
                while let Some(number) = gaps.next_below(window.end) {
                    if number >= window.start {
                        found(number);
                    }
                }
            }
        }
    }

    /// Intersection: keeps those candidates that are in the list. The candidates must be ascending and within the
    /// window.
    pub(crate) fn retain(&mut self, window: Range<u32>, candidates: &mut Vec<u32>) {
        match &mut self.numbers {
            Numbers::Bitmap(bitmap) => candidates.retain(|number| {
                bitmap.get(*number as usize / 8).is_some_and(|byte| byte >> (number % 8) & 1 == 1)
            }),
            Numbers::Gaps(gaps) => {
                let end = window.end.min(self.bound);
                let mut number = gaps.next_below(end);
                candidates.retain(|candidate| {
                    while number.is_some_and(|number| number < *candidate) {
                        number = gaps.next_below(end);
                    }
                    number == Some(*candidate)
                });
                // If the candidates ran out early, the number that was decoded last may belong to the next window.
                gaps.ahead = gaps.ahead.or(number);
            }
        }
    }
}

impl Gaps<'_> {
    /// The next number, if it is below `bound`.
    fn next_below(&mut self, bound: u32) -> Option<u32> {
        let number = match self.ahead.take() {
            Some(number) => number,
            None => {
                self.left = self.left.checked_sub(1)?;
                let Some(number) = self.bits.gap(self.parameter).map(|gap| self.least + gap) else {
                    self.left = 0;
                    return None;
                };
                self.least = number + 1;
                // A number that overflows 32 bits is beyond every bound.
                u32::try_from(number).unwrap_or(u32::MAX)
            }
        };
        if number >= bound {
            self.ahead = Some(number);
            return None;
        }
        Some(number)
    }
}

/// The gap before each number: how many blocks lie between it and the previous one.
fn gaps(list: &[u32]) -> impl Iterator<Item = u32> {
    let mut next = 0;
    list.iter().map(move |&number| {
        let gap = number - next;
        next = number + 1;
        gap
    })
}

/// The length of the encoded gaps, in bits.
fn gap_bits(list: &[u32], parameter: u8) -> usize {
    gaps(list).map(|gap| gap_width(gap, parameter)).sum()
}

fn gap_width(gap: u32, parameter: u8) -> usize {
    let width = 63 - (u64::from(gap) + (1 << parameter)).leading_zeros() as usize;
    2 * width + 1 - usize::from(parameter)
}

/// The parameter with the shortest encoding, estimated from a sample out of the middle of the list.
fn best_parameter(list: &[u32], bound: u32) -> u8 {
    const JUDGED: usize = 192;
    let mean = bound / list.len() as u32;
    let guess = (31 - (mean | 1).leading_zeros()) as u8;
    let sample = &list[list.len().saturating_sub(JUDGED) / 2..];
    let sample = &sample[..sample.len().min(JUDGED)];
    let start = sample[0];
    let length = |parameter: &u8| {
        sample.windows(2).map(|pair| gap_width(pair[1] - pair[0] - 1, *parameter)).sum::<usize>()
            + gap_width(start.min(mean), *parameter)
    };
    (guess.saturating_sub(3)..=(guess + 1).min(LARGEST_PARAMETER)).min_by_key(length).unwrap_or(guess)
}

struct BitReader<'a> {
    bytes: &'a [u8],
    held: u64,
    count: u32,
}

impl BitReader<'_> {
    /// Refills until at least 56 bits are held, or the input has ended.
    fn fill(&mut self) {
        if let Some((eight, _)) = self.bytes.split_first_chunk::<8>() {
            self.held |= u64::from_le_bytes(*eight) << self.count;
            let taken = (63 - self.count) / 8;
            self.bytes = &self.bytes[taken as usize..];
            self.count += taken * 8;
            return;
        }
        while self.count <= 56 {
            let Some((&byte, rest)) = self.bytes.split_first() else { return };
            self.held |= u64::from(byte) << self.count;
            self.bytes = rest;
            self.count += 8;
        }
    }

    /// Decodes one gap. It has at most 32 zeros, a one and 32 bits, so two refills are enough.
    fn gap(&mut self, parameter: u8) -> Option<u64> {
        self.fill();
        let zeros = self.held.trailing_zeros();
        let width = zeros + u32::from(parameter);
        if zeros >= self.count || width > 32 {
            return None;
        }
        self.drop_bits(zeros + 1);
        if self.count < width {
            self.fill();
            if self.count < width {
                return None;
            }
        }
        let low = self.held & ((1 << width) - 1);
        self.drop_bits(width);
        Some((low | 1 << width) - (1 << parameter))
    }

    fn drop_bits(&mut self, count: u32) {
        self.held >>= count;
        self.count -= count;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decoded(bytes: &[u8], bound: u32) -> Vec<u32> {
        let mut found = Vec::new();
        PostingList::read(bytes, bound).expect("a list").each(0..bound, |number| found.push(number));
        found
    }

    /// Windows that together cover all numbers below `bound`.
    fn windows(mut cuts: Vec<u32>, bound: u32) -> Vec<Range<u32>> {
        cuts.extend([0, bound]);
        cuts.sort_unstable();
        cuts.windows(2).map(|pair| pair[0]..pair[1]).collect()
    }

    proptest! {
        #[test]
        fn a_list_comes_back_as_it_was(numbers in prop::collection::btree_set(0_u32..200_000, 1..400), dense in any::<bool>()) {
            let numbers = numbers.into_iter().map(|number| if dense { number % 500 } else { number });
            let list = numbers.collect::<std::collections::BTreeSet<_>>().into_iter().collect::<Vec<_>>();
            let bound = list.last().expect("one") + 1;
            let mut bytes = Vec::new();
            encode(&list, bound, &mut bytes);
            prop_assert_eq!(decoded(&bytes, bound), list);
        }

        #[test]
        fn the_extremes_come_back(numbers in prop::collection::btree_set(any::<u32>(), 1..20)) {
            let list = numbers.into_iter().filter(|&number| number != u32::MAX).collect::<Vec<_>>();
            prop_assume!(!list.is_empty());
            let mut bytes = Vec::new();
            encode(&list, u32::MAX, &mut bytes);
            prop_assert_eq!(decoded(&bytes, u32::MAX), list);
        }

        #[test]
        fn windows_add_up_to_the_list(
            list in prop::collection::btree_set(0_u32..2000, 1..300),
            cuts in prop::collection::vec(0_u32..2000, 0..6),
            skipped in prop::collection::vec(any::<bool>(), 8),
        ) {
            let numbers = list.iter().copied().collect::<Vec<_>>();
            let mut bytes = Vec::new();
            encode(&numbers, 2000, &mut bytes);
            let mut read = PostingList::read(&bytes, 2000).expect("a list");
            for (window, is_skipped) in windows(cuts, 2000).into_iter().zip(skipped) {
                if !is_skipped {
                    let mut found = Vec::new();
                    read.each(window.clone(), |number| found.push(number));
                    prop_assert_eq!(found, list.range(window).copied().collect::<Vec<_>>());
                }
            }
        }

        #[test]
        fn retaining_is_intersecting(
            list in prop::collection::btree_set(0_u32..900, 1..300),
            candidates in prop::collection::btree_set(0_u32..900, 0..300),
            cuts in prop::collection::vec(0_u32..900, 0..6),
        ) {
            let numbers = list.iter().copied().collect::<Vec<_>>();
            let mut bytes = Vec::new();
            encode(&numbers, 900, &mut bytes);
            let mut read = PostingList::read(&bytes, 900).expect("a list");
            for window in windows(cuts, 900) {
                let mut kept = candidates.range(window.clone()).copied().collect::<Vec<_>>();
                read.retain(window.clone(), &mut kept);
                let both = candidates.intersection(&list).copied().filter(|number| window.contains(number));
                prop_assert_eq!(kept, both.collect::<Vec<_>>());
            }
        }

        #[test]
        fn nonsense_is_read_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..60), bound in 0_u32..1000) {
            if let Some(mut list) = PostingList::read(&bytes, bound) {
                let mut last = None;
                list.each(0..bound, |number| {
                    assert!(number < bound && last < Some(number));
                    last = Some(number);
                });
            }
        }
    }
}
