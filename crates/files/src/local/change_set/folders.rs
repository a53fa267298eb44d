//! The folders of a change set, locked.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    os::fd::OwnedFd,
    time::Instant,
};

use pintle_contract::WorkspacePath;
use pintle_root::{identity, open_folder_in};
use rustix::{fs::Mode, io::Errno};

use super::{Planned, Staging, Stopped};
use crate::{
    fault::fault,
    local::{
        Durability, LocalFolder, leftover,
        lock::{LOCK_TIMEOUT, Lock},
    },
    store::{ChangeSetError, StoreError, Terms},
};

/// Locked folders, by their resolved paths. Two paths can lead to one folder (a bind mount); it is locked once.
#[derive(Default)]
pub(super) struct Folders {
    locks: Vec<Lock>,
    by_path: HashMap<WorkspacePath, usize>,
    /// The folders that are created, by path, so each after its parent.
    missing: BTreeSet<WorkspacePath>,
}

impl Folders {
    /// The lock of a folder.
    pub(super) fn at(&self, path: &WorkspacePath) -> Result<&Lock, StoreError> {
        self.by_path.get(path).map(|index| &self.locks[*index]).ok_or(StoreError::NotFound)
    }

    /// The folders that have files of a change set, each once.
    pub(super) fn of<'a>(&'a self, work: &'a [Planned]) -> impl Iterator<Item = &'a Lock> {
        let indexes: BTreeSet<usize> =
            work.iter().filter_map(|planned| self.by_path.get(&planned.folder).copied()).collect();
        indexes.into_iter().map(|index| &self.locks[index])
    }

    /// The folders that are created.
    pub(super) fn missing(&self) -> impl Iterator<Item = &WorkspacePath> {
        self.missing.iter()
    }

    /// Locks folders in the order of their paths.
    pub(super) fn lock(
        opened: BTreeMap<WorkspacePath, OwnedFd>,
        deadline: Instant,
        has_ended: &dyn Fn() -> bool,
    ) -> Result<Self, (WorkspacePath, StoreError)> {
        let mut folders = Self::default();
        let mut known = HashMap::new();
        for (path, folder) in opened {
            let lock = || -> Result<usize, StoreError> {
                let identity = identity(&folder)?;
                if let Some(index) = known.get(&identity) {
                    return Ok(*index);
                }
                folders.locks.push(Lock::take_until(folder, deadline, has_ended)?);
                known.insert(identity, folders.locks.len() - 1);
                Ok(folders.locks.len() - 1)
            };
            match lock() {
                Ok(index) => drop(folders.by_path.insert(path, index)),
                Err(error) => return Err((path, error)),
            }
        }
        Ok(folders)
    }

    /// Creates the missing folders, and locks them.
    pub(super) fn make_missing(
        &mut self,
        durability: Durability,
        terms: &Terms<'_>,
    ) -> Result<(), StoreError> {
        for path in std::mem::take(&mut self.missing) {
            let (parent, name) = path.split_last().ok_or(StoreError::NotFound)?;
            let folder = {
                let parent = self.at(&parent)?;
                match rustix::fs::mkdirat(parent, name, Mode::from_raw_mode(0o777)) {
                    Ok(()) => durability.sync(parent)?,
                    // Another program has created it.
                    Err(Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
                open_folder_in(parent, name.as_bytes())?
            };
            let lock = Lock::take_until(folder, Instant::now() + LOCK_TIMEOUT, terms.has_ended)?;
            self.locks.push(lock);
            self.by_path.insert(path, self.locks.len() - 1);
        }
        Ok(())
    }

    /// Gives up the locks.
    fn release(self) -> BTreeMap<WorkspacePath, OwnedFd> {
        let mut released: Vec<_> = self.locks.into_iter().map(|lock| Some(lock.release())).collect();
        let folders = self.by_path.into_iter();
        // Of two paths to one folder, one is enough: it is locked by the other one as well.
        folders.filter_map(|(path, index)| Some((path, released[index].take()?))).collect()
    }
}

impl LocalFolder {
    /// Locks the folders of all changes, and cleans up what dead writers left in them.
    pub(super) fn lock_folders(
        &self,
        resolved: &[WorkspacePath],
        terms: &Terms<'_>,
    ) -> Result<Folders, Stopped> {
        let (mut opened, mut missing, mut problems) = (BTreeMap::new(), BTreeSet::new(), Vec::new());
        for (number, path) in resolved.iter().enumerate() {
            // What stands in the way of undoing it may be a lock, for which nobody has to wait here.
            if let Err(error) = self.refuse_unfinished(path) {
                problems.push((number, error));
                continue;
            }
            match self.open_parents(path, &mut opened, &mut missing, terms) {
                Ok(true) => {}
                Ok(false) => return Err(Stopped::Again),
                Err(error) => problems.push((number, error)),
            }
        }
        if !problems.is_empty() {
            return Err(Stopped::Failed(ChangeSetError::Files(problems)));
        }
        // The message names a file of the folder that could not be locked.
        let failed = |(folder, error): (WorkspacePath, StoreError)| {
            let is_in_it = |path: &&WorkspacePath| path.split_last().is_some_and(|(it, _)| it == folder);
            let error = match (error, resolved.iter().find(is_in_it)) {
                (error @ StoreError::Locked(_), Some(path)) => fault(error, path).into(),
                (error, _) => error,
            };
            Stopped::Failed(ChangeSetError::Whole(error))
        };
        let lock_and_sweep = |opened| {
            let deadline = Instant::now() + LOCK_TIMEOUT;
            let folders = Folders::lock(opened, deadline, terms.has_ended).map_err(&failed)?;
            folders.locks.iter().for_each(|folder| leftover::sweep(folder, &self.warn));
            Ok(folders)
        };
        let mut folders = lock_and_sweep(opened)?;
        let staged: Vec<_> = folders
            .locks
            .iter()
            .filter(|folder| Staging::is_left_in(folder))
            .map(leftover::shown_path)
            .collect();
        if !staged.is_empty() {
            // Recovery takes the locks of all folders that it needs. A folder in which another one's staged files are left
            // can be used all the same.
            let opened = folders.release();
            for path in &staged {
                self.recover_found(path);
            }
            folders = lock_and_sweep(opened)?;
        }
        folders.missing = missing;
        Ok(folders)
    }

    /// Opens the folder of a file, or the nearest one above it that exists, and notes what is missing in between.
    /// Returns false if the path leads elsewhere by now.
    fn open_parents(
        &self,
        path: &WorkspacePath,
        opened: &mut BTreeMap<WorkspacePath, OwnedFd>,
        missing: &mut BTreeSet<WorkspacePath>,
        terms: &Terms<'_>,
    ) -> Result<bool, StoreError> {
        let (mut folder, _) = path.split_last().ok_or(StoreError::IsFolder)?;
        let mut to_make = HashSet::new();
        loop {
            if opened.contains_key(&folder) {
                break;
            }
            match self.root.open_folder(&folder) {
                Ok((handle, found)) if found == folder => {
                    opened.insert(folder, handle);
                    break;
                }
                Ok(_) => return Ok(false),
                Err(Errno::NOENT) => {
                    crate::local::reach::may_write(&folder, terms)?;
                    let (parent, _) = folder.split_last().ok_or(StoreError::NotFound)?;
                    to_make.insert(folder);
                    folder = parent;
                }
                Err(error) => return Err(error.into()),
            }
        }
        missing.extend(to_make);
        Ok(true)
    }
}
