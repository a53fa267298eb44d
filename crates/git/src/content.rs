//! Whether the content of a file is that of a blob.

use std::{
    fs::File,
    io::{Read, Seek},
};

use crate::{
    attributes::Conversion,
    hash::{HashKind, ObjectId},
    problem::{HasEnded, Problem, go_on},
};

/// A blob that something is compared with.
pub(crate) struct Blob<'a> {
    pub(crate) id: &'a ObjectId,
    pub(crate) hash: HashKind,
}

impl Blob<'_> {
    /// Whether bytes are its content.
    pub(crate) fn is(&self, content: &[u8]) -> bool {
        self.hash.name_of("blob", content) == *self.id
    }

    /// Whether a file, of a size, would become this blob. A file that changes meanwhile, or cannot be read, would not.
    pub(crate) fn is_file(
        &self,
        file: &mut File,
        size: u64,
        conversion: Conversion,
        has_ended: HasEnded<'_>,
    ) -> Result<bool, Problem> {
        let mut counts = Counts::default();
        let mut hasher = self.hash.object_hasher("blob", size);
        let is_read = read(file, has_ended, &mut |bytes| {
            hasher.update(bytes);
            if conversion != Conversion::None {
                counts.count(bytes);
            }
        })?;
        if !is_read {
            return Ok(false);
        }
        let is_same = hasher.finish() == *self.id;
        let is_converted = match conversion {
            Conversion::None => false,
            Conversion::Always => counts.pairs > 0,
            // What came in with such line endings stays as it is.
            Conversion::Text => counts.pairs > 0 && !is_same && !counts.is_binary(),
        };
        if !is_converted || file.rewind().is_err() {
            return Ok(is_same);
        }
        let mut hasher = self.hash.object_hasher("blob", size.saturating_sub(counts.pairs));
        let mut is_after_return = false;
        let is_read = read(file, has_ended, &mut |bytes| {
            is_after_return = without_returns(bytes, is_after_return, &mut |piece| hasher.update(piece));
        })?;
        if is_after_return {
            hasher.update(b"\r");
        }
        Ok(is_read && hasher.finish() == *self.id)
    }
}

/// Reads a whole file piece by piece. `false` says that it could not be read.
fn read(file: &mut File, has_ended: HasEnded<'_>, each: &mut dyn FnMut(&[u8])) -> Result<bool, Problem> {
    let mut buffer = vec![0; 64 << 10];
    loop {
        go_on(has_ended)?;
        match file.read(&mut buffer) {
            Ok(0) => return Ok(true),
            Ok(count) => each(&buffer[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return Ok(false),
        }
    }
}

/// Passes bytes on without each return that stands before a line feed. A return at the end waits for the next bytes:
/// the answer says whether one does.
fn without_returns(bytes: &[u8], is_after_return: bool, pass: &mut dyn FnMut(&[u8])) -> bool {
    let mut rest = bytes;
    if is_after_return {
        match rest.first() {
            None => return true,
            Some(b'\n') => {}
            Some(_) => pass(b"\r"),
        }
    }
    while let Some(at) = memchr::memchr(b'\r', rest) {
        pass(&rest[..at]);
        match rest.get(at + 1) {
            None => return true,
            Some(b'\n') => {}
            Some(_) => pass(b"\r"),
        }
        rest = &rest[at + 1..];
    }
    pass(rest);
    false
}

/// What git looks at to distinguish text from binary content.
#[derive(Default)]
struct Counts {
    /// Returns with a line feed after them.
    pairs: u64,
    returns: u64,
    zeros: u64,
    printable: u64,
    others: u64,
    last: u8,
}

impl Counts {
    fn count(&mut self, bytes: &[u8]) {
        for byte in bytes.iter().copied() {
            match byte {
                b'\n' => self.pairs += u64::from(self.last == b'\r'),
                b'\r' => self.returns += 1,
                0x08 | b'\t' | 0x0c | 0x1b => self.printable += 1,
                0 => {
                    self.zeros += 1;
                    self.others += 1;
                }
                0x01..0x20 | 0x7f => self.others += 1,
                _ => self.printable += 1,
            }
            self.last = byte;
        }
    }

    fn is_binary(&self) -> bool {
        // Control-Z, the end of a text in DOS.
        let others = self.others - u64::from(self.last == 0x1a);
        self.returns > self.pairs || self.zeros > 0 || self.printable >> 7 < others
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn without(pieces: &[&[u8]]) -> Vec<u8> {
        let (mut result, mut is_after_return) = (Vec::new(), false);
        for piece in pieces {
            is_after_return =
                without_returns(piece, is_after_return, &mut |bytes| result.extend_from_slice(bytes));
        }
        result.extend(is_after_return.then_some(b'\r'));
        result
    }

    #[test]
    fn line_endings_are_found_wherever_the_content_is_cut() {
        let text = b"\r\na\r\r\nb\rc\n\r\n\r";
        for first in 0..=text.len() {
            for second in first..=text.len() {
                let pieces = [&text[..first], &text[first..second], &text[second..]];
                assert_eq!(without(&pieces), b"\na\r\nb\rc\n\n\r");
                let mut counts = Counts::default();
                pieces.iter().for_each(|piece| counts.count(piece));
                assert_eq!((counts.pairs, counts.returns), (3, 6));
            }
        }
    }

    #[test]
    fn binary_content_is_distinguished_from_text() {
        let is_binary = |bytes: &[u8]| {
            let mut counts = Counts::default();
            counts.count(bytes);
            counts.is_binary()
        };
        assert!(!is_binary(b"text\r\n"));
        assert!(!is_binary(b"text\r\n\x1a"));
        assert!(is_binary(b"a\rb\r\n"));
        assert!(is_binary(b"a\0b\r\n"));
        assert!(is_binary(b"a\x01b\r\n"));
    }
}
