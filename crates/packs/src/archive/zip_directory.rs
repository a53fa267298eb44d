//! The record at the end of a `.zip`, which says where its central directory is. It is read before the archive is opened:
//! the number of entries must be known before memory is reserved for them, and the record must be the only one that a
//! reader could find, so that all programs see the same files.

use std::io::{Read, Seek, SeekFrom};

use super::unreadable;
use crate::{ArchiveError, Limits};

const RECORD: [u8; 4] = *b"PK\x05\x06";
const RECORD_BYTES: usize = 22;
const LOCATOR_64: [u8; 4] = *b"PK\x06\x07";
const LOCATOR_64_BYTES: usize = 20;
const LONGEST_COMMENT: usize = u16::MAX as usize;

/// Checks the record at the end.
pub(super) fn check<R: Read + Seek>(archive: &mut R, size: u64, limits: &Limits) -> Result<(), ArchiveError> {
    let tail_bytes = (LOCATOR_64_BYTES + RECORD_BYTES + LONGEST_COMMENT) as u64;
    let tail_start = size.saturating_sub(tail_bytes);
    archive.seek(SeekFrom::Start(tail_start)).map_err(unreadable)?;
    let mut tail = Vec::new();
    archive.by_ref().take(tail_bytes).read_to_end(&mut tail).map_err(unreadable)?;
    let missing = || ArchiveError::Damaged("the list of files at its end is missing".into());
    let start = tail.windows(RECORD.len()).rposition(|bytes| bytes == RECORD).ok_or_else(missing)?;
    let record = tail.get(start..start + RECORD_BYTES).ok_or_else(missing)?;
    let u16_at = |offset: usize| u16::from_le_bytes([record[offset], record[offset + 1]]);
    let u32_at = |offset: usize| u32::from(u16_at(offset)) | u32::from(u16_at(offset + 2)) << 16;
    if start + RECORD_BYTES + usize::from(u16_at(20)) != tail.len() {
        return Err(missing());
    }
    let before = &tail[start.saturating_sub(LOCATOR_64_BYTES)..start];
    if before.len() == LOCATOR_64_BYTES && before.starts_with(&LOCATOR_64) {
        return Err(ArchiveError::TooLarge(
            "it is a zip64 archive, which is for more than 65,535 files".into(),
        ));
    }
    let entries = usize::from(u16_at(10));
    if entries > limits.entries {
        return Err(ArchiveError::TooLarge(format!("it has more than {} entries", limits.entries)));
    }
    let directory_end = u64::from(u32_at(16)) + u64::from(u32_at(12));
    match directory_end == tail_start + start as u64 {
        true => Ok(()),
        false => Err(ArchiveError::Unsafe("its list of files is not where its last bytes say".into())),
    }
}
