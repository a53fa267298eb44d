//! Collects which trigrams occur in which blocks, one span of the corpus at a time.
//!
//! A **span** is a part of the corpus with so few blocks that 16 bits can number them. Its postings (pairs of trigram
//! and block) are sorted in memory and written out as a sorted **run**: for each first byte a bucket of trigrams with
//! their blocks, as gaps. This is the first half of an external sort; `merge` is the second.

use std::{
    fs::File,
    io::{self, BufWriter, Write},
    ops::Range,
    path::PathBuf,
};

use pintle_ranked::bits::push_varint;

use super::{TRIGRAMS, Trigram};
use crate::plain_file::create_private;

/// The bytes that are assumed before the first byte of a block: a line starts there.
const LINE_START: Trigram = 0x0a_0a_0a;

/// Whether a trigram crosses the end of a line. No match does, so no query asks for such a trigram.
fn crosses_lines(trigram: Trigram) -> bool {
    trigram.to_be_bytes()[1..].contains(&b'\n')
}

/// Collects the trigrams of blocks into postings.
pub(crate) struct Collector {
    /// A bitmap of the trigrams of the current block, so that each is recorded once.
    seen: Box<[u64; TRIGRAMS / 64]>,
    /// The distinct trigrams of the current block.
    met: Vec<Trigram>,
    count: usize,
    /// The last three bytes that were added.
    last: Trigram,
    /// Postings by the trigram's first byte: its other two bytes, then the block's number in the span.
    buckets: Vec<Vec<u32>>,
    sorted: Vec<u32>,
}

impl Collector {
    pub(crate) fn new() -> Self {
        let seen = vec![0; TRIGRAMS / 64].into_boxed_slice();
        Self {
            seen: seen.try_into().expect("it has that length"),
            met: Vec::new(),
            count: 0,
            last: LINE_START,
            buckets: vec![Vec::new(); 256],
            sorted: Vec::new(),
        }
    }

    /// Adds text to the current block. It continues the text that was added last.
    pub(crate) fn add(&mut self, text: &[u8]) {
        if self.met.len() < self.count + text.len() {
            self.met.resize(self.count + text.len(), 0);
        }
        let met = &mut self.met[self.count..];
        let (mut last, mut count) = (self.last, 0);
        for &byte in text {
            last = (last << 8 | u32::from(byte)) & (TRIGRAMS as u32 - 1);
            let (word, bit) = (&mut self.seen[last as usize / 64], 1 << (last % 64));
            if *word & bit == 0 {
                *word |= bit;
                met[count] = last;
                count += 1;
            }
        }
        self.last = last;
        self.count += count;
    }

    /// Ends the current block, which is the span's `block`th. The next block begins at a line start.
    pub(crate) fn end_block(&mut self, block: u16) {
        for &trigram in &self.met[..self.count] {
            self.seen[trigram as usize / 64] = 0;
            if !crosses_lines(trigram) {
                self.buckets[trigram as usize >> 16].push(trigram << 16 | u32::from(block));
            }
        }
        self.count = 0;
        self.last = LINE_START;
    }

    /// Writes the span's postings as a run and clears them. The span's first block is the corpus's `first_block`th.
    pub(crate) fn write_run(&mut self, path: PathBuf, first_block: u32) -> io::Result<Run> {
        let mut out = BufWriter::with_capacity(1 << 18, create_private(&path)?);
        let mut bytes = Vec::new();
        let mut starts = Vec::with_capacity(257);
        let mut written = 0;
        for bucket in &mut self.buckets {
            starts.push(written);
            sort(bucket, &mut self.sorted);
            bytes.clear();
            let mut previous_key = 0;
            for postings in bucket.chunk_by(|one, next| one >> 16 == next >> 16) {
                let key = postings[0] >> 16;
                push_varint(&mut bytes, u64::from(key - previous_key));
                previous_key = key;
                push_varint(&mut bytes, postings.len() as u64);
                let mut next = 0;
                for posting in postings {
                    let block = posting & 0xffff;
                    push_varint(&mut bytes, u64::from(block - next));
                    next = block + 1;
                }
            }
            bucket.clear();
            out.write_all(&bytes)?;
            written += bytes.len() as u64;
        }
        starts.push(written);
        out.flush()?;
        Ok(Run { path, starts, first_block })
    }
}

/// A radix sort by the upper halves. The postings of a bucket arrive ordered by their lower halves, and the sort is
/// stable, so two passes over the upper half are enough.
fn sort(numbers: &mut Vec<u32>, scratch: &mut Vec<u32>) {
    if numbers.len() < 2000 {
        numbers.sort_unstable();
        return;
    }
    scratch.resize(numbers.len(), 0);
    for shift in [16, 24] {
        let mut positions = [0_usize; 256];
        for number in numbers.iter() {
            positions[(number >> shift & 0xff) as usize] += 1;
        }
        let mut sum = 0;
        for position in &mut positions {
            sum += std::mem::replace(position, sum);
        }
        for &number in numbers.iter() {
            let position = &mut positions[(number >> shift & 0xff) as usize];
            scratch[*position] = number;
            *position += 1;
        }
        std::mem::swap(numbers, scratch);
    }
}

/// The sorted postings of one span, in a temporary file.
pub(crate) struct Run {
    path: PathBuf,
    /// The offset of each first byte's bucket, and the end of the last one.
    starts: Vec<u64>,
    pub(super) first_block: u32,
}

impl Run {
    pub(super) fn open(&self) -> io::Result<File> {
        File::open(&self.path)
    }

    pub(super) fn bucket(&self, first_byte: usize) -> Range<u64> {
        self.starts[first_byte]..self.starts[first_byte + 1]
    }
}
