//! The folders of a change set, locked.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    os::fd::{AsFd, OwnedFd},
    time::Instant,
};

use pintle_contract::{ErrorCode, Fault, WorkspacePath};
use pintle_root::{Root, identity, open_folder_in};
use rustix::{
    fs::{AtFlags, Mode},
    io::Errno,
};

use super::{Staging, Stopped};
use crate::{
    fault::fault,
    local::{Durability, LocalFolder, leftover, lock::Lock, reach::may_write},
    store::{ChangeSetError, StoreError, Terms},
};

/// The most folders that one call creates.
const MAX_NEW_FOLDERS: usize = 1000;

/// What is wrong with which changes, by their number.
pub(super) type Problems = Vec<(usize, StoreError)>;

/// Locked folders, by their resolved paths. Two paths can lead to one folder (a bind mount); it is locked once.
#[derive(Default)]
pub(super) struct Folders {
    locks: Vec<Lock>,
    by_path: HashMap<WorkspacePath, usize>,
    /// The folders that are to be created, by path, so each after its parent.
    missing: BTreeSet<WorkspacePath>,
    /// Those that were created, in the same order. One that another program has created first is not among them.
    made: Vec<WorkspacePath>,
}

impl Folders {
    /// The lock of a folder.
    pub(super) fn at(&self, path: &WorkspacePath) -> Result<&Lock, StoreError> {
        self.by_path.get(path).map(|index| &self.locks[*index]).ok_or(StoreError::NotFound)
    }

    /// A number that all paths to one folder share.
    pub(super) fn number(&self, path: &WorkspacePath) -> Option<usize> {
        self.by_path.get(path).copied()
    }

    /// Of these folders, those that are locked, each once.
    pub(super) fn among<'a>(
        &'a self,
        paths: impl Iterator<Item = &'a WorkspacePath>,
    ) -> impl Iterator<Item = &'a Lock> {
        let indexes: BTreeSet<usize> = paths.filter_map(|path| self.by_path.get(path).copied()).collect();
        indexes.into_iter().map(|index| &self.locks[index])
    }

    /// The folders that are to be created.
    pub(super) fn missing(&self) -> impl Iterator<Item = &WorkspacePath> {
        self.missing.iter()
    }

    /// The folders that were created.
    pub(super) fn made(&self) -> &[WorkspacePath] {
        &self.made
    }

    /// The inode of a folder that is there.
    pub(super) fn inode(&self, path: &WorkspacePath) -> Option<u64> {
        identity(self.at(path).ok()?).ok().map(|(_, inode)| inode)
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

    /// Whether the paths still lead to the folders that are locked. One may have been moved while its lock was waited for.
    pub(super) fn are_in_place(&self, root: &Root) -> Result<bool, StoreError> {
        for (path, index) in &self.by_path {
            if !leads_to(root, path, &self.locks[*index])? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Creates the missing folders, and locks those that files of the change set are in.
    pub(super) fn make_missing(
        &mut self,
        root: &Root,
        with_files: &BTreeSet<&WorkspacePath>,
        durability: Durability,
        (deadline, terms): (Instant, &Terms<'_>),
    ) -> Result<(), StoreError> {
        for path in std::mem::take(&mut self.missing) {
            let (parent, name) = path.split_last().ok_or(StoreError::NotFound)?;
            let mut is_made = false;
            let opened = self.with_folder(root, &parent, |parent| {
                match rustix::fs::mkdirat(parent, name, Mode::from_raw_mode(0o777)) {
                    Ok(()) => {
                        is_made = true;
                        durability.sync(parent)?;
                    }
                    // Another program has created it.
                    Err(Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
                Ok(open_folder_in(parent, name.as_bytes())?)
            });
            if is_made {
                self.made.push(path.clone());
            }
            let folder = opened?;
            if with_files.contains(&path) {
                self.locks.push(Lock::take_until(folder, deadline, terms.has_ended)?);
                self.by_path.insert(path, self.locks.len() - 1);
            }
        }
        Ok(())
    }

    /// Removes a folder that was created, if it is empty. One that another program uses by now is not, and stays.
    pub(super) fn remove_made(&self, root: &Root, path: &WorkspacePath) {
        let Some((parent, name)) = path.split_last() else { return };
        let _ = self
            .with_folder(root, &parent, |parent| Ok(rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR)?));
    }

    /// Uses a folder, which need not be locked, but must be at its path.
    fn with_folder<T>(
        &self,
        root: &Root,
        path: &WorkspacePath,
        work: impl FnOnce(std::os::fd::BorrowedFd<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        if let Ok(lock) = self.at(path) {
            return work(lock.as_fd());
        }
        match root.open_folder(path)? {
            (folder, found) if found == *path => work(folder.as_fd()),
            _ => Err(StoreError::KeepsChanging),
        }
    }

    /// Gives up the locks.
    fn release(self) -> Result<BTreeMap<WorkspacePath, OwnedFd>, StoreError> {
        let released: Vec<OwnedFd> = self.locks.into_iter().map(Lock::release).collect();
        let folders = self.by_path.into_iter();
        folders.map(|(path, index)| Ok((path, released[index].try_clone()?))).collect()
    }
}

/// Whether a path leads to a folder that is open.
pub(in crate::local) fn leads_to(
    root: &Root,
    path: &WorkspacePath,
    folder: impl AsFd,
) -> Result<bool, StoreError> {
    match root.open_folder(path) {
        Ok((now, found)) => Ok(found == *path && identity(now)? == identity(folder)?),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

impl LocalFolder {
    /// Locks the folders of all changes, and cleans up what dead writers left in them. Also returns what is wrong with
    /// changes whose folders cannot be used.
    pub(super) fn lock_folders(
        &self,
        resolved: &[WorkspacePath],
        deadline: Instant,
        terms: &Terms<'_>,
    ) -> Result<(Folders, Problems), Stopped> {
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
            if missing.len() > MAX_NEW_FOLDERS {
                return Err(Stopped::Failed(ChangeSetError::Whole(too_many_folders().into())));
            }
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
            let folders = Folders::lock(opened, deadline, terms.has_ended).map_err(&failed)?;
            folders.locks.iter().for_each(|folder| leftover::sweep(folder, &self.warn));
            Ok(folders)
        };
        let mut folders = lock_and_sweep(opened)?;
        if folders.locks.iter().any(Staging::is_left_in) {
            // Recovery takes the locks of all folders that it needs.
            let opened = folders.release().map_err(|error| Stopped::Failed(ChangeSetError::Whole(error)))?;
            let has_recovered = self.recover_found();
            folders = lock_and_sweep(opened)?;
            // A folder in which another one's staged files are left can be used all the same.
            folders.locks.iter().for_each(|folder| self.leave_staged(folder, has_recovered));
        }
        let in_place = folders.are_in_place(&self.root);
        if !in_place.map_err(|error| Stopped::Failed(ChangeSetError::Whole(error)))? {
            return Err(Stopped::Again);
        }
        folders.missing = missing;
        Ok((folders, problems))
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
        let mut to_make = Vec::new();
        // What is above a missing folder is known.
        while !opened.contains_key(&folder) && !missing.contains(&folder) {
            match self.root.open_folder(&folder) {
                Ok((handle, found)) if found == folder => {
                    opened.insert(folder, handle);
                    break;
                }
                Ok(_) => return Ok(false),
                Err(Errno::NOENT) => {
                    if to_make.is_empty() {
                        self.root.refuse_too_deep(path)?;
                    }
                    may_write(&folder, terms)?;
                    let (parent, _) = folder.split_last().ok_or(StoreError::NotFound)?;
                    to_make.push(folder);
                    folder = parent;
                }
                Err(error) => return Err(error.into()),
            }
            if to_make.len() > MAX_NEW_FOLDERS {
                break;
            }
        }
        missing.extend(to_make);
        Ok(true)
    }
}

fn too_many_folders() -> Fault {
    Fault::new(
        ErrorCode::InvalidRequest,
        format!("the files of this call need more than {MAX_NEW_FOLDERS} new folders, which is the most that a call creates; nothing was done"),
    )
    .hint("make several calls, each for some of the files")
}
