//! Building the section of words.
//!
//! A builder counts the terms of each file and keeps one entry for each pair of term and file. When its
//! memory budget is used up, it sorts the entries and writes them out as a run. In the end the runs of all builders
//! are merged in one pass, which holds a buffer of each run and the postings of one term.

use super::block::{BlockWriter, SectionWriter};
use super::counts::Counts;
use super::postings::{Posting, level_of};
use super::term::{Term, hash_of};
use super::tokens::{Split, split, tokenize_compound};
use crate::bits::push_varint;
use crate::runs::{RunReader, Runs};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;

/// That a file has a term: the term, the file in 32 bits, the count in eight. It sorts as runs do.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry(u128);

impl Entry {
    #[inline]
    fn new(term: Term, count: u32, file: u32) -> Self {
        Self(u128::from(term.0) << 40 | u128::from(u64::from(file) << 8 | u64::from(count.min(255))))
    }

    #[inline]
    fn term(self) -> u64 {
        (self.0 >> 40) as u64
    }

    #[inline]
    fn file(self) -> u32 {
        (self.0 >> 8) as u32
    }

    #[inline]
    fn count(self) -> u8 {
        self.0 as u8
    }
}

/// The fewest entries that a run is made of, however small the budget.
const FEWEST_ENTRIES: usize = 256;

/// Collects the words of files; one for each thread.
pub struct WordsBuilder {
    runs: Runs,
    budget: usize,
    most_entries: usize,
    entries: Vec<Entry>,
    terms: Counts<()>,
    compounds: Counts<Range<usize>>,
    /// How many terms each file has.
    lengths: Vec<(u32, u32)>,
}

impl WordsBuilder {
    /// A builder that writes runs to a folder when its memory budget, in bytes, is used up. With no folder
    /// they stay in memory, but packed.
    pub fn new(scratch: Option<&Path>, budget: usize) -> Self {
        // A part of the budget is for the table of counts and for what the vectors grow by.
        let most_entries = (budget / 10 * 8 / size_of::<Entry>()).max(FEWEST_ENTRIES);
        Self {
            runs: Runs::new(scratch),
            budget,
            most_entries,
            entries: Vec::new(),
            terms: Counts::new(),
            compounds: Counts::new(),
            lengths: Vec::new(),
        }
    }

    /// Adds the text of a file. A file that is added in several pieces is the sum of them.
    pub fn add(&mut self, file: u32, text: &[u8]) -> io::Result<()> {
        let mut length = 0u32;
        let mut result = Ok(());
        // A file of very many terms is taken in pieces, so that its tables stay small.
        let most_terms = (self.budget / 1024).max(FEWEST_ENTRIES);
        let Self { terms, compounds, entries, most_entries, runs, .. } = self;
        // About as many different terms as most texts of this length have.
        terms.expect(text.len() / 32);
        compounds.expect(text.len() / 64);
        split(text, |found| {
            match found {
                Split::Term(token) => {
                    length = length.saturating_add(1);
                    terms.add(token.term.0, 1, ());
                }
                Split::Compound(range) => compounds.add(hash_of(text, range.start, range.end), 1, range),
            }
            if terms.len() + compounds.len() >= most_terms && result.is_ok() {
                length = length.saturating_add(take_apart(compounds, text, terms));
                result = keep(terms, entries, *most_entries, runs, file);
            }
        });
        result?;
        length = length.saturating_add(take_apart(compounds, text, terms));
        keep(terms, entries, *most_entries, runs, file)?;
        if length > 0 {
            self.lengths.push((file, length));
        }
        Ok(())
    }

    /// Merges what several builders have collected into one section, and returns its length. Every file
    /// belongs to one builder, and its number is below `file_count`.
    pub fn finish(mut builders: Vec<Self>, file_count: u32, out: &mut dyn Write) -> io::Result<u64> {
        let mut lengths = vec![0u32; file_count as usize];
        let mut budget = 0;
        for builder in &mut builders {
            put_aside(&mut builder.entries, &mut builder.runs)?;
            builder.entries = Vec::new();
            budget += builder.budget;
            for (file, length) in std::mem::take(&mut builder.lengths) {
                let Some(known) = lengths.get_mut(file as usize) else {
                    return Err(io::Error::new(io::ErrorKind::InvalidInput, "a file's number is too large"));
                };
                *known = known.saturating_add(length);
            }
        }
        let run_count: usize = builders.iter().map(|builder| builder.runs.len()).sum();
        let buffer = budget / 2 / run_count.max(1);
        let readers = builders.iter().flat_map(|builder| builder.runs.readers(buffer)).collect();
        let mut section = SectionWriter::new(out);
        merge(readers, &mut section, BlockWriter::new(file_count))?;
        section.finish(&lengths)
    }
}

/// Counts the terms of compound words, and returns how many they were.
fn take_apart(compounds: &mut Counts<Range<usize>>, text: &[u8], terms: &mut Counts<()>) -> u32 {
    let mut length = 0u32;
    compounds.drain(|_, count, range| {
        tokenize_compound(text, range, &mut |token| {
            length = length.saturating_add(count);
            terms.add(token.term.0, count, ());
        });
    });
    length
}

/// Keeps the counts of a file as entries, and writes a run when there are many.
fn keep(
    counts: &mut Counts<()>,
    entries: &mut Vec<Entry>,
    most: usize,
    runs: &mut Runs,
    file: u32,
) -> io::Result<()> {
    let mut result = Ok(());
    if entries.len() + counts.len() > most {
        result = put_aside(entries, runs);
    }
    // Vectors double: the last time to what is wanted, not beyond.
    if entries.capacity() < entries.len() + counts.len() {
        let wanted = (entries.capacity() * 2).clamp(FEWEST_ENTRIES, most).max(entries.len() + counts.len());
        entries.reserve_exact(wanted - entries.len());
    }
    counts.drain(|hash, count, ()| entries.push(Entry::new(Term(hash), count, file)));
    result
}

/// Sorts the entries and writes them as a run: for each term the difference from the last, the number of
/// files, and for each file the difference from the last and the count.
fn put_aside(entries: &mut Vec<Entry>, runs: &mut Runs) -> io::Result<()> {
    if entries.is_empty() {
        return Ok(());
    }
    entries.sort_unstable();
    let mut last_term = 0;
    for group in entries.chunk_by(|one, other| one.term() == other.term()) {
        let Some(first) = group.first() else { continue };
        let piece = runs.piece();
        push_varint(piece, first.term() - last_term);
        push_varint(piece, group.len() as u64);
        last_term = first.term();
        let mut last_file = 0;
        for entry in group {
            push_varint(piece, u64::from(entry.file() - last_file));
            piece.push(entry.count());
            last_file = entry.file();
        }
        runs.write_piece()?;
    }
    entries.clear();
    runs.end_run()
}

fn merge(
    mut readers: Vec<RunReader<'_>>,
    section: &mut SectionWriter<'_>,
    mut block: BlockWriter,
) -> io::Result<()> {
    let mut heads = BinaryHeap::with_capacity(readers.len());
    for (run, reader) in readers.iter_mut().enumerate() {
        if !reader.is_done() {
            heads.push(Reverse((reader.varint()?, run)));
        }
    }
    let mut list: Vec<(u32, u8)> = Vec::new();
    let mut postings: Vec<Posting> = Vec::new();
    while let Some(Reverse((term, _))) = heads.peek().copied() {
        list.clear();
        while let Some(mut head) = heads.peek_mut() {
            let Reverse((next, run)) = *head;
            if next != term {
                break;
            }
            let reader = &mut readers[run];
            let mut file = 0;
            for _ in 0..reader.varint()? {
                file += reader.varint()? as u32;
                list.push((file, reader.byte()?));
            }
            if reader.is_done() {
                PeekMut::pop(head);
            } else {
                *head = Reverse((term + reader.varint()?, run));
            }
        }
        if !list.is_sorted_by(|one, other| one.0 < other.0) {
            list.sort_unstable_by_key(|&(file, _)| file);
            list.dedup_by(|next, kept| {
                let is_same = next.0 == kept.0;
                if is_same {
                    kept.1 = kept.1.saturating_add(next.1);
                }
                is_same
            });
        }
        postings.clear();
        postings.extend(list.iter().map(|&(file, count)| Posting { file, level: level_of(count) }));
        block.add(Term(term), &postings);
        if block.is_full() {
            section.put(&mut block)?;
        }
    }
    section.put(&mut block)
}
