//! Plans all edits of one file, as splices of bytes. The file is read in one pass. Line numbers from the end need a pass
//! before that to count the lines, and edits that do not match need one more to explain why.

use std::ops::Range;

use pintle_contract::Fault;

use super::{
    change::{Change, Replace},
    find::{Finder, Occurrence, is_line, lines_to_find},
    pieces::{self, Piece},
    range::{known_range, resolve_line, resolve_range},
    survey::{Line, LineWindow, Observer, Survey, Terminator, count_lines, survey_with},
    within::TextFinder,
};
use crate::{
    hash::{Hash, Tag},
    store::{Source, Splice, StoreError},
    teach::{self, Given, Missing},
};

/// The most occurrences that the edits of one call replace.
const MAX_REPLACED: usize = 1_000_000;
/// The most bytes that the edits of one call may insert.
pub(crate) const MAX_INSERTED: u64 = 64 << 20;

/// How much of its limits a call has used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Used {
    /// How many bytes are inserted.
    pub(crate) inserted: u64,
    /// How many occurrences are replaced.
    pub(crate) replaced: u64,
}

impl Used {
    /// What is left without the other.
    pub(crate) fn less(self, other: Self) -> Self {
        Self { inserted: self.inserted - other.inserted, replaced: self.replaced - other.replaced }
    }
}

/// What was planned for a file.
pub(crate) struct Planned {
    /// The version that was read.
    pub(crate) found: Hash,
    /// The change, or everything that is wrong with the edits, in their order.
    pub(crate) change: Result<FileEdit, Vec<Problem>>,
}

/// A change of a file.
pub(crate) struct FileEdit {
    /// In the order of their offsets; they do not overlap.
    pub(crate) splices: Vec<Splice>,
    /// The numbers of the lines in which they begin.
    pub(crate) lines: Vec<u64>,
    /// How many lines the file will have.
    pub(crate) total_lines: u64,
    /// How many places are changed.
    pub(crate) changes: u64,
}

/// What is wrong with one of the edits.
#[derive(Debug)]
pub(crate) struct Problem {
    /// Its number among the edits of the file.
    pub(crate) entry: usize,
    /// What is wrong.
    pub(crate) fault: Fault,
    /// The number of another edit that it is about, too.
    pub(crate) other: Option<usize>,
}

impl Problem {
    pub(crate) fn new(entry: usize, fault: Fault) -> Self {
        Self { entry, fault, other: None }
    }
}

/// Plans edits of a file. If it is another version than the expected one, that is the problem of each of them. `used` is
/// what the call has used in other files; what these edits use is added.
pub(crate) fn plan(
    source: &dyn Source,
    changes: &[Change],
    expected: &Tag,
    used: &mut Used,
    has_ended: &dyn Fn() -> bool,
) -> Result<Planned, StoreError> {
    let is_counted_from_end =
        |change: &Change| change.lines().is_some_and(|lines| known_range(lines).is_none());
    let total = match changes.iter().any(is_counted_from_end) {
        true => Some(count_lines(source, has_ended)?),
        false => None,
    };
    let mut seekers = Seekers {
        seekers: changes.iter().map(|change| Seeker::new(change, total)).collect(),
        left: MAX_REPLACED.saturating_sub(usize::try_from(used.replaced).unwrap_or(usize::MAX)),
    };
    let window = seekers.window();
    let survey = survey_with(source, window, has_ended, &mut seekers)?;
    let found = survey.hash;
    if !expected.names(found) {
        let problems = teach::stale(source, found, changes, survey.not_text.is_some(), has_ended)?;
        return Ok(Planned { found, change: Err(problems) });
    }
    if let Some(offset) = survey.not_text {
        let problem = Problem::new(0, teach::not_text(offset));
        return Ok(Planned { found, change: Err(vec![problem]) });
    }
    let (mut pieces, mut problems, mut missing) = (Vec::new(), Vec::new(), Vec::new());
    for (entry, (change, seeker)) in changes.iter().zip(seekers.seekers).enumerate() {
        match seeker.place(entry, change, &survey, used) {
            Ok(placed) => pieces.extend(placed),
            Err(Misplaced::Fault(fault)) => problems.push(Problem::new(entry, fault)),
            Err(Misplaced::Missing(lost)) => missing.push((entry, lost)),
        }
    }
    problems.extend(explain(source, &missing, has_ended)?);
    problems.extend(pieces::arrange(&mut pieces, changes, &survey));
    if !problems.is_empty() {
        problems.sort_by_key(|problem| problem.entry);
        return Ok(Planned { found, change: Err(problems) });
    }
    let (changes, removed) = (pieces.len() as u64, pieces::removed_newlines(&pieces));
    let lines = pieces.iter().map(|piece| piece.line).collect();
    let splices: Vec<Splice> = pieces.into_iter().map(Piece::into_splice).collect();
    let total_lines = pieces::total_lines(source, &survey, removed, &splices)?;
    Ok(Planned { found, change: Ok(FileEdit { splices, lines, total_lines, changes }) })
}

/// One more pass over the file for all texts that are not where they should be.
fn explain(
    source: &dyn Source,
    missing: &[(usize, Missing<'_>)],
    has_ended: &dyn Fn() -> bool,
) -> Result<Vec<Problem>, StoreError> {
    if missing.is_empty() {
        return Ok(Vec::new());
    }
    let lost: Vec<&Missing<'_>> = missing.iter().map(|(_, lost)| lost).collect();
    let faults = teach::not_as_given(source, &lost, has_ended)?;
    Ok(missing.iter().zip(faults).map(|((entry, _), fault)| Problem::new(*entry, fault)).collect())
}

/// Looks for the places of all edits while the file is read.
struct Seekers<'a> {
    seekers: Vec<Seeker<'a>>,
    /// How many more occurrences may be kept, of all edits that replace every one.
    left: usize,
}

impl Seekers<'_> {
    /// The lines that any of them looks at.
    fn window(&self) -> LineWindow {
        self.seekers.iter().map(Seeker::window).filter(|window| !window.lines.is_empty()).fold(
            LineWindow::NONE,
            |all, window| match all.lines.is_empty() {
                true => window,
                false => LineWindow {
                    lines: all.lines.start.min(window.lines.start)..all.lines.end.max(window.lines.end),
                    longest: all.longest.max(window.longest),
                },
            },
        )
    }
}

impl Observer for Seekers<'_> {
    fn line(&mut self, line: Line<'_>) -> Result<(), StoreError> {
        let left = &mut self.left;
        self.seekers.iter_mut().for_each(|seeker| seeker.keeping_at_most(left, |seeker| seeker.line(&line)));
        Ok(())
    }

    fn bytes(&mut self, bytes: &[u8]) {
        let left = &mut self.left;
        self.seekers.iter_mut().for_each(|seeker| seeker.keeping_at_most(left, |seeker| seeker.bytes(bytes)));
    }
}

/// Looks for the place of one edit.
enum Seeker<'a> {
    /// Whole lines somewhere in a range.
    Lines(Range<u64>, Finder<'a>),
    /// A text somewhere in a range.
    Text(TextFinder),
    /// All lines of a range.
    Range(Range<u64>, Option<Occurrence>),
    /// One line: its number, its offset and terminator, and whether it is the anchor.
    Line { number: u64, anchor: Option<&'a str>, found: Option<(u64, Terminator, bool)> },
    /// The end of the file.
    End,
}

/// Why an edit has no place.
enum Misplaced<'a> {
    Fault(Fault),
    /// Its text is not there, which has to be explained.
    Missing(Missing<'a>),
}

impl<'a> Seeker<'a> {
    fn new(change: &'a Change, total: Option<u64>) -> Self {
        // A range that is not valid is resolved again, and reported, after the whole file was read.
        let resolve = |lines: [i64; 2]| match (known_range(lines), total) {
            (Some(range), _) => range,
            (None, total) => resolve_range(lines, total.unwrap_or_default()).unwrap_or(0..0),
        };
        match change {
            Change::Replace(Replace { lines, old, all, within, .. }) => {
                let range = lines.map_or(1..u64::MAX, resolve);
                match old {
                    None => Self::Range(range, None),
                    Some(old) if *within => {
                        let finder = TextFinder::new(old, range);
                        Self::Text(if *all { finder.disjoint() } else { finder })
                    }
                    Some(old) => {
                        let finder = Finder::new(lines_to_find(old));
                        Self::Lines(range, if *all { finder.disjoint() } else { finder })
                    }
                }
            }
            Change::Insert { line, anchor, .. } => {
                let number = if *line == 0 { 0 } else { resolve([*line, 0]).start };
                Self::Line { number, anchor: anchor.as_deref(), found: None }
            }
            Change::Append { .. } => Self::End,
        }
    }

    /// Looks at something. Of an edit that replaces every occurrence, so many more are kept at most; the others are counted.
    fn keeping_at_most(&mut self, left: &mut usize, look: impl FnOnce(&mut Self)) {
        let kept = self.all_kept().map(|(kept, most)| {
            *most = kept + *left;
            kept
        });
        look(self);
        if let (Some(before), Some((after, _))) = (kept, self.all_kept()) {
            *left -= after - before;
        }
    }

    /// How many occurrences are kept, and how many may be, if every one is replaced.
    fn all_kept(&mut self) -> Option<(usize, &mut usize)> {
        match self {
            Self::Lines(_, finder) => finder.all_kept(),
            Self::Text(finder) => finder.all_kept(),
            _ => None,
        }
    }

    fn window(&self) -> LineWindow {
        match self {
            Self::Lines(range, finder) => LineWindow { lines: range.clone(), longest: finder.longest() },
            Self::Range(range, _) => LineWindow { lines: range.clone(), longest: 0 },
            Self::Line { number, anchor, .. } => {
                LineWindow { lines: *number..number.saturating_add(1), longest: anchor.map_or(0, str::len) }
            }
            Self::Text(_) | Self::End => LineWindow::NONE,
        }
    }

    fn line(&mut self, line: &Line<'_>) {
        match self {
            Self::Lines(range, finder) if range.contains(&line.number) => finder.take(line),
            Self::Range(range, all) if range.contains(&line.number) => {
                let all = all.get_or_insert(Occurrence {
                    line: line.number,
                    lines: 0,
                    start: line.start,
                    end: line.start,
                    first: line.terminator,
                    last: line.terminator,
                });
                (all.lines, all.end, all.last) = (all.lines + 1, line.end(), line.terminator);
            }
            Self::Line { number, anchor, found } if *number == line.number => {
                let is_anchor = anchor.is_none_or(|anchor| is_line(anchor.as_bytes(), line));
                *found = Some((line.start, line.terminator, is_anchor));
            }
            _ => {}
        }
    }

    fn bytes(&mut self, bytes: &[u8]) {
        if let Self::Text(finder) = self {
            finder.take(bytes);
        }
    }

    /// The pieces of the file that the edit changes, now that all of it was read.
    fn place(
        mut self,
        entry: usize,
        change: &'a Change,
        survey: &Survey,
        used: &mut Used,
    ) -> Result<Vec<Piece>, Misplaced<'a>> {
        if let Self::Text(finder) = &mut self {
            finder.finish();
        }
        let (replace, range) = match change {
            Change::Replace(replace) => {
                let range = resolve_range(replace.lines.unwrap_or([1, 0]), survey.lines)
                    .map_err(|problem| Misplaced::Fault(teach::bad_lines(&problem, survey.lines)))?;
                (replace, range)
            }
            Change::Insert { line, anchor, content } => {
                let number = resolve_line(*line, survey.lines)
                    .map_err(|problem| Misplaced::Fault(teach::bad_insertion(&problem)))?;
                let Self::Line { found: Some((start, terminator, true)), .. } = self else {
                    let (range, text) = (number..number + 1, anchor.as_deref().unwrap_or_default());
                    return Err(Misplaced::Missing(Missing { range, given: Given::Anchor, text }));
                };
                count_inserted(used, content, 1)?;
                return Ok(vec![Piece::insertion((entry, number), start, terminator, content, survey)]);
            }
            Change::Append { content } => {
                count_inserted(used, content, 1)?;
                return Ok(vec![Piece::end(entry, survey)]);
            }
        };
        let Replace { old, new, all, within, .. } = replace;
        let count = match &self {
            Self::Lines(_, finder) => finder.count,
            Self::Text(finder) => finder.count,
            _ => 1,
        };
        if count == 0 {
            let given = if *within { Given::Text } else { Given::Old };
            let text = old.as_deref().unwrap_or_default();
            return Err(Misplaced::Missing(Missing { range, given, text }));
        }
        if !all && count > 1 {
            let lines: Vec<u64> = match &self {
                Self::Lines(_, finder) => finder.found.iter().map(|found| found.line).collect(),
                Self::Text(finder) => finder.found.iter().map(|found| found.line).collect(),
                _ => Vec::new(),
            };
            return Err(Misplaced::Fault(teach::ambiguous(count, &lines, *within)));
        }
        used.replaced = used.replaced.saturating_add(count);
        if used.replaced > MAX_REPLACED as u64 {
            return Err(Misplaced::Fault(teach::too_many(used.replaced, MAX_REPLACED)));
        }
        count_inserted(used, new, count)?;
        Ok(match self {
            Self::Lines(_, finder) => {
                finder.found.iter().map(|found| Piece::of_lines(entry, found, new, survey)).collect()
            }
            Self::Range(_, found) => {
                found.iter().map(|found| Piece::of_lines(entry, found, new, survey)).collect()
            }
            Self::Text(finder) => {
                let texts = (old.as_deref().unwrap_or_default(), new.as_str());
                finder.found.iter().map(|found| Piece::of_text(entry, found, texts, survey)).collect()
            }
            Self::Line { .. } | Self::End => Vec::new(),
        })
    }
}

/// Adds what an edit inserts, and refuses more than the limit.
fn count_inserted<'a>(used: &mut Used, text: &str, count: u64) -> Result<(), Misplaced<'a>> {
    used.inserted = used.inserted.saturating_add((text.len() as u64).saturating_mul(count));
    match used.inserted > MAX_INSERTED {
        true => Err(Misplaced::Fault(teach::too_much_new(used.inserted, MAX_INSERTED))),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests;
