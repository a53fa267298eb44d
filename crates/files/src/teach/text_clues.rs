//! Collects, in one pass over a file, what helps to explain a text within lines that is not where it should be.

use std::ops::Range;

use pintle_contract::{ErrorCode, Fault};
use serde_json::json;

use super::{
    Missing, at,
    nearest_line::{Difference, Effort, Near, NearestLine},
    show,
};
use crate::text::{Line, TextFinder};

pub(super) struct TextClues<'a> {
    /// Finds the text anywhere in the file.
    finder: TextFinder,
    /// The line nearest to its first line.
    nearest: NearestLine<'a>,
}

impl<'a> TextClues<'a> {
    pub(super) fn new(text: &'a str, range: &'a Range<u64>, effort: Effort) -> Self {
        let first = text.split('\n').find(|line| !line.trim().is_empty()).unwrap_or_default();
        Self {
            finder: TextFinder::new(text, 1..u64::MAX),
            nearest: NearestLine::new(first.as_bytes(), range, effort),
        }
    }

    pub(super) fn longest(&self) -> usize {
        self.nearest.longest()
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.finder.take(bytes);
    }

    pub(super) fn line(&mut self, line: &Line<'_>) {
        self.nearest.take(line);
    }

    pub(super) fn fault(mut self, missing: &Missing<'_>) -> Fault {
        self.finder.finish();
        let (range, shown) = (&missing.range, show(missing.text.as_bytes()));
        let searched = match range.end - range.start {
            1 => format!("line {}", range.start),
            _ => format!("lines {} to {}", range.start, range.end - 1),
        };
        let instead = format!("`{shown}` is not in {searched}");
        let invalid = |message: String| Fault::new(ErrorCode::InvalidRequest, message);
        let exactly = "give the text exactly as text.read shows it, `\\n` for the end of a line";
        let mut found: Vec<u64> = self.finder.found.iter().map(|found| found.line).collect();
        found.dedup();
        if let [first, ..] = found[..] {
            return invalid(format!("{instead}; that is at {}", at(&found)))
                .hint(format!("give `lines` [{first}, {}]", first + 1 + newlines(missing.text)))
                .details(json!({"line": range.start, "found": found}));
        }
        let Some(Near { number, text, difference }) = self.nearest.nearest else {
            return invalid(instead).hint(exactly).details(json!({"line": range.start}));
        };
        let difference = match difference {
            Difference::Longer => "contains its beginning",
            other => other.description(),
        };
        invalid(format!("{instead}; the nearest is line {number}, `{text}`, which {difference}"))
            .hint(exactly)
            .details(json!({"line": range.start, "nearest": number}))
    }
}

fn newlines(text: &str) -> u64 {
    text.trim_end_matches('\n').matches('\n').count() as u64
}
