//! The content of an open regular file.

use std::{
    fs::File,
    io::{self, IoSliceMut},
    os::{fd::OwnedFd, unix::fs::FileExt},
};

use rustix::{fs::FileType, io::ReadWriteFlags};

use super::{mark, version::Version};
use crate::{
    hash::{Hash, Hasher, Tag},
    store::{Source, StoreError, Terms},
};

/// The size of the read buffer.
const CHUNK: usize = 1 << 20;

/// The largest file that is read without a blocking thread; hashing it takes a fraction of a millisecond.
const MAX_INLINE_BYTES: usize = 64 << 10;

/// The content of a small regular file, if it is in the page cache and can be read without blocking.
pub(super) fn read_at_once(file: &OwnedFd) -> Option<Vec<u8>> {
    let stat = rustix::fs::fstat(file).ok()?;
    let size = usize::try_from(stat.st_size).ok().filter(|size| *size <= MAX_INLINE_BYTES)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return None;
    }
    // One byte more than the size: a short read then proves the end of the file in the same system call.
    let mut content = vec![0; size + 1];
    let mut parts = [IoSliceMut::new(&mut content)];
    let count = rustix::io::preadv2(file, &mut parts, 0, ReadWriteFlags::NOWAIT).ok()?;
    content.truncate(count);
    (count == size).then_some(content)
}

/// An open regular file.
pub(super) struct OpenFile {
    pub(super) file: File,
    /// Its version before anything was read.
    pub(super) version: Version,
}

impl OpenFile {
    /// Wraps a descriptor; refuses anything but a regular file.
    pub(super) fn new(opened: OwnedFd) -> Result<Self, StoreError> {
        let stat = rustix::fs::fstat(&opened)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Ok(Self { file: opened.into(), version: Version::from_stat(&stat) }),
            FileType::Directory => Err(StoreError::IsFolder),
            _ => Err(StoreError::Special),
        }
    }

    /// Removes the mark that a writer left because it was killed right after it had replaced the file. That changes the
    /// ctime, so the version is taken again; nothing must have been read before.
    pub(super) fn unmark(&mut self) -> Result<(), StoreError> {
        if mark::get(&self.file).is_some() {
            mark::clear(&self.file);
            self.version = Version::of(&self.file)?;
        }
        Ok(())
    }

    /// Computes the hash, and refuses any other version than the expected one.
    pub(super) fn check(&self, expected: &Tag, terms: &Terms<'_>) -> Result<Hash, StoreError> {
        let mut hasher = Hasher::default();
        self.for_each_chunk(0, self.size(), terms, |bytes| {
            hasher.update(bytes);
            Ok(())
        })?;
        let found = hasher.finish();
        if expected.names(found) { Ok(found) } else { Err(StoreError::Stale(found)) }
    }

    /// Reads the whole content.
    pub(super) fn read_all(&self, terms: &Terms<'_>) -> Result<Vec<u8>, StoreError> {
        let mut content = Vec::new();
        self.for_each_chunk(0, self.size(), terms, |bytes| {
            content.extend_from_slice(bytes);
            Ok(())
        })?;
        Ok(content)
    }

    /// Passes a range to `take`, chunk by chunk.
    pub(super) fn for_each_chunk(
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
