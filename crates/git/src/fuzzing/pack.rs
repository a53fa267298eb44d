//! What must hold of packs whatever bytes they hold: the property that the fuzz target asserts.

use std::{
    fs::File,
    io::{self, Write},
};

use flate2::{Compression, write::ZlibEncoder};
use rustix::fs::{MemfdFlags, memfd_create};

use crate::{
    delta,
    hash::{HashKind, ObjectId},
    objects::OBJECT_LIMIT,
    pack::{Pack, inflate, parse_offset},
};

/// The most objects that are written.
const MOST: usize = 32;

/// Reads every object of a pack. The first byte is 0 if the rest is the pack as it is, with an object at every offset
/// below 32. Otherwise the rest are objects: a byte for the kind and how its size is misstated, one for the base of a
/// delta (how many objects before), one for the length, and the content, which is packed here.
///
/// Reading ends, nothing becomes larger than an object may be, and an object that is no delta comes out as it was.
pub(super) fn git_pack(bytes: &[u8]) {
    let Some((&first, rest)) = bytes.split_first() else { return };
    assert_delta(rest);
    let _ = parse_offset(rest);
    let _ = inflate(rest, rest.len() * 4);
    let written = if first == 0 {
        Written { data: rest.to_vec(), offsets: (0..MOST as u64).collect(), plain: Vec::new() }
    } else {
        Written::new(rest)
    };
    let pack = written.open().expect("memory can be written");
    for (number, offset) in written.offsets.iter().enumerate() {
        let found = pack.find(&name(number)).expect("the index is whole");
        assert_eq!(found, Some(*offset));
        match (pack.read(*offset), written.plain.get(number).and_then(Option::as_ref)) {
            (Ok((_, content)), Some(plain)) => assert_eq!(content, *plain),
            (Ok((_, content)), None) => assert!(content.len() <= OBJECT_LIMIT),
            (Err(problem), Some(_)) => panic!("{problem}"),
            (Err(problem), None) => assert!(!problem.to_string().is_empty()),
        }
    }
    assert!(matches!(pack.find(&name(MOST)), Ok(None)));
}

/// A delta makes what it says, or nothing.
fn assert_delta(bytes: &[u8]) {
    const LIMIT: usize = 1 << 16;
    let (base, delta) = bytes.split_at(bytes.len() / 2);
    if let Some(result) = delta::apply(base, delta, LIMIT) {
        assert!(result.len() <= LIMIT);
        assert_eq!(delta::apply(base, delta, result.len()), Some(result.clone()));
        assert!(result.is_empty() || delta::apply(base, delta, result.len() - 1).is_none());
    }
}

/// Names that begin with zeros, so that the number of names up to each first byte is the number of all.
fn name(number: usize) -> ObjectId {
    let mut bytes = [0; 20];
    bytes[19] = number as u8;
    ObjectId::from_start(&bytes, HashKind::Sha1).expect("twenty bytes")
}

struct Written {
    data: Vec<u8>,
    offsets: Vec<u64>,
    /// What each object must come out as, if that is clear.
    plain: Vec<Option<Vec<u8>>>,
}

impl Written {
    fn new(mut rest: &[u8]) -> Self {
        let mut written = Self { data: b"PACK".to_vec(), offsets: Vec::new(), plain: Vec::new() };
        while let Some(([kind, base, length], content)) = rest.split_first_chunk::<3>()
            && written.offsets.len() < MOST
        {
            let (content, after) = content.split_at(usize::from(*length).min(content.len()));
            rest = after;
            written.add(*kind, usize::from(*base), content);
        }
        written
    }

    fn add(&mut self, kind: u8, base: usize, content: &[u8]) {
        let start = self.data.len() as u64;
        let misstated = usize::from(kind >> 4);
        let (kind, size) = (kind & 7, content.len() + misstated);
        // The first byte has four bits of the size, and each that follows seven.
        let (mut head, mut more) = ((kind << 4) | (size & 15) as u8, size >> 4);
        while more > 0 {
            self.data.push(head | 0x80);
            (head, more) = ((more & 0x7f) as u8, more >> 7);
        }
        self.data.push(head);
        if kind == 6 {
            let number = self.offsets.len().checked_sub(base);
            let distance = number.and_then(|number| self.offsets.get(number)).map_or(0, |base| start - base);
            self.data.extend(written_offset(distance));
        }
        if kind == 7 {
            self.data.extend(name(base % MOST).as_bytes());
        }
        let mut packed = ZlibEncoder::new(&mut self.data, Compression::fast());
        let is_packed = packed.write_all(content).is_ok() && packed.finish().is_ok();
        assert!(is_packed, "memory can be written");
        let is_plain = matches!(kind, 1..=4) && misstated == 0;
        self.plain.push(is_plain.then(|| content.to_vec()));
        self.offsets.push(start);
    }

    fn open(&self) -> io::Result<Pack> {
        let count = self.offsets.len() as u32;
        let mut index = b"\xfftOc\0\0\0\x02".to_vec();
        index.extend(count.to_be_bytes().repeat(256));
        for number in 0..self.offsets.len() {
            index.extend(name(number).as_bytes());
        }
        index.extend(vec![0; 4 * self.offsets.len()]);
        for offset in &self.offsets {
            index.extend((*offset as u32).to_be_bytes());
        }
        let (index, data) = (file_of(&index)?, file_of(&self.data)?);
        Pack::open("a pack".into(), index, data, HashKind::Sha1).map_err(io::Error::other)
    }
}

/// A distance as git writes it: seven bits a byte, the highest first, and one less in all but the last.
fn written_offset(mut distance: u64) -> Vec<u8> {
    let mut bytes = vec![(distance & 0x7f) as u8];
    while distance >> 7 > 0 {
        distance = (distance >> 7) - 1;
        bytes.push((distance & 0x7f) as u8 | 0x80);
    }
    bytes.reverse();
    bytes
}

fn file_of(bytes: &[u8]) -> io::Result<File> {
    let mut file = File::from(memfd_create("pack", MemfdFlags::CLOEXEC)?);
    file.write_all(bytes)?;
    Ok(file)
}
