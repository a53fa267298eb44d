//! What a writer that was killed has left in a folder.

use std::{
    fs::File,
    io::{self, Read},
};

use pintle_root::{TEMPORARY_FILE as NAME, handle_path, open_file_in};
use rustix::fs::{AtFlags, Dir, FileType, Mode, Stat};

use super::{
    lock::Lock,
    mark::{self, Replaced},
    temporary::{BORN, rename_to_new},
};
use crate::{
    hash::{Hash, Hasher},
    store::StoreError,
};

/// Takes warnings for people.
pub(super) type Warn = dyn Fn(&str) + Send + Sync;

/// What lies under the name of temporary files, whose writer is dead.
enum Leftover {
    /// The file that it was writing.
    Unfinished,
    /// The file that it had replaced, as the caller knew it; the new one still has its mark.
    Replaced(File),
    /// Something else. Perhaps another program's save, taken from this name.
    Foreign(Option<(String, File)>),
}

/// Cleans up after a writer that was killed. The lock is held, so nobody is writing now. Only what is provably the
/// writer's own is deleted; anything else gets a visible name.
pub(super) fn sweep(folder: &Lock, warn: &Warn) {
    // Nearly always there is nothing, and one question is enough to know.
    let Ok(stat) = rustix::fs::statat(folder, NAME, AtFlags::SYMLINK_NOFOLLOW) else { return };
    let from = match judge(folder, &stat) {
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
    // If it cannot be renamed it stays, and whoever needs the name is told.
    if let Ok(kept) = keep(folder, from.as_deref()) {
        let path = shown_path(folder);
        let text = "something that is not provably Pintle's own had the name of unfinished files in";
        warn(&format!("{text} {path}; it is now {kept}, to be looked at and removed by a person"));
    }
}

/// Gives what has the name of temporary files a visible one beside the file that it belongs to, and returns that name.
pub(super) fn keep(folder: &Lock, name: Option<&str>) -> Result<String, StoreError> {
    const LONGEST: usize = 255;
    const MOST: usize = 100_000;
    let name = name.unwrap_or(NAME.trim_start_matches('.'));
    for number in 1..=MOST {
        let suffix = format!(".recovered-{number}");
        let kept = format!("{}{suffix}", beginning(name, LONGEST - suffix.len()));
        match rename_to_new((folder, NAME), (folder, &kept)) {
            Err(StoreError::Exists) => {}
            Err(error) => return Err(error),
            Ok(()) => return Ok(kept),
        }
    }
    Err(StoreError::Blocked)
}

/// As much of a name as has room in so many bytes.
fn beginning(name: &str, most: usize) -> &str {
    let end = (0..=most.min(name.len())).rev().find(|end| name.is_char_boundary(*end));
    &name[..end.unwrap_or_default()]
}

/// A folder's path, for people.
pub(super) fn shown_path(folder: &Lock) -> String {
    handle_path(folder)
        .map_or_else(|_| "a folder of the workspace".to_owned(), |path| path.display().to_string())
}

fn delete(folder: &Lock) {
    let _ = rustix::fs::unlinkat(folder, NAME, AtFlags::empty());
}

fn judge(folder: &Lock, stat: &Stat) -> Leftover {
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Leftover::Foreign(None);
    }
    let size = u64::try_from(stat.st_size).unwrap_or_default();
    // A temporary file is created empty, with a mode that other programs do not give to files, and marked right after.
    if size == 0 && Mode::from_raw_mode(stat.st_mode).contains(BORN) {
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

/// Finds the file that was put in the place of another one by a writer that could not take its mark off any more.
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
    hash_of(file).is_ok_and(|found| found == hash)
}

fn hash_of(mut file: File) -> io::Result<Hash> {
    let (mut hasher, mut buffer) = (Hasher::default(), vec![0; 256 << 10]);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hasher.finish()),
            count => hasher.update(&buffer[..count]),
        }
    }
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
