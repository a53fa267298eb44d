//! Errors that say what was found, what was expected and what to do next.

mod clues;
mod nearest_line;

use std::ops::Range;

use pintle_contract::{ErrorCode, Fault};
use serde_json::json;

use self::{clues::Clues, nearest_line::Near};
use crate::{
    store::{Source, StoreError},
    text::{Finder, Line, Occurrence, RangeError, Sight, lines_to_find, survey},
};

/// How much of a line is shown.
const SHOWN: usize = 120;

pub(crate) fn bad_range(problem: &RangeError) -> Fault {
    Fault::new(ErrorCode::InvalidRequest, problem.to_string())
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
pub(crate) fn ambiguous(count: u64, found: &[Occurrence]) -> Fault {
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
        Some((number, text, expected)) if is_one_place => match late_difference(text, expected) {
            Some((text, expected, column)) => {
                format!("line {number} differs from character {column} on: it is `{text}`, not `{expected}`")
            }
            None => format!("line {number} is `{}`, not `{}`", show(text), show(expected)),
        },
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

/// A line, cut where it gets long, with what cannot be seen spelled out.
fn show(line: &[u8]) -> String {
    show_from(&String::from_utf8_lossy(line), 0)
}

/// The same from some character on.
fn show_from(text: &str, start: usize) -> String {
    let mut shown = String::from(if start > 0 { "…" } else { "" });
    let mut rest = text.chars().skip(start);
    for character in rest.by_ref().take(SHOWN) {
        match character {
            '\t' => shown.push(character),
            _ if is_invisible(character) => shown.extend(character.escape_unicode()),
            _ => shown.push(character),
        }
    }
    if rest.next().is_some() {
        shown.push('…');
    }
    shown
}

/// What looks like nothing, or like a space.
fn is_invisible(character: char) -> bool {
    let is_odd_space = character.is_whitespace() && character != ' ';
    let is_mark = matches!(character, '\u{300}'..='\u{36f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{ad}');
    character.is_control() || is_odd_space || is_mark
}

/// What two lines hold from where they begin to differ, if that is so late that it would not be seen.
fn late_difference(line: &[u8], expected: &[u8]) -> Option<(String, String, usize)> {
    const BEFORE: usize = 20;
    let (line, expected) = (String::from_utf8_lossy(line), String::from_utf8_lossy(expected));
    let same = line.chars().zip(expected.chars()).take_while(|(one, other)| one == other).count();
    let start = same.checked_sub(BEFORE).filter(|_| same + BEFORE > SHOWN)?;
    Some((show_from(&line, start), show_from(&expected, start), same + 1))
}
