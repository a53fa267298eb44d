//! Recovery after a writer that was killed: removes or keeps what it left in a folder.

use std::{fs::File, os::fd::AsFd};

use pintle_root::{TEMPORARY_FILE as NAME, handle_path, open_file_in};
use rustix::fs::{AtFlags, Dir, FileType, Mode, Stat};

use super::{
    lock::Lock,
    mark::{self, Replaced},
    temporary::{JUST_CREATED, rename_to_new},
};
use crate::{
    hash::{Hash, Hasher},
    store::StoreError,
};

/// Logs a warning for the operator.
pub(super) type Warn = dyn Fn(&str) + Send + Sync;

/// What has the name of the temporary file after its writer died.
enum Leftover {
    /// The file that the writer had not finished.
    Unfinished,
    /// The old file, which the writer had just replaced; the new file still has its mark.
    Replaced(File),
    /// Anything else, perhaps a save of another program for the file of this name.
    Foreign(Option<(String, File)>),
}

/// Cleans up after a writer that was killed. The caller holds the folder's lock, so no other writer is active. Only a
/// file that is provably Pintle's own is deleted; anything else is renamed to a visible name.
pub(super) fn sweep(folder: &Lock, warn: &Warn) {
    // Nearly always nothing is left, and one system call is enough to know.
    let Ok(stat) = rustix::fs::statat(folder, NAME, AtFlags::SYMLINK_NOFOLLOW) else { return };
    let from = match classify(folder, &stat) {
        Leftover::Unfinished => return delete(folder),
        Leftover::Replaced(new) => {
            delete(folder);
            return mark::clear(&new);
        }
        Leftover::Foreign(None) => None,
        Leftover::Foreign(Some((name, new))) => {
            mark::clear(&new);
            Some(name)
        }
    };
    // If it cannot be renamed it stays, and the next write in this folder fails with `Blocked`.
    if let Ok(kept) = keep(folder, from.as_deref()) {
        let path = shown_path(folder);
        let text = "something that is not provably Pintle's own had the name of temporary files in";
        warn(&format!("{text} {path}; it is now {kept}: check it and remove it"));
    }
}

/// Renames what has the name of temporary files to a visible name next to the file it belongs to; returns that name.
pub(super) fn keep(folder: &Lock, name: Option<&str>) -> Result<String, StoreError> {
    keep_from((folder, NAME), folder, name.unwrap_or(NAME.trim_start_matches('.')))
}

/// Renames a file that somebody has saved to a visible name next to the file it belongs to; returns that name.
pub(super) fn keep_from(
    (from_folder, from): (impl AsFd, &str),
    folder: &Lock,
    name: &str,
) -> Result<String, StoreError> {
    const LONGEST: usize = 255;
    const MOST: usize = 100_000;
    for number in 1..=MOST {
        let suffix = format!(".recovered-{number}");
        let kept = format!("{}{suffix}", beginning(name, LONGEST - suffix.len()));
        match rename_to_new((&from_folder, from), (folder, &kept)) {
            Err(StoreError::Exists) => {}
            Err(error) => return Err(error),
            Ok(()) => return Ok(kept),
        }
    }
    Err(StoreError::Blocked)
}

/// The longest beginning of a name that fits into `most` bytes.
fn beginning(name: &str, most: usize) -> &str {
    let end = (0..=most.min(name.len())).rev().find(|end| name.is_char_boundary(*end));
    &name[..end.unwrap_or_default()]
}

/// A folder's path, for messages.
pub(super) fn shown_path(folder: impl AsFd) -> String {
    handle_path(folder)
        .map_or_else(|_| "a folder of the workspace".to_owned(), |path| path.display().to_string())
}

fn delete(folder: &Lock) {
    let _ = rustix::fs::unlinkat(folder, NAME, AtFlags::empty());
}

fn classify(folder: &Lock, stat: &Stat) -> Leftover {
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Leftover::Foreign(None);
    }
    let size = u64::try_from(stat.st_size).unwrap_or_default();
    // A temporary file is created empty, with the sticky bit, which other programs do not set, and marked right after.
    if size == 0 && Mode::from_raw_mode(stat.st_mode).contains(JUST_CREATED) {
        return Leftover::Unfinished;
    }
    let Ok(file) = open_file_in(folder, NAME.as_bytes()) else { return Leftover::Foreign(None) };
    if mark::get(&file).is_some() {
        return Leftover::Unfinished;
    }
    match find_marked(folder) {
        Some((_, new, Some(replaced))) if replaced.size == size && holds(file, replaced.hash) => {
            Leftover::Replaced(new)
        }
        found => Leftover::Foreign(found.map(|(name, new, _)| (name, new))),
    }
}

/// Finds the file that replaced another one, but whose writer died before it could remove the mark.
fn find_marked(folder: &Lock) -> Option<(String, File, Option<Replaced>)> {
    for found in Dir::read_from(folder).ok()?.filter_map(Result::ok) {
        let is_file = matches!(found.file_type(), FileType::RegularFile | FileType::Unknown);
        let Some(name) = found.file_name().to_str().ok().filter(|name| is_file && *name != NAME) else {
            continue;
        };
        let Ok(file) = open_file_in(folder, name.as_bytes()) else { continue };
        if let Some(replaced) = mark::get(&file) {
            return Some((name.to_owned(), file, replaced));
        }
    }
    None
}

fn holds(file: File, hash: Hash) -> bool {
    Hasher::hash_file(file).is_ok_and(|found| found == hash)
}

#[cfg(test)]
mod tests {
    use super::beginning;

    #[test]
    fn a_long_name_is_cut_between_characters() {
        for (most, expected) in [(9, "aéz"), (4, "aéz"), (3, "aé"), (2, "a"), (1, "a"), (0, "")] {
            assert_eq!(beginning("aéz", most), expected, "{most}");
        }
    }
}
