//! What lies in a folder.

use std::os::fd::OwnedFd;

use pintle_auth::Verb;
use pintle_contract::WorkspacePath;
use rustix::fs::{AtFlags, Dir, FileType};

use super::{problem, root::Root, temporary};
use crate::store::{Entry, Kind, StoreError, Terms};

pub(super) fn entries(
    root: &Root,
    folder: &OwnedFd,
    real: &WorkspacePath,
    terms: &Terms<'_>,
) -> Result<Vec<Entry>, StoreError> {
    let mut entries = Vec::new();
    for found in Dir::read_from(folder).map_err(problem)? {
        if (terms.has_ended)() {
            return Err(StoreError::Ended);
        }
        let found = found.map_err(problem)?;
        let bytes = found.file_name();
        let name = String::from_utf8_lossy(bytes.to_bytes()).into_owned();
        if matches!(name.as_str(), "." | "..") || temporary::is_temporary(&name) {
            continue;
        }
        let Ok(stat) = rustix::fs::statat(folder, bytes, AtFlags::SYMLINK_NOFOLLOW) else { continue };
        let own = (FileType::from_raw_mode(stat.st_mode), u64::try_from(stat.st_size).unwrap_or(0));
        let path = real.join(&name);
        let may_read = |path: &WorkspacePath| (terms.permit)(Verb::Read, path).is_ok();
        if path.as_ref().is_some_and(|path| !may_read(path)) {
            continue;
        }
        let (kind, size) = match own.0 {
            // Looked at only through the root, so that nothing is told of what lies outside it or out of scope.
            FileType::Symlink => match path.and_then(|path| root.look_at(&path)) {
                Some((target, kind, size)) if may_read(&target) => (kind, size),
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
