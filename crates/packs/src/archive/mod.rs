//! Reads archives. Every entry is checked before its content is, and everything is read to its end, so that the
//! archive's own checksums are verified.

mod meter;
mod tar_gz;
mod zip_directory;
mod zip_file;

use std::io::{self, Read, Seek, SeekFrom, Write};

use self::meter::Meter;
use crate::{ArchiveError, Limits};

/// What is done with a file of an archive: its path and its content.
pub type TakeFile<'a> = dyn FnMut(&str, &mut Contents<'_>) -> Result<(), ArchiveError> + 'a;

/// Reads a `.tar.gz` or a `.zip`, which is recognised by its first bytes. `take` is called for each file; what it does
/// not read is read after it. Files are handed out before the end of the archive was checked, so what is made of them is
/// only to be trusted if this returns without an error.
pub fn read<R: Read + Seek>(
    archive: &mut R,
    limits: &Limits,
    take: &mut TakeFile<'_>,
) -> Result<(), ArchiveError> {
    let size = archive.seek(SeekFrom::End(0)).map_err(unreadable)?;
    if size > limits.archive_bytes {
        return Err(too_large_archive(limits));
    }
    archive.rewind().map_err(unreadable)?;
    let mut start = Vec::new();
    archive.by_ref().take(4).read_to_end(&mut start).map_err(unreadable)?;
    archive.rewind().map_err(unreadable)?;
    match start.as_slice() {
        [0x1f, 0x8b, ..] => tar_gz::read(archive, limits, take),
        // An empty `.zip` has nothing but the record at its end.
        b"PK\x03\x04" | b"PK\x05\x06" => zip_file::read(archive, size, limits, take),
        _ => Err(ArchiveError::Unsupported("the file is neither a `.tar.gz` nor a `.zip`".into())),
    }
}

/// The refusal of an archive that is larger than its limit.
pub(crate) fn too_large_archive(limits: &Limits) -> ArchiveError {
    ArchiveError::TooLarge(format!("it has more than {} bytes", limits.archive_bytes))
}

fn unreadable(error: io::Error) -> ArchiveError {
    ArchiveError::Damaged(error.to_string())
}

/// The content of a file in an archive.
pub struct Contents<'a> {
    path: &'a str,
    /// How many bytes the archive says that there are.
    size: u64,
    read: u64,
    reader: &'a mut dyn Read,
    meter: &'a Meter,
}

impl Contents<'_> {
    /// Copies what was not read yet.
    pub fn copy_to(&mut self, to: &mut dyn Write) -> Result<u64, ArchiveError> {
        let mut buffer = [0; 16 * 1024];
        loop {
            let count = match self.reader.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(self.meter.refusal_or(error)),
            };
            self.read += count as u64;
            if self.read > self.meter.limits().file_bytes {
                return Err(too_large_file(self.path, self.meter.limits()));
            }
            to.write_all(&buffer[..count]).map_err(ArchiveError::NotWritten)?;
        }
        match self.read == self.size {
            true => Ok(self.read),
            false => Err(ArchiveError::Damaged(format!(
                "`{}` has {} bytes instead of {}",
                self.path, self.read, self.size
            ))),
        }
    }
}

fn too_large_file(path: &str, limits: &Limits) -> ArchiveError {
    ArchiveError::TooLarge(format!("`{path}` has more than {} bytes", limits.file_bytes))
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use flate2::{Compression, write::GzEncoder};
    use zip::{ZipWriter, write::SimpleFileOptions};

    use super::*;

    const LIMITS: Limits = Limits {
        archive_bytes: 1 << 20,
        file_bytes: 3000,
        total_bytes: 10_000,
        ratio: 20,
        ratio_free_bytes: 2000,
        ..Limits::PACK
    };

    fn names(archive: &[u8]) -> Result<Vec<String>, ArchiveError> {
        let mut names = Vec::new();
        read(&mut Cursor::new(archive), &LIMITS, &mut |path, _| {
            names.push(path.to_owned());
            Ok(())
        })?;
        Ok(names)
    }

    /// Files of these sizes, which compress well or not at all.
    fn both_kinds(sizes: &[usize], compresses: bool) -> [Vec<u8>; 2] {
        let mut state = 1_u32;
        let mut noise = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::best()));
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        for (index, size) in sizes.iter().enumerate() {
            let content: Vec<u8> = (0..*size).map(|_| if compresses { 0 } else { noise() }).collect();
            let mut header = tar::Header::new_ustar();
            header.set_size(*size as u64);
            tar.append_data(&mut header, format!("{index}"), content.as_slice()).expect("memory");
            zip.start_file(format!("{index}"), SimpleFileOptions::default()).expect("memory");
            zip.write_all(&content).expect("memory");
        }
        let tar = tar.into_inner().and_then(GzEncoder::finish).expect("memory");
        [tar, zip.finish().expect("memory").into_inner()]
    }

    #[test]
    fn what_comes_out_is_measured() {
        for archive in both_kinds(&[1000, 3000, 0], false) {
            assert_eq!(names(&archive).expect("it is good"), ["0", "1", "2"]);
        }
        for archive in both_kinds(&[1000, 3001], false) {
            assert!(matches!(names(&archive), Err(ArchiveError::TooLarge(_))));
        }
        for archive in both_kinds(&[2600; 4], false) {
            assert!(matches!(names(&archive), Err(ArchiveError::TooLarge(_))));
        }
        for archive in both_kinds(&[2600; 3], true) {
            assert!(matches!(names(&archive), Err(ArchiveError::Unsafe(_))));
        }
    }

    #[test]
    fn a_zip_has_one_directory_which_ends_where_its_last_record_begins() {
        let [_, zip] = both_kinds(&[10], false);
        let record = zip.len() - 22;
        let with_comment = |comment: &[u8]| {
            let length = u16::try_from(comment.len()).expect("short").to_le_bytes();
            [&zip[..zip.len() - 2], &length, comment].concat()
        };
        assert_eq!(names(&with_comment(b"a comment")).expect("it is good"), ["0"]);
        assert!(names(&with_comment(&zip[record..])).is_err(), "a second record in the comment");
        assert!(names(&[&zip[..], b"more"].concat()).is_err(), "something after it");
        let locator = [b"PK\x06\x07".as_slice(), &[0; 16]].concat();
        let with_locator = [&zip[..record], &locator, &zip[record..]].concat();
        assert!(matches!(names(&with_locator), Err(ArchiveError::TooLarge(_))));
        let mut many = zip.clone();
        many[record + 10..record + 12].copy_from_slice(&[0xff, 0xff]);
        assert!(matches!(names(&many), Err(ArchiveError::TooLarge(_))));
    }
}
