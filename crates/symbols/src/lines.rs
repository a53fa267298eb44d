//! From bytes to lines and columns.

use crate::symbol::{Definition, Symbol};
use memchr::{memchr_iter, memrchr};

/// How many bytes of text are summed up together: small, to count quickly inside one; not so small that the
/// sums of a large text would fill the memory.
const BLOCK: usize = 1024;

/// Where the lines of a text are.
pub(crate) struct Lines<'text> {
    text: &'text [u8],
    /// For each block: the number of line ends before it, and the start of the line that it begins in.
    blocks: Vec<(u32, usize)>,
}

impl<'text> Lines<'text> {
    /// Counts the lines of `text`.
    pub(crate) fn new(text: &'text [u8]) -> Self {
        let mut blocks = Vec::with_capacity(text.len() / BLOCK + 1);
        let (mut count, mut line_start) = (0, 0);
        for (index, block) in text.chunks(BLOCK).enumerate() {
            blocks.push((count, line_start));
            count += memchr_iter(b'\n', block).count() as u32;
            if let Some(last) = memrchr(b'\n', block) {
                line_start = index * BLOCK + last + 1;
            }
        }
        Self { text, blocks }
    }

    /// The line and the column of a byte, both from 1.
    pub(crate) fn position(&self, offset: usize) -> (u32, u32) {
        let offset = offset.min(self.text.len());
        let Some(&(before, line_start)) =
            self.blocks.get((offset / BLOCK).min(self.blocks.len().saturating_sub(1)))
        else {
            return (1, 1);
        };
        let block_start = (offset / BLOCK).min(self.blocks.len() - 1) * BLOCK;
        let block = &self.text[block_start..offset];
        let line = before + memchr_iter(b'\n', block).count() as u32 + 1;
        let line_start = memrchr(b'\n', block).map_or(line_start, |last| block_start + last + 1);
        (line, (offset - line_start + 1) as u32)
    }

    /// The symbol that a definition is.
    pub(crate) fn locate(&self, definition: Definition) -> Symbol {
        let (line, column) = self.position(definition.name.start);
        // Some nodes take the line end after them along.
        let after_name = definition.name.end.min(definition.end)..definition.end;
        let trailing =
            self.text[after_name].iter().rev().take_while(|byte| byte.is_ascii_whitespace()).count();
        let end_line = self.position((definition.end - trailing).max(1) - 1).0.max(line);
        Symbol { name: definition.name, kind: definition.kind, line, column, end_line }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;

    #[test]
    fn every_byte_is_on_the_line_that_counting_finds() {
        let mut text = Vec::new();
        for length in [0, 1, 0, 5, 2000, 3, 1023, 1024, 1, 0, 0, 700, 4000] {
            text.extend(std::iter::repeat_n(b'x', length));
            text.push(b'\n');
        }
        text.extend_from_slice(b"end");
        let lines = Lines::new(&text);
        let (mut line, mut column) = (1, 1);
        for (offset, &byte) in text.iter().enumerate() {
            assert_eq!(lines.position(offset), (line, column), "at {offset}");
            (line, column) = if byte == b'\n' { (line + 1, 1) } else { (line, column + 1) };
        }
        assert_eq!(lines.position(text.len()), (line, column));
        assert_eq!(Lines::new(b"").position(7), (1, 1));
        let exact = vec![b'\n'; BLOCK];
        assert_eq!(Lines::new(&exact).position(BLOCK), (BLOCK as u32 + 1, 1));
    }

    #[test]
    fn a_definition_ends_where_its_text_ends_not_in_the_space_behind_it() {
        let text = b"#define A \\\r\n 1\r\n\r\n";
        let symbol = Lines::new(text).locate(Definition { name: 8..9, kind: Kind::Macro, end: text.len() });
        assert_eq!((symbol.line, symbol.column, symbol.end_line), (1, 9, 2));
    }
}
