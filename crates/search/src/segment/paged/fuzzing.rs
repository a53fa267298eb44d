//! Files of sections in memory, so that a fuzz target touches no disk.

use std::{
    fs::File,
    io::{self, BufWriter, Read, Seek, Write},
    sync::Arc,
};

use rustix::fs::{MemfdFlags, memfd_create};

use super::{PagedFile, PagedWriter, Section};

/// A file of these sections as bytes, with its seal.
pub(crate) fn written(sections: &[(Section, &[u8])]) -> io::Result<(Vec<u8>, u64)> {
    let mut file = memory_file()?;
    let mut writer = PagedWriter {
        out: BufWriter::new(file.try_clone()?),
        page: Vec::new(),
        checksums: Vec::new(),
        written: 0,
        sections: Vec::new(),
        open: None,
    };
    for (section, bytes) in sections {
        writer.begin(*section)?;
        writer.write_all(bytes)?;
    }
    let seal = writer.finish()?;
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok((bytes, seal))
}

/// An open file that holds these bytes.
pub(crate) fn file_of(bytes: &[u8]) -> io::Result<Arc<File>> {
    let mut file = memory_file()?;
    file.write_all(bytes)?;
    Ok(Arc::new(file))
}

fn memory_file() -> io::Result<File> {
    Ok(File::from(memfd_create("segment", MemfdFlags::CLOEXEC)?))
}

/// The seal that a file says it has, as its last eight bytes.
pub(crate) fn stated_seal(bytes: &[u8]) -> u64 {
    bytes.last_chunk::<8>().map_or(0, |seal| u64::from_le_bytes(*seal))
}

impl PagedFile {
    /// The bytes of every section, each as far as its pages are as they were written.
    pub(crate) fn contents(&self) -> Vec<(Section, Option<&[u8]>)> {
        self.sections.iter().map(|(name, range)| (*name, self.bytes(range.clone()).ok())).collect()
    }
}
