//! Errors that say what was found, what was expected and what to do next.

mod clues;
mod nearest_line;

use std::ops::Range;

use pintle_contract::{ErrorCode, Fault};
use serde_json::json;

use self::{clues::Clues, nearest_line::Near};
use crate::{
    store::{Source, StoreError},
    text::{Finder, Found, Line, Sight, lines_to_find, survey},
};

/// How much of a line is shown.
const SHOWN: usize = 120;

pub(crate) fn bad_range(problem: &str) -> Fault {
    Fault::new(ErrorCode::InvalidRequest, problem)
}

pub(crate) fn not_text(place: u64) -> Fault {
    Fault::new(ErrorCode::InvalidRequest, format!("the file is not UTF-8 text: byte {} is not", place + 1))
        .hint("file.read gives any file's bytes in Base64")
}

pub(crate) fn too_much(lines: u64, size: u64, is_one_line: bool) -> Fault {
    let (what, hint) = match is_one_line {
        true => ("the line has", "a line as long as this cannot be given, by no tool"),
        false => ("the lines have", "read fewer lines at a time"),
    };
    Fault::new(
        ErrorCode::InvalidRequest,
        format!("{what} more than 8 MiB; the file has {lines} lines and {size} bytes"),
    )
    .hint(hint)
    .details(json!({"totalLines": lines, "size": size}))
}

/// What a caller gave is there more than once.
pub(crate) fn ambiguous(count: u64, found: &[Found]) -> Fault {
    let lines: Vec<u64> = found.iter().map(|found| found.line).collect();
    let more = if count > lines.len() as u64 { " and more" } else { "" };
    let told = at(&lines);
    Fault::new(
        ErrorCode::InvalidRequest,
        format!("the given lines are there {count} times, at {told}{more}; they must be there once"),
    )
    .hint("narrow `lines` to one of these places, or give more lines around it")
    .details(json!({"lines": lines, "count": count}))
}

/// What a caller gave.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Given {
    Old,
    Anchor,
}

/// What a caller gave is not where it should be: says what is there instead, and where it is, or what is
/// nearest to it.
pub(crate) fn not_as_given(
    source: &dyn Source,
    range: &Range<u64>,
    (kind, given): (Given, &str),
    has_ended: &dyn Fn() -> bool,
) -> Result<Fault, StoreError> {
    let wanted = lines_to_find(given);
    if kind == Given::Anchor && wanted.len() > 1 {
        return Ok(anchor_of_several(wanted.len(), &wanted));
    }
    let mut clues = Clues::new(&wanted, range);
    let sight = Sight { lines: 1..u64::MAX, longest: clues.longest() };
    survey(source, sight, has_ended, &mut |line: Line<'_>| {
        clues.take(&line);
        Ok(())
    })?;
    let first = show(wanted.first().copied().unwrap_or_default());
    let is_one_place = kind == Given::Anchor || range.end - range.start <= wanted.len() as u64;
    let (found, without_last) = (places(&clues.finder), clues.without_last.as_ref().map(places));
    let instead = match &clues.differs {
        Some((number, text, expected)) if is_one_place => {
            format!("line {number} is `{text}`, not `{}`", show(expected))
        }
        _ => format!("`{first}` is not among lines {} to {}", range.start, range.end - 1),
    };
    let whole = "give whole lines exactly as text.read shows them, without the last newline";
    let invalid = |message: String| Fault::new(ErrorCode::InvalidRequest, message);
    Ok(if let [place, ..] = found[..] {
        let (last, count) = (place + wanted.len() as u64 - 1, wanted.len() as u64);
        let (message, hint) = match kind {
            Given::Anchor => (format!("{instead}; that is at line {place}"), format!("give `line` {place}")),
            Given::Old if count == 1 => (
                format!("{instead}; that is at {}", at(&found)),
                format!("give `lines` [{place}, {}]", place + 1),
            ),
            Given::Old => (
                format!(
                    "the given lines are lines {place} to {last}, which are not all among those of `lines`"
                ),
                format!("give `lines` [{place}, {}]", last + 1),
            ),
        };
        invalid(message).hint(hint).details(json!({"line": range.start, "found": found}))
    } else if let Some([place, ..]) = without_last.as_deref() {
        invalid(format!(
            "the given lines are at line {place}, but for the newline at their end, which stands for one more line"
        ))
        .hint("leave the last newline out")
        .details(json!({"line": place}))
    } else if let Some((matched, number, text)) = clues.broken_off() {
        let expected = show(wanted.get(matched).copied().unwrap_or_default());
        let begin = number - matched as u64;
        let then = match text {
            Some(text) => format!("line {number} is `{text}`, not `{expected}`"),
            None => format!("the file ends with line {}, without `{expected}`", number - 1),
        };
        invalid(format!("the given lines begin at line {begin}, but {then}"))
            .hint(whole)
            .details(json!({"line": number}))
    } else if let Some(Near { number, text, difference }) = &clues.nearest.nearest {
        invalid(format!("{instead}; the nearest is line {number}, `{text}`, which {}", difference.told()))
            .hint(whole)
            .details(json!({"line": range.start, "nearest": number}))
    } else {
        invalid(instead).hint(whole).details(json!({"line": range.start}))
    })
}

fn anchor_of_several(count: usize, wanted: &[&[u8]]) -> Fault {
    let first = show(wanted.first().copied().unwrap_or_default());
    Fault::new(
        ErrorCode::InvalidRequest,
        format!("`anchor` is one line, without its newline, and {count} lines were given"),
    )
    .hint(format!("give only the line that is inserted before: `{first}`"))
}

fn places(finder: &Finder<'_>) -> Vec<u64> {
    finder.found.iter().map(|found| found.line).collect()
}

fn at(lines: &[u64]) -> String {
    format!("{} {}", if lines.len() == 1 { "line" } else { "lines" }, and(lines))
}

/// Numbers as a sentence has them.
fn and(numbers: &[u64]) -> String {
    let told: Vec<String> = numbers.iter().map(u64::to_string).collect();
    match told.as_slice() {
        [most @ .., last] if !most.is_empty() => format!("{} and {last}", most.join(", ")),
        told => told.concat(),
    }
}

/// A line, cut where it gets long.
fn show(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into_owned(),
    }
}
