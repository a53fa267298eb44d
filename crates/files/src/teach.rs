//! Error messages for edits and reads: what was found, what was expected and what to do next.

mod clues;
mod nearest_line;

use std::ops::Range;

use pintle_contract::{ErrorCode, Fault};
use serde_json::json;

use self::{clues::Clues, nearest_line::Near};
use crate::{
    store::{Source, StoreError},
    text::{Finder, Line, LineWindow, Occurrence, RangeError, lines_to_find, survey},
};

/// How many characters of a line a message shows.
const MAX_SHOWN_CHARS: usize = 120;

pub(crate) fn bad_range(problem: &RangeError) -> Fault {
    Fault::new(ErrorCode::InvalidRequest, problem.to_string())
}

pub(crate) fn not_text(offset: u64) -> Fault {
    Fault::new(ErrorCode::InvalidRequest, format!("the file is not UTF-8 text: byte {} is not", offset + 1))
        .hint("file.read returns any file as Base64")
}

pub(crate) fn too_much(lines: u64, size: u64, is_one_line: bool) -> Fault {
    let (what, hint) = match is_one_line {
        true => ("the line has", "no tool can return a line of this length"),
        false => ("the lines have", "read fewer lines at a time"),
    };
    Fault::new(
        ErrorCode::InvalidRequest,
        format!("{what} more than 8 MiB; the file has {lines} lines and {size} bytes"),
    )
    .hint(hint)
    .details(json!({"totalLines": lines, "size": size}))
}

/// The fault for `old` that occurs more than once.
pub(crate) fn ambiguous(count: u64, found: &[Occurrence]) -> Fault {
    let lines: Vec<u64> = found.iter().map(|found| found.line).collect();
    let more = if count > lines.len() as u64 { " and more" } else { "" };
    let at = at(&lines);
    Fault::new(
        ErrorCode::InvalidRequest,
        format!("the given lines are there {count} times, at {at}{more}; they must be there once"),
    )
    .hint("narrow `lines` to one of them, or give more lines around it")
    .details(json!({"lines": lines, "count": count}))
}

/// Which argument does not match.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Given {
    Old,
    Anchor,
}

/// The fault for `old` or `anchor` that is not where it should be: what is there instead, and where the given lines
/// are, or which line is nearest.
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
    let window = LineWindow { lines: 1..u64::MAX, longest: clues.longest() };
    survey(source, window, has_ended, &mut |line: Line<'_>| {
        clues.take(&line);
        Ok(())
    })?;
    let first = show(wanted.first().copied().unwrap_or_default());
    let is_exact_position = kind == Given::Anchor || range.end - range.start <= wanted.len() as u64;
    let (found, without_last) = (line_numbers(&clues.finder), clues.without_last.as_ref().map(line_numbers));
    let instead = match &clues.differs {
        Some((number, text, expected)) if is_exact_position => match late_difference(text, expected) {
            Some((text, expected, column)) => {
                format!("line {number} differs from character {column} on: it is `{text}`, not `{expected}`")
            }
            None => format!("line {number} is `{}`, not `{}`", show(text), show(expected)),
        },
        _ => format!("`{first}` is not among lines {} to {}", range.start, range.end - 1),
    };
    let whole = "give whole lines exactly as text.read shows them, without the last newline";
    let invalid = |message: String| Fault::new(ErrorCode::InvalidRequest, message);
    Ok(if let [first_line, ..] = found[..] {
        let (last, count) = (first_line + wanted.len() as u64 - 1, wanted.len() as u64);
        let (message, hint) = match kind {
            Given::Anchor => {
                (format!("{instead}; that is at line {first_line}"), format!("give `line` {first_line}"))
            }
            Given::Old if count == 1 => (
                format!("{instead}; that is at {}", at(&found)),
                format!("give `lines` [{first_line}, {}]", first_line + 1),
            ),
            Given::Old => (
                format!(
                    "the given lines are lines {first_line} to {last}, which are not all in the range `lines`"
                ),
                format!("give `lines` [{first_line}, {}]", last + 1),
            ),
        };
        invalid(message).hint(hint).details(json!({"line": range.start, "found": found}))
    } else if let Some([first_line, ..]) = without_last.as_deref() {
        invalid(format!(
            "the given lines are at line {first_line}, except for the newline at their end, which means one more line"
        ))
        .hint("leave out the last newline")
        .details(json!({"line": first_line}))
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
        invalid(format!(
            "{instead}; the nearest is line {number}, `{text}`, which {}",
            difference.description()
        ))
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
        format!("`anchor` must be one line without its newline, but {count} lines were given"),
    )
    .hint(format!("give only the line to insert before: `{first}`"))
}

fn line_numbers(finder: &Finder<'_>) -> Vec<u64> {
    finder.found.iter().map(|found| found.line).collect()
}

fn at(lines: &[u64]) -> String {
    format!("{} {}", if lines.len() == 1 { "line" } else { "lines" }, and(lines))
}

/// Joins numbers with commas and a final "and".
fn and(numbers: &[u64]) -> String {
    let texts: Vec<String> = numbers.iter().map(u64::to_string).collect();
    match texts.as_slice() {
        [most @ .., last] if !most.is_empty() => format!("{} and {last}", most.join(", ")),
        texts => texts.concat(),
    }
}

/// A line for a message: cut if it is long, with invisible characters escaped.
fn show(line: &[u8]) -> String {
    show_from(&String::from_utf8_lossy(line), 0)
}

/// The same, starting at a character.
fn show_from(text: &str, start: usize) -> String {
    let mut shown = String::from(if start > 0 { "…" } else { "" });
    let mut rest = text.chars().skip(start);
    for character in rest.by_ref().take(MAX_SHOWN_CHARS) {
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

/// Whether a character is invisible or looks like a space.
fn is_invisible(character: char) -> bool {
    let is_odd_space = character.is_whitespace() && character != ' ';
    let is_mark = matches!(character, '\u{300}'..='\u{36f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{ad}');
    character.is_control() || is_odd_space || is_mark
}

/// The two lines from shortly before their first difference on, if that comes so late that it would be cut off.
fn late_difference(line: &[u8], expected: &[u8]) -> Option<(String, String, usize)> {
    const BEFORE: usize = 20;
    let (line, expected) = (String::from_utf8_lossy(line), String::from_utf8_lossy(expected));
    let same = line.chars().zip(expected.chars()).take_while(|(one, other)| one == other).count();
    let start = same.checked_sub(BEFORE).filter(|_| same + BEFORE > MAX_SHOWN_CHARS)?;
    Some((show_from(&line, start), show_from(&expected, start), same + 1))
}
