//! Reaching what is to be changed, and locking the folder that it lies in.

use std::os::fd::OwnedFd;

use pintle_contract::{Verb, WorkspacePath};
use pintle_root::{is_reserved, open_any_in};
use rustix::{
    fs::{AtFlags, Mode},
    io::Errno,
};

use super::{LocalFolder, leftover, lock::Lock, source::OpenFile};
use crate::store::{StoreError, Terms};

/// How often a path is resolved again when it changes while it is being reached.
const TRIES: usize = 16;

/// A file that is about to be changed.
pub(super) struct Reached {
    /// The path of the name that is changed, without links on the way to it.
    pub(super) path: WorkspacePath,
    /// Its last part.
    pub(super) name: String,
    /// The folder that the name lies in.
    pub(super) lock: Lock,
    /// The file, with its content.
    pub(super) source: OpenFile,
    /// The resolved path of the file, if the name is that of a link to it.
    pub(super) leads_to: Option<WorkspacePath>,
}

impl Reached {
    /// The folder that the name lies in, without links.
    pub(super) fn folder(&self) -> Option<WorkspacePath> {
        self.path.split_last().map(|(folder, _)| folder)
    }
}

impl LocalFolder {
    /// Reaches the file that a path leads to, through all links.
    pub(super) fn reach_file(&self, path: &WorkspacePath, terms: &Terms<'_>) -> Result<Reached, StoreError> {
        for _ in 0..TRIES {
            let named = self.reach_name(path, terms)?;
            let Some(target) = named.leads_to else { return Ok(named) };
            drop(named.lock);
            let reached = match self.reach_name(&target, terms) {
                // Somebody has moved it before the lock was there.
                Err(StoreError::NotFound) => continue,
                reached => reached?,
            };
            // The resolved path is right only if the path leads there now that the lock is held.
            if reached.leads_to.is_none() && self.root.open_any(path)?.1 == reached.path {
                return Ok(reached);
            }
        }
        Err(StoreError::Unsteady)
    }

    /// Reaches a name, which may be that of a link.
    pub(super) fn reach_name(&self, path: &WorkspacePath, terms: &Terms<'_>) -> Result<Reached, StoreError> {
        if is_reserved(path) {
            return Err(StoreError::NotFound);
        }
        let (folder, name) = path.split_last().ok_or(StoreError::IsFolder)?;
        let (folder, parent) = self
            .root
            .open_folder(&folder)
            .map_err(|error| self.unless_hidden(error.into(), path, Verb::Write, terms))?;
        let resolved = parent.join(name).ok_or(StoreError::NotFound)?;
        may_write(&resolved, terms)?;
        let lock = Lock::take(folder, terms.has_ended)?;
        leftover::sweep(&lock, &self.warn);
        let (source, leads_to) = match open_any_in(&lock, name.as_bytes()) {
            Ok(file) => (OpenFile::new(file)?, None),
            // That is how the system says that it is a link.
            Err(Errno::LOOP) => {
                let (file, target) = self
                    .root
                    .open_any(&resolved)
                    .map_err(|error| self.unless_hidden(error.into(), &resolved, Verb::Write, terms))?;
                may_write(&target, terms)?;
                (OpenFile::new(file)?, Some(target))
            }
            Err(error) => return Err(error.into()),
        };
        Ok(Reached { path: resolved, name: name.to_owned(), lock, source, leads_to })
    }

    /// Reaches a path where something is to be put: the folder, which is made if it is missing, and the path
    /// without links. `check` is asked of that path before anything is made. What was made goes again unless it is kept.
    pub(super) fn reach_new<'a>(
        &self,
        path: &'a WorkspacePath,
        terms: &Terms<'_>,
        check: &dyn Fn(&WorkspacePath) -> Result<(), StoreError>,
    ) -> Result<(OwnedFd, &'a str, MadeFolders), StoreError> {
        if is_reserved(path) {
            return Err(StoreError::Reserved);
        }
        let (folder, name) = path.split_last().ok_or(StoreError::IsFolder)?;
        for _ in 0..TRIES {
            let planned = self.root.resolve_folder(&folder)?;
            let resolved = planned.join(name).ok_or(StoreError::Reserved)?;
            may_write(&resolved, terms)?;
            self.root.refuse_too_deep(&resolved)?;
            check(&resolved)?;
            let mut made = MadeFolders::default();
            let (opened, reached) = self.make_folders(&folder, terms, &mut made)?;
            if reached == planned {
                return Ok((opened, name, made));
            }
        }
        Err(StoreError::Unsteady)
    }

    /// Opens a folder, and makes it first where it is missing.
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
                self.durability.settle(&parent)?;
            }
            // Somebody else made it, or it is a link that leads nowhere: opening it will tell.
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(self.root.open_folder(path)?)
    }
}

/// The folders that were made for a change, which go again unless it happens.
#[derive(Default)]
pub(super) struct MadeFolders(Vec<(OwnedFd, String)>);

impl MadeFolders {
    /// The change has happened.
    pub(super) fn keep(mut self) {
        self.0.clear();
    }
}

impl Drop for MadeFolders {
    fn drop(&mut self) {
        for (parent, name) in self.0.drain(..).rev() {
            // One that somebody else uses by now stays.
            let _ = rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR);
        }
    }
}

/// Whether a resolved path may be changed by whoever asks, and at all.
fn may_write(resolved: &WorkspacePath, terms: &Terms<'_>) -> Result<(), StoreError> {
    (terms.permit)(Verb::Write, resolved)?;
    Ok(terms.rules.may_change(resolved)?)
}
