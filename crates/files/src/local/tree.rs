//! What lies in a folder and below it.
//!
//! The walk holds no folder open but the one that it reads, and each is opened from the root without following a link.
//! Of a folder with very many entries only the first are held; it is read again for those that come after them.

use std::{collections::BinaryHeap, os::fd::OwnedFd};

use pintle_contract::{Verb, WorkspacePath};
use pintle_root::{Root, TEMPORARY_FILE};
use rustix::{
    fs::{AtFlags, Dir, DirEntry, FileType},
    io::Errno,
};

use super::{
    ignore_rules::IgnoreRules,
    leftover::{self, Warn},
    lock::Lock,
};
use crate::store::{Entry, Found, Kind, StoreError, Terms, Wanted};

/// How many names the folders on the way hold all together.
const MOST_HELD: usize = 50_000;
/// How many names each of them holds at least.
const LEAST_HELD: usize = 100;

/// A walk through a tree.
pub(super) struct TreeWalk<'a> {
    pub(super) root: &'a Root,
    pub(super) warn: &'a Warn,
    pub(super) wanted: &'a Wanted<'a>,
    pub(super) terms: &'a Terms<'a>,
}

/// A folder on the way.
struct Level {
    /// Where it really is.
    real: WorkspacePath,
    /// Its path as the caller sees it.
    shown: String,
    /// How many levels below the first it lies.
    depth: u32,
    /// What is to be done next, the first last.
    steps: Vec<Step>,
    /// Set if there are steps after these, which were not held: the key of the last that was.
    more_after: Option<Vec<u8>>,
}

/// Something to be done with an entry of a folder.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Step {
    /// Its name; with a slash behind it, all that lies in it.
    key: Vec<u8>,
    what: What,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum What {
    List(Kind, u64),
    Enter,
}

impl TreeWalk<'_> {
    /// Walks through a folder that really is at `real`, and that the caller calls `shown`.
    pub(super) fn run(
        &self,
        folder: OwnedFd,
        real: WorkspacePath,
        shown: &WorkspacePath,
    ) -> Result<Found, StoreError> {
        let mut rules = self.rules_above(&real);
        if let Some(rules) = &mut rules {
            rules.enter(&folder, &real);
        }
        let first =
            Level { real, shown: shown.as_str().to_owned(), depth: 0, steps: Vec::new(), more_after: None };
        let mut levels = vec![self.read(&folder, first, rules.as_ref(), MOST_HELD)?];
        drop(folder);
        let mut found = Found::default();
        while let Some(level) = levels.last_mut() {
            match level.steps.pop() {
                Some(Step { key, what: What::List(kind, size) }) => {
                    found.total += 1;
                    if found.entries.len() < self.wanted.most {
                        let name = join(&level.shown, &String::from_utf8_lossy(&key));
                        found.entries.push(Entry { name, kind, size });
                    }
                    if found.entries.len() >= self.wanted.most && !self.wanted.counts_all {
                        break;
                    }
                }
                Some(Step { key, what: What::Enter }) => {
                    let name = String::from_utf8_lossy(&key);
                    let name = name.trim_end_matches('/');
                    let Some(real) = level.real.join(name) else { continue };
                    let (shown, depth) = (join(&level.shown, name), level.depth + 1);
                    let Some(folder) = self.open(&real)? else { continue };
                    if let Some(rules) = &mut rules {
                        rules.enter(&folder, &real);
                    }
                    let next = Level { real, shown, depth, steps: Vec::new(), more_after: None };
                    let next = self.read(&folder, next, rules.as_ref(), room(&levels))?;
                    levels.push(next);
                }
                None => {
                    let Some(done) = levels.pop() else { break };
                    let again = match done.more_after.is_some() {
                        true => self.open(&done.real)?,
                        false => None,
                    };
                    match again {
                        Some(folder) => {
                            let more = self.read(&folder, done, rules.as_ref(), room(&levels))?;
                            levels.push(more);
                        }
                        None => {
                            if let Some(rules) = &mut rules {
                                rules.leave();
                            }
                        }
                    }
                }
            }
        }
        Ok(found)
    }

    /// The rules of the folders above one, unless what they leave out is wanted.
    fn rules_above(&self, real: &WorkspacePath) -> Option<IgnoreRules<'_>> {
        let mut rules = (!self.wanted.ignored).then(|| IgnoreRules::new(self.root))?;
        let mut folders = Vec::new();
        let mut path = real.clone();
        while let Some((folder, _)) = path.split_last() {
            folders.push(folder.clone());
            path = folder;
        }
        for folder in folders.into_iter().rev() {
            // One that cannot be opened has no rules that can be known.
            if let Ok((opened, _)) = self.root.open_folder(&folder) {
                rules.enter(&opened, &folder);
            }
        }
        Some(rules)
    }

    /// Opens a folder, if it is still there and no link has come in its way.
    fn open(&self, path: &WorkspacePath) -> Result<Option<OwnedFd>, StoreError> {
        match self.root.open_folder(path) {
            Ok((folder, real)) => Ok((real == *path).then_some(folder)),
            // Without descriptors or memory a folder would look empty.
            Err(error @ (Errno::MFILE | Errno::NFILE | Errno::NOMEM)) => Err(error.into()),
            Err(_) => Ok(None),
        }
    }

    /// Reads what is to be done in a folder: as many steps as there is room for, after those that were held before.
    fn read(
        &self,
        folder: &OwnedFd,
        level: Level,
        rules: Option<&IgnoreRules<'_>>,
        room: usize,
    ) -> Result<Level, StoreError> {
        self.sweep(folder);
        let after = level.more_after.as_deref();
        let (mut steps, mut is_cut) = (BinaryHeap::new(), false);
        for found in Dir::read_from(folder)? {
            if (self.terms.has_ended)() {
                return Err(StoreError::Ended);
            }
            let found = found?;
            for step in self.steps(folder, &level, rules, &found) {
                if after.is_none_or(|after| step.key.as_slice() > after) {
                    steps.push(step);
                }
            }
            while steps.len() > room {
                steps.pop();
                is_cut = true;
            }
        }
        let mut steps = steps.into_sorted_vec();
        let more_after = steps.last().filter(|_| is_cut).map(|step| step.key.clone());
        steps.reverse();
        Ok(Level { steps, more_after, ..level })
    }

    /// Cleans up after a writer that was killed.
    fn sweep(&self, folder: &OwnedFd) {
        let is_there = rustix::fs::statat(folder, TEMPORARY_FILE, AtFlags::SYMLINK_NOFOLLOW).is_ok();
        if let (true, Some(lock)) = (is_there, Lock::try_take(folder)) {
            leftover::sweep(&lock, self.warn);
        }
    }

    /// What is to be done with an entry.
    fn steps(
        &self,
        folder: &OwnedFd,
        level: &Level,
        rules: Option<&IgnoreRules<'_>>,
        found: &DirEntry,
    ) -> impl Iterator<Item = Step> + use<> {
        let none = [None, None].into_iter().flatten();
        let bytes = found.file_name().to_bytes();
        let name = String::from_utf8_lossy(bytes);
        if matches!(bytes, b"." | b".." | b".git") || name == TEMPORARY_FILE {
            return none;
        }
        let path = level.real.join(&name).filter(|_| name.as_bytes() == bytes);
        if !self.may_read(path.as_ref(), &level.real) {
            return none;
        }
        let stat = || rustix::fs::statat(folder, found.file_name(), AtFlags::SYMLINK_NOFOLLOW).ok();
        let own = match found.file_type() {
            FileType::Unknown => stat().map(|stat| FileType::from_raw_mode(stat.st_mode)),
            known => Some(known),
        };
        let Some(own) = own else { return none };
        let is_folder = own == FileType::Directory;
        if rules.is_some_and(|rules| rules.leave_out(&level.real, bytes, is_folder)) {
            return none;
        }
        // A link is shown as what it leads to; that is looked at only through the root, and by those who may.
        let target = match own {
            FileType::Symlink => path.as_ref().and_then(|path| self.root.follow_link(path)),
            _ => None,
        };
        let target = target.filter(|(real, ..)| self.may_read(Some(real), real));
        let kind = match target.as_ref().map_or(own, |(_, kind, _)| *kind) {
            FileType::Directory => Kind::Folder,
            FileType::RegularFile => Kind::File,
            _ => Kind::Other,
        };
        let shown = join(&level.shown, &name);
        let list = self.is_wanted(&shown, kind).then(|| {
            let size = match (kind, target) {
                (Kind::File, Some((_, _, size))) => Some(size),
                (Kind::File, None) => stat().map(|stat| u64::try_from(stat.st_size).unwrap_or(0)),
                _ => Some(0),
            };
            // A file that has gone in the meantime has no size.
            Some(Step { key: bytes.to_vec(), what: What::List(kind, size?) })
        });
        let is_deep_enough = self.wanted.depth.is_some_and(|depth| level.depth + 1 >= depth);
        let may_hold = || self.wanted.globs.is_none_or(|globs| globs.admit_content(&shown));
        let enter = (is_folder && !is_deep_enough && path.is_some() && may_hold())
            .then(|| Step { key: [bytes, b"/"].concat(), what: What::Enter });
        [list.flatten(), enter].into_iter().flatten()
    }

    fn is_wanted(&self, shown: &str, kind: Kind) -> bool {
        self.wanted.kind.is_none_or(|wanted| wanted == kind)
            && self.wanted.globs.is_none_or(|globs| match kind {
                Kind::Folder => globs.admit_folder(shown),
                Kind::File | Kind::Other => globs.admit_file(shown),
            })
    }

    /// Whether whoever asks may know of a path. A name that cannot stand in a path is as good as any other in its folder
    /// that no scope names.
    fn may_read(&self, path: Option<&WorkspacePath>, folder: &WorkspacePath) -> bool {
        const NO_NAME: &str = "\u{fffd}";
        let permitted = |path: &WorkspacePath| (self.terms.permit)(Verb::Read, path).is_ok();
        match path {
            Some(path) => permitted(path),
            None => folder.join(NO_NAME).is_some_and(|path| permitted(&path)),
        }
    }
}

/// How many names another folder may hold.
fn room(levels: &[Level]) -> usize {
    let held = levels.iter().map(|level| level.steps.len()).sum::<usize>();
    MOST_HELD.saturating_sub(held).max(LEAST_HELD)
}

fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}
