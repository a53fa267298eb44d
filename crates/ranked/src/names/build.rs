//! Building the section of names.
//!
//! As with words, a builder sorts what it has when its memory budget is used up and writes it out as a run; in the end
//! the runs of all builders are merged in one pass.

use super::Definition;
use super::block::{LONGEST_NAME, SectionWriter};
use super::order::{compare, leading};
use crate::bits::push_varint;
use crate::runs::{RunReader, Runs};
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

#[derive(Clone, Copy)]
struct Record {
    /// The first bytes of the name, to compare by before the name itself is looked at.
    leading: u64,
    start: u32,
    length: u8,
    file: u32,
    definition: Definition,
}

impl Record {
    fn name(&self) -> Range<usize> {
        self.start as usize..self.start as usize + self.length as usize
    }
}

/// The smallest budget that is taken seriously.
const SMALLEST_BUDGET: usize = 16 << 10;
/// The largest: names are found by 32 bits.
const LARGEST_BUDGET: usize = 2 << 30;

/// Collects definitions; one for each thread.
pub struct NamesBuilder {
    scratch: Option<PathBuf>,
    runs: Runs,
    budget: usize,
    names: Vec<u8>,
    records: Vec<Record>,
}

impl NamesBuilder {
    /// A builder that writes runs to a folder when its memory budget, in bytes, is used up. With no folder
    /// they stay in memory, but packed.
    pub fn new(scratch: Option<&Path>, budget: usize) -> Self {
        let budget = budget.clamp(SMALLEST_BUDGET, LARGEST_BUDGET);
        let runs = Runs::new(scratch);
        Self { scratch: scratch.map(Path::to_owned), runs, budget, names: Vec::new(), records: Vec::new() }
    }

    /// Adds a definition. A name of more than 255 bytes is cut; an empty one is none.
    pub fn add(&mut self, file: u32, name: &[u8], definition: Definition) -> io::Result<()> {
        let name = cut(name);
        if name.is_empty() {
            return Ok(());
        }
        // Half, because vectors double.
        if self.names.len() + self.records.len() * size_of::<Record>() > self.budget / 2 {
            self.put_aside()?;
        }
        let (start, length) = (self.names.len() as u32, name.len() as u8);
        self.names.extend_from_slice(name);
        self.records.push(Record { leading: leading(name), start, length, file, definition });
        Ok(())
    }

    fn put_aside(&mut self) -> io::Result<()> {
        if self.records.is_empty() {
            return Ok(());
        }
        let names = &self.names;
        self.records.sort_unstable_by(|one, other| {
            let by_name = || compare(&names[one.name()], &names[other.name()]);
            let by_place = || (one.file, one.definition).cmp(&(other.file, other.definition));
            one.leading.cmp(&other.leading).then_with(by_name).then_with(by_place)
        });
        let mut last: &[u8] = &[];
        for record in &self.records {
            let name = &names[record.name()];
            let shared = last.iter().zip(name).take_while(|(one, other)| one == other).count();
            let piece = self.runs.piece();
            piece.push(shared as u8);
            piece.push((name.len() - shared) as u8);
            piece.extend_from_slice(&name[shared..]);
            let Definition { line, column, end_line, kind } = record.definition;
            for number in [record.file, line, column, end_line.saturating_sub(line)] {
                push_varint(piece, u64::from(number));
            }
            piece.push(kind);
            self.runs.write_piece()?;
            last = name;
        }
        self.records.clear();
        self.names.clear();
        self.runs.end_run()
    }

    /// Merges what several builders have collected into one section, and returns its length. The numbers of
    /// all files are below `file_count`.
    pub fn finish(mut builders: Vec<Self>, file_count: u32, out: &mut dyn Write) -> io::Result<u64> {
        let mut budget = 0;
        for builder in &mut builders {
            builder.put_aside()?;
            (builder.names, builder.records) = (Vec::new(), Vec::new());
            budget += builder.budget;
        }
        let run_count: usize = builders.iter().map(|builder| builder.runs.len()).sum();
        let buffer = budget / 2 / run_count.max(1);
        let mut heads = BinaryHeap::with_capacity(run_count);
        for reader in builders.iter().flat_map(|builder| builder.runs.readers(buffer)) {
            let mut head = RunHead::new(reader);
            if head.advance()? {
                heads.push(head);
            }
        }
        let scratch = builders.first().and_then(|builder| builder.scratch.as_deref());
        let mut section = SectionWriter::new(out, scratch);
        while let Some(mut head) = heads.peek_mut() {
            if head.file >= file_count {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "a file's number is too large"));
            }
            section.add(&head.name, head.file, head.definition)?;
            if !head.advance()? {
                PeekMut::pop(head);
            }
        }
        section.finish(file_count)
    }
}

/// A name up to its greatest length, whole characters if it is UTF-8.
fn cut(name: &[u8]) -> &[u8] {
    if name.len() <= LONGEST_NAME {
        return name;
    }
    let is_inside = |at: &usize| name[*at] & 0xc0 != 0x80;
    let end = (LONGEST_NAME - 3..=LONGEST_NAME).rev().find(is_inside).unwrap_or(LONGEST_NAME);
    &name[..end]
}

/// A run with its next definition. The greatest is the one to be taken next.
struct RunHead<'a> {
    reader: RunReader<'a>,
    leading: u64,
    name: Vec<u8>,
    file: u32,
    definition: Definition,
}

impl<'a> RunHead<'a> {
    fn new(reader: RunReader<'a>) -> Self {
        let definition = Definition { line: 0, column: 0, end_line: 0, kind: 0 };
        Self { reader, leading: 0, name: Vec::new(), file: 0, definition }
    }

    /// Reads the next definition, if there is one.
    fn advance(&mut self) -> io::Result<bool> {
        if self.reader.is_done() {
            return Ok(false);
        }
        let shared = self.reader.byte()? as usize;
        let more = self.reader.byte()? as usize;
        self.name.truncate(shared);
        self.name.extend_from_slice(self.reader.bytes(more)?);
        self.leading = leading(&self.name);
        self.file = self.reader.varint()? as u32;
        let line = self.reader.varint()? as u32;
        let column = self.reader.varint()? as u32;
        let end_line = line.saturating_add(self.reader.varint()? as u32);
        self.definition = Definition { line, column, end_line, kind: self.reader.byte()? };
        Ok(true)
    }
}

impl Ord for RunHead<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_name = || compare(&other.name, &self.name);
        let by_place = || (other.file, other.definition).cmp(&(self.file, self.definition));
        other.leading.cmp(&self.leading).then_with(by_name).then_with(by_place)
    }
}

impl PartialOrd for RunHead<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for RunHead<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for RunHead<'_> {}
