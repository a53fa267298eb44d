//! The section of words as bytes, written.
//!
//! Terms stand in their order in blocks of [`TERMS`]. A block is
//!
//! - bits: the number of terms, the Rice parameter of their differences, the terms (the first is in the
//!   directory), for each term the number of its postings, and for each long posting list its length in bytes;
//! - the long posting lists, each from a whole byte on;
//! - bits: the short posting lists.
//!
//! After the blocks come the lengths of the files, four bytes each; the directory, for each block its first
//! term and its offset, eight bytes each; and the footer.

use super::postings::{Posting, SHORT, write_long, write_short};
use super::term::Term;
use crate::bits::{BitWriter, rice_parameter};
use std::io::{self, Write};

/// How many terms a block has; the last may have fewer.
pub(crate) const TERMS: usize = 64;
/// What the footer ends with: a name and the version of the format.
pub(crate) const MAGIC: [u8; 8] = *b"PtlWord1";
/// The footer: the number of blocks, the number of files, and [`MAGIC`].
pub(crate) const FOOTER: usize = 8 + 4 + 8;

/// Collects the terms of a block.
pub(crate) struct BlockWriter {
    file_count: u32,
    terms: Vec<u64>,
    counts: Vec<u32>,
    long_lengths: Vec<u64>,
    long: Vec<u8>,
    short: BitWriter,
    bits: BitWriter,
}

impl BlockWriter {
    /// An empty block for files with numbers below the count.
    pub(crate) fn new(file_count: u32) -> Self {
        Self {
            file_count,
            terms: Vec::new(),
            counts: Vec::new(),
            long_lengths: Vec::new(),
            long: Vec::new(),
            short: BitWriter::default(),
            bits: BitWriter::default(),
        }
    }

    /// Adds a term, greater than all before it, with its postings in the order of files.
    pub(crate) fn add(&mut self, term: Term, list: &[Posting]) {
        self.terms.push(term.0);
        self.counts.push(list.len() as u32);
        if list.len() <= SHORT {
            write_short(list, self.file_count, &mut self.short);
        } else {
            let start = self.long.len();
            write_long(list, &mut self.bits);
            self.bits.drain_into(&mut self.long);
            self.long_lengths.push((self.long.len() - start) as u64);
        }
    }

    /// Whether the block takes no more.
    pub(crate) fn is_full(&self) -> bool {
        self.terms.len() == TERMS
    }

    /// Empties the block into bytes.
    fn drain_into(&mut self, out: &mut Vec<u8>) {
        let (Some(first), Some(last)) = (self.terms.first(), self.terms.last()) else { return };
        let k = rice_parameter(last - first, self.terms.len() as u64);
        self.bits.put(self.terms.len() as u64, 7);
        self.bits.put(u64::from(k), 6);
        for pair in self.terms.windows(2) {
            self.bits.put_rice(pair[1] - pair[0] - 1, k);
        }
        let mut long_lengths = self.long_lengths.drain(..);
        for &count in &self.counts {
            self.bits.put_gamma(u64::from(count));
            if count as usize > SHORT {
                self.bits.put_gamma(long_lengths.next().unwrap_or(1));
            }
        }
        drop(long_lengths);
        self.bits.drain_into(out);
        out.append(&mut self.long);
        self.short.drain_into(out);
        self.terms.clear();
        self.counts.clear();
    }
}

/// Writes blocks and what comes after them.
pub(crate) struct SectionWriter<'a> {
    out: &'a mut dyn Write,
    written: u64,
    directory: Vec<u8>,
    bytes: Vec<u8>,
}

impl<'a> SectionWriter<'a> {
    /// Writes to this.
    pub(crate) fn new(out: &'a mut dyn Write) -> Self {
        Self { out, written: 0, directory: Vec::new(), bytes: Vec::new() }
    }

    /// Writes a block, if there is anything in it, and leaves it empty.
    pub(crate) fn put(&mut self, block: &mut BlockWriter) -> io::Result<()> {
        let Some(first) = block.terms.first() else { return Ok(()) };
        self.directory.extend_from_slice(&first.to_le_bytes());
        let offset = self.written + self.bytes.len() as u64;
        self.directory.extend_from_slice(&offset.to_le_bytes());
        block.drain_into(&mut self.bytes);
        if self.bytes.len() >= 64 << 10 { self.write_out() } else { Ok(()) }
    }

    fn write_out(&mut self) -> io::Result<()> {
        self.out.write_all(&self.bytes)?;
        self.written += self.bytes.len() as u64;
        self.bytes.clear();
        Ok(())
    }

    /// Writes the rest and returns the length of the section.
    pub(crate) fn finish(mut self, lengths: &[u32]) -> io::Result<u64> {
        let blocks = (self.directory.len() / 16) as u64;
        self.write_out()?;
        for part in lengths.chunks(16 << 10) {
            self.bytes.extend(part.iter().flat_map(|length| length.to_le_bytes()));
            self.write_out()?;
        }
        self.bytes.append(&mut self.directory);
        self.bytes.extend_from_slice(&blocks.to_le_bytes());
        self.bytes.extend_from_slice(&(lengths.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(&MAGIC);
        self.write_out()?;
        Ok(self.written)
    }
}
