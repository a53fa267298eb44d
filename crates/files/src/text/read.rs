//! Reading lines.

use std::ops::Range;

use super::{
    range::{known_range, resolve_range},
    survey::{LineWindow, count_lines, survey},
};
use crate::{
    hash::Hash,
    store::{Source, StoreError},
    teach,
};

/// The most bytes that are read, which is the size limit of a reply.
const MAX_BYTES: usize = 8 << 20;

/// Some lines of a file.
pub(crate) struct Read {
    pub(crate) content: String,
    pub(crate) hash: Hash,
    pub(crate) total_lines: u64,
    /// The number of the first line in `content`.
    pub(crate) first_line: u64,
}

/// Reads lines exactly as they are stored. Any range of an empty file is empty.
pub(crate) fn read(
    source: &dyn Source,
    lines: [i64; 2],
    has_ended: &dyn Fn() -> bool,
) -> Result<Read, StoreError> {
    let range: Range<u64> = match known_range(lines) {
        Some(range) => range,
        None => match count_lines(source, has_ended)? {
            0 => 0..0,
            total => resolve_range(lines, total).map_err(|problem| teach::bad_range(&problem))?,
        },
    };
    let mut gathered = Vec::new();
    let mut is_too_much = false;
    let sight = LineWindow { lines: range, longest: MAX_BYTES };
    let found = survey(source, sight, has_ended, &mut |line| {
        is_too_much |= gathered.len() + line.content.len() > MAX_BYTES;
        if !is_too_much {
            gathered.extend_from_slice(line.content);
            gathered.extend_from_slice(line.terminator.bytes());
        }
        Ok(())
    })?;
    if let Some(offset) = found.not_text {
        return Err(teach::not_text(offset).into());
    }
    let (mut count, mut first_line) = (0, 1);
    if found.lines > 0 {
        let range = resolve_range(lines, found.lines).map_err(|problem| teach::bad_range(&problem))?;
        (count, first_line) = (range.end - range.start, range.start);
    }
    if is_too_much {
        return Err(teach::too_much(found.lines, found.size, count == 1).into());
    }
    let content = String::from_utf8(gathered).map_err(|_| teach::not_text(0))?;
    Ok(Read { content, hash: found.hash, total_lines: found.lines, first_line })
}
