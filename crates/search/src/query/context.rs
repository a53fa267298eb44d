//! Context lines: the lines before and after a hit.

use std::{fs::File, os::unix::fs::FileExt};

use super::{
    hit::{ResultBudget, cut_text},
    text::LocatedHit,
};
use pintle_root::Root;

use crate::snapshot::SearchError;

/// How many context lines to show before and after a hit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ContextLines {
    pub(crate) before: usize,
    pub(crate) after: usize,
}

impl ContextLines {
    pub(crate) fn is_none(self) -> bool {
        self == Self::default()
    }
}

/// How many bytes are read on either side of a hit. A line that is longer would be cut anyway.
const REACH: u64 = 64 << 10;

/// Adds the context lines of each hit, unless its file has changed since it was searched.
pub(crate) fn add(
    root: &Root,
    hits: &mut [LocatedHit],
    around: ContextLines,
    budget: &mut ResultBudget,
) -> Result<(), SearchError> {
    for of_file in hits.chunk_by_mut(|one, next| one.hit.raw_path == next.hit.raw_path) {
        let Ok(version) = root.open_version(&of_file[0].hit.raw_path) else { continue };
        if version.stamp != of_file[0].stamp {
            continue;
        }
        for found in of_file {
            let before = read(&version.file, found.start.saturating_sub(REACH), found.start);
            found.hit.before = lines_before(&before, around.before);
            let after = read(&version.file, found.end, (found.end + REACH).min(version.stamp.size));
            found.hit.after = lines_after(&after, around.after);
            budget.charge(&found.hit)?;
        }
    }
    Ok(())
}

fn read(file: &File, start: u64, end: u64) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(end.saturating_sub(start)).unwrap_or(0)];
    let mut length = 0;
    while length < bytes.len() {
        match file.read_at(&mut bytes[length..], start + length as u64) {
            Ok(0) | Err(_) => break,
            Ok(count) => length += count,
        }
    }
    bytes.truncate(length);
    bytes
}

/// The last `count` lines of a text that ends where the hit's line starts.
pub(crate) fn lines_before(text: &[u8], count: usize) -> Vec<String> {
    let Some(text) = text.strip_suffix(b"\n") else { return Vec::new() };
    let mut lines = text.rsplit(|byte| *byte == b'\n').take(count).map(shown).collect::<Vec<_>>();
    lines.reverse();
    lines
}

/// The first `count` lines of a text that starts where the hit's line ends.
pub(crate) fn lines_after(text: &[u8], count: usize) -> Vec<String> {
    let text = text.strip_prefix(b"\r").unwrap_or(text);
    let Some(text) = text.strip_prefix(b"\n") else { return Vec::new() };
    text.split_inclusive(|byte| *byte == b'\n')
        .take(count)
        .map(|line| shown(line.strip_suffix(b"\n").unwrap_or(line)))
        .collect()
}

fn shown(line: &[u8]) -> String {
    cut_text(line, 1).0
}
