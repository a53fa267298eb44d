//! A text put together from pieces of another, which knows where they came from.

/// The text, and where its pieces were.
pub(super) struct Pieces {
    text: Vec<u8>,
    /// Where each piece begins: here, and in the original.
    starts: Vec<(u32, usize)>,
    /// Where the last piece ends in the original.
    end: Option<usize>,
}

impl Pieces {
    /// An empty text.
    pub(super) fn new() -> Self {
        Self { text: Vec::new(), starts: Vec::new(), end: None }
    }

    /// Adds a token of the original.
    pub(super) fn push(&mut self, original: &[u8], start: usize, end: usize) {
        match self.end {
            Some(last) if start == last => self.text.extend_from_slice(&original[start..end]),
            // One space is no reason for a new piece.
            Some(last) if start == last + 1 && original[last].is_ascii_whitespace() => {
                self.text.extend_from_slice(&original[last..end]);
            }
            _ => self.invent(&original[start..end], start),
        }
        self.end = Some(end);
    }

    /// Adds a token that is not in the original, as if it had been there.
    pub(super) fn invent(&mut self, token: &[u8], at: usize) {
        if !self.text.is_empty() {
            self.text.push(b' ');
        }
        self.starts.push((self.text.len() as u32, at));
        self.text.extend_from_slice(token);
        self.end = None;
    }

    /// The text.
    pub(super) fn text(&self) -> &[u8] {
        &self.text
    }

    /// Where a byte of the text was in the original.
    pub(super) fn original(&self, offset: usize) -> usize {
        let next = self.starts.partition_point(|(start, _)| *start as usize <= offset);
        self.starts
            .get(next.max(1) - 1)
            .map_or(0, |(start, from)| from + offset.saturating_sub(*start as usize))
    }
}
