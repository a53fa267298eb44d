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
    place: u64,
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
        Self { blocks, block: 0, place: 0 }
    }

    /// How much of the text that comes next belongs to the present block.
    pub(crate) fn cut(&mut self, text: &[u8]) -> Cut {
        let all = Cut { length: text.len(), next: None };
        // The last byte at which a line of this block may end such that the next one starts beyond the block.
        let edge = (u64::from(self.block) + 1) * BLOCK - 1;
        let from = usize::try_from(edge.saturating_sub(self.place)).unwrap_or(usize::MAX);
        if self.block + 1 >= self.blocks || from >= text.len() {
            self.place += text.len() as u64;
            return all;
        }
        let Some(end) = memchr(b'\n', &text[from..]) else {
            self.place += text.len() as u64;
            return all;
        };
        let length = from + end + 1;
        self.place += length as u64;
        self.block = count_before(self.place).min(self.blocks - 1);
        Cut { length, next: Some(self.block) }
    }
}

/// The block that a line starting at a place belongs to.
fn count_before(place: u64) -> u32 {
    u32::try_from(place / BLOCK).unwrap_or(u32::MAX)
}

/// The bytes of a file in which the lines of some neighbouring blocks start. The first line that starts in them is
/// the blocks' first, unless they begin at 0; their last line may go on beyond.
pub(crate) fn bytes(blocks: Range<u32>, of: u32, size: u64) -> Range<u64> {
    let end = if blocks.end >= of { size } else { (u64::from(blocks.end) * BLOCK).min(size) };
    (u64::from(blocks.start) * BLOCK).min(end)..end
}
