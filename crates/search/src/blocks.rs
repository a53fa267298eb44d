//! How a file is divided into blocks.
//!
//! Block `i` of a file holds the lines that start in its bytes from `i * BLOCK` on and before `(i + 1) * BLOCK`; the
//! last one holds all the rest. So the size of a file tells how many blocks it has, and a line lies in one block
//! however long it is. A block in which no line starts is empty.

use std::ops::Range;

use memchr::memchr;

/// The size of a block, but for the line at its end.
pub(crate) const BLOCK: u64 = 8 << 10;

/// How many blocks a file of a size has.
pub(crate) fn count(size: u64) -> u32 {
    u32::try_from(size.div_ceil(BLOCK)).unwrap_or(u32::MAX)
}

/// Cuts a text that comes in parts into blocks.
pub(crate) struct Cutter {
    blocks: u32,
    /// The present block, and where the next byte lies in the file.
    block: u32,
    offset: u64,
}

/// What a part of the text is.
pub(crate) struct Cut {
    /// The bytes of the present block.
    pub(crate) length: usize,
    /// The block that begins after them, if one does.
    pub(crate) next: Option<u32>,
}

impl Cutter {
    /// For a file of `blocks` blocks.
    pub(crate) fn new(blocks: u32) -> Self {
        Self { blocks, block: 0, offset: 0 }
    }

    /// How much of the text that comes next belongs to the present block.
    pub(crate) fn cut(&mut self, text: &[u8]) -> Cut {
        let all = Cut { length: text.len(), next: None };
        // The last byte at which a line of this block may end such that the next one starts beyond the block.
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

/// The block that a line starting at a offset belongs to.
fn block_at(offset: u64) -> u32 {
    u32::try_from(offset / BLOCK).unwrap_or(u32::MAX)
}

/// The bytes of a file in which the lines of some neighbouring blocks start. The first line that starts in them is
/// the blocks' first, unless they begin at 0; their last line may go on beyond.
pub(crate) fn bytes(blocks: Range<u32>, of: u32, size: u64) -> Range<u64> {
    let end = if blocks.end >= of { size } else { (u64::from(blocks.end) * BLOCK).min(size) };
    (u64::from(blocks.start) * BLOCK).min(end)..end
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The block of each line by definition: the one that its first byte lies in, and no later than the last.
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
