//! A pack: many objects in one file, with a second file, its index, that has the offset of each.

use std::{
    fs::File,
    io::{self, Read},
    os::unix::fs::FileExt,
};

use flate2::read::ZlibDecoder;

use crate::{
    delta,
    hash::{HashKind, ObjectId},
    objects::{Kind, OBJECT_LIMIT},
    problem::Problem,
};

/// The longest chain of deltas that is followed. Git itself makes no longer ones.
const LONGEST_CHAIN: usize = 4096;
/// Where the sorted ids begin in the index of a pack: after the header and the fanout table.
const NAMES_START: u64 = 8 + 256 * 4;

/// A pack, open.
pub(crate) struct Pack {
    name: String,
    hash: HashKind,
    index: File,
    data: File,
    /// The fanout table: how many ids begin with each byte or a smaller one.
    counts: Vec<u32>,
}

impl Pack {
    pub(crate) fn open(name: String, index: File, data: File, hash: HashKind) -> Result<Self, Problem> {
        let mut start = [0; NAMES_START as usize];
        let mut pack = Self { name, hash, index, data, counts: Vec::new() };
        pack.index.read_exact_at(&mut start, 0).map_err(|error| pack.unreadable(error))?;
        if start[..8] != *b"\xfftOc\0\0\0\x02" {
            return Err(Problem::unsupported("packs whose index is not of version 2"));
        }
        let numbers = start[8..].chunks_exact(4);
        pack.counts = numbers.map(|bytes| bytes.try_into().map_or(0, u32::from_be_bytes)).collect();
        if !pack.counts.is_sorted() {
            return Err(pack.damaged("its index is not in order"));
        }
        Ok(pack)
    }

    /// Where an object is, if it is in this pack.
    pub(crate) fn find(&self, id: &ObjectId) -> Result<Option<u64>, Problem> {
        let length = self.hash.length() as u64;
        let first = usize::from(id.as_bytes()[0]);
        let mut low = if first == 0 { 0 } else { self.counts[first - 1] };
        let mut high = self.counts[first];
        let mut name = [0; 32];
        let name = &mut name[..self.hash.length()];
        while low < high {
            let middle = low + (high - low) / 2;
            self.read_index(NAMES_START + u64::from(middle) * length, name)?;
            match (*name).cmp(id.as_bytes()) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return self.offset(middle).map(Some),
            }
        }
        Ok(None)
    }

    /// The object that begins at an offset.
    pub(crate) fn read(&self, offset: u64) -> Result<(Kind, Vec<u8>), Problem> {
        let mut deltas = Vec::new();
        let mut header = self.header(offset)?;
        let kind = loop {
            let base = match header.base {
                Base::None(kind) => break kind,
                Base::Before(distance) => header.start.checked_sub(distance).filter(|_| distance > 0),
                Base::Named(id) => self.find(&id)?,
            };
            if deltas.len() == LONGEST_CHAIN {
                return Err(self.damaged("a chain of deltas has no end"));
            }
            deltas.push((header.content, header.size));
            header = self.header(base.ok_or_else(|| self.damaged("a delta has no base"))?)?;
        };
        let mut object = self.inflate(header.content, header.size)?;
        for (content, size) in deltas.into_iter().rev() {
            let delta = self.inflate(content, size)?;
            object = delta::apply(&object, &delta, OBJECT_LIMIT)
                .ok_or_else(|| self.damaged("a delta does not fit its base"))?;
        }
        Ok((kind, object))
    }

    fn offset(&self, at: u32) -> Result<u64, Problem> {
        const IS_LARGE: u32 = 1 << 31;
        let count = u64::from(*self.counts.last().unwrap_or(&0));
        // The names, and a checksum for each of them.
        let offsets = NAMES_START + count * (self.hash.length() as u64 + 4);
        let mut number = [0; 4];
        self.read_index(offsets + u64::from(at) * 4, &mut number)?;
        let number = u32::from_be_bytes(number);
        if number & IS_LARGE == 0 {
            return Ok(number.into());
        }
        let mut large = [0; 8];
        self.read_index(offsets + count * 4 + u64::from(number & !IS_LARGE) * 8, &mut large)?;
        Ok(u64::from_be_bytes(large))
    }

    fn header(&self, start: u64) -> Result<Header, Problem> {
        let mut bytes = Vec::with_capacity(64);
        // It may be the last object, and short.
        let read = FileReader { file: &self.data, offset: start }.take(64).read_to_end(&mut bytes);
        read.map_err(|error| self.unreadable(error))?;
        let header = parse_header(&bytes, start, self.hash);
        let header = header.ok_or_else(|| self.damaged(format!("there is no object at {start}")))?;
        if header.size > OBJECT_LIMIT {
            return Err(Problem::too_many_bytes("an object", OBJECT_LIMIT as u64));
        }
        Ok(header)
    }

    fn inflate(&self, offset: u64, size: usize) -> Result<Vec<u8>, Problem> {
        let reader = FileReader { file: &self.data, offset };
        inflate(reader, size).ok_or_else(|| self.damaged(format!("what is at {offset} cannot be unpacked")))
    }

    fn read_index(&self, offset: u64, bytes: &mut [u8]) -> Result<(), Problem> {
        self.index.read_exact_at(bytes, offset).map_err(|error| self.unreadable(error))
    }

    fn damaged(&self, reason: impl Into<String>) -> Problem {
        Problem::damaged(&self.name, reason)
    }

    fn unreadable(&self, error: io::Error) -> Problem {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => self.damaged("it is cut off"),
            _ => Problem::unreadable(&self.name, error),
        }
    }
}

/// What stands before an object.
struct Header {
    start: u64,
    content: u64,
    size: usize,
    base: Base,
}

/// What an object is, or is a delta of.
enum Base {
    None(Kind),
    /// An object that begins so many bytes before this one.
    Before(u64),
    Named(ObjectId),
}

fn parse_header(bytes: &[u8], start: u64, hash: HashKind) -> Option<Header> {
    let first = *bytes.first()?;
    let (mut size, mut at, mut shift, mut byte) = (usize::from(first & 0x0f), 1, 4, first);
    while byte & 0x80 != 0 {
        byte = *bytes.get(at)?;
        // A size that needs more bits than there are is cut off by the limit in any case.
        let part = usize::from(byte & 0x7f);
        size |= part.checked_shl(shift).filter(|shifted| shifted >> shift == part)?;
        (at, shift) = (at + 1, shift + 7);
    }
    let base = match first >> 4 & 7 {
        1 => Base::None(Kind::Commit),
        2 => Base::None(Kind::Tree),
        3 | 4 => Base::None(Kind::Other),
        6 => {
            let (distance, length) = parse_offset(bytes.get(at..)?)?;
            at += length;
            Base::Before(distance)
        }
        7 => {
            let id = ObjectId::from_start(bytes.get(at..)?, hash)?;
            at += hash.length();
            Base::Named(id)
        }
        _ => return None,
    };
    Some(Header { start, content: start.checked_add(at as u64)?, size, base })
}

/// A number as offsets are written, and how many bytes it takes.
pub(crate) fn parse_offset(bytes: &[u8]) -> Option<(u64, usize)> {
    let first = *bytes.first()?;
    let (mut value, mut length, mut byte) = (u64::from(first & 0x7f), 1, first);
    while byte & 0x80 != 0 {
        byte = *bytes.get(length)?;
        value = value.checked_add(1)?.checked_mul(128)? | u64::from(byte & 0x7f);
        length += 1;
    }
    Some((value, length))
}

/// What is packed at the start of `reader`, if it is exactly as long as it should be.
pub(crate) fn inflate(reader: impl Read, size: usize) -> Option<Vec<u8>> {
    let mut content = Vec::new();
    // A crafted size must not decide how much memory is reserved.
    ZlibDecoder::new(reader).take(size as u64 + 1).read_to_end(&mut content).ok()?;
    (content.len() == size).then_some(content)
}

/// Reads a file from an offset on.
struct FileReader<'a> {
    file: &'a File,
    offset: u64,
}

impl Read for FileReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(buffer, self.offset)?;
        self.offset += count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_read_as_they_are_written() {
        assert_eq!(parse_offset(&[0x7f]), Some((127, 1)));
        assert_eq!(parse_offset(&[0x80, 0]), Some((128, 2)));
        assert_eq!(parse_offset(&[0x81, 0]), Some((256, 2)));
        assert_eq!(parse_offset(&[0x80]), None);
        assert_eq!(parse_offset(&[0xff; 20]), None);
    }

    #[test]
    fn a_header_that_says_too_much_is_refused() {
        assert!(parse_header(&[0xff; 64], 0, HashKind::Sha1).is_none());
        assert!(parse_header(&[0x00], 0, HashKind::Sha1).is_none());
        assert!(parse_header(&[0x50], 0, HashKind::Sha1).is_none());
        let header = parse_header(&[0x95, 0x0a], 7, HashKind::Sha1).expect("a header");
        assert_eq!((header.content, header.size), (9, 165));
    }
}
