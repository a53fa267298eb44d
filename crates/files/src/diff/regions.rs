//! The ranges of whole lines that splices change.

use super::lines::{Segment, count, end_of_line, gather, is_boundary, start_of_line_before};
use crate::store::{Source, Splice, StoreError};

/// Regions of up to this size show only the lines that differ.
const MAX_COMPARED: u64 = 64 << 10;

/// A range of whole lines that splices change.
#[derive(Debug)]
pub(super) struct Region<'a> {
    pub(super) start: u64,
    pub(super) end: u64,
    /// The number of its first line.
    pub(super) line: u64,
    /// How many lines it has.
    pub(super) old_lines: u64,
    /// How many lines take their place.
    pub(super) new_lines: u64,
    /// What takes their place.
    pub(super) new: Vec<Segment<'a>>,
    /// How many splices it has.
    pub(super) changes: u64,
}

impl Region<'_> {
    pub(super) fn growth(&self) -> i64 {
        i64::try_from(self.new_lines).unwrap_or_default() - i64::try_from(self.old_lines).unwrap_or_default()
    }
}

/// The regions of splices, in their order. One in which nothing differs is left out.
pub(super) fn regions<'a>(
    source: &dyn Source,
    splices: &'a [Splice],
    lines: &[u64],
    has_ended: &dyn Fn() -> bool,
) -> Result<Vec<Region<'a>>, StoreError> {
    let mut regions: Vec<Region<'a>> = Vec::new();
    for (splice, line) in splices.iter().zip(lines) {
        if has_ended() {
            return Err(StoreError::Ended);
        }
        let region = match regions.last_mut().filter(|region| splice.start <= region.end) {
            Some(region) => {
                region.changes += 1;
                region
            }
            None => {
                let start = match starts_line(source, splice.start)? {
                    true => splice.start,
                    false => start_of_line_before(source, splice.start)?,
                };
                regions.push(Region {
                    start,
                    end: start,
                    line: *line,
                    old_lines: 0,
                    new_lines: 0,
                    new: vec![Segment::Kept(start, start)],
                    changes: 1,
                });
                let Some(region) = regions.last_mut() else { continue };
                region
            }
        };
        region.replace(splice);
        if !is_boundary(source, region.end)? {
            region.extend_to(end_of_line(source, region.end)?);
        }
        // A line that has lost its newline goes on with the next one.
        if region.is_unended(source)? && region.end < source.size() {
            region.extend_to(end_of_line(source, region.end)?);
        }
    }
    for region in &mut regions {
        region.compare(source, has_ended)?;
    }
    regions.retain(|region| region.old_lines + region.new_lines > 0);
    Ok(regions)
}

/// Whether a line begins at an offset. At the end of the file one does only behind a newline.
fn starts_line(source: &dyn Source, offset: u64) -> Result<bool, StoreError> {
    match offset {
        0 => Ok(true),
        offset if offset < source.size() => is_boundary(source, offset),
        offset => Ok(Segment::Kept(0, offset).last(source)? == b'\n'),
    }
}

impl<'a> Region<'a> {
    /// Replaces a part of the region, from the end of the last such part on.
    fn replace(&mut self, splice: &'a Splice) {
        let end = splice.start + splice.removed;
        if let Some(Segment::Kept(start, _)) = self.new.pop() {
            self.new.push(Segment::Kept(start, splice.start));
        }
        self.new.push(Segment::New(&splice.inserted));
        self.new.push(Segment::Kept(end, self.end.max(end)));
        self.end = self.end.max(end);
    }

    fn extend_to(&mut self, end: u64) {
        if let Some(Segment::Kept(_, last)) = self.new.last_mut() {
            *last = end.max(*last);
        }
        self.end = self.end.max(end);
    }

    /// Whether the new text does not end with a newline.
    fn is_unended(&self, source: &dyn Source) -> Result<bool, StoreError> {
        match self.new.iter().rev().find(|segment| segment.length() > 0) {
            Some(last) => Ok(last.last(source)? != b'\n'),
            None => Ok(false),
        }
    }

    /// Counts the lines, and leaves out those at both ends that do not differ, unless there are too many.
    fn compare(&mut self, source: &dyn Source, has_ended: &dyn Fn() -> bool) -> Result<(), StoreError> {
        let old = [Segment::Kept(self.start, self.end)];
        let size: u64 = self.new.iter().chain(&old).map(|segment| segment.length()).sum();
        if size <= MAX_COMPARED {
            let (before, after) = (gather(source, &old)?, gather(source, &self.new)?);
            let lines =
                |text: &'_ [u8]| text.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
            let (old_lines, new_lines): (Vec<Vec<u8>>, Vec<Vec<u8>>) = (lines(&before), lines(&after));
            let is_same = |(old, new): &(&Vec<u8>, &Vec<u8>)| old == new;
            let first = old_lines.iter().zip(&new_lines).take_while(is_same).count();
            let (old_rest, new_rest) = (&old_lines[first..], &new_lines[first..]);
            let last = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(is_same).count();
            let bytes = |lines: &[Vec<u8>]| lines.iter().map(|line| line.len() as u64).sum::<u64>();
            let skipped = bytes(&old_lines[..first]);
            let left = bytes(&old_rest[old_rest.len() - last..]);
            self.new = trimmed(&self.new, skipped, left);
            (self.start, self.end) = (self.start + skipped, self.end - left);
            self.line += first as u64;
            self.old_lines = (old_rest.len() - last) as u64;
            self.new_lines = (new_rest.len() - last) as u64;
            return Ok(());
        }
        self.old_lines = count(source, &old, has_ended)?;
        self.new_lines = count(source, &self.new, has_ended)?;
        Ok(())
    }
}

/// A text without so many bytes at its start and at its end.
fn trimmed<'a>(segments: &[Segment<'a>], skipped: u64, left: u64) -> Vec<Segment<'a>> {
    let total: u64 = segments.iter().map(|segment| segment.length()).sum();
    let (first, end) = (skipped, total - left);
    let mut offset = 0;
    let cut = segments.iter().filter_map(|segment| {
        let (begin, length) = (offset, segment.length());
        offset += length;
        let from = first.clamp(begin, begin + length) - begin;
        let to = end.clamp(begin, begin + length) - begin;
        (from < to).then(|| match *segment {
            Segment::Kept(start, _) => Segment::Kept(start + from, start + to),
            Segment::New(bytes) => Segment::New(&bytes[from as usize..to as usize]),
        })
    });
    cut.collect()
}
