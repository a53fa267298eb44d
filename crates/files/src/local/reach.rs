//! Reaching what is to be changed, and locking the folder that it lies in.

use std::os::fd::OwnedFd;

use pintle_contract::{Verb, WorkspacePath};
use rustix::fs::{Mode, OFlags};

use super::{
    LocalFolder, leftover,
    lock::Lock,
    problem,
    root::{MadeFolders, is_reserved},
    source::OpenFile,
};
use crate::store::{StoreError, Terms};

/// How often a place is looked for anew when it changes while it is being reached.
pub(super) const TRIES: usize = 16;

/// A file that is about to be changed.
pub(super) struct Reached {
    /// The name that is changed, without links.
    pub(super) place: WorkspacePath,
    /// Its last part.
    pub(super) name: String,
    /// The folder that the name lies in.
    pub(super) lock: Lock,
    /// The file, with its content.
    pub(super) source: OpenFile,
    /// Where the file is, if the name is that of a link to it.
    pub(super) leads_to: Option<WorkspacePath>,
}

impl Reached {
    /// The folder that the name lies in, without links.
    pub(super) fn folder(&self) -> Option<WorkspacePath> {
        self.place.split_last().map(|(folder, _)| folder)
    }
}

impl LocalFolder {
    /// Reaches the file that a path leads to, through all links.
    pub(super) fn reach_file(&self, path: &WorkspacePath, terms: &Terms<'_>) -> Result<Reached, StoreError> {
        for _ in 0..TRIES {
            let named = self.reach_name(path, terms)?;
            let Some(real) = named.leads_to else { return Ok(named) };
            drop(named.lock);
            let reached = match self.reach_name(&real, terms) {
                // Somebody has moved it before the lock was there.
                Err(StoreError::NotFound) => continue,
                reached => reached?,
            };
            // The place is right only if the path leads there now that the lock is held.
            if reached.leads_to.is_none() && self.root.open_any(path)?.1 == reached.place {
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
        let (folder, real) = self
            .root
            .open_folder(&folder)
            .map_err(|error| self.unless_hidden(error, path, Verb::Write, terms))?;
        let place = real.join(name).ok_or(StoreError::NotFound)?;
        may_write(&place, terms)?;
        let lock = Lock::take(folder, terms.has_ended)?;
        leftover::sweep(&lock, &self.warn);
        let (source, leads_to) = match open_by_name(&lock, name) {
            Ok(source) => (source, None),
            // That is how the system says that it is a link.
            Err(StoreError::Escapes) => {
                let (file, real) = self
                    .root
                    .open_any(&place)
                    .map_err(|error| self.unless_hidden(error, &place, Verb::Write, terms))?;
                may_write(&real, terms)?;
                (OpenFile::new(file)?, Some(real))
            }
            Err(error) => return Err(error),
        };
        Ok(Reached { place, name: name.to_owned(), lock, source, leads_to })
    }

    /// Reaches a place where something is to be put: the folder, which is made if it is missing, and the path
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
            let planned = self.root.place_of_folder(&folder)?;
            let place = planned.join(name).ok_or(StoreError::Reserved)?;
            may_write(&place, terms)?;
            self.root.refuse_too_deep(&place)?;
            check(&place)?;
            let mut made = MadeFolders::default();
            let may_make = |place: &WorkspacePath| may_write(place, terms);
            let (opened, real) = self.root.make_folders(&folder, &may_make, self.durability, &mut made)?;
            if real == planned {
                return Ok((opened, name, made));
            }
        }
        Err(StoreError::Unsteady)
    }
}

/// Whether a place may be changed by whoever asks, and at all.
fn may_write(place: &WorkspacePath, terms: &Terms<'_>) -> Result<(), StoreError> {
    (terms.permit)(Verb::Write, place)?;
    Ok(terms.rules.may_change(place)?)
}

/// Opens a regular file by its name in a folder, following nothing.
fn open_by_name(folder: &Lock, name: &str) -> Result<OpenFile, StoreError> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(folder, name, flags, Mode::empty()).map_err(problem)?;
    OpenFile::new(file)
}
