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
use pintle_root::Root;
use rustix::{
    fs::{Access, AtFlags, FileType},
    io::Errno,
};

use self::{
    change::{JUDGED, judge, judgeable, refuse_taken, ruled, too_large, write_spliced},
    leftover::Warn,
    lock::Lock,
    mark::Replaced,
    reach::Reached,
    source::OpenFile,
    temporary::Temporary,
    tree::TreeWalk,
};
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
            Self::Synced => Ok(rustix::fs::fsync(file)?),
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
        Root::open(path).and_then(Self::new)
    }

    /// Opens the folder in the way that works without the kernel's help.
    pub fn open_portably(path: &Path) -> io::Result<Self> {
        Root::open_portably(path).and_then(Self::new)
    }

    fn new(root: Root) -> io::Result<Self> {
        // A root that may be passed through, but not listed, is of no use here.
        root.open_folder(&WorkspacePath::root())?;
        Ok(Self { root, durability: Durability::default(), warn: Box::new(|_| {}) })
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
        match self.root.resolve_folder(path).map(|resolved| (terms.permit)(verb, &resolved)) {
            Ok(Err(fault)) => StoreError::Refused(fault),
            _ => error,
        }
    }

    /// Opens a folder whose entries whoever asks may know, and returns its resolved path.
    fn open_to_list(
        &self,
        path: &WorkspacePath,
        terms: &Terms<'_>,
    ) -> Result<(OwnedFd, WorkspacePath), StoreError> {
        let (folder, resolved) = match self.root.open_folder(path) {
            Err(Errno::NOTDIR) => {
                // Either it is a file, or something on the way to it is.
                let (resolved, kind, _) = self.root.follow_link(path).ok_or(StoreError::NotFolder)?;
                (terms.permit)(Verb::Read, &resolved)?;
                return Err(match kind {
                    FileType::RegularFile => StoreError::IsFile,
                    _ => StoreError::Special,
                });
            }
            opened => opened.map_err(|error| self.unless_hidden(error.into(), path, Verb::Read, terms))?,
        };
        (terms.permit)(Verb::Read, &resolved)?;
        Ok((folder, resolved))
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
    fn warn_of_kept(&self, lock: &Lock, error: StoreError) -> StoreError {
        if let StoreError::Kept(name) = &error {
            let path = leftover::shown_path(lock);
            (self.warn)(&format!(
                "a program saved a file in {path} in the instant that it was being changed, and the file system did not let that save go back to its name; it is now {name}"
            ));
        }
        error
    }
}

impl Store for LocalFolder {
    fn open(&self, path: &WorkspacePath, terms: &Terms<'_>) -> Result<Box<dyn Source>, StoreError> {
        let (opened, resolved) = self
            .root
            .open_any(path)
            .map_err(|error| self.unless_hidden(error.into(), path, Verb::Read, terms))?;
        (terms.permit)(Verb::Read, &resolved)?;
        Ok(Box::new(OpenFile::new(opened)?))
    }

    fn read_at_once(&self, path: &WorkspacePath, terms: &Terms<'_>) -> Option<Vec<u8>> {
        let opened = self.root.open_cached(path)?;
        (terms.permit)(Verb::Read, path).ok()?;
        source::read_at_once(&opened)
    }

    fn create(&self, path: &WorkspacePath, content: &[u8], terms: &Terms<'_>) -> Result<Hash, StoreError> {
        let (folder, name, made) = self.reach_new(path, terms, &|resolved| {
            ruled(terms, path, resolved).iter().try_for_each(|path| judge(terms, path, None, content))
        })?;
        let lock = Lock::take(folder, terms.has_ended)?;
        leftover::sweep(&lock, &self.warn);
        refuse_taken(&lock, name)?;
        let mut temporary = Temporary::create(&lock)?;
        temporary.write(content)?;
        let placed = temporary.put_new(name, self.durability, terms);
        // What may be there already stays, also where nobody can say that it is on the disk.
        if let Ok(()) | Err(StoreError::NotDurable(_)) = placed {
            made.keep();
        }
        placed?;
        Ok(Hash::of(content))
    }

    fn swap(
        &self,
        path: &WorkspacePath,
        expected: Hash,
        plan: &mut dyn FnMut(&dyn Source) -> Result<Plan, StoreError>,
        terms: &Terms<'_>,
    ) -> Result<Hash, StoreError> {
        let Reached { path: resolved, name, lock, mut source, .. } = self.reach_file(path, terms)?;
        // Replacing a file needs no right to write it, but somebody who took that right away meant it.
        rustix::fs::accessat(&lock, &name, Access::WRITE_OK, AtFlags::EACCESS)?;
        source.unmark()?;
        let before = source.file.metadata()?;
        let Plan { found, change } = plan(&source)?;
        if found != expected {
            return Err(StoreError::Stale(found));
        }
        let splice = change?;
        let replaced = Replaced { size: source.size(), hash: found };
        let mut temporary = Temporary::like(&lock, &source.file, &before, replaced)?;
        let hash = write_spliced(&source, &splice, &mut temporary, terms)?;
        let ruled = ruled(terms, path, &resolved);
        if !ruled.is_empty() {
            let (old, new) =
                (judgeable(&source, terms)?, temporary.read_back(JUDGED)?.ok_or_else(too_large)?);
            ruled.iter().try_for_each(|path| judge(terms, path, Some(&old), &new))?;
        }
        let replaced = temporary.replace(&name, &source, self.durability, terms);
        replaced.map_err(|error| self.warn_of_kept(&lock, error))?;
        Ok(hash)
    }

    fn remove(&self, path: &WorkspacePath, expected: Hash, terms: &Terms<'_>) -> Result<(), StoreError> {
        let reached = self.reach_name(path, terms)?;
        reached.source.check(expected, terms)?;
        match reached.leads_to {
            None => temporary::remove(&reached.lock, &reached.name, &reached.source, terms)
                .map_err(|error| self.warn_of_kept(&reached.lock, error))?,
            Some(_) => {
                commit(terms)?;
                rustix::fs::unlinkat(&reached.lock, &reached.name, AtFlags::empty())?;
            }
        }
        self.durability.settle_change(&reached.lock)
    }

    fn rename(
        &self,
        path: &WorkspacePath,
        expected: Hash,
        to: &WorkspacePath,
        terms: &Terms<'_>,
    ) -> Result<(), StoreError> {
        let reached = self.reach_name(path, terms)?;
        reached.source.check(expected, terms)?;
        self.move_reached(&reached, path, to, terms).map_err(|error| match error {
            StoreError::Ended | StoreError::Refused(_) | StoreError::Changed | StoreError::Kept(_) => error,
            error => StoreError::Target(Box::new(error)),
        })
    }

    fn list(&self, path: &WorkspacePath, terms: &Terms<'_>) -> Result<Vec<Entry>, StoreError> {
        let (folder, resolved) = self.open_to_list(path, terms)?;
        if let Some(lock) = Lock::try_take(&folder) {
            leftover::sweep(&lock, &self.warn);
        }
        folder::entries(&self.root, &folder, &resolved, terms)
    }

    fn tree(
        &self,
        path: &WorkspacePath,
        wanted: &Wanted<'_>,
        terms: &Terms<'_>,
    ) -> Result<Found, StoreError> {
        let (folder, resolved) = self.open_to_list(path, terms)?;
        let walk = TreeWalk { root: &self.root, warn: &self.warn, wanted, terms };
        walk.run(folder, resolved, path)
    }

    fn is_folder(&self, path: &WorkspacePath, terms: &Terms<'_>) -> bool {
        let opened = self.root.open_folder(path);
        opened.is_ok_and(|(_, resolved)| (terms.permit)(Verb::Read, &resolved).is_ok())
    }

    fn names(&self, path: &WorkspacePath, terms: &Terms<'_>) -> Result<Vec<String>, StoreError> {
        let (folder, resolved) = self.root.open_folder(path)?;
        (terms.permit)(Verb::Read, &resolved)?;
        folder::names(&folder, &resolved, terms)
    }
}

/// To be passed right before the step that changes what others see.
fn commit(terms: &Terms<'_>) -> Result<(), StoreError> {
    if (terms.commit)() { Ok(()) } else { Err(StoreError::Ended) }
}

/// What the system's refusals mean.
impl From<Errno> for StoreError {
    fn from(error: Errno) -> Self {
        match error {
            Errno::NOENT => Self::NotFound,
            Errno::NOTDIR => Self::NotFolder,
            Errno::ISDIR => Self::IsFolder,
            Errno::EXIST => Self::Exists,
            Errno::XDEV | Errno::LOOP => Self::Escapes,
            Errno::NAMETOOLONG => Self::NameTooLong,
            // Neither a file nor a folder, or a name that is no text.
            Errno::NXIO | Errno::NODEV | Errno::ILSEQ => Self::Special,
            // Others move the path about.
            Errno::AGAIN => Self::Unsteady,
            error => Self::Io(error.into()),
        }
    }
}
