//! The section of words, read.

use super::block::{FOOTER, MAGIC, TERMS};
use super::postings::{Posting, SHORT, read_long, read_short};
use super::term::Term;
use crate::Malformed;
use crate::bits::BitReader;

/// An index of words, as it lies in memory.
#[derive(Clone, Copy)]
pub struct Words<'a> {
    blocks: &'a [u8],
    lengths: &'a [[u8; 4]],
    directory: &'a [[u8; 16]],
}

impl<'a> Words<'a> {
    /// Takes bytes for what [`WordsBuilder::finish`](crate::WordsBuilder::finish) wrote.
    ///
    /// Only the outline is checked. Bytes that were changed later give wrong results, nothing worse.
    pub fn open(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let (rest, footer) = bytes.split_last_chunk::<FOOTER>().ok_or(Malformed::TooShort)?;
        let (numbers, magic) = footer.split_at(FOOTER - MAGIC.len());
        if magic != MAGIC {
            return Err(Malformed::OtherFormat);
        }
        let (block_count, file_count) = numbers.split_at(8);
        let block_count = u64::from_le_bytes(block_count.try_into().map_err(|_| Malformed::Outline)?);
        let file_count = u32::from_le_bytes(file_count.try_into().map_err(|_| Malformed::Outline)?);
        let directory = usize::try_from(block_count).ok().and_then(|count| count.checked_mul(16));
        let at = directory.and_then(|length| rest.len().checked_sub(length)).ok_or(Malformed::Outline)?;
        let (rest, directory) = rest.split_at(at);
        let at = (file_count as usize).checked_mul(4).and_then(|length| rest.len().checked_sub(length));
        let (blocks, lengths) = rest.split_at(at.ok_or(Malformed::Outline)?);
        Ok(Self { blocks, lengths: lengths.as_chunks().0, directory: directory.as_chunks().0 })
    }

    /// How many files there are; numbers of files are below.
    pub fn file_count(&self) -> u32 {
        self.lengths.len() as u32
    }

    /// How many terms a file has; none if there is no such file.
    #[inline]
    pub(crate) fn length_of(&self, file: u32) -> u32 {
        self.lengths.get(file as usize).map_or(0, |bytes| u32::from_le_bytes(*bytes))
    }

    fn first_of(&self, block: usize) -> u64 {
        self.directory.get(block).map_or(0, |entry| u64::from_le_bytes(first_half(entry)))
    }

    /// The postings of a term, in the order of files. Whatever the bytes are, they are fewer than the files
    /// and some block's length together bound.
    pub(crate) fn postings(&self, term: Term, out: &mut Vec<Posting>) {
        out.clear();
        if self.read_postings(term, out).is_none() {
            out.clear();
        }
        // Only bytes that were changed hold such files.
        if out.iter().any(|posting| posting.file >= self.file_count())
            || !out.is_sorted_by(|one, other| one.file < other.file)
        {
            out.clear();
        }
    }

    fn read_postings(&self, term: Term, out: &mut Vec<Posting>) -> Option<()> {
        let after = self.directory.partition_point(|entry| u64::from_le_bytes(first_half(entry)) <= term.0);
        let block = after.checked_sub(1)?;
        let entry = self.directory.get(block)?;
        let offset = usize::try_from(u64::from_le_bytes(second_half(entry))).ok()?;
        let block_bytes = self.blocks.get(offset..)?;
        let mut bits = BitReader::new(block_bytes);
        let count = (bits.take(7) as usize).min(TERMS);
        let k = bits.take(6) as u32;
        let mut found = None;
        let mut next = self.first_of(block);
        for index in 0..count {
            if index > 0 {
                next = next.saturating_add(bits.take_rice(k)).saturating_add(1);
            }
            if next == term.0 {
                found = Some(index);
            }
        }
        let found = found?;
        let mut counts = [0u64; TERMS];
        let (mut long_at, mut long_total) = (0usize, 0usize);
        for (index, count) in counts.iter_mut().enumerate().take(count) {
            *count = bits.take_gamma();
            if *count > SHORT as u64 {
                if index == found {
                    long_at = long_total;
                }
                long_total = long_total.checked_add(usize::try_from(bits.take_gamma()).ok()?)?;
            }
        }
        let lists_at = bits.align();
        if bits.is_overrun() {
            return None;
        }
        if counts[found] > SHORT as u64 {
            let count = usize::try_from(counts[found]).ok().filter(|&count| count <= self.lengths.len())?;
            let mut bits = BitReader::new(block_bytes.get(lists_at.checked_add(long_at)?..)?);
            out.reserve(count);
            read_long(&mut bits, count, out);
            return (!bits.is_overrun()).then_some(());
        }
        let mut bits = BitReader::new(block_bytes.get(lists_at.checked_add(long_total)?..)?);
        for (index, &count) in counts.iter().enumerate().take(found + 1) {
            if (1..=SHORT as u64).contains(&count) {
                out.clear();
                read_short(&mut bits, count as usize, self.file_count(), out);
            }
            if index == found {
                break;
            }
        }
        (!bits.is_overrun()).then_some(())
    }
}

fn first_half(entry: &[u8; 16]) -> [u8; 8] {
    let mut half = [0; 8];
    half.copy_from_slice(&entry[..8]);
    half
}

fn second_half(entry: &[u8; 16]) -> [u8; 8] {
    let mut half = [0; 8];
    half.copy_from_slice(&entry[8..]);
    half
}
