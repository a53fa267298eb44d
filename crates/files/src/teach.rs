//! Error messages for edits and reads: what was found, what was expected and what to do next.

mod clues;
mod nearest_line;
mod stale;
mod text_clues;

use std::ops::Range;

use pintle_contract::{ErrorCode, Fault};
use serde_json::json;

pub(crate) use self::stale::stale;
use self::{
    clues::Clues,
    nearest_line::{Difference, Effort, Near},
    text_clues::TextClues,
};
use crate::{
    store::{Source, StoreError},
    text::{Finder, Line, LineWindow, Observer, RangeError, lines_to_find, survey_with},
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

/// The fault for a range of `lines` that means nothing in a file of so many lines.
pub(crate) fn bad_lines(problem: &RangeError, lines: u64) -> Fault {
    let fault = bad_range(problem);
    if lines == 0 { fault.hint("text.append adds the first lines") } else { fault }
}

/// The fault for a line to insert before that is not there.
pub(crate) fn bad_insertion(problem: &RangeError) -> Fault {
    bad_range(problem).hint("text.append adds lines after the last")
}

/// The fault for `old` that occurs more than once. Of text within lines, several may be in one.
pub(crate) fn ambiguous(count: u64, lines: &[u64], is_text: bool) -> Fault {
    let more = if count > lines.len() as u64 { " and more" } else { "" };
    let mut lines = lines.to_vec();
    lines.dedup();
    let (what, are, at) = match is_text {
        true => ("`old`", "is", at(&lines)),
        false => ("the given lines", "are", at(&lines)),
    };
    let hint = match lines.len() {
        1 => "give more around it, or set `all` to true for every one",
        _ => "narrow `lines` to one of them, give more around it, or set `all` to true for every one",
    };
    Fault::new(
        ErrorCode::InvalidRequest,
        format!("{what} {are} there {count} times, at {at}{more}; there must be one"),
    )
    .hint(hint)
    .details(json!({"lines": lines, "count": count}))
}

/// The fault for edits that replace too many occurrences.
pub(crate) fn too_many(count: u64, most: usize) -> Fault {
    let message = format!("there are {count} places to replace, or more; a call replaces at most {most}");
    Fault::new(ErrorCode::InvalidRequest, message).hint("narrow `lines`, and call several times")
}

/// The fault for edits that insert too much.
pub(crate) fn too_much_new(bytes: u64, most: u64) -> Fault {
    let message =
        format!("the new content has {bytes} bytes or more; at most {most} can be written in one call");
    Fault::new(ErrorCode::InvalidRequest, message)
        .hint("make fewer changes in one call")
        .details(json!({"reason": "too_large", "bytes": bytes, "limit": most}))
}

/// A line in which looking for an expression could take so long that nobody could cancel it.
pub(crate) fn long_line(bytes: usize, most: usize) -> Fault {
    let message = format!(
        "a line has {bytes} bytes; matches of an expression, or of whole words, are replaced in lines of at most {most}"
    );
    Fault::new(ErrorCode::InvalidRequest, message).hint("use a literal query, or leave the file out")
}

/// A match that does not consist of whole characters.
pub(crate) fn within_character() -> Fault {
    Fault::new(
        ErrorCode::InvalidRequest,
        "a match begins or ends within a character, so the rest would not be UTF-8 text",
    )
    .hint("let the expression match whole characters, without `(?-u)` and without the empty text")
}

/// The fault for an edit that changes what another edit of the same call changes.
pub(crate) fn overlap(lines: &Range<u64>, other: &Range<u64>) -> Fault {
    let shown = |lines: &Range<u64>| match lines.end.saturating_sub(lines.start) {
        0 => format!("the place before line {}", lines.start),
        1 => format!("line {}", lines.start),
        _ => format!("lines {} to {}", lines.start, lines.end - 1),
    };
    let message = format!("it changes {}, which overlaps {} of another edit", shown(lines), shown(other));
    Fault::new(ErrorCode::InvalidRequest, message)
        .hint("all edits mean the file as it was read: join these two into one")
        .details(json!({"lines": [lines.start, lines.end], "other": [other.start, other.end]}))
}

/// Which argument does not match.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Given {
    /// Whole lines.
    Old,
    /// Text within lines.
    Text,
    /// A line.
    Anchor,
}

/// A text that is not where it should be.
pub(crate) struct Missing<'a> {
    /// The lines where it should be.
    pub(crate) range: Range<u64>,
    /// Which argument it is.
    pub(crate) given: Given,
    /// The text.
    pub(crate) text: &'a str,
}

/// The faults for texts that are not where they should be: what is there instead, and where the given lines are, or which
/// line is nearest. The file is read once.
pub(crate) fn not_as_given(
    source: &dyn Source,
    missing: &[&Missing<'_>],
    has_ended: &dyn Fn() -> bool,
) -> Result<Vec<Fault>, StoreError> {
    let wanted: Vec<Vec<&[u8]>> = missing.iter().map(|missing| lines_to_find(missing.text)).collect();
    let effort = Effort::shared_by(missing.len());
    let clues = wanted.iter().zip(missing).map(|(wanted, missing)| match missing.given {
        Given::Text => Clue::Text(Box::new(TextClues::new(missing.text, &missing.range, effort))),
        Given::Old | Given::Anchor => Clue::Lines(Box::new(Clues::new(wanted, &missing.range, effort))),
    });
    let mut seekers = ClueSeekers { clues: clues.collect(), has_ended };
    let longest = seekers.clues.iter().map(Clue::longest).max().unwrap_or_default();
    let window = LineWindow { lines: 1..u64::MAX, longest };
    survey_with(source, window, has_ended, &mut seekers)?;
    let faults = seekers.clues.into_iter().zip(missing).map(|(clue, missing)| match clue {
        Clue::Text(clues) => clues.fault(missing),
        Clue::Lines(clues) => lines_not_as_given(&clues, missing),
    });
    Ok(faults.collect())
}

/// What helps to explain one text.
enum Clue<'a> {
    Lines(Box<Clues<'a>>),
    Text(Box<TextClues<'a>>),
}

impl Clue<'_> {
    fn longest(&self) -> usize {
        match self {
            Self::Lines(clues) => clues.longest(),
            Self::Text(clues) => clues.longest(),
        }
    }
}

struct ClueSeekers<'a> {
    clues: Vec<Clue<'a>>,
    has_ended: &'a dyn Fn() -> bool,
}

impl Observer for ClueSeekers<'_> {
    fn line(&mut self, line: Line<'_>) -> Result<(), StoreError> {
        // With many clues a line takes long.
        const OFTEN: u64 = 64;
        if line.number.is_multiple_of(OFTEN) && (self.has_ended)() {
            return Err(StoreError::Ended);
        }
        self.clues.iter_mut().for_each(|clue| match clue {
            Clue::Lines(clues) => clues.take(&line),
            Clue::Text(clues) => clues.line(&line),
        });
        Ok(())
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.clues.iter_mut().for_each(|clue| match clue {
            Clue::Lines(_) => {}
            Clue::Text(clues) => clues.bytes(bytes),
        });
    }
}

/// The fault for `old` or `anchor` that is not where it should be.
fn lines_not_as_given(clues: &Clues<'_>, missing: &Missing<'_>) -> Fault {
    let (range, kind, wanted) = (&missing.range, missing.given, clues.wanted);
    if kind == Given::Anchor && wanted.len() > 1 {
        return anchor_of_several(wanted.len(), wanted);
    }
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
    if let [first_line, ..] = found[..] {
        let (last, count) = (first_line + wanted.len() as u64 - 1, wanted.len() as u64);
        let (message, hint) = match kind {
            Given::Anchor => {
                (format!("{instead}; that is at line {first_line}"), format!("give `line` {first_line}"))
            }
            Given::Old if count == 1 => (
                format!("{instead}; that is at {}", at(&found)),
                format!("give `lines` [{first_line}, {}]", first_line + 1),
            ),
            Given::Old | Given::Text => (
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
        .hint(match difference {
            Difference::Longer if kind == Given::Old => {
                format!("{whole}; or set `within` to true to replace a part of a line")
            }
            _ => whole.to_owned(),
        })
        .details(json!({"line": range.start, "nearest": number}))
    } else {
        invalid(instead).hint(whole).details(json!({"line": range.start}))
    }
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
