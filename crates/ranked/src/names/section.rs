//! The section of names, read.

use super::Definition;
use super::block::{FOOTER, LONGEST_NAME, MAGIC, NAMES, OFFSET};
use crate::Malformed;
use crate::bits::BitReader;

/// An index of names, as it lies in memory.
#[derive(Clone, Copy)]
pub struct Names<'a> {
    blocks: &'a [u8],
    letters: &'a [[u8; 4]],
    directory: &'a [[u8; OFFSET]],
    name_count: u64,
    definition_count: u64,
    file_count: u32,
}

impl<'a> Names<'a> {
    /// Takes bytes for what [`NamesBuilder::finish`](crate::NamesBuilder::finish) wrote.
    ///
    /// Only the outline is checked. Bytes that were changed later give wrong results, nothing worse.
    pub fn open(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let (rest, footer) = bytes.split_last_chunk::<FOOTER>().ok_or(Malformed::TooShort)?;
        let (numbers, magic) = footer.split_at(FOOTER - MAGIC.len());
        if magic != MAGIC {
            return Err(Malformed::OtherFormat);
        }
        let number =
            |start: usize| numbers[start..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        let (name_count, definition_count) = (number(0), number(8));
        let file_count = numbers[16..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        let block_count = usize::try_from(name_count.div_ceil(NAMES as u64)).ok();
        let directory = block_count.and_then(|count| count.checked_mul(OFFSET));
        let at = directory.and_then(|length| rest.len().checked_sub(length)).ok_or(Malformed::Outline)?;
        let (rest, directory) = rest.split_at(at);
        let letters = usize::try_from(name_count).ok().and_then(|count| count.checked_mul(4));
        let at = letters.and_then(|length| rest.len().checked_sub(length)).ok_or(Malformed::Outline)?;
        let (blocks, letters) = rest.split_at(at);
        let (letters, directory) = (letters.as_chunks().0, directory.as_chunks().0);
        Ok(Self { blocks, letters, directory, name_count, definition_count, file_count })
    }

    /// How many distinct names there are.
    pub fn name_count(&self) -> u64 {
        self.name_count
    }

    /// How many definitions there are.
    pub fn definition_count(&self) -> u64 {
        self.definition_count
    }

    /// How many blocks there are.
    pub(crate) fn block_count(&self) -> usize {
        self.directory.len()
    }

    /// The letters of the names of a block.
    #[inline]
    pub(crate) fn letters(&self, block: usize) -> &'a [[u8; 4]] {
        let first = block.saturating_mul(NAMES).min(self.letters.len());
        &self.letters[first..self.letters.len().min(first + NAMES)]
    }

    /// A block; an empty one if it is not there.
    #[inline]
    pub(crate) fn block(&self, block: usize) -> Block<'a> {
        self.try_block(block).unwrap_or(Block { names: &[], definitions: &[], name_count: 0 })
    }

    #[inline]
    fn try_block(&self, block: usize) -> Option<Block<'a>> {
        let mut offset = [0; 8];
        offset[..OFFSET].copy_from_slice(self.directory.get(block)?);
        let bytes = self.blocks.get(usize::try_from(u64::from_le_bytes(offset)).ok()?..)?;
        let (length, bytes) = bytes.split_first_chunk::<2>()?;
        let (names, definitions) = bytes.split_at_checked(u16::from_le_bytes(*length) as usize)?;
        let before = (block as u64).saturating_mul(NAMES as u64);
        let name_count = self.name_count.saturating_sub(before).min(NAMES as u64) as usize;
        Some(Block { names, definitions, name_count })
    }

    /// The name with a number, or nothing.
    pub(crate) fn name(&self, ordinal: u64, name: &mut Vec<u8>) {
        name.clear();
        let mut names = self.block((ordinal / NAMES as u64) as usize).names();
        for _ in 0..=ordinal % NAMES as u64 {
            let Some((shared, more)) = names.next() else { return name.clear() };
            name.truncate(shared);
            name.extend_from_slice(more);
        }
    }

    /// Calls `found` with each definition of the name with a number, in the order of files.
    pub(crate) fn definitions(&self, ordinal: u64, found: &mut dyn FnMut(u32, Definition)) {
        let block = self.block((ordinal / NAMES as u64) as usize);
        let mut bits = BitReader::new(block.definitions);
        let (mut before, mut count) = (0u64, 0);
        for index in 0..block.name_count {
            let definitions = bits.take_gamma();
            match (index as u64).cmp(&(ordinal % NAMES as u64)) {
                std::cmp::Ordering::Less => before = before.saturating_add(definitions),
                std::cmp::Ordering::Equal => count = definitions,
                std::cmp::Ordering::Greater => {}
            }
        }
        let lowest = bits.take(32) as u32;
        let widths: [u32; 5] = std::array::from_fn(|_| (bits.take(6) as u32).min(32));
        let record = widths.iter().sum::<u32>() as usize;
        if record == 0 {
            return;
        }
        bits.skip(usize::try_from(before).unwrap_or(usize::MAX).saturating_mul(record));
        for _ in 0..count {
            let [file, line, column, extent, kind] = widths.map(|width| bits.take(width) as u32);
            if bits.is_overrun() {
                return;
            }
            let file = lowest.saturating_add(file);
            if file < self.file_count {
                let end_line = line.saturating_add(extent);
                found(file, Definition { line, column, end_line, kind: kind as u8 });
            }
        }
    }

    /// The number of the first name that is not before what the test says; the names are sorted by it.
    pub(crate) fn first_not(&self, is_before: impl Fn(&[u8]) -> bool) -> u64 {
        let (mut low, mut high) = (0, self.block_count());
        while low < high {
            let middle = low + (high - low) / 2;
            // The first name of a block shares nothing.
            let is_before = self.block(middle).names().next().is_some_and(|(_, name)| is_before(name));
            if is_before { low = middle + 1 } else { high = middle }
        }
        let Some(block) = low.checked_sub(1) else { return 0 };
        let ordinals = block as u64 * NAMES as u64..;
        let mut name = Vec::with_capacity(LONGEST_NAME);
        for (ordinal, (shared, more)) in ordinals.zip(self.block(block).names()) {
            name.truncate(shared);
            name.extend_from_slice(more);
            if !is_before(&name) {
                return ordinal;
            }
        }
        low as u64 * NAMES as u64
    }
}

/// Sixteen names, or the last few.
#[derive(Clone, Copy)]
pub(crate) struct Block<'a> {
    names: &'a [u8],
    definitions: &'a [u8],
    name_count: usize,
}

impl<'a> Block<'a> {
    /// The names: of each, how many bytes it shares with the one before, and the rest.
    #[inline]
    pub(crate) fn names(&self) -> NamesOfBlock<'a> {
        NamesOfBlock { bytes: self.names, left: self.name_count, last: 0 }
    }
}

/// See [`Block::names`].
pub(crate) struct NamesOfBlock<'a> {
    bytes: &'a [u8],
    left: usize,
    last: usize,
}

impl<'a> Iterator for NamesOfBlock<'a> {
    type Item = (usize, &'a [u8]);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let (&head, mut rest) = self.bytes.split_first()?;
        let (mut shared, mut more) = ((head >> 4) as usize, (head & 15) as usize);
        if shared == 15 {
            let (&extra, after) = rest.split_first()?;
            (shared, rest) = (15 + extra as usize, after);
        }
        if more == 15 {
            let (&extra, after) = rest.split_first()?;
            (more, rest) = (15 + extra as usize, after);
        }
        // Only bytes that were changed share what is not there, or make a name too long.
        if shared > self.last || shared + more > LONGEST_NAME {
            return None;
        }
        let (suffix, rest) = rest.split_at_checked(more)?;
        self.bytes = rest;
        self.last = shared + more;
        Some((shared, suffix))
    }
}
