//! Collects, in one pass over a file, what helps to explain lines that are not where they should be.

use std::ops::Range;

use super::{
    nearest_line::{Effort, NearestLine},
    show,
};
use crate::text::{Finder, Line, is_line};

pub(super) struct Clues<'a> {
    pub(super) wanted: &'a [&'a [u8]],
    range: &'a Range<u64>,
    /// Finds the lines anywhere in the file.
    pub(super) finder: Finder<'a>,
    /// Finds them without their last line, if that is empty.
    pub(super) without_last: Option<Finder<'a>>,
    /// The first line from `start` on that differs: its number, its content, and what was expected.
    pub(super) differs: Option<(u64, Vec<u8>, &'a [u8])>,
    /// The line nearest to the first of them.
    pub(super) nearest: NearestLine<'a>,
    /// The longest matching prefix: how many lines, and the number and content of the line after it.
    begun: Option<(usize, u64, String)>,
    last_number: u64,
}

impl<'a> Clues<'a> {
    pub(super) fn new(wanted: &'a [&'a [u8]], range: &'a Range<u64>, effort: Effort) -> Self {
        let first = wanted.first().copied().unwrap_or_default();
        let without_last = match wanted {
            [most @ .., b""] if !most.is_empty() => Some(Finder::new(most.to_vec())),
            _ => None,
        };
        Self {
            wanted,
            range,
            finder: Finder::new(wanted.to_vec()),
            without_last,
            differs: None,
            nearest: NearestLine::new(first, range, effort),
            begun: None,
            last_number: 0,
        }
    }

    /// How many bytes of a line are needed.
    pub(super) fn longest(&self) -> usize {
        self.finder.longest().max(self.nearest.longest())
    }

    pub(super) fn take(&mut self, line: &Line<'_>) {
        let matched = self.finder.matched();
        self.finder.take(line);
        if let Some(finder) = &mut self.without_last {
            finder.take(line);
        }
        let is_broken_off = matched > 0 && self.finder.matched() <= matched;
        if is_broken_off && self.begun.as_ref().is_none_or(|(most, ..)| matched > *most) {
            self.begun = Some((matched, line.number, show(line.content)));
        }
        if self.differs.is_none() && line.number >= self.range.start {
            let index = usize::try_from(line.number - self.range.start).unwrap_or(usize::MAX);
            let expected = self.wanted.get(index).filter(|expected| !is_line(expected, line));
            self.differs = expected.map(|expected| (line.number, line.content.to_vec(), *expected));
        }
        self.nearest.take(line);
        self.last_number = line.number;
    }

    /// The longest matching prefix: how many lines, the number of the line after it, and its content, or none if the
    /// file ends there.
    pub(super) fn broken_off(&self) -> Option<(usize, u64, Option<&str>)> {
        let at_end = self.finder.matched();
        match &self.begun {
            Some((matched, number, text)) if *matched >= at_end => Some((*matched, *number, Some(text))),
            _ if at_end > 0 => Some((at_end, self.last_number + 1, None)),
            _ => None,
        }
    }
}
