//! Walks a tree in the order of paths, with bounded memory.
//!
//! The walk keeps only the folder open that it reads, and each is opened beneath the root without following a link. Of a
//! folder with very many entries only the first are kept; the folder is read again for the next ones.

use std::{collections::BinaryHeap, os::fd::OwnedFd};

use pintle_contract::{Verb, WorkspacePath};
use pintle_root::{Root, TEMPORARY_FILE, is_reserved_name};
use rustix::{
    fs::{AtFlags, Dir, DirEntry, FileType},
    io::Errno,
};

use super::{
    ignore_rules::IgnoreRules,
    leftover::{self, Warn},
    lock::Lock,
};
use crate::store::{Entry, Kind, StoreError, Terms, TreeEntries, TreeFilter};

/// How many names are kept in memory, for all folders from the root of the walk to the current one.
const MAX_KEPT: usize = 50_000;
/// How many names of each folder are kept at least.
const MIN_KEPT: usize = 100;

/// A walk through a tree.
pub(super) struct TreeWalk<'a> {
    pub(super) root: &'a Root,
    pub(super) warn: &'a Warn,
    pub(super) filter: &'a TreeFilter<'a>,
    pub(super) terms: &'a Terms<'a>,
}

/// A folder between the root of the walk and the current one.
struct Level {
    /// Its resolved path.
    real: WorkspacePath,
    /// Its path as the caller sees it.
    shown: String,
    /// How many levels it is below the root of the walk.
    depth: u32,
    /// The steps that are left, in reverse order.
    steps: Vec<Step>,
    /// Set if the folder has more steps that were not kept: the key of the last one that was.
    more_after: Option<Vec<u8>>,
}

/// One step of the walk: list an entry, or enter it.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Step {
    /// The sort key: the name, with a slash after it for entering a folder.
    key: Vec<u8>,
    what: What,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum What {
    List(Kind, u64),
    Enter,
}

impl TreeWalk<'_> {
    /// Walks a folder; `real` is its resolved path, `shown` the path that the caller used.
    pub(super) fn run(
        &self,
        folder: OwnedFd,
        real: WorkspacePath,
        shown: &WorkspacePath,
    ) -> Result<TreeEntries, StoreError> {
        let mut rules = self.rules_above(&real);
        if let Some(rules) = &mut rules {
            rules.enter(&folder, &real);
        }
        let first =
            Level { real, shown: shown.as_str().to_owned(), depth: 0, steps: Vec::new(), more_after: None };
        let mut levels = vec![self.read(&folder, first, rules.as_ref(), MAX_KEPT)?];
        drop(folder);
        let mut found = TreeEntries::default();
        while let Some(level) = levels.last_mut() {
            match level.steps.pop() {
                Some(Step { key, what: What::List(kind, size) }) => {
                    found.total += 1;
                    if found.entries.len() < self.filter.most {
                        let name = join(&level.shown, &String::from_utf8_lossy(&key));
                        found.entries.push(Entry { name, kind, size });
                    }
                    if found.entries.len() >= self.filter.most && !self.filter.counts_all {
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
                    let next = self.read(&folder, next, rules.as_ref(), capacity(&levels))?;
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
                            let more = self.read(&folder, done, rules.as_ref(), capacity(&levels))?;
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

    /// The ignore rules of all parent folders, unless ignored entries are listed, too.
    fn rules_above(&self, real: &WorkspacePath) -> Option<IgnoreRules<'_>> {
        let mut rules = (!self.filter.ignored).then(|| IgnoreRules::new(self.root))?;
        let mut folders = Vec::new();
        let mut path = real.clone();
        while let Some((folder, _)) = path.split_last() {
            folders.push(folder.clone());
            path = folder;
        }
        for folder in folders.into_iter().rev() {
            // The rules of a folder that cannot be opened are unknown.
            if let Ok((opened, _)) = self.root.open_folder(&folder) {
                rules.enter(&opened, &folder);
            }
        }
        Some(rules)
    }

    /// Opens a folder; none if it is gone or a link has replaced a part of its path.
    fn open(&self, path: &WorkspacePath) -> Result<Option<OwnedFd>, StoreError> {
        match self.root.open_folder(path) {
            Ok((folder, real)) => Ok((real == *path).then_some(folder)),
            // Out of descriptors or memory: an error, because the folder would look empty otherwise.
            Err(error @ (Errno::MFILE | Errno::NFILE | Errno::NOMEM)) => Err(error.into()),
            Err(_) => Ok(None),
        }
    }

    /// Reads the next steps of a folder, after a given key, up to a capacity.
    fn read(
        &self,
        folder: &OwnedFd,
        level: Level,
        rules: Option<&IgnoreRules<'_>>,
        capacity: usize,
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
            while steps.len() > capacity {
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

    /// The steps for one entry.
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
        if matches!(bytes, b"." | b".." | b".git") || is_reserved_name(bytes) {
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
        if rules.is_some_and(|rules| rules.ignores(&level.real, bytes, is_folder)) {
            return none;
        }
        // A link is shown as its target, which is resolved through the root only, and only if the caller may read it.
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
        let list = self.matches_filter(&shown, kind).then(|| {
            let size = match (kind, target) {
                (Kind::File, Some((_, _, size))) => Some(size),
                (Kind::File, None) => stat().map(|stat| u64::try_from(stat.st_size).unwrap_or(0)),
                _ => Some(0),
            };
            // A file that was removed in the meantime has no size and is not listed.
            Some(Step { key: bytes.to_vec(), what: What::List(kind, size?) })
        });
        let is_deep_enough = self.filter.depth.is_some_and(|depth| level.depth + 1 >= depth);
        let may_hold = || self.filter.globs.is_none_or(|globs| globs.admit_content(&shown));
        let enter = (is_folder && !is_deep_enough && path.is_some() && may_hold())
            .then(|| Step { key: [bytes, b"/"].concat(), what: What::Enter });
        [list.flatten(), enter].into_iter().flatten()
    }

    fn matches_filter(&self, shown: &str, kind: Kind) -> bool {
        self.filter.kind.is_none_or(|wanted| wanted == kind)
            && self.filter.globs.is_none_or(|globs| match kind {
                Kind::Folder => globs.admit_folder(shown),
                Kind::File | Kind::Other => globs.admit_file(shown),
            })
    }

    /// Whether the caller may see a path. A name that is not valid in a path is replaced by a placeholder, so that a scope
    /// on its folder still applies.
    fn may_read(&self, path: Option<&WorkspacePath>, folder: &WorkspacePath) -> bool {
        const PLACEHOLDER: &str = "\u{fffd}";
        let permitted = |path: &WorkspacePath| (self.terms.permit)(Verb::Read, path).is_ok();
        match path {
            Some(path) => permitted(path),
            None => folder.join(PLACEHOLDER).is_some_and(|path| permitted(&path)),
        }
    }
}

/// How many names may be kept of one more folder.
fn capacity(levels: &[Level]) -> usize {
    let held = levels.iter().map(|level| level.steps.len()).sum::<usize>();
    MAX_KEPT.saturating_sub(held).max(MIN_KEPT)
}

fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}
