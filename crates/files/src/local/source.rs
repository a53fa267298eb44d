//! The bytes of a file that is open.

use std::{
    fs::File,
    io::{self, IoSliceMut},
    os::{fd::OwnedFd, unix::fs::FileExt},
};

use rustix::{fs::FileType, io::ReadWriteFlags};

use super::{mark, version::Version};
use crate::{
    hash::{Hash, Hasher},
    store::{Source, StoreError, Terms},
};

/// How much is read at a time.
const CHUNK: usize = 1 << 20;

/// The most that is read at once: hashing it takes a fraction of a millisecond.
const SMALL: usize = 64 << 10;

/// The content of a small regular file, if the system has it in memory.
pub(super) fn read_at_once(file: &OwnedFd) -> Option<Vec<u8>> {
    let stat = rustix::fs::fstat(file).ok()?;
    let size = usize::try_from(stat.st_size).ok().filter(|size| *size <= SMALL)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return None;
    }
    // With room for one more byte the end is seen in the same step.
    let mut content = vec![0; size + 1];
    let mut parts = [IoSliceMut::new(&mut content)];
    let count = rustix::io::preadv2(file, &mut parts, 0, ReadWriteFlags::NOWAIT).ok()?;
    content.truncate(count);
    (count == size).then_some(content)
}

/// A regular file that is open.
pub(super) struct OpenFile {
    pub(super) file: File,
    /// As it was before anything was read of it.
    pub(super) version: Version,
}

impl OpenFile {
    /// Takes what was opened, if it is a regular file.
    pub(super) fn new(opened: OwnedFd) -> Result<Self, StoreError> {
        let stat = rustix::fs::fstat(&opened)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Ok(Self { file: opened.into(), version: Version::from_stat(&stat) }),
            FileType::Directory => Err(StoreError::IsFolder),
            _ => Err(StoreError::Special),
        }
    }

    /// Takes the mark off a file that a writer left it on, because it was killed right after it had replaced the file. That
    /// changes the file's status, so its version is taken again; nothing may have been read yet.
    pub(super) fn unmark(&mut self) -> Result<(), StoreError> {
        if mark::get(&self.file).is_some() {
            mark::clear(&self.file);
            self.version = Version::of(&self.file)?;
        }
        Ok(())
    }

    /// The version that the file has now.
    pub(super) fn check(&self, expected: Hash, terms: &Terms<'_>) -> Result<(), StoreError> {
        let mut hasher = Hasher::default();
        self.hand_on(0, self.size(), terms, |bytes| {
            hasher.update(bytes);
            Ok(())
        })?;
        let found = hasher.finish();
        if found == expected { Ok(()) } else { Err(StoreError::Stale(found)) }
    }

    /// All of it.
    pub(super) fn whole(&self, terms: &Terms<'_>) -> Result<Vec<u8>, StoreError> {
        let mut content = Vec::new();
        self.hand_on(0, self.size(), terms, |bytes| {
            content.extend_from_slice(bytes);
            Ok(())
        })?;
        Ok(content)
    }

    /// Hands on a part, piece by piece.
    pub(super) fn hand_on(
        &self,
        start: u64,
        length: u64,
        terms: &Terms<'_>,
        mut take: impl FnMut(&[u8]) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut buffer = vec![0; CHUNK.min(usize::try_from(length).unwrap_or(CHUNK))];
        let (mut offset, end) = (start, start + length);
        while offset < end {
            if (terms.has_ended)() {
                return Err(StoreError::Ended);
            }
            let wanted = usize::try_from(end - offset).unwrap_or(CHUNK).min(buffer.len());
            let count = self.read_at(offset, &mut buffer[..wanted])?;
            if count == 0 {
                return Err(StoreError::Changed);
            }
            take(&buffer[..count])?;
            offset += count as u64;
        }
        Ok(())
    }
}

impl Source for OpenFile {
    fn size(&self) -> u64 {
        self.version.stamp.size
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read_at(buffer, offset)
    }
}
