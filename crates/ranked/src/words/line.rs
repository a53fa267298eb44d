//! The line of a text that shows best why it matches.

use super::query::terms_of;
use super::tokens::tokenize;
use std::ops::Range;

/// A line of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BestLine {
    /// Its number, from 1.
    pub line: u32,
    /// Where the weightiest term stands in it, in bytes from 1.
    pub column: u32,
    /// The bytes of the line, without its end.
    pub range: Range<usize>,
}

/// The line with the most weight of distinct terms of a query, the first of several; none if no line has any.
///
/// The weights are those of [`term_weights`](crate::term_weights); without them all words weigh the same,
/// and a whole identifier more than its parts.
pub fn best_line(text: &[u8], query: &str, weights: Option<&[f32]>) -> Option<BestLine> {
    let mut terms = terms_of(query);
    for (term, weight) in terms.iter_mut().zip(weights.unwrap_or_default()) {
        term.weight = *weight;
    }
    let mut best: Option<(f32, Range<usize>)> = None;
    let mut line = Line::default();
    tokenize(text, |token| {
        let Some(index) = terms.iter().position(|term| term.term == token.term) else { return };
        let weight = terms[index].weight;
        if !line.is_same(text, token.range.start) {
            line = Line { last: token.range.start, ..Line::default() };
        }
        line.last = token.range.start;
        if line.seen >> index & 1 == 1 || weight <= 0.0 {
            return;
        }
        line.seen |= 1 << index;
        line.weight += weight;
        if weight > line.heaviest {
            line.heaviest = weight;
            line.term = token.range;
        }
        if best.as_ref().is_none_or(|(best, _)| line.weight > *best) {
            best = Some((line.weight, line.term.clone()));
        }
    });
    let (_, term) = best?;
    let start = memchr::memrchr(b'\n', &text[..term.start]).map_or(0, |end| end + 1);
    let end = memchr::memchr(b'\n', &text[start..]).map_or(text.len(), |end| start + end);
    let end = if text[start..end].ends_with(b"\r") { end - 1 } else { end };
    let line = 1 + memchr::memchr_iter(b'\n', &text[..start]).count();
    let column = 1 + term.start - start;
    Some(BestLine { line: line as u32, column: column as u32, range: start..end })
}

/// What was seen of the current line.
#[derive(Default)]
struct Line {
    seen: u64,
    weight: f32,
    heaviest: f32,
    term: Range<usize>,
    /// Where the last term began.
    last: usize,
}

impl Line {
    /// Whether a term that begins here is on the line. A whole begins before its parts end.
    fn is_same(&self, text: &[u8], start: usize) -> bool {
        self.seen != 0 && (start <= self.last || memchr::memchr(b'\n', &text[self.last..start]).is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn best(text: &str, query: &str, weights: Option<&[f32]>) -> Option<(u32, u32, String)> {
        let found = best_line(text.as_bytes(), query, weights)?;
        Some((found.line, found.column, text[found.range].to_owned()))
    }

    fn expect(line: u32, column: u32, text: &str) -> Option<(u32, u32, String)> {
        Some((line, column, text.to_owned()))
    }

    #[test]
    fn the_line_with_most_distinct_terms_is_best_and_the_first_of_several() {
        let text = "open open open\r\nä file, open\r\nopen the file";
        assert_eq!(best(text, "open file", None), expect(2, 4, "ä file, open"));
        assert_eq!(best(text, "open", None), expect(1, 1, "open open open"));
        assert_eq!(best(text, "the", None), expect(3, 6, "open the file"));
        assert_eq!(best(text, "absent", None), None);
        assert_eq!(best("", "absent", None), None);
        assert_eq!(best(text, "", None), None);
    }

    #[test]
    fn a_whole_identifier_stands_before_its_parts() {
        let text = "file open\n  int x = file_open();\n";
        assert_eq!(best(text, "file_open", None), expect(2, 11, "  int x = file_open();"));
    }

    #[test]
    fn weights_decide_and_terms_without_weight_do_not_count() {
        let text = "the the a\nrare\n";
        assert_eq!(best(text, "the a rare", Some(&[0.1, 0.1, 5.0])), expect(2, 1, "rare"));
        assert_eq!(best(text, "rare the", Some(&[0.0, 1.0])), expect(1, 1, "the the a"));
        assert_eq!(best(text, "rare", Some(&[0.0])), None);
    }
}
