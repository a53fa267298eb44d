//! The conflict of an edit whose hash is that of another version of the file.

use pintle_contract::{ErrorCode, Fault};
use serde_json::json;

use super::at;
use crate::{
    files,
    hash::Hash,
    store::{Source, StoreError},
    text::{Change, Finder, Line, LineWindow, Observer, Problem, TextFinder, lines_to_find, survey_with},
};

/// How many lines a conflict names.
const MAX_LINES: usize = 10;

/// What each edit is told whose hash is stale. The current hash is revealed only with the lines where `old` or `anchor`
/// stands now: it shows that the caller knows the content, so that no caller can overwrite what it has not read.
pub(crate) fn stale(
    source: &dyn Source,
    found: Hash,
    changes: &[Change],
    is_not_text: bool,
    has_ended: &dyn Fn() -> bool,
) -> Result<Vec<Problem>, StoreError> {
    let mut sightings = Sightings(Vec::new());
    if !is_not_text {
        sightings.0.extend(changes.iter().map(Sighting::new));
    }
    let longest = sightings.0.iter().map(Sighting::longest).max().unwrap_or_default();
    if sightings.0.iter().any(|sighting| !matches!(sighting, Sighting::None)) {
        let window = LineWindow { lines: 1..u64::MAX, longest };
        survey_with(source, window, has_ended, &mut sightings)?;
    }
    let faults = sightings.0.into_iter().map(|sighting| sighting.fault(found));
    let faults = faults.chain(std::iter::repeat_with(files::stale));
    Ok(faults.take(changes.len()).enumerate().map(|(entry, fault)| Problem::new(entry, fault)).collect())
}

struct Sightings<'a>(Vec<Sighting<'a>>);

impl Observer for Sightings<'_> {
    fn line(&mut self, line: Line<'_>) -> Result<(), StoreError> {
        for sighting in &mut self.0 {
            if let Sighting::Lines(finder, _) = sighting {
                finder.take(&line);
            }
        }
        Ok(())
    }

    fn bytes(&mut self, bytes: &[u8]) {
        for sighting in &mut self.0 {
            if let Sighting::Text(finder) = sighting {
                finder.take(bytes);
            }
        }
    }
}

/// Finds where the text of an edit stands in the present file.
enum Sighting<'a> {
    Lines(Finder<'a>, &'static str),
    Text(TextFinder),
    /// The edit has no such text.
    None,
}

impl<'a> Sighting<'a> {
    fn new(change: &'a Change) -> Self {
        match change.guard() {
            None => Self::None,
            Some(text) if change.is_within() => Self::Text(TextFinder::new(text, 1..u64::MAX)),
            Some(text) => {
                let name = if matches!(change, Change::Insert { .. }) { "anchor" } else { "old" };
                Self::Lines(Finder::new(lines_to_find(text)), name)
            }
        }
    }

    fn longest(&self) -> usize {
        if let Self::Lines(finder, _) = self { finder.longest() } else { 0 }
    }

    fn fault(self, current: Hash) -> Fault {
        let (name, count, mut lines): (_, u64, Vec<u64>) = match self {
            Self::None => return files::stale(),
            Self::Lines(finder, name) => {
                (name, finder.count, finder.found.iter().map(|found| found.line).collect())
            }
            Self::Text(mut finder) => {
                finder.finish();
                ("old", finder.count, finder.found.iter().map(|found| found.line).collect())
            }
        };
        if count == 0 {
            return files::stale();
        }
        let is_all = count == lines.len() as u64;
        lines.dedup();
        let more = if is_all && lines.len() <= MAX_LINES { "" } else { " and more" };
        lines.truncate(MAX_LINES);
        let (times, place) = match (count, lines.len()) {
            (1, _) => (String::new(), "if that line is meant, repeat the edit with that hash and line"),
            (_, 1) => (format!(" {count} times"), "repeat the edit with that hash, and more of the line"),
            _ => (format!(" {count} times"), "repeat the edit with that hash and one of these lines"),
        };
        let message = format!(
            "the file has changed since it was read; nothing was done. `{name}` is there{times} now, at {}{more}. The current hash is {current}",
            at(&lines)
        );
        let hint = format!("read it again; or {place}");
        Fault::new(ErrorCode::Conflict, message)
            .hint(hint)
            .details(json!({"currentHash": current.to_string(), "lines": lines, "count": count}))
    }
}
