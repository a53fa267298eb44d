//! Unified diffs of edits, made from the splices and not by comparing files. Only the changed places and a few lines
//! around them are read, so the size of a file does not matter.
//!
//! A **region** is a range of whole lines that splices change. Regions with at most six lines between them share a
//! **hunk**.

mod lines;
mod regions;

use std::{cell::Cell, ops::ControlFlow};

use pintle_contract::WorkspacePath;

use self::{
    lines::{DiffLine, Segment, context_end, context_start, for_each_line},
    regions::{Region, regions},
};
use crate::store::{Source, Splice, StoreError};

/// The most bytes of a diff that a call returns.
const MAX_BYTES: usize = 20 << 10;
/// The most bytes of a line.
const MAX_LINE: usize = 500;
/// How many unchanged lines are shown around a change.
const CONTEXT: u64 = 3;

/// The diff of one file, up to the limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FileDiff {
    /// The lines that name the file.
    header: String,
    /// The hunks, each with the number of its changes.
    hunks: Vec<(String, u64)>,
    /// How many changes are not among them, because the limit was reached.
    more: u64,
}

/// The diff of splices, which do not overlap and are sorted; `lines` are the numbers of the lines in which they begin.
pub(crate) fn of_edit(
    source: &dyn Source,
    path: &WorkspacePath,
    splices: &[Splice],
    lines: &[u64],
    has_ended: &dyn Fn() -> bool,
) -> Result<FileDiff, StoreError> {
    let mut diff = FileDiff {
        header: format!("--- {}\n+++ {}\n", quoted('a', path), quoted('b', path)),
        ..FileDiff::default()
    };
    let regions = regions(source, splices, lines, has_ended)?;
    let (mut rest, mut bytes, mut moved) = (regions.as_slice(), 0, 0);
    while let Some(first) = rest.first() {
        let mut count = 1;
        while let Some([one, next]) = rest.get(count - 1..=count)
            && next.line - (one.line + one.old_lines) <= 2 * CONTEXT
        {
            count += 1;
        }
        let (together, others) = rest.split_at(count);
        let changes = together.iter().map(|region| region.changes).sum();
        if bytes > MAX_BYTES {
            diff.more += changes;
        } else {
            let text = hunk(source, first, together, moved, has_ended)?;
            bytes += text.len();
            diff.hunks.push((text, changes));
        }
        moved += together.iter().map(Region::growth).sum::<i64>();
        rest = others;
    }
    Ok(diff)
}

/// The diff of a file that is created.
pub(crate) fn of_creation(path: &WorkspacePath, content: &[u8]) -> FileDiff {
    let name = quoted('b', path);
    if content.is_empty() {
        // Without hunks only git's own header says that a file is created. The empty line ends it.
        // The names in it stand without a tab at their ends.
        let (old, new) = (quoted('a', path), name.trim_end_matches('\t'));
        let header = format!("diff --git {} {new}\nnew file mode 100644\n\n", old.trim_end_matches('\t'));
        return FileDiff { header, ..FileDiff::default() };
    }
    let count = content.split_inclusive(|byte| *byte == b'\n').count() as u64;
    let mut text = format!("@@ -0,0 +{} @@\n", span(1, count));
    for line in content.split_inclusive(|byte| *byte == b'\n') {
        DiffLine::of(line).write('+', &mut text);
        if text.len() > MAX_BYTES {
            break;
        }
    }
    FileDiff { header: format!("--- /dev/null\n+++ {name}\n"), hunks: vec![(text, 1)], more: 0 }
}

/// One diff of several files, cut at the limit.
pub(crate) fn join(diffs: impl IntoIterator<Item = FileDiff>) -> String {
    let (mut text, mut more) = (String::new(), 0);
    for diff in diffs {
        let has_hunks = !diff.hunks.is_empty();
        if more > 0 || text.len() + diff.header.len() > MAX_BYTES {
            more += diff.more + diff.hunks.iter().map(|(_, changes)| changes).sum::<u64>();
            more += u64::from(!has_hunks && diff.header.starts_with("diff"));
            continue;
        }
        if has_hunks || diff.header.starts_with("diff") {
            text.push_str(&diff.header);
        }
        for (hunk, changes) in diff.hunks {
            let room = MAX_BYTES.saturating_sub(text.len());
            if more == 0 && hunk.len() <= room {
                text.push_str(&hunk);
                continue;
            }
            if more == 0 {
                // A hunk that does not fit is shown as far as it does, in whole lines.
                let fitting = hunk.as_bytes()[..room.min(hunk.len())].iter().rposition(|byte| *byte == b'\n');
                let fitting = fitting.map_or(0, |end| end + 1);
                // Its first line alone says nothing.
                if hunk[..fitting].matches('\n').count() > 1 {
                    text.push_str(&hunk[..fitting]);
                }
            }
            more += changes;
        }
        more += diff.more;
    }
    if more > 0 {
        let changes = if more == 1 { "1 change is" } else { &format!("{more} changes are") };
        text.push_str(&format!("[the diff is cut here: {changes} not shown, or not wholly]\n"));
    }
    text
}

/// Writes regions that share a hunk. `moved` is by how many lines the changes before them move it.
fn hunk(
    source: &dyn Source,
    first: &Region<'_>,
    together: &[Region<'_>],
    moved: i64,
    has_ended: &dyn Fn() -> bool,
) -> Result<String, StoreError> {
    let (mut offset, before) = context_start(source, first.start, CONTEXT)?;
    let last = together.last().unwrap_or(first);
    let (end, after) = context_end(source, last.end, CONTEXT)?;
    let from = first.line - before;
    let old = last.line + last.old_lines + after - from;
    let growth: i64 = together.iter().map(Region::growth).sum();
    let new = old.saturating_add_signed(growth);
    let mut text = format!("@@ -{} +{} @@\n", span(from, old), span(from.saturating_add_signed(moved), new));
    // What is behind the limit is not shown.
    let is_full = Cell::new(false);
    let mut write = |sign: char, segments: &[Segment<'_>]| {
        for_each_line(source, segments, has_ended, &mut |line| {
            line.write(sign, &mut text);
            is_full.set(text.len() > 2 * MAX_BYTES);
            if is_full.get() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
    };
    for region in together.iter().take_while(|_| !is_full.get()) {
        write(' ', &[Segment::Kept(offset, region.start)])?;
        write('-', &[Segment::Kept(region.start, region.end)])?;
        write('+', &region.new)?;
        offset = region.end;
    }
    write(' ', &[Segment::Kept(offset, end)])?;
    Ok(text)
}

/// The first line and the number of lines, as the header of a hunk has them.
fn span(first: u64, count: u64) -> String {
    match count {
        0 => format!("{},0", first - 1),
        1 => first.to_string(),
        count => format!("{first},{count}"),
    }
}

/// A path as git writes it: quoted if it has a character that would end or garble the line.
fn quoted(side: char, path: &WorkspacePath) -> String {
    let path = path.as_str();
    let is_odd = |letter: char| letter.is_control() || letter == '"';
    if !path.contains(is_odd) {
        // A tab ends a name that has a space in it.
        return format!("{side}/{path}{}", if path.contains(' ') { "\t" } else { "" });
    }
    let mut quoted = format!("\"{side}/");
    for byte in path.bytes() {
        match byte {
            b'"' => quoted.push_str("\\\""),
            b' '..=b'~' => quoted.push(char::from(byte)),
            byte => quoted.push_str(&format!("\\{byte:03o}")),
        }
    }
    quoted + "\""
}

#[cfg(test)]
mod tests;
