//! Divides a corpus into spans, which threads read independently.

use std::ops::Range;

use pintle_root::scan::FoundFile;

use crate::blocks;

/// Neighbouring files with so few blocks that 16 bits can number them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) files: Range<usize>,
    pub(crate) first_block: u32,
    pub(crate) bytes: u64,
}

/// How many blocks a file has; 0 if the file is over the size limit.
pub(crate) fn blocks_of(file: &FoundFile, limit: u64) -> u32 {
    if file.stamp.size > limit { 0 } else { blocks::count(file.stamp.size) }
}

/// Divides files into spans of about `bytes` bytes each. Also returns the number of blocks of all files.
pub(crate) fn spans(files: &[FoundFile], limit: u64, bytes: u64) -> (Vec<Span>, u32) {
    const MOST_BLOCKS: u32 = 1 << 16;
    let mut spans = Vec::new();
    let mut span = Span { files: 0..0, first_block: 0, bytes: 0 };
    let mut next_block = 0;
    for (number, file) in files.iter().enumerate() {
        let blocks = blocks_of(file, limit);
        let is_full = span.bytes >= bytes || next_block - span.first_block + blocks > MOST_BLOCKS;
        if is_full && !span.files.is_empty() {
            let next = Span { files: number..number, first_block: next_block, bytes: 0 };
            spans.push(std::mem::replace(&mut span, next));
        }
        span.files.end = number + 1;
        span.bytes += if blocks == 0 { 0 } else { file.stamp.size };
        next_block += blocks;
    }
    if !span.files.is_empty() {
        spans.push(span);
    }
    (spans, next_block)
}
