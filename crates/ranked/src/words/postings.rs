//! Postings: the files that have a term, and how often.
//!
//! The count is kept in sixteen levels only; to BM25 large counts are nearly the same.

use crate::bits::{BitReader, BitWriter, rice_parameter, width_of};

/// What the levels stand for; a count is rounded down to one of them.
pub(crate) const LEVELS: [u8; 16] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 255];
/// Posting lists up to this length stand among the terms, longer ones apart and in chunks.
pub(crate) const SHORT: usize = 16;
const CHUNK: usize = 128;

/// A file that has the term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Posting {
    /// The file's number.
    pub(crate) file: u32,
    /// An index of [`LEVELS`].
    pub(crate) level: u8,
}

/// The level of a count above zero.
pub(crate) fn level_of(count: u8) -> u8 {
    LEVELS.partition_point(|&level| level <= count).saturating_sub(1) as u8
}

/// Writes a short posting list: the first file in full, then differences.
pub(crate) fn write_short(postings: &[Posting], file_count: u32, out: &mut BitWriter) {
    let Some(first) = postings.first() else { return };
    out.put(u64::from(first.file), width_of(u64::from(file_count)));
    if postings.len() > 1 {
        let span =
            postings.last().map_or(0, |last| last.file - first.file) as u64 - (postings.len() as u64 - 1);
        let k = rice_parameter(span, postings.len() as u64 - 1);
        out.put(u64::from(k), 5);
        for pair in postings.windows(2) {
            out.put_rice(u64::from(pair[1].file - pair[0].file - 1), k);
        }
    }
    for posting in postings {
        out.put_rice(u64::from(posting.level), 0);
    }
}

/// Reads a short posting list of so many postings.
pub(crate) fn read_short(bits: &mut BitReader<'_>, count: usize, file_count: u32, out: &mut Vec<Posting>) {
    let start = out.len();
    let mut file = bits.take(width_of(u64::from(file_count)));
    out.push(Posting { file: file as u32, level: 0 });
    if count > 1 {
        let k = bits.take(5) as u32;
        for _ in 1..count {
            file = file.saturating_add(bits.take_rice(k)).saturating_add(1);
            // What is no file is dropped by the caller, which bounds all files.
            out.push(Posting { file: u32::try_from(file).unwrap_or(u32::MAX), level: 0 });
        }
    }
    for posting in &mut out[start..] {
        posting.level = bits.take_rice(0).min(15) as u8;
    }
}

/// Writes a long posting list, in chunks that have their own parameters.
pub(crate) fn write_long(postings: &[Posting], out: &mut BitWriter) {
    let mut next = 0;
    for chunk in postings.chunks(CHUNK) {
        let count = chunk.len() as u64;
        let span = chunk.last().map_or(0, |last| u64::from(last.file + 1 - next)) - count;
        let files = rice_parameter(span, count);
        let levels = rice_parameter(chunk.iter().map(|posting| u64::from(posting.level)).sum(), count);
        out.put(u64::from(files), 5);
        out.put(u64::from(levels), 3);
        for posting in chunk {
            out.put_rice(u64::from(posting.file - next), files);
            out.put_rice(u64::from(posting.level), levels);
            next = posting.file + 1;
        }
    }
}

/// Reads a long posting list of so many postings.
pub(crate) fn read_long(bits: &mut BitReader<'_>, count: usize, out: &mut Vec<Posting>) {
    let mut next = 0u64;
    let mut left = count;
    while left > 0 && !bits.is_overrun() {
        let files = bits.take(5) as u32;
        let levels = bits.take(3) as u32;
        for _ in 0..left.min(CHUNK) {
            let file = next.saturating_add(bits.take_rice(files));
            let level = bits.take_rice(levels).min(15) as u8;
            out.push(Posting { file: u32::try_from(file).unwrap_or(u32::MAX), level });
            next = file.saturating_add(1);
        }
        left = left.saturating_sub(CHUNK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn lists_are_read_as_they_were_written(
            files in proptest::collection::btree_set(0u32..5_000, 1..600),
            far in 5_000u32..u32::MAX - 1,
            seed in any::<u8>(),
        ) {
            let mut postings: Vec<Posting> = files
                .iter()
                .map(|&file| Posting { file, level: (file as u8 ^ seed) % 16 })
                .collect();
            postings.push(Posting { file: far, level: 3 });
            let mut writer = BitWriter::default();
            write_long(&postings, &mut writer);
            writer.align();
            let short = &postings[postings.len().saturating_sub(SHORT)..];
            write_short(short, far + 1, &mut writer);
            let mut bytes = Vec::new();
            writer.drain_into(&mut bytes);
            let mut reader = BitReader::new(&bytes);
            let mut read = Vec::new();
            read_long(&mut reader, postings.len(), &mut read);
            prop_assert_eq!(&read, &postings);
            reader.align();
            read.clear();
            read_short(&mut reader, short.len(), far + 1, &mut read);
            prop_assert_eq!(&read[..], short);
        }
    }

    #[test]
    fn a_count_is_rounded_down_to_its_level() {
        for (count, expected) in [(1, 1), (2, 2), (4, 4), (5, 4), (6, 6), (200, 192), (254, 192), (255, 255)]
        {
            assert_eq!(LEVELS[level_of(count) as usize], expected);
        }
    }
}
