//! Finds the line of a file that is most similar to a line that was not found.

use std::ops::Range;

use super::{MAX_SHOWN_CHARS, show};
use crate::text::Line;

/// How many lines are compared by similarity, which is by far the slowest step.
const MAX_COMPARED: u64 = 20_000;
/// The least similarity at which a line is suggested.
const MIN_SIMILARITY: f64 = 0.6;

/// How many of the first lines of a file are looked at to explain one text.
#[derive(Clone, Copy)]
pub(super) struct Effort {
    /// By simple comparisons.
    looked_at: u64,
    /// By similarity.
    compared: u64,
}

impl Effort {
    /// For each of so many texts, so that all of them together do not take long.
    pub(super) fn shared_by(texts: usize) -> Self {
        const ALL_LOOKED_AT: u64 = 2_000_000;
        const ALL_COMPARED: u64 = 200_000;
        let texts = (texts as u64).max(1);
        Self { looked_at: ALL_LOOKED_AT / texts, compared: MAX_COMPARED.min(ALL_COMPARED / texts) }
    }
}

/// Keeps the nearest line while lines are read.
pub(super) struct NearestLine<'a> {
    range: &'a Range<u64>,
    effort: Effort,
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

/// How a line differs from the given one, smallest difference first.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub(super) enum Difference {
    Indentation,
    Whitespace,
    Case,
    CaseAndWhitespace,
    /// The given line is a part of this one.
    Longer,
    /// How much differs, from 0 to 1.
    Otherwise(f64),
}

impl<'a> NearestLine<'a> {
    pub(super) fn new(given: &[u8], range: &'a Range<u64>, effort: Effort) -> Self {
        let given = String::from_utf8_lossy(given).into_owned();
        Self { range, effort, plain: plain(&given), given, nearest: None }
    }

    /// How many bytes of a line are needed.
    pub(super) fn longest(&self) -> usize {
        4 * self.given.len() + 16 + MAX_SHOWN_CHARS
    }

    pub(super) fn take(&mut self, line: &Line<'_>) {
        if line.number > self.effort.looked_at {
            return;
        }
        // A line in the given range is more likely meant than any other.
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
        // A line that is much longer is not similar.
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
        // Lines of very different length are not similar.
        let is_comparable = line.number <= self.effort.compared && other.len() <= 2 * self.plain.len() + 8;
        let alike = if is_comparable { strsim::sorensen_dice(&self.plain, &other) } else { 0.0 };
        (alike >= MIN_SIMILARITY).then_some(Difference::Otherwise(1.0 - alike))
    }
}

fn plain(text: &str) -> String {
    text.split_whitespace().collect()
}

impl Difference {
    pub(super) fn description(self) -> &'static str {
        match self {
            Self::Indentation => "differs in its indentation",
            Self::Whitespace => "differs in its whitespace",
            Self::Case => "differs in upper and lower case",
            Self::CaseAndWhitespace => "differs in case or whitespace",
            Self::Longer => "contains it, but the whole line has to be given",
            Self::Otherwise(_) => "is similar",
        }
    }
}
