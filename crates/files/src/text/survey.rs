//! One streaming pass over a file: its hash, its line count, whether it is UTF-8, and the content of selected lines.

use std::ops::Range;

use memchr::memchr_iter;

use crate::{
    hash::{Hash, Hasher},
    store::{Source, StoreError},
};

/// The size of the read buffer.
const CHUNK: usize = 256 << 10;

/// The terminator of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Terminator {
    /// `\n`
    Newline,
    /// `\r\n`
    Return,
    /// Nothing: the end of the file.
    None,
}

impl Terminator {
    pub(crate) fn bytes(self) -> &'static [u8] {
        match self {
            Self::Newline => b"\n",
            Self::Return => b"\r\n",
            Self::None => b"",
        }
    }
}

/// One line of a file while the file is read.
pub(crate) struct Line<'a> {
    /// Counted from 1.
    pub(crate) number: u64,
    /// The offset of its first byte.
    pub(crate) start: u64,
    /// Its content without the terminator, or the beginning of a long line.
    pub(crate) content: &'a [u8],
    /// The length of the whole line in bytes, without the terminator.
    pub(crate) length: u64,
    pub(crate) terminator: Terminator,
}

impl Line<'_> {
    /// The offset of the next line.
    pub(crate) fn end(&self) -> u64 {
        self.start + self.length + self.terminator.bytes().len() as u64
    }
}

/// The result of a pass over a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Survey {
    pub(crate) hash: Hash,
    pub(crate) size: u64,
    /// The number of lines.
    pub(crate) lines: u64,
    /// The terminator of the first line.
    pub(crate) first: Terminator,
    /// The terminator of the last line.
    pub(crate) last: Terminator,
    /// The offset of the first byte that is not UTF-8, if there is one.
    pub(crate) not_text: Option<u64>,
}

impl Survey {
    /// Whether the last line has no terminator.
    pub(crate) fn is_open(&self) -> bool {
        self.size > 0 && self.last == Terminator::None
    }

    /// The number of newlines.
    pub(crate) fn newlines(&self) -> u64 {
        self.lines - u64::from(self.is_open())
    }

    /// The terminator for new lines: that of the first line, else `\n`.
    pub(crate) fn terminator(&self) -> Terminator {
        match self.first {
            Terminator::None => Terminator::Newline,
            first => first,
        }
    }
}

/// Counts the lines of a file and nothing else, which takes a fraction of the time of [`survey`].
pub(crate) fn count_lines(source: &dyn Source, has_ended: &dyn Fn() -> bool) -> Result<u64, StoreError> {
    let mut buffer = buffer_for(source);
    let (mut offset, mut newlines, mut last) = (0, 0, b'\n');
    loop {
        if has_ended() {
            return Err(StoreError::Ended);
        }
        let count = source.read_at(offset, &mut buffer)?;
        let chunk = &buffer[..count];
        let Some(end) = chunk.last() else { break };
        newlines += memchr_iter(b'\n', chunk).count() as u64;
        last = *end;
        offset += count as u64;
    }
    Ok(newlines + u64::from(last != b'\n'))
}

fn buffer_for(source: &dyn Source) -> Vec<u8> {
    vec![0; CHUNK.min(usize::try_from(source.size()).unwrap_or(CHUNK)).max(1)]
}

/// Which lines are passed to the callback, and how much of each. A line can be as long as the file, so only its
/// beginning is kept in memory.
#[derive(Clone, Debug)]
pub(crate) struct LineWindow {
    pub(crate) lines: Range<u64>,
    /// Longer lines are cut, but at least one byte more than this is kept, so that they can be recognized as longer.
    pub(crate) longest: usize,
}

impl LineWindow {
    /// No lines.
    pub(crate) const NONE: Self = Self { lines: 0..0, longest: 0 };
}

/// Reads a file once. The lines in the window are passed to `look`.
pub(crate) fn survey(
    source: &dyn Source,
    window: LineWindow,
    has_ended: &dyn Fn() -> bool,
    look: &mut dyn FnMut(Line<'_>) -> Result<(), StoreError>,
) -> Result<Survey, StoreError> {
    struct Look<'a>(&'a mut dyn FnMut(Line<'_>) -> Result<(), StoreError>);
    impl Observer for Look<'_> {
        fn line(&mut self, line: Line<'_>) -> Result<(), StoreError> {
            (self.0)(line)
        }
    }
    survey_with(source, window, has_ended, &mut Look(look))
}

/// What looks at a file while it is read.
pub(crate) trait Observer {
    /// Takes a line of the window.
    fn line(&mut self, line: Line<'_>) -> Result<(), StoreError>;

    /// Takes the next bytes of the file, wherever they were cut.
    fn bytes(&mut self, _bytes: &[u8]) {}
}

/// Reads a file once, and passes all its bytes and the lines in the window to an observer.
pub(crate) fn survey_with(
    source: &dyn Source,
    window: LineWindow,
    has_ended: &dyn Fn() -> bool,
    observer: &mut dyn Observer,
) -> Result<Survey, StoreError> {
    let mut pass = Pass {
        hasher: Hasher::default(),
        text: TextCheck::default(),
        range: window.lines,
        // One byte more than the limit, and one for a carriage return that belongs to the terminator.
        max_kept: window.longest.saturating_add(2),
        number: 1,
        line_start: 0,
        kept: Vec::new(),
        length: 0,
        last_byte: 0,
        first: Terminator::None,
        offset: 0,
        last_two: [0; 2],
    };
    let mut buffer = buffer_for(source);
    loop {
        if has_ended() {
            return Err(StoreError::Ended);
        }
        let count = source.read_at(pass.offset, &mut buffer)?;
        if count == 0 {
            break;
        }
        pass.take(&buffer[..count], observer)?;
    }
    pass.finish(observer)
}

struct Pass {
    hasher: Hasher,
    text: TextCheck,
    range: Range<u64>,
    /// The number of the line that is being read.
    number: u64,
    line_start: u64,
    /// The current line, if it is in the window: its kept beginning, its length so far, and its last byte.
    kept: Vec<u8>,
    length: u64,
    last_byte: u8,
    max_kept: usize,
    first: Terminator,
    offset: u64,
    last_two: [u8; 2],
}

impl Pass {
    fn take(&mut self, chunk: &[u8], observer: &mut dyn Observer) -> Result<(), StoreError> {
        observer.bytes(chunk);
        self.hasher.update(chunk);
        self.text.take(chunk);
        let mut rest = chunk;
        if self.number == 1 && self.first == Terminator::None {
            self.note_first(chunk);
        }
        while !rest.is_empty() {
            if !self.range.contains(&self.number) {
                let begin = self.offset + (chunk.len() - rest.len()) as u64;
                rest = self.skip(rest, begin);
                continue;
            }
            match memchr::memchr(b'\n', rest) {
                Some(end) => {
                    self.hold(&rest[..end]);
                    self.end_line(true, observer)?;
                    rest = &rest[end + 1..];
                }
                None => {
                    self.hold(rest);
                    rest = &[];
                }
            }
        }
        self.offset += chunk.len() as u64;
        for byte in &chunk[chunk.len().saturating_sub(2)..] {
            self.last_two = [self.last_two[1], *byte];
        }
        Ok(())
    }

    fn hold(&mut self, bytes: &[u8]) {
        let capacity = self.max_kept.saturating_sub(self.kept.len());
        self.kept.extend_from_slice(&bytes[..bytes.len().min(capacity)]);
        self.length += bytes.len() as u64;
        self.last_byte = bytes.last().copied().unwrap_or(self.last_byte);
    }

    fn note_first(&mut self, chunk: &[u8]) {
        if let Some(end) = memchr::memchr(b'\n', chunk) {
            let before = if end > 0 { chunk[end - 1] } else { self.last_two[1] };
            self.first = if before == b'\r' { Terminator::Return } else { Terminator::Newline };
        }
    }

    /// Skips lines outside the window; stops at the first line inside it.
    fn skip<'a>(&mut self, chunk: &'a [u8], begin: u64) -> &'a [u8] {
        // Most chunks are wholly before or after the window, where counting newlines is enough and fast.
        if self.number >= self.range.end || chunk.len() as u64 <= self.range.start.saturating_sub(self.number)
        {
            self.count(chunk, begin);
            return &[];
        }
        let wanted = usize::try_from(self.range.start - self.number).unwrap_or(usize::MAX);
        match memchr_iter(b'\n', chunk).nth(wanted.saturating_sub(1)) {
            Some(end) if wanted > 0 => {
                self.number = self.range.start;
                self.line_start = begin + end as u64 + 1;
                &chunk[end + 1..]
            }
            _ => {
                self.count(chunk, begin);
                &[]
            }
        }
    }

    fn count(&mut self, chunk: &[u8], begin: u64) {
        let newlines = memchr_iter(b'\n', chunk).count() as u64;
        if newlines > 0 {
            let last = memchr::memrchr(b'\n', chunk).unwrap_or_default() as u64;
            self.number += newlines;
            self.line_start = begin + last + 1;
        }
    }

    fn end_line(&mut self, has_newline: bool, observer: &mut dyn Observer) -> Result<(), StoreError> {
        let terminator = match (has_newline, self.length, self.last_byte) {
            (false, ..) => Terminator::None,
            (true, 1.., b'\r') => Terminator::Return,
            _ => Terminator::Newline,
        };
        if terminator == Terminator::Return {
            self.length -= 1;
            self.kept.truncate(usize::try_from(self.length).unwrap_or(usize::MAX));
        }
        let (number, start, length) = (self.number, self.line_start, self.length);
        let line = Line { number, start, content: &self.kept, length, terminator };
        let end = line.end();
        observer.line(line)?;
        self.number += 1;
        self.line_start = end;
        self.kept.clear();
        self.length = 0;
        Ok(())
    }

    fn finish(mut self, observer: &mut dyn Observer) -> Result<Survey, StoreError> {
        let ends_open = self.offset > 0 && self.last_two[1] != b'\n';
        if ends_open && self.range.contains(&self.number) {
            self.end_line(false, observer)?;
            self.number -= 1;
        }
        let last = match (self.offset, self.last_two) {
            (0, _) => Terminator::None,
            (_, [b'\r', b'\n']) => Terminator::Return,
            (_, [_, b'\n']) => Terminator::Newline,
            _ => Terminator::None,
        };
        Ok(Survey {
            hash: self.hasher.finish(),
            size: self.offset,
            lines: if ends_open { self.number } else { self.number - 1 },
            first: self.first,
            last,
            not_text: self.text.finish(),
        })
    }
}

/// Finds the first byte that is not UTF-8, wherever the chunks are cut.
#[derive(Default)]
struct TextCheck {
    offset: u64,
    /// The bytes of a character that is not complete yet.
    open: Vec<u8>,
    wrong: Option<u64>,
}

impl TextCheck {
    fn take(&mut self, chunk: &[u8]) {
        if self.wrong.is_some() {
            return;
        }
        let mut rest = chunk;
        // At most three more bytes complete a character.
        while !self.open.is_empty() && !rest.is_empty() {
            self.open.push(rest[0]);
            rest = &rest[1..];
            match std::str::from_utf8(&self.open) {
                Ok(_) => {
                    self.offset += self.open.len() as u64;
                    self.open.clear();
                }
                Err(error) if error.error_len().is_some() => {
                    self.wrong = Some(self.offset);
                    return;
                }
                Err(_) => {}
            }
        }
        match std::str::from_utf8(rest) {
            Ok(_) => self.offset += rest.len() as u64,
            Err(error) => {
                self.offset += error.valid_up_to() as u64;
                match error.error_len() {
                    Some(_) => self.wrong = Some(self.offset),
                    None => self.open = rest[error.valid_up_to()..].to_vec(),
                }
            }
        }
    }

    fn finish(self) -> Option<u64> {
        self.wrong.or((!self.open.is_empty()).then_some(self.offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(crate) struct Bytes<'a>(pub(crate) &'a [u8], pub(crate) usize);

    /// A source that returns at most a given number of bytes at a time.
    impl Source for Bytes<'_> {
        fn size(&self) -> u64 {
            self.0.len() as u64
        }

        fn read_at(&self, offset: u64, buffer: &mut [u8]) -> std::io::Result<usize> {
            let rest = &self.0[usize::try_from(offset).expect("small").min(self.0.len())..];
            let count = rest.len().min(buffer.len()).min(self.1);
            buffer[..count].copy_from_slice(&rest[..count]);
            Ok(count)
        }
    }

    /// The lines of a text, in the plainest way: content and terminator.
    fn plain_lines(text: &[u8]) -> Vec<(Vec<u8>, &'static [u8])> {
        let mut lines = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let end = rest.iter().position(|byte| *byte == b'\n');
            let (line, next) = match end {
                Some(end) => (&rest[..end], &rest[end + 1..]),
                None => (rest, &rest[rest.len()..]),
            };
            lines.push(match (end, line.strip_suffix(b"\r")) {
                (Some(_), Some(line)) => (line.to_vec(), &b"\r\n"[..]),
                (Some(_), None) => (line.to_vec(), &b"\n"[..]),
                (None, _) => (line.to_vec(), &b""[..]),
            });
            rest = next;
        }
        lines
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..Default::default() })]

        #[test]
        fn a_walk_finds_what_a_plain_list_of_lines_has(
            text in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), Just(b'a'), any::<u8>()], 0..60),
            piece in 1usize..9,
            start in 1u64..12,
            length in 0u64..12,
            longest in 0usize..6,
        ) {
            let lines = plain_lines(&text);
            let mut seen = Vec::new();
            let range = start..start + length;
            let window = LineWindow { lines: range.clone(), longest };
            let found = survey(&Bytes(&text, piece), window, &|| false, &mut |line| {
                assert!(line.content.len() as u64 == line.length || line.content.len() > longest);
                seen.push((line.number, line.start, line.content[..line.content.len().min(longest)].to_vec(), line.length, line.terminator.bytes()));
                Ok(())
            });
            let found = found.expect("walks");
            prop_assert_eq!(found.lines, lines.len() as u64);
            prop_assert_eq!(count_lines(&Bytes(&text, piece), &|| false).expect("counts"), found.lines);
            prop_assert_eq!(found.size, text.len() as u64);
            prop_assert_eq!(found.hash, Hash::of(&text));
            prop_assert_eq!(found.not_text, std::str::from_utf8(&text).err().map(|error| error.valid_up_to() as u64));
            prop_assert_eq!(found.first.bytes(), lines.first().map_or(&b""[..], |line| line.1));
            prop_assert_eq!(found.last.bytes(), lines.last().map_or(&b""[..], |line| line.1));
            let mut offset = 0;
            let mut expected = Vec::new();
            for (index, (content, terminator)) in lines.iter().enumerate() {
                if range.contains(&(index as u64 + 1)) {
                    let shown = content[..content.len().min(longest)].to_vec();
                    expected.push((index as u64 + 1, offset, shown, content.len() as u64, *terminator));
                }
                offset += (content.len() + terminator.len()) as u64;
            }
            prop_assert_eq!(seen, expected);
        }
    }
}
