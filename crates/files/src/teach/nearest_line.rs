//! The line of a file that is nearest to one that is not there.

use std::ops::Range;

use super::{SHOWN, show};
use crate::text::Line;

/// How many lines are compared letter by letter: that takes longer than all else.
const COMPARED: u64 = 20_000;
/// How much of two lines has to be alike before one is taken for the other.
const ALIKE: f64 = 0.6;

/// Looks for it as the lines pass by.
pub(super) struct NearestLine<'a> {
    range: &'a Range<u64>,
    given: String,
    plain: String,
    pub(super) nearest: Option<Near>,
}

/// The nearest line so far.
pub(super) struct Near {
    pub(super) number: u64,
    pub(super) text: String,
    pub(super) difference: Difference,
}

/// How a line differs from the one that was given; the least comes first.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub(super) enum Difference {
    Indentation,
    Whitespace,
    Case,
    CaseAndWhitespace,
    /// What was given is a part of the line.
    Longer,
    /// How much is not alike.
    Otherwise(f64),
}

impl<'a> NearestLine<'a> {
    pub(super) fn new(given: &[u8], range: &'a Range<u64>) -> Self {
        let given = String::from_utf8_lossy(given).into_owned();
        Self { range, plain: plain(&given), given, nearest: None }
    }

    /// How much of a line is of interest.
    pub(super) fn longest(&self) -> usize {
        4 * self.given.len() + 16 + SHOWN
    }

    pub(super) fn take(&mut self, line: &Line<'_>) {
        // A line in the place that was named is more likely meant than any other.
        let rank = |number, difference| (!self.range.contains(&number), difference);
        let known = self.nearest.as_ref().map(|near| rank(near.number, near.difference));
        if let Some(difference) = self.difference(line)
            && known.is_none_or(|known| rank(line.number, difference) < known)
        {
            self.nearest = Some(Near { number: line.number, text: show(line.content), difference });
        }
    }

    fn difference(&self, line: &Line<'_>) -> Option<Difference> {
        let (given, text) = (self.given.as_str(), std::str::from_utf8(line.content).ok()?);
        // What differs by much more than this is another line.
        if self.plain.is_empty() || given == text || text.len() > self.longest() {
            return None;
        }
        if given.trim() == text.trim() {
            let is_same_start = given.trim_end() == text.trim_end();
            return Some(if is_same_start { Difference::Whitespace } else { Difference::Indentation });
        }
        let other = plain(text);
        if self.plain == other {
            return Some(Difference::Whitespace);
        }
        if self.plain.len() == other.len() || !self.plain.is_ascii() {
            if given.to_lowercase() == text.to_lowercase() {
                return Some(Difference::Case);
            }
            if self.plain.to_lowercase() == other.to_lowercase() {
                return Some(Difference::CaseAndWhitespace);
            }
        }
        if text.contains(given.trim()) {
            return Some(Difference::Longer);
        }
        // A part of a line is likely to be of another length than the whole.
        let is_comparable = line.number <= COMPARED && other.len() <= 2 * self.plain.len() + 8;
        let alike = if is_comparable { strsim::sorensen_dice(&self.plain, &other) } else { 0.0 };
        (alike >= ALIKE).then_some(Difference::Otherwise(1.0 - alike))
    }
}

fn plain(text: &str) -> String {
    text.split_whitespace().collect()
}

impl Difference {
    pub(super) fn told(self) -> &'static str {
        match self {
            Self::Indentation => "differs in its indentation",
            Self::Whitespace => "differs in its whitespace",
            Self::Case => "differs in upper and lower case",
            Self::CaseAndWhitespace => "differs in case or whitespace",
            Self::Longer => "holds it as a part, where the whole line has to be given",
            Self::Otherwise(_) => "is only alike",
        }
    }
}
