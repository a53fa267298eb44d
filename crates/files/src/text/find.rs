//! Finds a sequence of whole lines in a file while the file is read.

use super::survey::{Line, Terminator};

/// How many occurrences are kept where they are only reported; the others are counted.
pub(super) const MAX_KEPT: usize = 20;

/// Looks for a sequence of lines. Takes time in proportion to the lines that pass by, however they repeat.
///
/// Only the last line can be met in two ways ([`is_line`]), so it is compared apart from the others: for those, which are
/// met in one way only, the algorithm of Knuth, Morris and Pratt holds.
pub(crate) struct Finder<'a> {
    /// All lines but the last.
    beginning: Vec<&'a [u8]>,
    last: &'a [u8],
    /// How much of the beginning may already have begun when the next line does not fit.
    fallback: Vec<usize>,
    /// How much of the beginning has come in a row.
    matched: usize,
    /// Whether an occurrence may begin inside the one before it.
    may_overlap: bool,
    /// How many occurrences are kept; the others are only counted.
    most_kept: usize,
    /// The last lines that were read: where each begins, and its terminator.
    recent: std::collections::VecDeque<(u64, u64, Terminator)>,
    /// The first occurrences.
    pub(crate) found: Vec<Occurrence>,
    /// How many occurrences there are.
    pub(crate) count: u64,
}

/// An occurrence of the sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Occurrence {
    /// The number of its first line.
    pub(crate) line: u64,
    /// How many lines it has.
    pub(crate) lines: u64,
    /// The offset of its first byte.
    pub(crate) start: u64,
    /// The offset of the line after it.
    pub(crate) end: u64,
    /// The terminator of its first line.
    pub(crate) first: Terminator,
    /// The terminator of its last line.
    pub(crate) last: Terminator,
}

/// The lines of a caller's text, which are separated by `\n` or `\r\n`, without a final terminator.
pub(crate) fn lines_of(text: &str) -> Vec<&[u8]> {
    text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line).as_bytes()).collect()
}

/// The lines of a text to find. A `\r` at the end of the last one may be part of the line, or of a terminator whose
/// `\n` was left out.
pub(crate) fn lines_to_find(text: &str) -> Vec<&[u8]> {
    let mut lines = lines_of(text);
    if let (Some(last), Some(given)) = (lines.last_mut(), text.rsplit('\n').next()) {
        *last = given.as_bytes();
    }
    lines
}

/// Whether a line of a file equals a caller's line.
pub(crate) fn is_line(wanted: &[u8], line: &Line<'_>) -> bool {
    let is_cut = line.terminator == Terminator::Return && wanted.strip_suffix(b"\r") == Some(line.content);
    wanted == line.content || is_cut
}

impl<'a> Finder<'a> {
    pub(crate) fn new(mut wanted: Vec<&'a [u8]>) -> Self {
        let last = wanted.pop().unwrap_or_default();
        let beginning = wanted;
        let mut fallback = vec![0; beginning.len()];
        let mut matched = 0;
        for index in 1..beginning.len() {
            while matched > 0 && beginning[index] != beginning[matched] {
                matched = fallback[matched - 1];
            }
            matched += usize::from(beginning[index] == beginning[matched]);
            fallback[index] = matched;
        }
        Self {
            beginning,
            last,
            fallback,
            matched: 0,
            may_overlap: true,
            most_kept: MAX_KEPT,
            recent: std::collections::VecDeque::new(),
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

    /// The length of the longest wanted line; a longer line cannot match.
    pub(crate) fn longest(&self) -> usize {
        self.beginning.iter().chain([&self.last]).map(|line| line.len()).max().unwrap_or_default()
    }

    /// How many of the wanted lines match so far.
    pub(crate) fn matched(&self) -> usize {
        self.matched
    }

    /// Takes the next line.
    pub(crate) fn take(&mut self, line: &Line<'_>) {
        self.recent.push_back((line.number, line.start, line.terminator));
        if self.recent.len() > self.beginning.len() + 1 {
            self.recent.pop_front();
        }
        if self.matched == self.beginning.len() && is_line(self.last, line) {
            self.count += 1;
            if self.found.len() < self.most_kept
                && let Some((number, start, first)) = self.recent.front().copied()
            {
                let (end, last) = (line.end(), line.terminator);
                let lines = line.number + 1 - number;
                self.found.push(Occurrence { line: number, lines, start, end, first, last });
            }
            if !self.may_overlap {
                self.matched = 0;
                return;
            }
        }
        while self.matched > 0 && self.beginning.get(self.matched) != Some(&line.content) {
            self.matched = self.fallback[self.matched - 1];
        }
        self.matched += usize::from(self.beginning.get(self.matched) == Some(&line.content));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lines_found(text: &[&str], wanted: &[&str]) -> Vec<u64> {
        let mut finder = Finder::new(wanted.iter().map(|line| line.as_bytes()).collect());
        let mut start = 0;
        for (index, content) in text.iter().enumerate() {
            let content = content.as_bytes();
            let number = index as u64 + 1;
            let length = content.len() as u64;
            let line = Line { number, start, content, length, terminator: Terminator::Newline };
            start = line.end();
            finder.take(&line);
        }
        assert_eq!(finder.count as usize, finder.found.len());
        finder.found.iter().map(|found| found.line).collect()
    }

    #[test]
    fn occurrences_that_are_disjoint_are_found_from_left_to_right() {
        let mut finder = Finder::new(lines_to_find("a\na")).disjoint();
        for number in 1..=5 {
            let (start, terminator) = ((number - 1) * 2, Terminator::Newline);
            finder.take(&Line { number, start, content: b"a", length: 1, terminator });
        }
        assert_eq!(finder.found.iter().map(|found| found.line).collect::<Vec<_>>(), [1, 3]);
    }

    #[test]
    fn every_occurrence_is_found_also_those_that_overlap() {
        assert_eq!(lines_found(&["a", "b", "a", "b", "a"], &["a", "b", "a"]), [1, 3]);
        assert_eq!(lines_found(&["a", "a", "a"], &["a"]), [1, 2, 3]);
        assert_eq!(lines_found(&["a", "ab"], &["b"]), [] as [u64; 0]);
        assert_eq!(lines_found(&["", "x", ""], &[""]), [1, 3]);
    }

    #[test]
    fn occurrences_that_overlap_are_found_where_the_last_line_ends_with_a_return() {
        let mut finder = Finder::new(lines_to_find("a\na\r"));
        for number in 1..=3 {
            let (start, terminator) = ((number - 1) * 3, Terminator::Return);
            finder.take(&Line { number, start, content: b"a", length: 1, terminator });
        }
        assert_eq!(finder.found.iter().map(|found| found.line).collect::<Vec<_>>(), [1, 2]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..Default::default() })]

        #[test]
        fn it_finds_what_a_plain_search_finds(
            text in proptest::collection::vec("[ab]{0,1}", 0..18),
            wanted in proptest::collection::vec("[ab]{0,1}", 1..5),
        ) {
            let text: Vec<&str> = text.iter().map(String::as_str).collect();
            let wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
            let plain: Vec<u64> = text.windows(wanted.len()).enumerate()
                .filter(|(_, window)| *window == wanted).map(|(index, _)| index as u64 + 1).collect();
            prop_assert_eq!(lines_found(&text, &wanted), plain);
        }
    }
}
