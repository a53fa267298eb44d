//! Reads the entries of one folder.

use std::os::fd::OwnedFd;

use pintle_contract::{Verb, WorkspacePath};
use pintle_root::{Root, is_reserved_name};
use rustix::fs::{AtFlags, Dir, DirEntry, FileType};

use crate::store::{Entry, Kind, StoreError, Terms};

pub(super) fn entries(
    root: &Root,
    folder: &OwnedFd,
    real: &WorkspacePath,
    terms: &Terms<'_>,
) -> Result<Vec<Entry>, StoreError> {
    let mut entries = Vec::new();
    for found in Dir::read_from(folder)? {
        if (terms.has_ended)() {
            return Err(StoreError::Ended);
        }
        let found = found?;
        let Some((name, path)) = shown(&found, real, terms) else { continue };
        let stat = rustix::fs::statat(folder, found.file_name(), AtFlags::SYMLINK_NOFOLLOW);
        let Ok(stat) = stat else { continue };
        let own = (FileType::from_raw_mode(stat.st_mode), u64::try_from(stat.st_size).unwrap_or(0));
        let (kind, size) = match own.0 {
            // The target is resolved through the root only, so that nothing outside it or out of scope is revealed.
            FileType::Symlink => match path.as_ref().and_then(|path| root.follow_link(path)) {
                Some((target, kind, size)) if may_read(&target, terms) => (kind, size),
                _ => own,
            },
            _ => own,
        };
        let kind = match kind {
            FileType::Directory => Kind::Folder,
            FileType::RegularFile => Kind::File,
            _ => Kind::Other,
        };
        entries.push(Entry { name, kind, size: if kind == Kind::File { size } else { 0 } });
    }
    Ok(entries)
}

/// Some of the names in a folder.
pub(super) fn names(
    folder: &OwnedFd,
    real: &WorkspacePath,
    terms: &Terms<'_>,
) -> Result<Vec<String>, StoreError> {
    const MOST: usize = 10_000;
    let found = Dir::read_from(folder)?.take(MOST).filter_map(Result::ok);
    Ok(found.filter_map(|found| Some(shown(&found, real, terms)?.0)).collect())
}

/// The name of an entry that the caller may see, and its path if the name is valid in a path.
fn shown(
    found: &DirEntry,
    real: &WorkspacePath,
    terms: &Terms<'_>,
) -> Option<(String, Option<WorkspacePath>)> {
    let bytes = found.file_name().to_bytes();
    let name = String::from_utf8_lossy(bytes).into_owned();
    if matches!(bytes, b"." | b"..") || is_reserved_name(bytes) {
        return None;
    }
    let path = real.join(&name);
    let is_shown = path.as_ref().is_none_or(|path| may_read(path, terms));
    // A path that normalizes to another name would be another entry.
    let path = path.filter(|_| name.as_bytes() == bytes);
    is_shown.then_some((name, path))
}

fn may_read(path: &WorkspacePath, terms: &Terms<'_>) -> bool {
    (terms.permit)(Verb::Read, path).is_ok()
}
