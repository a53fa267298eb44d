//! Errors that say what was found, what was expected and what to do next.

use std::ops::Range;

use pintle_contract::{ErrorCode, Fault};
use serde_json::json;

use crate::{
    store::{Source, StoreError},
    text::{Line, Sight, survey},
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

pub(crate) fn too_much(lines: u64, size: u64) -> Fault {
    Fault::new(
        ErrorCode::InvalidRequest,
        format!("the lines have more than 8 MiB; the file has {lines} lines and {size} bytes"),
    )
    .hint("read fewer lines at a time")
    .details(json!({"totalLines": lines, "size": size}))
}

/// What a caller gave is there more than once.
pub(crate) fn ambiguous(count: u64, found: &[crate::text::Found]) -> Fault {
    let lines: Vec<u64> = found.iter().map(|found| found.line).collect();
    let told: Vec<String> = lines.iter().map(u64::to_string).collect();
    let more = if count > lines.len() as u64 { " and more" } else { "" };
    Fault::new(
        ErrorCode::InvalidRequest,
        format!("the given lines are there {count} times, at lines {}{more}", told.join(", ")),
    )
    .hint("narrow `lines` to one of them, or give more lines around it")
    .details(json!({"lines": lines, "count": count}))
}

/// What a caller gave is not where it should be: says what is there instead, and where it is, or what is
/// nearest to it.
pub(crate) fn not_as_given(
    source: &dyn Source,
    range: &Range<u64>,
    given: &str,
    has_ended: &dyn Fn() -> bool,
) -> Result<Fault, StoreError> {
    let wanted = crate::text::lines_of(given);
    let mut finder = crate::text::Finder::new(wanted.clone());
    let mut here: Option<String> = None;
    let mut nearest: Option<(u64, Difference, String)> = None;
    let mut begun: Option<(usize, u64, String)> = None;
    let first = String::from_utf8_lossy(wanted.first().copied().unwrap_or_default()).into_owned();
    let sight = Sight { lines: 1..u64::MAX, longest: finder.longest().max(4 * first.len() + 16 + SHOWN) };
    survey(source, sight, has_ended, &mut |line: Line<'_>| {
        let matched = finder.matched();
        finder.take(&line);
        if matched > 0
            && finder.matched() <= matched
            && begun.as_ref().is_none_or(|(most, ..)| matched > *most)
        {
            begun = Some((matched, line.number, show(line.content)));
        }
        if line.number == range.start {
            here = Some(show(line.content));
        }
        if let Some(difference) = Difference::between(&first, line.content)
            && nearest.as_ref().is_none_or(|(_, known, _)| difference < *known)
        {
            nearest = Some((line.number, difference, show(line.content)));
        }
        Ok(())
    })?;
    let start = range.start;
    let mut message = match &here {
        Some(text) => format!("line {start} is `{text}`, not `{}`", show(first.as_bytes())),
        None => format!("line {start} is not `{}`", show(first.as_bytes())),
    };
    let places: Vec<u64> = finder.found.iter().map(|found| found.line).collect();
    let mut fault_details = json!({"line": start});
    if let Some(place) = places.first() {
        message.push_str(&format!("; that is at line {place}"));
        fault_details["found"] = json!(places);
    } else if let Some((matched, number, text)) = begun {
        let expected = show(wanted.get(matched).copied().unwrap_or_default());
        message = format!(
            "the given lines are there up to line {}, but line {number} is `{text}`, not `{expected}`",
            number - 1
        );
        fault_details["line"] = json!(number);
    } else if let Some((number, difference, text)) = nearest {
        message.push_str(&format!(
            "; the nearest is line {number}, `{text}`, which differs in {}",
            difference.told()
        ));
        fault_details["nearest"] = json!(number);
    } else if given.ends_with('\n') {
        message.push_str(
            "; what is given ends with a newline, which counts as one more, empty line: leave it out",
        );
    }
    Ok(Fault::new(ErrorCode::InvalidRequest, message)
        .hint("read the lines again and give them exactly as they are, without the last newline")
        .details(fault_details))
}

/// How a line differs from the one that was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Difference {
    Indentation,
    Whitespace,
    Case,
    CaseAndWhitespace,
}

impl Difference {
    fn between(given: &str, line: &[u8]) -> Option<Self> {
        let line = std::str::from_utf8(line).ok()?;
        if given.trim().is_empty() || given == line {
            return None;
        }
        let plain = |text: &str| text.split_whitespace().collect::<String>();
        if given.trim() == line.trim() {
            return Some(if given.trim_end() == line.trim_end() {
                Self::Whitespace
            } else {
                Self::Indentation
            });
        }
        // Anything that differs by more than this is another line.
        if line.len() > 4 * given.len() + 16 {
            return None;
        }
        if given.to_lowercase() == line.to_lowercase() {
            return Some(Self::Case);
        }
        let (given, line) = (plain(given), plain(line));
        if given == line {
            return Some(Self::Whitespace);
        }
        let (given, line) = (given.to_lowercase(), line.to_lowercase());
        (given == line).then_some(Self::CaseAndWhitespace)
    }

    fn told(self) -> &'static str {
        match self {
            Self::Indentation => "its indentation",
            Self::Whitespace => "its whitespace",
            Self::Case => "upper and lower case",
            Self::CaseAndWhitespace => "case or whitespace",
        }
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
