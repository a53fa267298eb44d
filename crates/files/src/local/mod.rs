//! A folder on this machine as a store.
//!
//! The folder is held open, and everything below it is reached through that handle: the kernel resolves each
//! path and refuses to leave. No path is ever put together as text and opened again by its name from outside.
//!
//! A file is changed by writing a **temporary file** beside it and renaming it into place. Writers lock the
//! folder that holds the file, so that of two who expect the same version one wins, also between processes.
//!
//! A **link** is followed when a file is read or edited: what it leads to is edited, in its own folder. Removing and
//! moving act on the name that was given, so there the link itself goes. Of a file with several **hard links** an
//! edit changes the one name: the others, which may lie outside the root, keep the bytes that they had.

mod attributes;
mod change;
mod folder;
mod ignore_rules;
mod lease;
mod leftover;
mod lock;
mod mark;
mod reach;
mod root;
mod source;
mod temporary;
mod tree;
mod version;

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    path::Path,
};

use pintle_contract::{Verb, WorkspacePath};
use rustix::{fs::FileType, io::Errno};

use self::{leftover::Warn, lock::Lock, root::Root, source::OpenFile, tree::TreeWalk};
use crate::{
    hash::Hash,
    store::{Entry, Found, Plan, Source, Store, StoreError, Terms, Wanted},
};

/// A folder on this machine.
pub struct LocalFolder {
    root: Root,
    durability: Durability,
    warn: Box<Warn>,
}

/// Whether a change is on the disk when it is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// It is, also if the power fails in the next instant.
    #[default]
    Synced,
    /// It will be, when the system finds the time. Changes are whole or not at all, unless the power fails.
    Eventual,
}

impl Durability {
    fn settle(self, file: impl AsFd) -> Result<(), StoreError> {
        match self {
            Self::Synced => rustix::fs::fsync(file).map_err(problem),
            Self::Eventual => Ok(()),
        }
    }

    /// The same for the folder of a change that others can see already.
    fn settle_change(self, folder: impl AsFd) -> Result<(), StoreError> {
        self.settle(folder).map_err(|error| match error {
            StoreError::Io(error) => StoreError::NotDurable(error),
            error => error,
        })
    }
}

impl LocalFolder {
    /// Opens the folder.
    pub fn open(path: &Path) -> io::Result<Self> {
        Root::open(path).map(Self::new)
    }

    /// Opens the folder in the way that works without the kernel's help.
    pub fn open_portably(path: &Path) -> io::Result<Self> {
        Root::open_portably(path).map(Self::new)
    }

    fn new(root: Root) -> Self {
        Self { root, durability: Durability::default(), warn: Box::new(|_| {}) }
    }

    /// That nothing is there is told only to those who would be told that something is: a link on the way may
    /// have led to where they may not look.
    fn unless_hidden(
        &self,
        error: StoreError,
        path: &WorkspacePath,
        verb: Verb,
        terms: &Terms<'_>,
    ) -> StoreError {
        let StoreError::NotFound = error else { return error };
        match self.root.place_of_folder(path).map(|place| (terms.permit)(verb, &place)) {
            Ok(Err(fault)) => StoreError::Refused(fault),
            _ => error,
        }
    }

    /// Opens a folder whose entries whoever asks may know, and tells where it really is.
    fn open_to_list(
        &self,
        path: &WorkspacePath,
        terms: &Terms<'_>,
    ) -> Result<(OwnedFd, WorkspacePath), StoreError> {
        let (folder, real) = match self.root.open_folder(path) {
            Err(StoreError::NotFolder) => {
                // Either it is a file, or something on the way to it is.
                let (real, kind, _) = self.root.look_at(path).ok_or(StoreError::NotFolder)?;
                (terms.permit)(Verb::Read, &real)?;
                return Err(match kind {
                    FileType::RegularFile => StoreError::IsFile,
                    _ => StoreError::Special,
                });
            }
            opened => opened.map_err(|error| self.unless_hidden(error, path, Verb::Read, terms))?,
        };
        (terms.permit)(Verb::Read, &real)?;
        Ok((folder, real))
    }

    /// The same folder, with another promise.
    #[must_use]
    pub fn with_durability(self, durability: Durability) -> Self {
        Self { durability, ..self }
    }

    /// The same folder; `warn` is given what a person should know, one line at a time.
    #[must_use]
    pub fn with_warnings(self, warn: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self { warn: Box::new(warn), ..self }
    }

    /// Warns of a file that was kept under another name.
    fn tell_kept(&self, lock: &Lock, error: StoreError) -> StoreError {
        if let StoreError::Kept(name) = &error {
            let place = leftover::place_of(lock);
            (self.warn)(&format!(
                "a program saved a file in {place} in the instant that it was being changed, and the file system did not let that save go back to its name; it is now {name}"
            ));
        }
        error
    }
}

impl Store for LocalFolder {
    fn open(&self, path: &WorkspacePath, terms: &Terms<'_>) -> Result<Box<dyn Source>, StoreError> {
        let (opened, real) =
            self.root.open_any(path).map_err(|error| self.unless_hidden(error, path, Verb::Read, terms))?;
        (terms.permit)(Verb::Read, &real)?;
        Ok(Box::new(OpenFile::new(opened)?))
    }

    fn read_at_once(&self, path: &WorkspacePath, terms: &Terms<'_>) -> Option<Vec<u8>> {
        let (opened, real) = self.root.open_known(path)?;
        (terms.permit)(Verb::Read, &real).ok()?;
        source::read_at_once(&opened)
    }

    fn create(&self, path: &WorkspacePath, content: &[u8], terms: &Terms<'_>) -> Result<Hash, StoreError> {
        self.create_file(path, content, terms)
    }

    fn swap(
        &self,
        path: &WorkspacePath,
        expected: Hash,
        plan: &mut dyn FnMut(&dyn Source) -> Result<Plan, StoreError>,
        terms: &Terms<'_>,
    ) -> Result<Hash, StoreError> {
        self.swap_file(path, expected, plan, terms)
    }

    fn remove(&self, path: &WorkspacePath, expected: Hash, terms: &Terms<'_>) -> Result<(), StoreError> {
        self.remove_file(path, expected, terms)
    }

    fn rename(
        &self,
        path: &WorkspacePath,
        expected: Hash,
        to: &WorkspacePath,
        terms: &Terms<'_>,
    ) -> Result<(), StoreError> {
        self.rename_file(path, expected, to, terms)
    }

    fn list(&self, path: &WorkspacePath, terms: &Terms<'_>) -> Result<Vec<Entry>, StoreError> {
        let (folder, real) = self.open_to_list(path, terms)?;
        if let Some(lock) = Lock::try_take(&folder) {
            leftover::sweep(&lock, &self.warn);
        }
        folder::entries(&self.root, &folder, &real, terms)
    }

    fn tree(
        &self,
        path: &WorkspacePath,
        wanted: &Wanted<'_>,
        terms: &Terms<'_>,
    ) -> Result<Found, StoreError> {
        let (folder, real) = self.open_to_list(path, terms)?;
        let walk = TreeWalk { root: &self.root, warn: &self.warn, wanted, terms };
        walk.run(folder, real, path)
    }

    fn is_folder(&self, path: &WorkspacePath, terms: &Terms<'_>) -> bool {
        let opened = self.root.open_folder(path);
        opened.is_ok_and(|(_, real)| (terms.permit)(Verb::Read, &real).is_ok())
    }

    fn names(&self, path: &WorkspacePath, terms: &Terms<'_>) -> Result<Vec<String>, StoreError> {
        let (folder, real) = self.root.open_folder(path)?;
        (terms.permit)(Verb::Read, &real)?;
        folder::names(&folder, &real, terms)
    }
}

/// To be passed right before the step that changes what others see.
fn commit(terms: &Terms<'_>) -> Result<(), StoreError> {
    if (terms.commit)() { Ok(()) } else { Err(StoreError::Ended) }
}

/// What the system's refusals mean.
fn problem(error: Errno) -> StoreError {
    match error {
        Errno::NOENT => StoreError::NotFound,
        Errno::NOTDIR => StoreError::NotFolder,
        Errno::ISDIR => StoreError::IsFolder,
        Errno::EXIST => StoreError::Exists,
        Errno::XDEV | Errno::LOOP => StoreError::Escapes,
        Errno::NAMETOOLONG => StoreError::NameTooLong,
        Errno::NXIO | Errno::NODEV => StoreError::Special,
        error => StoreError::Io(error.into()),
    }
}
