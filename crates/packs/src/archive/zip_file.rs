//! `.zip` archives.

use std::{
    io::{BufReader, Read, Seek},
    rc::Rc,
};

use zip::{
    CompressionMethod, ZipArchive,
    read::{ArchiveOffset, Config},
    result::ZipError,
};

use super::{
    Contents, TakeFile,
    meter::{Meter, Unpacked},
    too_large_file, zip_directory,
};
use crate::{
    ArchiveError, Limits,
    paths::{Kind, Paths},
};

/// The bits of a Unix mode that are the type of the file.
const TYPE: u32 = 0o170_000;
const REGULAR: u32 = 0o100_000;
const FOLDER: u32 = 0o040_000;
const LINK: u32 = 0o120_000;

pub(super) fn read<R: Read + Seek>(
    archive: &mut R,
    size: u64,
    limits: &Limits,
    take: &mut TakeFile<'_>,
) -> Result<(), ArchiveError> {
    zip_directory::check(archive, size, limits)?;
    let config = Config { archive_offset: ArchiveOffset::Known(0) };
    let mut archive = ZipArchive::with_config(config, BufReader::new(archive)).map_err(damaged)?;
    if archive.has_duplicate_names() {
        return Err(ArchiveError::Unsafe("a name is in it twice".into()));
    }
    // What is said about a file in two places must agree, and no two files may have the same bytes.
    archive.validate_header_consistency().map_err(inconsistent)?;
    let meter = Meter::new(limits);
    let mut paths = Paths::new(limits);
    for index in 0..archive.len() {
        let about = archive.by_index_data(index).map_err(damaged)?;
        let kind = if about.name_raw().ends_with(b"/") { Kind::Folder } else { Kind::File };
        let Some(path) = paths.add(about.name_raw(), kind)? else { continue };
        if let Some(problem) = problem_of(about.external_attributes() >> 16, kind, about.size()) {
            return Err(ArchiveError::unsafe_entry(&path, problem));
        }
        if about.encrypted() {
            return Err(ArchiveError::Unsupported(format!("`{path}` is encrypted, which is not supported")));
        }
        if !matches!(about.compression(), CompressionMethod::Stored | CompressionMethod::Deflated) {
            return Err(ArchiveError::Unsupported(format!(
                "`{path}` is compressed by another method than deflate, which is not supported"
            )));
        }
        if kind == Kind::Folder {
            continue;
        }
        let (size, packed) = (about.size(), about.compressed_size());
        if size > limits.file_bytes {
            return Err(too_large_file(&path, limits));
        }
        meter.add_packed(packed);
        let file = archive.by_index(index).map_err(damaged)?;
        let mut reader = Unpacked { inner: file, meter: Rc::clone(&meter) };
        let mut contents = Contents { path: &path, size, read: 0, reader: &mut reader, meter: &meter };
        take(&path, &mut contents)?;
        contents.copy_to(&mut std::io::sink())?;
    }
    Ok(())
}

/// What is wrong with an entry of this mode. Archives of systems without modes have none.
fn problem_of(mode: u32, kind: Kind, size: u64) -> Option<&'static str> {
    match (mode & TYPE, kind) {
        (LINK, _) => Some("is a symbolic link"),
        (0 | REGULAR, Kind::File) | (0 | FOLDER, Kind::Folder) => {
            (kind == Kind::Folder && size > 0).then_some("is a folder with content")
        }
        (REGULAR, Kind::Folder) | (FOLDER, Kind::File) => Some("is a file and a folder"),
        _ => Some("is neither a file nor a folder"),
    }
}

fn damaged(error: ZipError) -> ArchiveError {
    match error {
        ZipError::UnsupportedArchive(problem) => ArchiveError::Unsupported(problem.into()),
        error => ArchiveError::Damaged(error.to_string()),
    }
}

fn inconsistent(error: ZipError) -> ArchiveError {
    match error {
        ZipError::Io(error) => ArchiveError::Damaged(error.to_string()),
        error => ArchiveError::Unsafe(error.to_string()),
    }
}
