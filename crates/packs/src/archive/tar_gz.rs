//! `.tar.gz` archives.

use std::{
    io::{self, BufReader, Read},
    rc::Rc,
};

use flate2::read::MultiGzDecoder;
use tar::{Archive, EntryType};

use super::{
    Contents, TakeFile,
    meter::{Meter, Packed, Unpacked},
    too_large_file,
};
use crate::{
    ArchiveError, Limits,
    paths::{Kind, Paths},
};

pub(super) fn read(
    archive: &mut impl Read,
    limits: &Limits,
    take: &mut TakeFile<'_>,
) -> Result<(), ArchiveError> {
    let meter = Meter::new(limits);
    let packed = Packed { inner: BufReader::new(archive), meter: Rc::clone(&meter) };
    let unpacked = Unpacked { inner: MultiGzDecoder::new(packed), meter: Rc::clone(&meter) };
    let failed = |error| meter.refusal_or(error);
    let mut paths = Paths::new(limits);
    let mut archive = Archive::new(unpacked);
    let mut entries = archive.entries().map_err(failed)?;
    loop {
        meter.begin_headers();
        let Some(entry) = entries.next() else { break };
        let mut entry = entry.map_err(failed)?;
        let (name, size) = (entry.path_bytes().into_owned(), entry.size());
        match entry.header().entry_type() {
            EntryType::Regular => {
                let Some(path) = paths.add(&name, Kind::File)? else { continue };
                if size > limits.file_bytes {
                    return Err(too_large_file(&path, limits));
                }
                meter.end_headers();
                let mut contents = Contents { path: &path, size, read: 0, reader: &mut entry, meter: &meter };
                take(&path, &mut contents)?;
                contents.copy_to(&mut io::sink())?;
            }
            EntryType::Directory if size == 0 => {
                paths.add(&name, Kind::Folder)?;
            }
            // What `git archive` says about all files: the commit.
            EntryType::XGlobalHeader => {
                paths.count()?;
                io::copy(&mut entry, &mut io::sink()).map_err(failed)?;
            }
            other => {
                let shown = String::from_utf8_lossy(&name[..name.len().min(limits.path_bytes)]).into_owned();
                return Err(ArchiveError::unsafe_entry(&shown, describe(other)));
            }
        }
    }
    meter.end_headers();
    only_zeros(archive.into_inner(), &meter)
}

/// Reads the padding at the end. Programs differ in whether they read an archive that comes after the end of another.
fn only_zeros(mut rest: impl Read, meter: &Meter) -> Result<(), ArchiveError> {
    let mut buffer = [0; 16 * 1024];
    loop {
        match rest.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) if buffer[..count].iter().all(|byte| *byte == 0) => {}
            Ok(_) => return Err(ArchiveError::Unsafe("something comes after its end".into())),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(meter.refusal_or(error)),
        }
    }
}

fn describe(kind: EntryType) -> &'static str {
    match kind {
        EntryType::Symlink => "is a symbolic link",
        EntryType::Link => "is a hard link",
        EntryType::Char | EntryType::Block => "is a device",
        EntryType::Fifo => "is a pipe",
        _ => "is neither a file nor a folder",
    }
}
