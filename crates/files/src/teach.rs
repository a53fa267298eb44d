//! Errors that say what was found, what was expected and what to do next.

mod nearest_line;

use std::ops::Range;

use pintle_contract::{ErrorCode, Fault};
use serde_json::json;

use self::nearest_line::{Near, NearestLine};
use crate::{
    store::{Source, StoreError},
    text::{Finder, Line, Sight, lines_of, survey},
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
    let wanted = lines_of(given);
    let first = wanted.first().copied().unwrap_or_default();
    let mut finder = Finder::new(wanted.clone());
    let mut search = NearestLine::new(first);
    let mut differs: Option<(u64, String, &[u8])> = None;
    let mut begun: Option<(usize, u64, String)> = None;
    let sight = Sight { lines: 1..u64::MAX, longest: finder.longest().max(search.longest()) };
    survey(source, sight, has_ended, &mut |line: Line<'_>| {
        let matched = finder.matched();
        finder.take(&line);
        let is_broken_off = matched > 0 && finder.matched() <= matched;
        if is_broken_off && begun.as_ref().is_none_or(|(most, ..)| matched > *most) {
            begun = Some((matched, line.number, show(line.content)));
        }
        if differs.is_none() && line.number >= range.start {
            let expected = wanted.get(usize::try_from(line.number - range.start).unwrap_or(usize::MAX));
            if let Some(expected) = expected.filter(|expected| **expected != line.content) {
                differs = Some((line.number, show(line.content), expected));
            }
        }
        search.take(&line);
        Ok(())
    })?;
    let places: Vec<u64> = finder.found.iter().map(|found| found.line).collect();
    let is_one_place = range.end - range.start <= wanted.len() as u64;
    let (mut message, mut details) = match differs {
        Some((number, text, expected)) if is_one_place => {
            (format!("line {number} is `{text}`, not `{}`", show(expected)), json!({"line": number}))
        }
        _ => {
            let last = range.end - 1;
            let message = format!("`{}` is not among lines {} to {last}", show(first), range.start);
            (message, json!({"line": range.start}))
        }
    };
    if let Some(place) = places.first() {
        message.push_str(&format!("; that is at line {place}"));
        details["found"] = json!(places);
    } else if let Some((matched, number, text)) = begun {
        let expected = show(wanted.get(matched).copied().unwrap_or_default());
        message = format!(
            "the given lines are there up to line {}, but line {number} is `{text}`, not `{expected}`",
            number - 1
        );
        details["line"] = json!(number);
    } else if let Some(Near { number, text, difference }) = search.nearest {
        message.push_str(&format!("; the nearest is line {number}, `{text}`, which {}", difference.told()));
        details["nearest"] = json!(number);
    }
    // With it the given lines end with one that is empty.
    if given.ends_with('\n') {
        message.push_str("; the newline at its end stands for one more line, which is empty: leave it out");
    }
    Ok(Fault::new(ErrorCode::InvalidRequest, message)
        .hint("give whole lines exactly as text.read shows them, without the last newline")
        .details(details))
}

/// A line, cut where it gets long.
fn show(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into_owned(),
    }
}
