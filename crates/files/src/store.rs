//! The storage interface of the tools: bytes, versions (hashes) and atomic changes.
//!
//! Nothing here depends on file descriptors or a disk, so an object store with conditional writes could implement it.

use std::io;

use pintle_contract::{Fault, Verb, WorkspacePath};

use crate::{
    globs::Globs,
    hash::{Hash, Tag},
};

/// Storage for files, with compare-and-swap changes.
pub trait Store: Send + Sync + 'static {
    /// Opens a file for reading.
    fn open(&self, path: &WorkspacePath, terms: &Terms<'_>) -> Result<Box<dyn Source>, StoreError>;

    /// The content of a small file, if it can be read without blocking. `None` says nothing about the file; call
    /// [`Store::open`] then.
    fn read_at_once(&self, _path: &WorkspacePath, _terms: &Terms<'_>) -> Option<Vec<u8>> {
        None
    }

    /// Creates a file, and its missing parent folders.
    fn create(&self, path: &WorkspacePath, content: &[u8], terms: &Terms<'_>) -> Result<Hash, StoreError>;

    /// Compare-and-swap: changes a file if it still has the expected version. `plan` reads the file and returns the
    /// version that it found and the change. Of several writers that expect the same version, exactly one succeeds.
    fn swap(
        &self,
        path: &WorkspacePath,
        expected: &Tag,
        plan: &mut dyn FnMut(&dyn Source) -> Result<Plan, StoreError>,
        terms: &Terms<'_>,
    ) -> Result<Hash, StoreError>;

    /// Removes a file if it still has the expected version.
    fn remove(&self, path: &WorkspacePath, expected: &Tag, terms: &Terms<'_>) -> Result<(), StoreError>;

    /// Moves a file if it still has the expected version and nothing exists at `to`. Returns its hash.
    fn rename(
        &self,
        path: &WorkspacePath,
        expected: &Tag,
        to: &WorkspacePath,
        terms: &Terms<'_>,
    ) -> Result<Hash, StoreError>;

    /// Where a path leads once all links are followed. For a file that does not exist, where it would be created.
    fn resolve(&self, path: &WorkspacePath, terms: &Terms<'_>) -> Result<WorkspacePath, StoreError>;

    /// Changes several files, all or none of them, and returns their new hashes in the same order. Each change has a
    /// file of its own, by its resolved path. `accept` is called when all of them are planned and nothing is written yet, and
    /// can refuse them together. With `dry_run` everything is checked and nothing is changed.
    fn change_set(
        &self,
        changes: &mut [FileChange<'_>],
        accept: &mut dyn FnMut() -> Result<(), Fault>,
        dry_run: bool,
        terms: &Terms<'_>,
    ) -> Result<Vec<Hash>, ChangeSetError>;

    /// Whether [`Store::change_set`] can change anything now.
    fn can_change_several(&self) -> bool;

    /// The change sets that are not undone yet.
    fn unfinished(&self) -> Vec<UnfinishedChange> {
        Vec::new()
    }

    /// The direct entries of a folder, in no order.
    fn list(&self, path: &WorkspacePath, terms: &Terms<'_>) -> Result<Vec<Entry>, StoreError>;

    /// The entries of a folder at every depth, named by path and sorted by the bytes of the path. Links are not
    /// followed, and `.git` is skipped.
    fn tree(
        &self,
        path: &WorkspacePath,
        filter: &TreeFilter<'_>,
        terms: &Terms<'_>,
    ) -> Result<TreeEntries, StoreError>;

    /// Whether the path is a folder that the caller may read.
    fn is_folder(&self, path: &WorkspacePath, terms: &Terms<'_>) -> bool;

    /// Some of the names in a folder, for suggesting one that is near a missing name.
    fn names(&self, path: &WorkspacePath, terms: &Terms<'_>) -> Result<Vec<String>, StoreError>;
}

/// The bytes of one version of a file, which can be read more than once.
pub trait Source {
    /// The number of bytes.
    fn size(&self) -> u64;

    /// Reads bytes at an offset; returns fewer than fit into the buffer only at the end.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;
}

/// Bytes in memory.
impl Source for Vec<u8> {
    fn size(&self) -> u64 {
        self.len() as u64
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = usize::try_from(offset).ok().and_then(|offset| self.get(offset..)).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
}

/// A planned change of a file.
pub struct Plan {
    /// The version that was read.
    pub found: Hash,
    /// The change: splices in the order of their offsets, which do not overlap. Or why there is none.
    pub change: Result<Vec<Splice>, Fault>,
}

/// Replaces a range of bytes with others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Splice {
    /// The offset of the range.
    pub start: u64,
    /// How many bytes are removed.
    pub removed: u64,
    /// The bytes that are inserted there.
    pub inserted: Vec<u8>,
}

/// A change set that was cut off and is not undone yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnfinishedChange {
    /// The files that may be in the new state while others are in the old one. None if they are not known, or in another
    /// root.
    pub files: Vec<WorkspacePath>,
    /// Whether nobody may change them until then. If not, only what came out of them is left.
    pub blocks_edits: bool,
    /// The root that its files are in, if it is another one. That is for the operator; callers are not told.
    pub elsewhere: Option<String>,
    /// Why it is not undone, and which journal it has.
    pub reason: String,
    /// What a person can do.
    pub remedy: String,
}

/// One file of a change set.
pub struct FileChange<'a> {
    /// Its path, as the caller wrote it.
    pub path: WorkspacePath,
    /// What happens to it.
    pub kind: ChangeKind<'a>,
}

/// Reads a file and plans its change.
pub type Planner<'a> = Box<dyn FnMut(&dyn Source) -> Result<Plan, StoreError> + 'a>;

/// What a change set does to a file.
pub enum ChangeKind<'a> {
    /// Changes it if it still has the expected version, as [`Store::swap`] does. The plan may be made more than once.
    Edit {
        /// The version that is expected.
        expected: Tag,
        /// Reads the file and plans the change.
        plan: Planner<'a>,
    },
    /// Creates it, with this content. It must not exist.
    Create(&'a [u8]),
}

/// Why a change set did not happen.
#[derive(Debug)]
pub enum ChangeSetError {
    /// What is wrong with which of the changes, by their number. Nothing was done.
    Files(Vec<(usize, StoreError)>),
    /// What is wrong with all of it. Nothing was done.
    Whole(StoreError),
    /// It was undone again because of `cause`, but not in every file.
    NotUndone {
        /// What stopped it, and for which change.
        cause: Box<(Option<usize>, StoreError)>,
        /// The files that are as they were.
        undone: Vec<WorkspacePath>,
        /// Those that are not, and why.
        kept: Vec<(WorkspacePath, String)>,
        /// Whether recovery tries to undo them again.
        is_tried_again: bool,
    },
}

/// What splices make of some bytes.
#[cfg(any(test, fuzzing))]
pub(crate) fn spliced(bytes: &[u8], splices: &[Splice]) -> Vec<u8> {
    let (mut result, mut rest) = (Vec::new(), 0);
    for splice in splices {
        let start = usize::try_from(splice.start).expect("small");
        result.extend_from_slice(&bytes[rest..start]);
        result.extend_from_slice(&splice.inserted);
        rest = start + usize::try_from(splice.removed).expect("small");
    }
    result.extend_from_slice(&bytes[rest..]);
    result
}

/// An entry of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name, or its path in a tree. Bytes that are not UTF-8 are shown as `\u{fffd}`.
    pub name: String,
    /// Its kind.
    pub kind: Kind,
    /// The size of a file in bytes; 0 for anything else.
    pub size: u64,
}

/// The kind of an entry. A link has the kind of its target, if that is in the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A folder.
    Folder,
    /// A regular file.
    File,
    /// Anything else; it cannot be opened.
    Other,
}

/// Which entries of a tree are returned.
pub struct TreeFilter<'a> {
    /// How many levels below the folder; 1 is its direct entries. None is all levels.
    pub depth: Option<u32>,
    /// Only paths that match.
    pub globs: Option<&'a Globs>,
    /// Only entries of this kind.
    pub kind: Option<Kind>,
    /// Whether to include what ignore rules such as those of a `.gitignore` exclude.
    pub ignored: bool,
    /// The most entries that are returned: the first ones.
    pub most: usize,
    /// Whether to count all entries even after that many were found.
    pub counts_all: bool,
}

/// The entries of a tree, up to the filter's limit.
#[derive(Debug, Default)]
pub struct TreeEntries {
    /// The entries, sorted by path.
    pub entries: Vec<Entry>,
    /// How many there are, as far as they were counted.
    pub total: u64,
}

/// The conditions of one call: its permissions, the rules for content, and cancellation.
pub struct Terms<'a> {
    /// Checks that the caller may use the resolved path.
    pub permit: &'a dyn Fn(Verb, &WorkspacePath) -> Result<(), Fault>,
    /// The rules that the content of a changed file has to keep.
    pub rules: &'a dyn Rules,
    /// Whether the call was cancelled or is past its deadline.
    pub has_ended: &'a dyn Fn() -> bool,
    /// The point of no return: called once, right before the change becomes visible. If it returns true the change
    /// happens and the caller gets its result, even if the call is cancelled afterwards.
    pub commit: &'a dyn Fn() -> bool,
}

/// Rules for the content of files, such as bindings to schemas.
pub trait Rules: Send + Sync {
    /// Whether any rule applies to a path.
    fn apply_to(&self, path: &WorkspacePath) -> bool;

    /// Validates new content; `before` is the current content. When `has_ended` returns true the call was cancelled,
    /// and the verdict must not be used.
    fn judge(
        &self,
        path: &WorkspacePath,
        before: Option<&[u8]>,
        after: &[u8],
        has_ended: &dyn Fn() -> bool,
    ) -> Result<(), Fault>;

    /// Whether a path may be changed at all.
    fn may_change(&self, path: &WorkspacePath) -> Result<(), Fault>;
}

/// No rules: any content is allowed everywhere.
pub struct NoRules;

impl Rules for NoRules {
    fn apply_to(&self, _: &WorkspacePath) -> bool {
        false
    }

    fn judge(
        &self,
        _: &WorkspacePath,
        _: Option<&[u8]>,
        _: &[u8],
        _: &dyn Fn() -> bool,
    ) -> Result<(), Fault> {
        Ok(())
    }

    fn may_change(&self, _: &WorkspacePath) -> Result<(), Fault> {
        Ok(())
    }
}

/// Why an operation of a store failed.
#[derive(Debug)]
pub enum StoreError {
    /// Nothing exists at that path.
    NotFound,
    /// The path is a folder, and a file was expected.
    IsFolder,
    /// The path is a file, and a folder was expected.
    IsFile,
    /// The path passes through something that is not a folder.
    NotFolder,
    /// The path is neither a file nor a folder.
    Special,
    /// A link in the path leaves the root or forms a loop.
    Escapes,
    /// Something already exists at that path.
    Exists,
    /// The file has another version: this one.
    Stale(Hash),
    /// Another program changed the file during the operation.
    Changed,
    /// The same, and that program's version could not get its name back. It was kept under this name.
    Kept(String),
    /// Another program has the file open for writing.
    InUse,
    /// Another program holds the lock on the folder: its process id, if the system reports it.
    Locked(Option<u32>),
    /// The target of the path keeps changing.
    KeepsChanging,
    /// The target is on another file system, so the move cannot be atomic.
    OtherFileSystem,
    /// A name in the path is too long for the file system.
    NameTooLong,
    /// The file belongs to a change set that was cut off and is not undone yet.
    Unfinished,
    /// Something foreign has the name of the temporary file that a change needs.
    Blocked,
    /// The name is reserved for temporary files.
    Reserved,
    /// An error at the target path of a move.
    Target(Box<StoreError>),
    /// It was refused, for example because a permission is missing.
    Refused(Fault),
    /// A rule refused the content as it would be afterwards.
    RuleBroken(Fault),
    /// The call was cancelled or is past its deadline.
    Ended,
    /// The change was made, but its fsync failed, so it may not survive a power failure.
    NotDurable(io::Error),
    /// Any other I/O error.
    Io(io::Error),
}

impl From<io::Error> for StoreError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Fault> for StoreError {
    fn from(fault: Fault) -> Self {
        Self::Refused(fault)
    }
}
