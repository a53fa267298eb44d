//! Frames: lines out of a byte stream, none of them held beyond the limit.

use std::io::{self, BufRead, BufReader, Read};

use crate::RequestId;

/// How much of an overlong line is remembered at either end.
const REMEMBERED: usize = 256;
const CHUNK: usize = 64 << 10;

/// One line, without its terminator.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A line within the limit.
    Line(&'a [u8]),
    /// A line that was skipped.
    TooLong(Overlong),
}

/// What is known of a line that was skipped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overlong {
    /// Its length.
    pub bytes: u64,
    /// Its first bytes.
    pub head: Vec<u8>,
    /// Its last bytes.
    pub tail: Vec<u8>,
}

/// Where the next line is found.
enum FoundLine {
    /// There is none: the stream has ended.
    End,
    /// In the stream's buffer, in one piece.
    InBuffer,
    /// In `partial`, gathered from several reads.
    Gathered,
    Skipped(Overlong),
}

/// Cuts a byte stream into lines. The last one needs no terminator.
///
/// ```
/// use pintle_rpc::{Frame, FrameReader};
///
/// let mut frames = FrameReader::new(&b"one\ntoo long\ntwo"[..], 5);
/// assert_eq!(frames.next_frame().unwrap(), Some(Frame::Line(b"one")));
/// assert!(matches!(frames.next_frame().unwrap(), Some(Frame::TooLong(line)) if line.bytes == 8));
/// assert_eq!(frames.next_frame().unwrap(), Some(Frame::Line(b"two")));
/// assert_eq!(frames.next_frame().unwrap(), None);
/// ```
pub struct FrameReader<R> {
    stream: BufReader<R>,
    /// The line so far, where it does not lie in one piece in the stream's buffer.
    partial: Vec<u8>,
    /// What of the stream's buffer the last frame lies in.
    lent: usize,
    limit: usize,
}

impl<R: Read> FrameReader<R> {
    /// Lines of more than `limit` bytes are skipped.
    pub fn new(stream: R, limit: usize) -> Self {
        Self { stream: BufReader::with_capacity(CHUNK, stream), partial: Vec::new(), lent: 0, limit }
    }

    /// The next line, or `None` at the end of the stream.
    pub fn next_frame(&mut self) -> io::Result<Option<Frame<'_>>> {
        Ok(match self.find_line()? {
            FoundLine::End => None,
            FoundLine::InBuffer => Some(Frame::Line(&self.stream.buffer()[..self.lent - 1])),
            FoundLine::Gathered => Some(Frame::Line(&self.partial)),
            FoundLine::Skipped(line) => Some(Frame::TooLong(line)),
        })
    }

    fn find_line(&mut self) -> io::Result<FoundLine> {
        self.stream.consume(std::mem::take(&mut self.lent));
        self.partial.clear();
        self.partial.shrink_to(CHUNK);
        loop {
            let available = self.fill()?;
            if available.is_empty() {
                return Ok(if self.partial.is_empty() { FoundLine::End } else { FoundLine::Gathered });
            }
            let end = memchr::memchr(b'\n', available);
            let piece = end.unwrap_or(available.len());
            if self.partial.len() + piece > self.limit {
                return self.skip_line().map(FoundLine::Skipped);
            }
            if end.is_some() && self.partial.is_empty() {
                self.lent = piece + 1;
                return Ok(FoundLine::InBuffer);
            }
            self.partial.extend_from_slice(&self.stream.buffer()[..piece]);
            self.stream.consume(piece + usize::from(end.is_some()));
            if end.is_some() {
                return Ok(FoundLine::Gathered);
            }
        }
    }

    fn skip_line(&mut self) -> io::Result<Overlong> {
        let mut line = Overlong::default();
        line.append(&std::mem::take(&mut self.partial));
        loop {
            let available = self.fill()?;
            if available.is_empty() {
                return Ok(line);
            }
            let end = memchr::memchr(b'\n', available);
            let piece = end.unwrap_or(available.len());
            line.append(&self.stream.buffer()[..piece]);
            self.stream.consume(piece + usize::from(end.is_some()));
            if end.is_some() {
                return Ok(line);
            }
        }
    }

    fn fill(&mut self) -> io::Result<&[u8]> {
        loop {
            match self.stream.fill_buf() {
                Ok(_) => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(self.stream.buffer())
    }
}

impl Overlong {
    /// The id of the request that the line would have been, if either end shows it: some clients write it
    /// first, some last.
    pub fn shown_id(&self) -> Option<RequestId> {
        let head = String::from_utf8_lossy(&self.head);
        let tail = String::from_utf8_lossy(&self.tail);
        id_in_head(&head).or_else(|| id_in_tail(&tail))
    }

    fn append(&mut self, piece: &[u8]) {
        self.bytes += piece.len() as u64;
        let missing = REMEMBERED - self.head.len();
        self.head.extend_from_slice(&piece[..missing.min(piece.len())]);
        let kept = &piece[piece.len().saturating_sub(REMEMBERED)..];
        let surplus = (self.tail.len() + kept.len()).saturating_sub(REMEMBERED);
        self.tail.drain(..surplus);
        self.tail.extend_from_slice(kept);
    }
}

/// The value of the member `id` of the outer object.
fn id_in_head(head: &str) -> Option<RequestId> {
    let mut depth = 0;
    let mut rest = head;
    loop {
        let at = rest.find(['"', '{', '[', '}', ']'])?;
        match rest.as_bytes()[at] {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            _ => {
                let length = string_length(&rest[at..])?;
                let (text, after) = rest[at..].split_at(length);
                let value = after.trim_start().strip_prefix(':');
                if let (1, "\"id\"", Some(value)) = (depth, text, value) {
                    return id_at_start(value.trim_start()).map(|(id, _)| id);
                }
                rest = after;
                continue;
            }
        }
        rest = &rest[at + 1..];
    }
}

/// The value of the member `id`, if it is the last of the outer object.
fn id_in_tail(tail: &str) -> Option<RequestId> {
    let (_, value) = tail.rsplit_once("\"id\"")?;
    let value = value.trim_start().strip_prefix(':')?.trim_start();
    let (id, after) = id_at_start(value)?;
    (after.trim() == "}").then_some(id)
}

/// A string or a number, and what follows it. Cut off, it is none.
fn id_at_start(text: &str) -> Option<(RequestId, &str)> {
    let length = match text.as_bytes().first()? {
        b'"' => string_length(text)?,
        _ => text.find(|character: char| !matches!(character, '0'..='9' | '-' | '+' | '.' | 'e' | 'E'))?,
    };
    let (id, after) = text.split_at(length);
    Some((RequestId::from_json(id)?, after))
}

/// The length of the string that `text` begins with, quotes included.
fn string_length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 1;
    while *bytes.get(at)? != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    Some(at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Gives its bytes in pieces of the given sizes.
    struct Pieces {
        bytes: Vec<u8>,
        sizes: Vec<usize>,
    }

    impl Read for Pieces {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let size = self.sizes.pop().unwrap_or(usize::MAX).clamp(1, buffer.len());
            let size = size.min(self.bytes.len());
            buffer[..size].copy_from_slice(&self.bytes[..size]);
            self.bytes.drain(..size);
            Ok(size)
        }
    }

    fn frames(bytes: &[u8], sizes: Vec<usize>, limit: usize) -> Vec<Result<Vec<u8>, Overlong>> {
        let mut reader = FrameReader::new(Pieces { bytes: bytes.to_vec(), sizes }, limit);
        let mut found = Vec::new();
        while let Some(frame) = reader.next_frame().expect("reads") {
            found.push(match frame {
                Frame::Line(line) => Ok(line.to_vec()),
                Frame::TooLong(line) => Err(line),
            });
        }
        found
    }

    proptest! {
        #[test]
        fn lines_are_the_same_however_the_stream_is_cut(
            lines in prop::collection::vec(prop::collection::vec(0u8..10, 0..700), 0..8),
            sizes in prop::collection::vec(1usize..300, 0..40),
            limit in 1usize..600,
            terminated: bool,
        ) {
            let mut bytes = lines.iter().map(|line| line.iter().map(|b| b + 20).collect::<Vec<_>>())
                .collect::<Vec<_>>().join(&b'\n');
            if terminated { bytes.push(b'\n'); }
            let mut expected: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
            if expected.last().is_some_and(|last| last.is_empty()) { expected.pop(); }
            let found = frames(&bytes, sizes, limit);
            prop_assert_eq!(found.len(), expected.len());
            for (found, expected) in found.into_iter().zip(expected) {
                match found {
                    Ok(line) => prop_assert!(line.len() <= limit && line == expected),
                    Err(line) => {
                        prop_assert!(expected.len() > limit);
                        prop_assert_eq!(line.bytes as usize, expected.len());
                        prop_assert_eq!(&line.head[..], &expected[..expected.len().min(REMEMBERED)]);
                        let tail = expected.len().saturating_sub(REMEMBERED);
                        prop_assert_eq!(&line.tail[..], &expected[tail..]);
                    }
                }
            }
        }
    }

    #[test]
    fn the_id_of_a_skipped_line_is_found_at_either_end_of_the_outer_object_only() {
        let long = "x".repeat(1000);
        for (line, expected) in [
            (format!(r#"{{"jsonrpc":"2.0","id":7,"params":{{"x":"{long}"}}}}"#), Some("7")),
            (format!(r#"{{"params":{{"x":"{long}"}},"jsonrpc":"2.0","id":"a\"b"}}"#), Some(r#""a\"b""#)),
            (format!(r#"{{"params":{{"x":"{long}"}}, "id" : 1e3 }} "#), Some("1e3")),
            (format!(r#"{{"params":{{"id":5,"x":"{long}"}}}}"#), None),
            (format!(r#"{{"params":{{"x":"{long}","id":5}}}}"#), None),
            (format!(r#"{{"note":"\"id\":9","params":"{long}"}}"#), None),
            (format!(r#"{{"id":null,"params":"{long}"}}"#), None),
            (format!(r#"{{"id":"{long}"}}"#), None),
        ] {
            let mut overlong = Overlong::default();
            overlong.append(line.as_bytes());
            assert_eq!(overlong.shown_id().map(|id| id.raw().to_owned()).as_deref(), expected, "{line}");
        }
    }

    #[test]
    fn an_endless_line_is_never_held() {
        let endless = io::repeat(b'x').take(1 << 28).chain(&b"\nnext\n"[..]);
        let mut reader = FrameReader::new(endless, 1 << 20);
        match reader.next_frame().expect("reads") {
            Some(Frame::TooLong(line)) => assert_eq!(line.bytes, 1 << 28),
            other => panic!("{other:?}"),
        }
        assert!(reader.partial.capacity() <= CHUNK);
        assert_eq!(reader.next_frame().expect("reads"), Some(Frame::Line(b"next")));
    }
}
