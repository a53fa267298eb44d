//! Merges the sorted runs of all spans into the posting lists of the corpus.

use std::{fs::File, io, os::unix::fs::FileExt};

use pintle_ranked::bits::take_varint;

use super::{Trigram, codec::encode, collect::Run};
use crate::ordered::run_in_order;

/// The posting lists of all trigrams with the same first byte.
#[derive(Default)]
pub(crate) struct Merged {
    /// Each trigram, with the offset of its posting list in `posting_lists`.
    pub(crate) trigrams: Vec<(Trigram, u32)>,
    pub(crate) posting_lists: Vec<u8>,
}

/// Merges the runs, which must be in the order of their blocks, and calls `take` with the posting lists of each first
/// byte in turn. The buckets are merged on `threads` threads.
pub(crate) fn merge(
    runs: &[Run],
    blocks: u32,
    threads: usize,
    has_ended: &(dyn Fn() -> bool + Sync),
    mut take: impl FnMut(Merged) -> io::Result<()>,
) -> io::Result<()> {
    let files = runs.iter().map(Run::open).collect::<io::Result<Vec<_>>>()?;
    let work = |_: &mut (), first_byte: usize| match has_ended() {
        true => Err(io::ErrorKind::Interrupted.into()),
        false => merge_bucket(runs, &files, first_byte, blocks),
    };
    // Back-pressure: a worker that is ahead waits instead of filling memory.
    let ahead = 2 * threads;
    run_in_order(&mut vec![(); threads], 256, ahead, work, |merged| take(merged?).map(|()| true)).map(drop)
}

fn merge_bucket(runs: &[Run], files: &[File], first_byte: usize, blocks: u32) -> io::Result<Merged> {
    let mut bytes = Vec::with_capacity(runs.len());
    for (run, file) in runs.iter().zip(files) {
        let range = run.bucket(first_byte);
        let mut part = vec![0; (range.end - range.start) as usize];
        file.read_exact_at(&mut part, range.start)?;
        bytes.push(part);
    }
    let mut cursors = Vec::with_capacity(runs.len());
    for (run, part) in runs.iter().zip(&bytes) {
        let mut cursor = RunCursor { rest: part, key: 0, first_block: run.first_block };
        if cursor.advance() {
            cursors.push(cursor);
        }
    }
    let mut merged = Merged::default();
    let mut list = Vec::new();
    while let Some(key) = cursors.iter().map(|cursor| cursor.key).min() {
        list.clear();
        cursors.retain_mut(|cursor| {
            cursor.key != key || (cursor.append_blocks(&mut list).is_some() && cursor.advance())
        });
        let offset = u32::try_from(merged.posting_lists.len()).map_err(|_| io::ErrorKind::FileTooLarge)?;
        merged.trigrams.push(((first_byte << 16) as Trigram | key, offset));
        encode(&list, blocks, &mut merged.posting_lists);
    }
    Ok(merged)
}

/// A read position in one bucket of one run.
struct RunCursor<'a> {
    rest: &'a [u8],
    key: u32,
    first_block: u32,
}

impl RunCursor<'_> {
    /// Reads the next key. Returns false at the end.
    fn advance(&mut self) -> bool {
        match take_varint(&mut self.rest) {
            Some(step) => self.key += step as u32,
            None => return false,
        }
        true
    }

    /// Appends the blocks of the current key.
    fn append_blocks(&mut self, list: &mut Vec<u32>) -> Option<()> {
        let count = take_varint(&mut self.rest)?;
        let mut next = self.first_block;
        for _ in 0..count {
            let block = next + take_varint(&mut self.rest)? as u32;
            list.push(block);
            next = block + 1;
        }
        Some(())
    }
}
