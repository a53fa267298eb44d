//! Lines for a diff: read from a file and from what is inserted, and cut if they are long.

use std::ops::ControlFlow;

use super::MAX_LINE;
use crate::store::{Source, StoreError};

/// How many bytes are read at once.
const CHUNK: usize = 16 << 10;

/// A part of a text: bytes that stay, from one offset to another, or new ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Segment<'a> {
    Kept(u64, u64),
    New(&'a [u8]),
}

impl Segment<'_> {
    pub(super) fn length(self) -> u64 {
        match self {
            Self::Kept(start, end) => end - start,
            Self::New(bytes) => bytes.len() as u64,
        }
    }

    /// Its last byte. It must not be empty.
    pub(super) fn last(self, source: &dyn Source) -> Result<u8, StoreError> {
        match self {
            Self::Kept(_, end) => byte_at(source, end - 1),
            Self::New(bytes) => Ok(bytes.last().copied().unwrap_or_default()),
        }
    }
}

/// A line for a diff.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct DiffLine {
    /// Its beginning.
    kept: Vec<u8>,
    /// How many bytes it has, with its newline.
    length: u64,
    has_newline: bool,
}

impl DiffLine {
    pub(super) fn of(line: &[u8]) -> Self {
        let mut this = Self::default();
        this.add(line);
        this.has_newline = line.last() == Some(&b'\n');
        this
    }

    fn add(&mut self, bytes: &[u8]) {
        let room = (MAX_LINE + 2).saturating_sub(self.kept.len());
        self.kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.length += bytes.len() as u64;
    }

    /// Writes it as git does. A long line is cut, with its length.
    pub(super) fn write(&self, sign: char, text: &mut String) {
        text.push(sign);
        let content = self.length - u64::from(self.has_newline);
        if content > MAX_LINE as u64 + 1
            || content > MAX_LINE as u64 && self.kept.get(MAX_LINE) != Some(&b'\r')
        {
            let mut end = MAX_LINE;
            while self.kept.get(end).is_some_and(|byte| byte & 0xc0 == 0x80) {
                end -= 1;
            }
            text.push_str(&String::from_utf8_lossy(&self.kept[..end]));
            text.push_str(&format!("… [cut: the line has {content} bytes]\n"));
        } else {
            text.push_str(&String::from_utf8_lossy(&self.kept));
            if !self.has_newline {
                text.push('\n');
            }
        }
        if !self.has_newline {
            text.push_str("\\ No newline at end of file\n");
        }
    }
}

/// Passes the lines of a text to `take` until it breaks.
pub(super) fn for_each_line(
    source: &dyn Source,
    segments: &[Segment<'_>],
    has_ended: &dyn Fn() -> bool,
    take: &mut dyn FnMut(&DiffLine) -> ControlFlow<()>,
) -> Result<(), StoreError> {
    let mut line = DiffLine::default();
    for_each_chunk(source, segments, has_ended, &mut |chunk| {
        for part in chunk.split_inclusive(|byte| *byte == b'\n') {
            line.add(part);
            if part.last() == Some(&b'\n') {
                line.has_newline = true;
                take(&std::mem::take(&mut line))?;
            }
        }
        ControlFlow::Continue(())
    })?;
    if line.length > 0 {
        let _ = take(&line);
    }
    Ok(())
}

/// How many lines a text has.
pub(super) fn count(
    source: &dyn Source,
    segments: &[Segment<'_>],
    has_ended: &dyn Fn() -> bool,
) -> Result<u64, StoreError> {
    let (mut newlines, mut last) = (0, b'\n');
    for_each_chunk(source, segments, has_ended, &mut |chunk| {
        newlines += memchr::memchr_iter(b'\n', chunk).count() as u64;
        last = chunk.last().copied().unwrap_or(last);
        ControlFlow::Continue(())
    })?;
    Ok(newlines + u64::from(last != b'\n'))
}

fn for_each_chunk(
    source: &dyn Source,
    segments: &[Segment<'_>],
    has_ended: &dyn Fn() -> bool,
    take: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
) -> Result<(), StoreError> {
    for segment in segments {
        let flow = match *segment {
            Segment::New(bytes) => take(bytes),
            Segment::Kept(start, end) => chunks_between(source, start, end, has_ended, take)?,
        };
        if flow.is_break() {
            break;
        }
    }
    Ok(())
}

fn chunks_between(
    source: &dyn Source,
    start: u64,
    end: u64,
    has_ended: &dyn Fn() -> bool,
    take: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
) -> Result<ControlFlow<()>, StoreError> {
    let mut offset = start;
    let mut buffer = vec![0; CHUNK.min(usize::try_from(end - start).unwrap_or(CHUNK))];
    while offset < end {
        if has_ended() {
            return Err(StoreError::Ended);
        }
        let wanted = usize::try_from(end - offset).unwrap_or(CHUNK).min(buffer.len());
        let count = source.read_at(offset, &mut buffer[..wanted])?;
        if count == 0 {
            return Err(StoreError::Changed);
        }
        if take(&buffer[..count]).is_break() {
            return Ok(ControlFlow::Break(()));
        }
        offset += count as u64;
    }
    Ok(ControlFlow::Continue(()))
}

fn byte_at(source: &dyn Source, offset: u64) -> Result<u8, StoreError> {
    let mut byte = [0];
    match source.read_at(offset, &mut byte)? {
        0 => Err(StoreError::Changed),
        _ => Ok(byte[0]),
    }
}

/// Whether a line begins at an offset, or the file ends there.
pub(super) fn is_boundary(source: &dyn Source, offset: u64) -> Result<bool, StoreError> {
    Ok(offset == 0 || offset >= source.size() || byte_at(source, offset - 1)? == b'\n')
}

/// The offset at which the line begins that has the byte before an offset.
pub(super) fn start_of_line_before(source: &dyn Source, offset: u64) -> Result<u64, StoreError> {
    let mut end = offset.saturating_sub(1);
    let mut buffer = vec![0; CHUNK];
    while end > 0 {
        let start = end.saturating_sub(CHUNK as u64);
        let part = &mut buffer[..usize::try_from(end - start).unwrap_or(CHUNK)];
        read_exactly(source, start, part)?;
        if let Some(newline) = memchr::memrchr(b'\n', part) {
            return Ok(start + newline as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

/// The offset behind the line that has an offset.
pub(super) fn end_of_line(source: &dyn Source, offset: u64) -> Result<u64, StoreError> {
    let mut offset = offset;
    let mut buffer = vec![0; CHUNK];
    loop {
        let count = source.read_at(offset, &mut buffer)?;
        if count == 0 {
            return Ok(offset);
        }
        if let Some(newline) = memchr::memchr(b'\n', &buffer[..count]) {
            return Ok(offset + newline as u64 + 1);
        }
        offset += count as u64;
    }
}

fn read_exactly(source: &dyn Source, offset: u64, buffer: &mut [u8]) -> Result<(), StoreError> {
    let mut done = 0;
    while done < buffer.len() {
        match source.read_at(offset + done as u64, &mut buffer[done..])? {
            0 => return Err(StoreError::Changed),
            count => done += count,
        }
    }
    Ok(())
}

/// The bytes of a text. They must be few.
pub(super) fn gather(source: &dyn Source, segments: &[Segment<'_>]) -> Result<Vec<u8>, StoreError> {
    let mut bytes = Vec::new();
    for segment in segments {
        match *segment {
            Segment::New(new) => bytes.extend_from_slice(new),
            Segment::Kept(start, end) => {
                let begin = bytes.len();
                bytes.resize(begin + usize::try_from(end - start).unwrap_or_default(), 0);
                read_exactly(source, start, &mut bytes[begin..])?;
            }
        }
    }
    Ok(bytes)
}

/// Where the lines before an offset begin, at most so many, and how many they are.
pub(super) fn context_start(source: &dyn Source, offset: u64, lines: u64) -> Result<(u64, u64), StoreError> {
    let (mut start, mut count) = (offset, 0);
    while start > 0 && count < lines {
        start = start_of_line_before(source, start)?;
        count += 1;
    }
    Ok((start, count))
}

/// Where the lines behind an offset end, at most so many, and how many they are.
pub(super) fn context_end(source: &dyn Source, offset: u64, lines: u64) -> Result<(u64, u64), StoreError> {
    let (mut end, mut count) = (offset, 0);
    while end < source.size() && count < lines {
        end = end_of_line(source, end)?;
        count += 1;
    }
    Ok((end, count))
}
