//! Finds a text in the bytes of a file while the file is read. A newline of the text stands for the terminator that the
//! line of the file has.

use std::{collections::VecDeque, ops::Range};

use memchr::{memchr, memchr3};

use super::{find::MAX_KEPT, survey::Terminator};

/// Looks for a text, by the algorithm of Knuth, Morris and Pratt. What it compares are the bytes of the file, of which
/// `\r\n` counts as one newline.
pub(crate) struct TextFinder {
    wanted: Vec<u8>,
    /// How much of the text may already have begun when the next byte does not fit.
    fallback: Vec<usize>,
    /// How many newlines the text has.
    newlines: usize,
    /// The lines in which an occurrence has to lie.
    range: Range<u64>,
    /// How much of the text has come in a row.
    matched: usize,
    /// Whether the last byte was a `\r` that may belong to a terminator.
    has_return: bool,
    /// The number of the line that is being read.
    number: u64,
    /// The offset of the next byte.
    offset: u64,
    /// The last terminators, as many as the text has newlines.
    terminators: VecDeque<Terminator>,
    /// How many of the occurrences that are kept have a terminator.
    ended: usize,
    may_overlap: bool,
    most_kept: usize,
    /// The first occurrences.
    pub(crate) found: Vec<TextOccurrence>,
    /// How many occurrences there are.
    pub(crate) count: u64,
}

/// An occurrence of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TextOccurrence {
    /// The number of the line in which it begins.
    pub(crate) line: u64,
    /// The offset of its first byte.
    pub(crate) start: u64,
    /// The offset of the byte behind it.
    pub(crate) end: u64,
    /// The terminator of the line in which it begins.
    pub(crate) terminator: Terminator,
}

impl TextFinder {
    /// Looks for a text, which must not be empty, in some lines.
    pub(crate) fn new(text: &str, range: Range<u64>) -> Self {
        let wanted = text.replace("\r\n", "\n").into_bytes();
        let mut fallback = vec![0; wanted.len()];
        let mut matched = 0;
        for index in 1..wanted.len() {
            while matched > 0 && wanted[index] != wanted[matched] {
                matched = fallback[matched - 1];
            }
            matched += usize::from(wanted[index] == wanted[matched]);
            fallback[index] = matched;
        }
        Self {
            newlines: wanted.iter().filter(|byte| **byte == b'\n').count(),
            wanted,
            fallback,
            range,
            matched: 0,
            has_return: false,
            number: 1,
            offset: 0,
            terminators: VecDeque::new(),
            ended: 0,
            may_overlap: true,
            most_kept: MAX_KEPT,
            found: Vec::new(),
            count: 0,
        }
    }

    /// Finds every occurrence from left to right, without overlaps.
    #[must_use]
    pub(crate) fn disjoint(self) -> Self {
        Self { may_overlap: false, most_kept: usize::MAX, ..self }
    }

    /// How many occurrences are kept, and how many may be, if every one is wanted.
    pub(crate) fn all_kept(&mut self) -> Option<(usize, &mut usize)> {
        (!self.may_overlap).then_some((self.found.len(), &mut self.most_kept))
    }

    /// Takes the next bytes of the file.
    pub(crate) fn take(&mut self, chunk: &[u8]) {
        let mut rest = chunk;
        while !rest.is_empty() && self.number < self.range.end {
            if self.number < self.range.start {
                let end = memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
                self.number += u64::from(rest[end - 1] == b'\n');
                self.offset += end as u64;
                rest = &rest[end..];
                continue;
            }
            if self.matched == 0 && !self.has_return {
                // Nothing has begun: only these bytes matter.
                let first = self.wanted.first().copied().unwrap_or(b'\n');
                let skipped = memchr3(first, b'\n', b'\r', rest).unwrap_or(rest.len());
                self.offset += skipped as u64;
                rest = &rest[skipped..];
            }
            let Some((byte, others)) = rest.split_first() else { break };
            self.byte(*byte);
            rest = others;
        }
        self.offset += rest.len() as u64;
    }

    /// Takes the end of the file.
    pub(crate) fn finish(&mut self) {
        if std::mem::take(&mut self.has_return) {
            self.step(b'\r', self.offset);
        }
    }

    fn byte(&mut self, byte: u8) {
        let had_return = std::mem::take(&mut self.has_return);
        if had_return && byte != b'\n' {
            self.step(b'\r', self.offset);
        }
        self.offset += 1;
        match byte {
            b'\r' => self.has_return = true,
            b'\n' => {
                let terminator = if had_return { Terminator::Return } else { Terminator::Newline };
                self.terminators.push_back(terminator);
                if self.terminators.len() > self.newlines {
                    self.terminators.pop_front();
                }
                self.number += 1;
                for found in &mut self.found[self.ended..] {
                    found.terminator = terminator;
                }
                self.ended = self.found.len();
                self.step(b'\n', self.offset);
            }
            byte => self.step(byte, self.offset),
        }
    }

    /// Compares the next byte; `end` is the offset behind it.
    fn step(&mut self, byte: u8, end: u64) {
        while self.matched > 0 && self.wanted[self.matched] != byte {
            self.matched = self.fallback[self.matched - 1];
        }
        self.matched += usize::from(self.wanted.get(self.matched) == Some(&byte));
        if self.matched == 0 || self.matched < self.wanted.len() {
            return;
        }
        self.count += 1;
        if self.found.len() < self.most_kept {
            let returns = self.terminators.iter().filter(|found| **found == Terminator::Return).count();
            let start = end - (self.wanted.len() + returns) as u64;
            let line = self.number - self.newlines as u64;
            let terminator = self.terminators.front().copied().unwrap_or(Terminator::None);
            self.found.push(TextOccurrence { line, start, end, terminator });
            if self.newlines > 0 {
                self.ended = self.found.len();
            }
        }
        self.matched = if self.may_overlap { self.fallback[self.matched - 1] } else { 0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn finder_of(text: &str, wanted: &str, range: Range<u64>, piece: usize) -> TextFinder {
        let mut finder = TextFinder::new(wanted, range);
        text.as_bytes().chunks(piece).for_each(|chunk| finder.take(chunk));
        finder.finish();
        finder
    }

    fn starts(text: &str, wanted: &str) -> Vec<(u64, u64, u64)> {
        let finder = finder_of(text, wanted, 1..u64::MAX, 3);
        assert_eq!(finder.count as usize, finder.found.len());
        finder.found.iter().map(|found| (found.line, found.start, found.end)).collect()
    }

    #[test]
    fn a_newline_of_the_text_stands_for_the_terminator_of_the_line() {
        assert_eq!(starts("a\r\nb\nc", "a\nb"), [(1, 0, 4)]);
        assert_eq!(starts("a\r\nb\nc", "b\nc"), [(2, 3, 6)]);
        assert_eq!(starts("a\r\nb\r\n", "a\r\nb\r\n"), [(1, 0, 6)]);
        assert_eq!(starts("a\nb\n", "\n"), [(1, 1, 2), (2, 3, 4)]);
        // A `\r` is a part of the terminator, or it stands alone.
        assert_eq!(starts("a\r\n", "a\r"), []);
        assert_eq!(starts("a\rb\r", "\r"), [(1, 1, 2), (1, 3, 4)]);
        assert_eq!(starts("\r\r\n", "\r\n"), [(1, 1, 3)]);
    }

    #[test]
    fn overlapping_occurrences_are_counted_unless_all_are_replaced() {
        assert_eq!(starts("aaa", "aa"), [(1, 0, 2), (1, 1, 3)]);
        let mut finder = TextFinder::new("aa", 1..9).disjoint();
        finder.take(b"aaaaa");
        assert_eq!(finder.found.iter().map(|found| found.start).collect::<Vec<_>>(), [0, 2]);
    }

    #[test]
    fn the_terminator_is_that_of_the_line_where_it_begins() {
        let finder = finder_of("xx\r\nx\nx", "x", 1..9, 1);
        let found: Vec<_> = finder.found.iter().map(|found| found.terminator).collect();
        assert_eq!(found, [Terminator::Return, Terminator::Return, Terminator::Newline, Terminator::None]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2048, failure_persistence: None, ..Default::default() })]

        #[test]
        fn it_finds_what_a_plain_search_finds(
            text in "[ab\r\n]{0,16}",
            wanted in "[ab\r\n]{1,3}",
            piece in 1usize..5,
            range in (1u64..4, 1u64..5),
        ) {
            // What stands for a terminator is one character here.
            let plain = |text: &str| text.replace("\r\n", "\n");
            let (flat, needle) = (plain(&text), plain(&wanted));
            let range = range.0..range.0 + range.1;
            let line_of = |offset: usize| 1 + flat[..offset].matches('\n').count() as u64;
            let expected: Vec<u64> = (0..flat.len())
                .filter(|start| flat[*start..].starts_with(&needle))
                .filter(|start| range.contains(&line_of(*start)) && range.contains(&line_of(start + needle.len() - 1)))
                .map(line_of).collect();
            let finder = finder_of(&text, &wanted, range, piece);
            prop_assert_eq!(finder.found.iter().map(|found| found.line).collect::<Vec<_>>(), expected);
            for found in &finder.found {
                prop_assert_eq!(plain(&text[found.start as usize..found.end as usize]), needle.clone());
            }
        }
    }
}
