//! Resolves the path of a change and locks its parent folder.

use std::os::fd::OwnedFd;

use pintle_contract::{Verb, WorkspacePath};
use pintle_root::{is_reserved, open_any_in};
use rustix::{
    fs::{AtFlags, Mode},
    io::Errno,
};

use super::{
    LocalFolder,
    change_set::{Staging, leads_to},
    leftover,
    lock::Lock,
    source::OpenFile,
};
use crate::store::{StoreError, Terms};

/// How often a path is resolved again when it changes in the meantime.
const TRIES: usize = 16;

/// A file that is about to be changed, with its folder locked.
pub(super) struct Reached {
    /// The resolved path of the name that is changed, without links in its parent folders.
    pub(super) path: WorkspacePath,
    /// The last segment of the path.
    pub(super) name: String,
    /// The lock on the parent folder.
    pub(super) lock: Lock,
    /// The file, with its content.
    pub(super) source: OpenFile,
    /// The resolved target, if the name is a link.
    pub(super) leads_to: Option<WorkspacePath>,
}

impl Reached {
    /// The resolved path of the parent folder.
    pub(super) fn folder(&self) -> Option<WorkspacePath> {
        self.path.split_last().map(|(folder, _)| folder)
    }
}

impl LocalFolder {
    /// Resolves a path to a file, through all links, and locks the folder of that file.
    pub(super) fn reach_file(&self, path: &WorkspacePath, terms: &Terms<'_>) -> Result<Reached, StoreError> {
        for _ in 0..TRIES {
            let named = self.reach_name(path, terms)?;
            let Some(target) = named.leads_to else { return Ok(named) };
            drop(named.lock);
            let reached = match self.reach_name(&target, terms) {
                // It was moved before the lock was taken: resolve again.
                Err(StoreError::NotFound) => continue,
                reached => reached?,
            };
            // The resolved path is valid only if the path still resolves to it now that the lock is held.
            let hidden = |error: Errno| self.unless_hidden(error.into(), path, Verb::Write, terms);
            if reached.leads_to.is_none() && self.root.open_any(path).map_err(hidden)?.1 == reached.path {
                return Ok(reached);
            }
        }
        Err(StoreError::KeepsChanging)
    }

    /// Resolves the parent folders of a path and locks the last one; the name itself may be a link.
    pub(super) fn reach_name(&self, path: &WorkspacePath, terms: &Terms<'_>) -> Result<Reached, StoreError> {
        for _ in 0..TRIES {
            if let Some(reached) = self.try_to_reach_name(path, terms)? {
                return Ok(reached);
            }
        }
        Err(StoreError::KeepsChanging)
    }

    /// The same, unless the folder is moved away while its lock is waited for.
    fn try_to_reach_name(
        &self,
        path: &WorkspacePath,
        terms: &Terms<'_>,
    ) -> Result<Option<Reached>, StoreError> {
        if is_reserved(path) {
            return Err(StoreError::NotFound);
        }
        let (folder, name) = path.split_last().ok_or(StoreError::IsFolder)?;
        let hidden = |error: StoreError| self.unless_hidden(error, path, Verb::Write, terms);
        let (folder, parent) = self.root.open_folder(&folder).map_err(|error| hidden(error.into()))?;
        let resolved = parent.join(name).ok_or(StoreError::NotFound)?;
        may_write(&resolved, terms).map_err(hidden)?;
        // What stands in the way of undoing it may be the lock, for which nobody has to wait here.
        self.refuse_unfinished(&resolved)?;
        let lock = self.lock_to_write(folder, terms)?;
        if !leads_to(&self.root, &parent, &lock)? {
            return Ok(None);
        }
        self.refuse_unfinished(&resolved)?;
        let (source, target) = match open_any_in(&lock, name.as_bytes()) {
            Ok(file) => (OpenFile::new(file)?, None),
            // `O_NOFOLLOW` on a link fails with ELOOP.
            Err(Errno::LOOP) => {
                let hidden = |error: StoreError| self.unless_hidden(error, &resolved, Verb::Write, terms);
                let (file, target) = self.root.open_any(&resolved).map_err(|error| hidden(error.into()))?;
                may_write(&target, terms).map_err(hidden)?;
                (OpenFile::new(file)?, Some(target))
            }
            Err(error) => return Err(error.into()),
        };
        Ok(Some(Reached { path: resolved, name: name.to_owned(), lock, source, leads_to: target }))
    }

    /// Locks a folder, and cleans up what dead writers left in it.
    pub(super) fn lock_to_write(&self, folder: OwnedFd, terms: &Terms<'_>) -> Result<Lock, StoreError> {
        let lock_and_sweep = |folder| -> Result<Lock, StoreError> {
            let lock = Lock::take(folder, terms.has_ended)?;
            leftover::sweep(&lock, &self.warn);
            Ok(lock)
        };
        let lock = lock_and_sweep(folder)?;
        if !Staging::is_left_in(&lock) {
            return Ok(lock);
        }
        // Recovery takes the locks of all folders that it needs.
        let folder = lock.release();
        let has_recovered = self.recover_found();
        let lock = lock_and_sweep(folder)?;
        self.leave_staged(&lock, has_recovered);
        Ok(lock)
    }

    /// Resolves the path of a new file and creates its missing parent folders. `check` gets the resolved path before
    /// anything is created. The new folders are removed again unless [`MadeFolders::keep`] is called.
    pub(super) fn reach_new<'a>(
        &self,
        path: &'a WorkspacePath,
        terms: &Terms<'_>,
        check: &dyn Fn(&WorkspacePath) -> Result<(), StoreError>,
    ) -> Result<NewName<'a>, StoreError> {
        if is_reserved(path) {
            return Err(StoreError::Reserved);
        }
        let (folder, name) = path.split_last().ok_or(StoreError::IsFolder)?;
        let hidden = |error: StoreError| self.unless_hidden(error, path, Verb::Write, terms);
        for _ in 0..TRIES {
            let planned = self.root.resolve_folder(&folder).map_err(|error| hidden(error.into()))?;
            let resolved = planned.join(name).ok_or(StoreError::Reserved)?;
            may_write(&resolved, terms).map_err(hidden)?;
            self.refuse_unfinished(&resolved)?;
            self.root.refuse_too_deep(&resolved)?;
            check(&resolved)?;
            let mut made = MadeFolders::default();
            let (opened, reached) = self.make_folders(&folder, terms, &mut made).map_err(hidden)?;
            if reached == planned {
                return Ok(NewName { folder: opened, path: planned, name, made });
            }
        }
        Err(StoreError::KeepsChanging)
    }

    /// Opens a folder and creates it, and its parents, if they are missing.
    fn make_folders(
        &self,
        path: &WorkspacePath,
        terms: &Terms<'_>,
        made: &mut MadeFolders,
    ) -> Result<(OwnedFd, WorkspacePath), StoreError> {
        match self.root.open_folder(path) {
            Err(Errno::NOENT) => {}
            found => return Ok(found?),
        }
        let (parent, name) = path.split_last().ok_or(StoreError::NotFound)?;
        let (parent, resolved) = self.make_folders(&parent, terms, made)?;
        may_write(&resolved.join(name).ok_or(StoreError::Reserved)?, terms)?;
        match rustix::fs::mkdirat(&parent, name, Mode::from_raw_mode(0o777)) {
            Ok(()) => {
                made.0.push((parent.try_clone()?, name.to_owned()));
                self.durability.sync(&parent)?;
            }
            // Another program created it, or it is a broken link: opening it fails then.
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(self.root.open_folder(path)?)
    }
}

/// A name that a file is going to get.
pub(super) struct NewName<'a> {
    pub(super) folder: OwnedFd,
    /// The resolved path of the folder.
    pub(super) path: WorkspacePath,
    pub(super) name: &'a str,
    pub(super) made: MadeFolders,
}

/// The folders that were created for a change, removed on drop unless the change happened (rollback).
#[derive(Default)]
pub(super) struct MadeFolders(Vec<(OwnedFd, String)>);

impl MadeFolders {
    /// Keeps the folders: the change happened.
    pub(super) fn keep(mut self) {
        self.0.clear();
    }
}

impl Drop for MadeFolders {
    fn drop(&mut self) {
        for (parent, name) in self.0.drain(..).rev() {
            // A folder that another program uses by now is not empty and stays.
            let _ = rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR);
        }
    }
}

/// Checks that the caller may write the resolved path, and that rules allow changes there at all.
pub(super) fn may_write(resolved: &WorkspacePath, terms: &Terms<'_>) -> Result<(), StoreError> {
    (terms.permit)(Verb::Write, resolved)?;
    Ok(terms.rules.may_change(resolved)?)
}
