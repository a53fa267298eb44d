//! The pieces of a file that edits change: their bytes, their order, and how many lines they leave.

use super::{
    change::Change,
    find::{Occurrence, lines_of},
    plan::Problem,
    survey::{Survey, Terminator},
    within::TextOccurrence,
};
use crate::{
    store::{Source, Splice, StoreError},
    teach,
};

/// A piece of a file that an edit changes.
#[derive(Debug)]
pub(super) struct Piece {
    /// The number of the edit.
    pub(super) entry: usize,
    /// The number of the line in which it begins.
    pub(super) line: u64,
    /// How many lines it covers, the first and the last of which may be covered in part.
    lines: u64,
    start: u64,
    removed: u64,
    /// How many newlines are removed.
    newlines: u64,
    inserted: Vec<u8>,
    /// How many bytes at the end of `inserted` end the last line of a file that had no last terminator.
    open_end: usize,
    kind: PieceKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PieceKind {
    /// New lines before a line.
    Insertion,
    /// Whole lines.
    Lines,
    /// Text within lines.
    Text,
    /// New lines behind the last one.
    End,
}

impl Piece {
    /// New lines before a line, with its terminator.
    pub(super) fn insertion(
        (entry, line): (usize, u64),
        start: u64,
        terminator: Terminator,
        content: &str,
        survey: &Survey,
    ) -> Self {
        let inserted = ended_lines(content, or_file(terminator, survey));
        let kind = PieceKind::Insertion;
        Self { entry, line, lines: 0, start, removed: 0, newlines: 0, inserted, open_end: 0, kind }
    }

    /// The end of the file. What is appended there is written when all edits are known.
    pub(super) fn end(entry: usize, survey: &Survey) -> Self {
        let line = survey.newlines() + 1;
        let (start, inserted, kind) = (survey.size, Vec::new(), PieceKind::End);
        Self { entry, line, lines: 0, start, removed: 0, newlines: 0, inserted, open_end: 0, kind }
    }

    /// Whole lines. The last new line keeps the terminator of the last old one.
    pub(super) fn of_lines(entry: usize, found: &Occurrence, new: &str, survey: &Survey) -> Self {
        let terminator = or_file(found.first, survey);
        let mut inserted = ended_lines(new, terminator);
        let mut open = 0;
        if !inserted.is_empty() {
            inserted.truncate(inserted.len() - terminator.bytes().len());
            let end = match found.last {
                Terminator::None => open_end(new, terminator),
                last => last.bytes(),
            };
            inserted.extend_from_slice(end);
            open = if found.last == Terminator::None { end.len() } else { 0 };
        }
        Self {
            entry,
            line: found.line,
            lines: found.lines,
            start: found.start,
            removed: found.end - found.start,
            newlines: found.lines - u64::from(found.last == Terminator::None),
            inserted,
            open_end: open,
            kind: PieceKind::Lines,
        }
    }

    /// Text within lines. It is replaced as it is, with newlines as the line has them.
    pub(super) fn of_text(
        entry: usize,
        found: &TextOccurrence,
        (old, new): (&str, &str),
        survey: &Survey,
    ) -> Self {
        let terminator = or_file(found.terminator, survey);
        let mut inserted = Vec::with_capacity(new.len());
        for (index, line) in new.split('\n').enumerate() {
            if index > 0 {
                if inserted.last() == Some(&b'\r') {
                    inserted.pop();
                }
                inserted.extend_from_slice(terminator.bytes());
            }
            inserted.extend_from_slice(line.as_bytes());
        }
        let newlines = newlines(old.as_bytes());
        Self {
            entry,
            line: found.line,
            lines: newlines + u64::from(!old.ends_with('\n')),
            start: found.start,
            removed: found.end - found.start,
            newlines,
            inserted,
            open_end: 0,
            kind: PieceKind::Text,
        }
    }

    pub(super) fn into_splice(self) -> Splice {
        Splice { start: self.start, removed: self.removed, inserted: self.inserted }
    }

    fn end_offset(&self) -> u64 {
        self.start + self.removed
    }

    /// Whether a piece that does not begin before this one changes the same bytes.
    fn overlaps(&self, next: &Self) -> bool {
        // An insertion at the first line of a range, or right behind its last one, is outside of it.
        self.start < next.start && next.start < self.end_offset()
            || self.start == next.start && self.removed > 0 && next.removed > 0
    }
}

/// Sorts the pieces, writes what is appended, and reports those that overlap.
pub(super) fn arrange(pieces: &mut [Piece], changes: &[Change], survey: &Survey) -> Vec<Problem> {
    // What is inserted before a line stands before what replaces it. What is appended comes last, and else the order is that
    // in which the edits were given.
    pieces.sort_by_key(|piece| {
        let rank = match piece.kind {
            PieceKind::Insertion => 0,
            PieceKind::Lines | PieceKind::Text => 1,
            PieceKind::End => 2,
        };
        (piece.start, rank, piece.entry)
    });
    let mut problems: Vec<Problem> = Vec::new();
    let mut longest: Option<usize> = None;
    for index in 0..pieces.len() {
        let next = &pieces[index];
        if let Some(before) = longest.map(|longest| &pieces[longest]).filter(|before| before.overlaps(next)) {
            // The later one of the two in the call is the one that is in the way.
            let (one, other) = if before.entry < next.entry { (before, next) } else { (next, before) };
            if !problems.iter().any(|problem| problem.entry == other.entry) {
                let lines_of = |piece: &Piece| piece.line..piece.line + piece.lines;
                let fault = teach::overlap(&lines_of(other), &lines_of(one));
                problems.push(Problem { entry: other.entry, fault, other: Some(one.entry) });
            }
        }
        if longest.is_none_or(|longest| pieces[longest].end_offset() <= next.end_offset()) {
            longest = Some(index);
        }
    }
    write_end(pieces, changes, survey);
    problems
}

/// Writes what is appended, in the order given. A file without a last terminator stays without one, so the line that was
/// the last gets one now.
fn write_end(pieces: &mut [Piece], changes: &[Change], survey: &Survey) {
    let terminator = survey.terminator();
    let begins = pieces.iter().position(|piece| piece.kind == PieceKind::End).unwrap_or(pieces.len());
    let (others, ends) = pieces.split_at_mut(begins);
    let mut is_open = survey.is_open();
    let mut last_line = others
        .iter_mut()
        .rev()
        .find(|piece| piece.kind == PieceKind::Lines && piece.end_offset() == survey.size);
    for piece in ends {
        let Some(Change::Append { content }) = changes.get(piece.entry) else { continue };
        let mut lines = ended_lines(content, terminator);
        if is_open && !lines.is_empty() {
            match last_line.take() {
                // The last line is itself replaced: the terminator follows what replaces it, if that is anything.
                Some(last) if last.inserted.is_empty() => {}
                Some(last) => {
                    last.inserted.truncate(last.inserted.len() - last.open_end);
                    last.inserted.extend_from_slice(terminator.bytes());
                }
                None => piece.inserted.extend_from_slice(terminator.bytes()),
            }
            lines.truncate(lines.len() - terminator.bytes().len());
            let end = open_end(content, terminator);
            lines.extend_from_slice(end);
            is_open = end.is_empty();
        }
        piece.inserted.extend(lines);
    }
}

/// How many newlines pieces remove.
pub(super) fn removed_newlines(pieces: &[Piece]) -> u64 {
    pieces.iter().map(|piece| piece.newlines).sum()
}

/// How many lines the file has after splices that remove so many newlines: as many as terminators, and one more if it ends
/// with none.
pub(super) fn total_lines(
    source: &dyn Source,
    survey: &Survey,
    removed: u64,
    splices: &[Splice],
) -> Result<u64, StoreError> {
    let inserted: u64 = splices.iter().map(|splice| newlines(&splice.inserted)).sum();
    let terminated = (survey.newlines() + inserted).saturating_sub(removed);
    // The last byte that is left decides.
    let mut end = survey.size;
    for splice in splices.iter().rev() {
        if splice.start + splice.removed < end {
            break;
        }
        if let Some(last) = splice.inserted.last() {
            return Ok(terminated + u64::from(*last != b'\n'));
        }
        end = splice.start;
    }
    let mut last = [b'\n'];
    if let Some(offset) = end.checked_sub(1) {
        source.read_at(offset, &mut last)?;
    }
    Ok(terminated + u64::from(last != *b"\n"))
}

/// The terminator of the last line of a file without a final one: none, unless the line is empty, because an empty
/// line without a terminator would not be a line.
fn open_end(text: &str, terminator: Terminator) -> &'static [u8] {
    match lines_of(text.strip_suffix('\n').unwrap_or(text)).last() {
        Some(last) if !last.is_empty() => b"",
        _ => terminator.bytes(),
    }
}

fn or_file(terminator: Terminator, survey: &Survey) -> Terminator {
    if terminator == Terminator::None { survey.terminator() } else { terminator }
}

/// The lines of a caller's text, each with the terminator. One newline at the end of the text is ignored, so the
/// empty text has no lines and `"\n"` has one empty line.
fn ended_lines(text: &str, terminator: Terminator) -> Vec<u8> {
    if text.is_empty() {
        return Vec::new();
    }
    let text = text.strip_suffix('\n').unwrap_or(text);
    let mut bytes = Vec::with_capacity(text.len() + 2);
    for line in lines_of(text) {
        bytes.extend_from_slice(line);
        bytes.extend_from_slice(terminator.bytes());
    }
    bytes
}

/// How many newlines there are.
pub(super) fn newlines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}
