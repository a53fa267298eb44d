//! Splits a stream into lines while it is read, for progress.

/// The longest line that is passed on, in bytes; the rest is cut.
const MAX_LINE_BYTES: usize = 1000;

/// Splits a stream into lines.
pub(crate) struct Lines<F> {
    line: Vec<u8>,
    act: F,
}

impl<F: FnMut(&str)> Lines<F> {
    pub(crate) fn new(act: F) -> Self {
        Self { line: Vec::new(), act }
    }

    /// Adds the next bytes. A carriage return ends a line, too, because progress bars overwrite their line.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| matches!(byte, b'\n' | b'\r')) {
            let text = piece.strip_suffix(b"\n").or_else(|| piece.strip_suffix(b"\r")).unwrap_or(piece);
            let capacity = MAX_LINE_BYTES - self.line.len();
            self.line.extend_from_slice(&text[..text.len().min(capacity)]);
            if text.len() < piece.len() {
                self.end();
            }
        }
    }

    /// Ends the stream, perhaps within a line.
    pub(crate) fn end(&mut self) {
        let line = std::mem::take(&mut self.line);
        let text = String::from_utf8_lossy(line.trim_ascii());
        if !text.is_empty() {
            (self.act)(&text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_passed_on_whole_and_without_empty_ones() {
        let mut seen = Vec::new();
        let mut lines = Lines::new(|line: &str| seen.push(line.to_owned()));
        for piece in ["one\n\n", " t ", "wo \r\n10 %\r20 %", "\rthr", "ee"] {
            lines.push(piece.as_bytes());
        }
        lines.push(&[b'x'; 5000]);
        lines.end();
        assert_eq!(seen[..4], ["one", "t wo", "10 %", "20 %"]);
        assert_eq!(seen[4].len(), MAX_LINE_BYTES);
        assert!(seen[4].starts_with("threex"));
    }
}
