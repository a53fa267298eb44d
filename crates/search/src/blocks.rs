//! How a file is divided into blocks.
//!
//! Block `i` of a file holds the lines that start at offsets from `i * BLOCK` up to `(i + 1) * BLOCK`; the last block
//! also holds the rest. So the number of blocks follows from the file's size alone, and no line is ever split between
//! blocks, however long it is. A block in which no line starts is empty.

use std::ops::Range;

use memchr::memchr;

/// The size of a block. The line at its end may reach beyond.
pub(crate) const BLOCK: u64 = 8 << 10;

/// How many blocks a file of this size has.
pub(crate) fn count(size: u64) -> u32 {
    u32::try_from(size.div_ceil(BLOCK)).unwrap_or(u32::MAX)
}

/// Divides a text that arrives in pieces into blocks.
pub(crate) struct Cutter {
    blocks: u32,
    /// The current block, and the offset of the next byte in the file.
    block: u32,
    offset: u64,
}

/// How a piece of text is divided.
pub(crate) struct Cut {
    /// How many bytes belong to the current block.
    pub(crate) length: usize,
    /// The block that begins after these bytes, if one does.
    pub(crate) next: Option<u32>,
}

impl Cutter {
    pub(crate) fn new(blocks: u32) -> Self {
        Self { blocks, block: 0, offset: 0 }
    }

    /// Finds out how much of the next piece of text belongs to the current block.
    pub(crate) fn cut(&mut self, text: &[u8]) -> Cut {
        let all = Cut { length: text.len(), next: None };
        // If a line of this block ends at or after this byte, the next line starts beyond the block.
        let edge = (u64::from(self.block) + 1) * BLOCK - 1;
        let from = usize::try_from(edge.saturating_sub(self.offset)).unwrap_or(usize::MAX);
        if self.block + 1 >= self.blocks || from >= text.len() {
            self.offset += text.len() as u64;
            return all;
        }
        let Some(end) = memchr(b'\n', &text[from..]) else {
            self.offset += text.len() as u64;
            return all;
        };
        let length = from + end + 1;
        self.offset += length as u64;
        self.block = block_at(self.offset).min(self.blocks - 1);
        Cut { length, next: Some(self.block) }
    }
}

/// The block that a line starting at `offset` belongs to.
fn block_at(offset: u64) -> u32 {
    u32::try_from(offset / BLOCK).unwrap_or(u32::MAX)
}

/// The byte range in which the lines of some neighbouring blocks start. Unless it begins at 0, it may begin within a
/// line of the block before. The last line may end beyond the range.
pub(crate) fn bytes(blocks: Range<u32>, of: u32, size: u64) -> Range<u64> {
    let end = if blocks.end >= of { size } else { (u64::from(blocks.end) * BLOCK).min(size) };
    (u64::from(blocks.start) * BLOCK).min(end)..end
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The block of each line by definition: the one that contains the line's first byte, but at most the last one.
    fn expected(text: &[u8], blocks: u32) -> Vec<(u32, Vec<u8>)> {
        let mut start = 0;
        let mut found: Vec<(u32, Vec<u8>)> = Vec::new();
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            let block = ((start as u64 / BLOCK) as u32).min(blocks - 1);
            match found.last_mut() {
                Some((last, lines)) if *last == block => lines.extend(line),
                _ => found.push((block, line.to_vec())),
            }
            start += line.len();
        }
        found
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
        #[test]
        fn a_line_lies_in_the_block_that_it_starts_in(
            lengths in prop::collection::vec(prop_oneof![0_usize..60, 8000_usize..8400, 16_000_usize..40_000], 1..40),
            parts in prop::collection::vec(1_usize..20_000, 1..20),
            fewer in 0_u32..3,
        ) {
            let mut text = lengths.iter().flat_map(|length| [vec![b'x'; *length], vec![b'\n']].concat()).collect::<Vec<_>>();
            text.pop();
            prop_assume!(!text.is_empty());
            // A file may have grown since its blocks were counted.
            let blocks = (count(text.len() as u64) - fewer.min(count(text.len() as u64) - 1)).max(1);
            let mut cutter = Cutter::new(blocks);
            let mut found = vec![(0, Vec::new())];
            let (mut rest, mut parts) = (text.as_slice(), parts.iter().cycle());
            while !rest.is_empty() {
                let (mut part, after) = rest.split_at(rest.len().min(*parts.next().expect("endless")));
                rest = after;
                while !part.is_empty() {
                    let cut = cutter.cut(part);
                    found.last_mut().expect("one").1.extend(&part[..cut.length]);
                    part = &part[cut.length..];
                    if let Some(next) = cut.next {
                        found.push((next, Vec::new()));
                    }
                }
            }
            found.retain(|(_, lines)| !lines.is_empty());
            prop_assert_eq!(found, expected(&text, blocks));
        }
    }
}
