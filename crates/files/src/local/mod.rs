//! A store in a local folder.
//!
//! The folder is kept open, and everything below it is opened relative to that handle (`openat2` with
//! `RESOLVE_BENEATH`): the kernel resolves each path and refuses to leave the root. No absolute path is ever built as
//! text and opened by name.
//!
//! A file is changed by writing a **temporary file** next to it and exchanging the two by an atomic rename. Writers lock
//! the parent folder, so that of two that expect the same version exactly one wins, across processes, too.
//!
//! A **link** is followed when a file is read or edited: what it leads to is edited, in its own folder. Removing and
//! moving act on the name that was given, so there the link itself goes. Of a file with several **hard links** an
//! edit changes the one name: the others, which may lie outside the root, keep the bytes that they had.

mod attributes;
mod change;
mod change_set;
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

pub use change_set::Checkpoint;

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
};

use pintle_contract::{Fault, Verb, WorkspacePath};
use pintle_root::Root;
use rustix::{
    fs::{Access, AtFlags, FileType},
    io::Errno,
};

use self::{
    change::{
        MAX_CHECKED_BYTES, check_rules, content_to_check, pass_spliced, paths_with_rules, refuse_taken,
        too_large,
    },
    change_set::{ChangeSets, leads_to},
    leftover::Warn,
    lock::Lock,
    mark::Replaced,
    reach::{NewName, Reached},
    source::OpenFile,
    temporary::Temporary,
    tree::TreeWalk,
};
use crate::{
    hash::{Hash, Tag},
    store::{
        ChangeSetError, Entry, FileChange, Plan, Source, Store, StoreError, Terms, TreeEntries, TreeFilter,
        UnfinishedChange,
    },
};

/// A folder on this machine.
pub struct LocalFolder {
    root: Root,
    durability: Durability,
    warn: Box<Warn>,
    /// Called with each file that recovery may have changed.
    recovered: Box<dyn Fn(&WorkspacePath) + Send + Sync>,
    change_sets: ChangeSets,
}

/// Whether a change is on disk (fsync) when its call returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Yes: every change is synced and survives a power failure.
    #[default]
    Synced,
    /// No: the system writes it later. Changes are still atomic, except after a power failure.
    Eventual,
}

impl Durability {
    fn sync(self, file: impl AsFd) -> Result<(), StoreError> {
        match self {
            Self::Synced => Ok(rustix::fs::fsync(file)?),
            Self::Eventual => Ok(()),
        }
    }

    /// Syncs the folder of a change that is already visible; an error means that it is not durable.
    fn sync_change(self, folder: impl AsFd) -> Result<(), StoreError> {
        self.sync(folder).map_err(|error| match error {
            StoreError::Io(error) => StoreError::NotDurable(error),
            error => error,
        })
    }
}

impl LocalFolder {
    /// Opens the folder as a store.
    pub fn open(path: &Path) -> io::Result<Self> {
        Root::open(path).and_then(Self::new)
    }

    /// Opens the folder with path resolution in user space, for systems without `openat2`.
    pub fn open_portably(path: &Path) -> io::Result<Self> {
        Root::open_portably(path).and_then(Self::new)
    }

    fn new(root: Root) -> io::Result<Self> {
        // A root that can be traversed but not listed is refused.
        root.open_folder(&WorkspacePath::root())?;
        Ok(Self {
            root,
            durability: Durability::default(),
            warn: Box::new(|_| {}),
            recovered: Box::new(|_| {}),
            change_sets: ChangeSets::default(),
        })
    }

    /// The error of opening a path, for callers who may use all that the path leads to, whatever exists there. Others get
    /// the refusal, so that a link cannot be used to learn what exists out of scope or behind a deny rule.
    fn unless_hidden(
        &self,
        error: StoreError,
        path: &WorkspacePath,
        verb: Verb,
        terms: &Terms<'_>,
    ) -> StoreError {
        self.refuse_hidden(path, verb, terms).err().unwrap_or(error)
    }

    /// Refuses a path that leads to where the caller may not go, whether or not anything is there.
    fn refuse_hidden(&self, path: &WorkspacePath, verb: Verb, terms: &Terms<'_>) -> Result<(), StoreError> {
        let paths = self.root.follow_hypothetically(path);
        Ok(paths.iter().try_for_each(|path| (terms.permit)(verb, path))?)
    }

    /// Checks that the caller may read what was opened. The refusal is the same as if nothing had been there.
    fn permit_opened(
        &self,
        path: &WorkspacePath,
        resolved: &WorkspacePath,
        terms: &Terms<'_>,
    ) -> Result<(), StoreError> {
        let permitted = (terms.permit)(Verb::Read, resolved);
        permitted.map_err(|fault| self.unless_hidden(fault.into(), path, Verb::Read, terms))
    }

    /// Opens a folder that the caller may read, and returns its resolved path.
    fn open_to_list(
        &self,
        path: &WorkspacePath,
        terms: &Terms<'_>,
    ) -> Result<(OwnedFd, WorkspacePath), StoreError> {
        let (folder, resolved) = match self.root.open_folder(path) {
            Err(Errno::NOTDIR) => {
                // Either it is a file, or something in the path is.
                let found = self.root.follow_link(path);
                let hidden = || self.unless_hidden(StoreError::NotFolder, path, Verb::Read, terms);
                let (resolved, kind, _) = found.ok_or_else(hidden)?;
                self.permit_opened(path, &resolved, terms)?;
                return Err(match kind {
                    FileType::RegularFile => StoreError::IsFile,
                    _ => StoreError::Special,
                });
            }
            opened => opened.map_err(|error| self.unless_hidden(error.into(), path, Verb::Read, terms))?,
        };
        self.permit_opened(path, &resolved, terms)?;
        Ok((folder, resolved))
    }

    /// Sets the durability of changes.
    #[must_use]
    pub fn with_durability(self, durability: Durability) -> Self {
        Self { durability, ..self }
    }

    /// Sets the folder of the journals of change sets, which must not be in the root. Without one, several files cannot
    /// be changed together.
    #[must_use]
    pub fn with_journals(mut self, folder: Option<PathBuf>) -> Self {
        self.change_sets.journals = folder;
        self
    }

    /// Sets what is called before each step of a change set, for tests that stop there.
    #[must_use]
    pub fn with_checkpoint(mut self, checkpoint: Box<Checkpoint>) -> Self {
        self.change_sets.checkpoint = checkpoint;
        self
    }

    /// Sets the function that logs warnings for the operator, one line each.
    #[must_use]
    pub fn with_warnings(self, warn: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self { warn: Box::new(warn), ..self }
    }

    /// Sets the function that is called with each file that recovery may have changed, so that a search index can see it.
    #[must_use]
    pub fn with_recovered(self, recovered: impl Fn(&WorkspacePath) + Send + Sync + 'static) -> Self {
        Self { recovered: Box::new(recovered), ..self }
    }

    /// Warns of a file that was kept under another name.
    fn warn_of_kept(&self, lock: &Lock, error: StoreError) -> StoreError {
        if let StoreError::Kept(name) = &error {
            let path = leftover::shown_path(lock);
            (self.warn)(&format!(
                "another program saved a file in {path} while it was being changed, and that version could not get its name back; it is now {name}"
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
        self.permit_opened(path, &resolved, terms)?;
        Ok(Box::new(OpenFile::new(opened)?))
    }

    fn read_at_once(&self, path: &WorkspacePath, terms: &Terms<'_>) -> Option<Vec<u8>> {
        let opened = self.root.open_cached(path)?;
        (terms.permit)(Verb::Read, path).ok()?;
        source::read_at_once(&opened)
    }

    fn create(&self, path: &WorkspacePath, content: &[u8], terms: &Terms<'_>) -> Result<Hash, StoreError> {
        let NewName { folder, path: folder_path, name, made } = self.reach_new(path, terms, &|resolved| {
            paths_with_rules(terms, path, resolved)
                .iter()
                .try_for_each(|path| check_rules(terms, path, None, content))
        })?;
        let lock = self.lock_to_write(folder, terms)?;
        // It may have been moved away while its lock was waited for.
        if !leads_to(&self.root, &folder_path, &lock)? {
            return Err(StoreError::KeepsChanging);
        }
        refuse_taken(&lock, name)?;
        let mut temporary = Temporary::create(&lock)?;
        temporary.write(content)?;
        let created = temporary.rename_new(name, self.durability, terms);
        // The new folders stay if the file is visible, even if its sync failed.
        if let Ok(()) | Err(StoreError::NotDurable(_)) = created {
            made.keep();
        }
        created?;
        Ok(Hash::of(content))
    }

    fn swap(
        &self,
        path: &WorkspacePath,
        expected: &Tag,
        plan: &mut dyn FnMut(&dyn Source) -> Result<Plan, StoreError>,
        terms: &Terms<'_>,
    ) -> Result<Hash, StoreError> {
        let Reached { path: resolved, name, lock, mut source, .. } = self.reach_file(path, terms)?;
        // A rename needs no write permission on the file itself, but a read-only file must not be changed.
        rustix::fs::accessat(&lock, &name, Access::WRITE_OK, AtFlags::EACCESS)?;
        source.unmark()?;
        let before = source.file.metadata()?;
        let Plan { found, change } = plan(&source)?;
        if !expected.names(found) {
            return Err(StoreError::Stale(found));
        }
        let splices = change?;
        let replaced = Replaced { size: source.size(), hash: found };
        let mut temporary = Temporary::like(&lock, &source.file, &before, replaced)?;
        let hash = pass_spliced(&source, &splices, |bytes| temporary.write(bytes), terms)?;
        let paths_with_rules = paths_with_rules(terms, path, &resolved);
        if !paths_with_rules.is_empty() {
            let (old, new) = (
                content_to_check(&source, terms)?,
                temporary.read_back(MAX_CHECKED_BYTES)?.ok_or_else(too_large)?,
            );
            paths_with_rules.iter().try_for_each(|path| check_rules(terms, path, Some(&old), &new))?;
        }
        let replaced = temporary.replace(&name, &source, self.durability, terms);
        replaced.map_err(|error| self.warn_of_kept(&lock, error))?;
        Ok(hash)
    }

    fn remove(&self, path: &WorkspacePath, expected: &Tag, terms: &Terms<'_>) -> Result<(), StoreError> {
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
        self.durability.sync_change(&reached.lock)
    }

    fn rename(
        &self,
        path: &WorkspacePath,
        expected: &Tag,
        to: &WorkspacePath,
        terms: &Terms<'_>,
    ) -> Result<Hash, StoreError> {
        let reached = self.reach_name(path, terms)?;
        let hash = reached.source.check(expected, terms)?;
        self.move_reached(&reached, path, to, terms).map(|()| hash).map_err(|error| match error {
            StoreError::Ended
            | StoreError::Refused(_)
            | StoreError::RuleBroken(_)
            | StoreError::Changed
            | StoreError::Kept(_) => error,
            error => StoreError::Target(Box::new(error)),
        })
    }

    fn resolve(&self, path: &WorkspacePath, terms: &Terms<'_>) -> Result<WorkspacePath, StoreError> {
        self.resolve_target(path, terms)
    }

    fn change_set(
        &self,
        changes: &mut [FileChange<'_>],
        accept: &mut dyn FnMut() -> Result<(), Fault>,
        dry_run: bool,
        terms: &Terms<'_>,
    ) -> Result<Vec<Hash>, ChangeSetError> {
        self.change_files(changes, accept, dry_run, terms)
    }

    fn can_change_several(&self) -> bool {
        self.change_sets.can_write_journals()
    }

    fn unfinished(&self) -> Vec<UnfinishedChange> {
        self.unfinished_changes()
    }

    fn list(&self, path: &WorkspacePath, terms: &Terms<'_>) -> Result<Vec<Entry>, StoreError> {
        let (folder, resolved) = self.open_to_list(path, terms)?;
        if let Some(lock) = Lock::try_take(&folder) {
            leftover::sweep(&lock, &self.warn);
            self.warn_of_staged(&lock);
        }
        folder::entries(&self.root, &folder, &resolved, terms)
    }

    fn tree(
        &self,
        path: &WorkspacePath,
        filter: &TreeFilter<'_>,
        terms: &Terms<'_>,
    ) -> Result<TreeEntries, StoreError> {
        let (folder, resolved) = self.open_to_list(path, terms)?;
        let walk = TreeWalk { root: &self.root, warn: &self.warn, filter, terms };
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

/// The point of no return, right before the step that makes a change visible.
fn commit(terms: &Terms<'_>) -> Result<(), StoreError> {
    if (terms.commit)() { Ok(()) } else { Err(StoreError::Ended) }
}

/// Maps error numbers of the system to store errors.
impl From<Errno> for StoreError {
    fn from(error: Errno) -> Self {
        match error {
            Errno::NOENT => Self::NotFound,
            Errno::NOTDIR => Self::NotFolder,
            Errno::ISDIR => Self::IsFolder,
            Errno::EXIST => Self::Exists,
            Errno::XDEV | Errno::LOOP => Self::Escapes,
            Errno::NAMETOOLONG => Self::NameTooLong,
            // Neither a file nor a folder, or a name that is not text.
            Errno::NXIO | Errno::NODEV | Errno::ILSEQ => Self::Special,
            // `openat2` gives up when the path is renamed while it is resolved.
            Errno::AGAIN => Self::KeepsChanging,
            error => Self::Io(error.into()),
        }
    }
}
