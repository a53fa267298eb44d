//! Where files are kept, as the tools see it: bytes, versions, and changes that happen whole or not at all.
//!
//! Nothing here speaks of descriptors or folders on a disk: a store of objects with conditional writes can
//! do the same.

use std::io;

use pintle_contract::{Fault, Verb, WorkspacePath};

use crate::{globs::Globs, hash::Hash};

/// Something that holds files.
pub trait Store: Send + Sync + 'static {
    /// Opens a file to be read.
    fn open(&self, path: &WorkspacePath, terms: &Terms<'_>) -> Result<Box<dyn Source>, StoreError>;

    /// The content of a small file, if it can be had without waiting for anything. None says nothing about the file:
    /// whoever gets it opens it.
    fn read_at_once(&self, _path: &WorkspacePath, _terms: &Terms<'_>) -> Option<Vec<u8>> {
        None
    }

    /// Creates a file, and the folders that it lies in.
    fn create(&self, path: &WorkspacePath, content: &[u8], terms: &Terms<'_>) -> Result<Hash, StoreError>;

    /// Changes a file if it still has the expected version: `plan` reads it, says which version it has and
    /// what is to change. Of several that expect the same version, one succeeds.
    fn swap(
        &self,
        path: &WorkspacePath,
        expected: Hash,
        plan: &mut dyn FnMut(&dyn Source) -> Result<Plan, StoreError>,
        terms: &Terms<'_>,
    ) -> Result<Hash, StoreError>;

    /// Removes a file if it still has the expected version.
    fn remove(&self, path: &WorkspacePath, expected: Hash, terms: &Terms<'_>) -> Result<(), StoreError>;

    /// Moves a file if it still has the expected version and nothing is at the other path.
    fn rename(
        &self,
        path: &WorkspacePath,
        expected: Hash,
        to: &WorkspacePath,
        terms: &Terms<'_>,
    ) -> Result<(), StoreError>;

    /// What lies directly in a folder, in no order.
    fn list(&self, path: &WorkspacePath, terms: &Terms<'_>) -> Result<Vec<Entry>, StoreError>;

    /// What lies in a folder and below it, in the order of the bytes of the paths, which are the names of the entries.
    /// Links are not followed, and `.git` is left out.
    fn tree(&self, path: &WorkspacePath, wanted: &Wanted<'_>, terms: &Terms<'_>)
    -> Result<Found, StoreError>;

    /// Whether there is a folder, for all that whoever asks may know.
    fn is_folder(&self, path: &WorkspacePath, terms: &Terms<'_>) -> bool;

    /// Some of the names in a folder, for those who look for one that is not there.
    fn names(&self, path: &WorkspacePath, terms: &Terms<'_>) -> Result<Vec<String>, StoreError>;
}

/// The bytes of one version of a file, which can be read more than once.
pub trait Source {
    /// How many there are.
    fn size(&self) -> u64;

    /// Reads bytes from an offset on; fewer than asked for only at the end.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;
}

/// Bytes at hand.
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

/// What is to become of a file.
pub struct Plan {
    /// The version that was read.
    pub found: Hash,
    /// The change, or why there is none.
    pub change: Result<Splice, Fault>,
}

/// Takes bytes out of a file and puts others in their place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Splice {
    /// Where.
    pub start: u64,
    /// How many bytes are taken out.
    pub removed: u64,
    /// What is put in.
    pub inserted: Vec<u8>,
}

/// What lies in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name. Bytes that are no text are shown as `\u{fffd}`.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// How many bytes a file has.
    pub size: u64,
}

/// What a thing in a folder is. A link is what it leads to, if that lies in the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A folder.
    Folder,
    /// A regular file.
    File,
    /// Anything else; it cannot be opened.
    Other,
}

/// Which entries of a tree are meant.
pub struct Wanted<'a> {
    /// How many levels below the folder; 1 is what lies directly in it. None is all.
    pub depth: Option<u32>,
    /// Only paths that match.
    pub globs: Option<&'a Globs>,
    /// Only what is of this kind.
    pub kind: Option<Kind>,
    /// Also what rules such as those of a `.gitignore` leave out.
    pub ignored: bool,
    /// How many entries at most: the first of them.
    pub most: usize,
    /// Goes on counting where that many are found.
    pub counts_all: bool,
}

/// What was found of a tree.
#[derive(Debug, Default)]
pub struct Found {
    /// The entries, sorted by path.
    pub entries: Vec<Entry>,
    /// How many there are, as far as they were counted.
    pub total: u64,
}

/// What whoever asks may do, and what must hold.
pub struct Terms<'a> {
    /// Whether the resolved path may be touched.
    pub permit: &'a dyn Fn(Verb, &WorkspacePath) -> Result<(), Fault>,
    /// What must hold of the content of a file, by its path: before and after a change.
    pub rules: &'a dyn Rules,
    /// Whether nobody waits for the result any more.
    pub has_ended: &'a dyn Fn() -> bool,
    /// Asked once, when all is ready and the change would be seen in the next step: whether it may happen. After
    /// a yes it does, and its caller is told so.
    pub commit: &'a dyn Fn() -> bool,
}

/// What must hold of the content of files.
pub trait Rules: Send + Sync {
    /// Whether anything is to be checked at a path.
    fn apply_to(&self, path: &WorkspacePath) -> bool;

    /// Whether the new content may stand there; `before` is what stands there now. When `has_ended` says so,
    /// nobody waits for the verdict, and it is worth nothing.
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

/// Everything may stand everywhere.
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

/// Why a store did not do what it was asked to.
#[derive(Debug)]
pub enum StoreError {
    /// There is nothing at that path.
    NotFound,
    /// There is a folder, where a file is meant.
    IsFolder,
    /// There is a file, where a folder is meant.
    IsFile,
    /// The way leads through something that is not a folder.
    NotFolder,
    /// It is neither a file nor a folder.
    Special,
    /// A link on the way leads out of the root, or in a circle.
    Escapes,
    /// There is something already.
    Exists,
    /// The file has another version.
    Stale(Hash),
    /// Somebody changed the file while it was being used.
    Changed,
    /// The same, and what they saved could not go back to its name. It has this one now.
    Kept(String),
    /// Another program has the file open for writing.
    InUse,
    /// Another program holds the lock on the folder: the process, where the system tells.
    Locked(Option<u32>),
    /// What the path leads to changes again and again.
    Unsteady,
    /// A file cannot move there in one step.
    OtherFileSystem,
    /// A name on the way is longer than the store can hold.
    NameTooLong,
    /// Something that is not the store's has the name that it needs for a change.
    Blocked,
    /// The name is one that the store keeps for itself.
    Reserved,
    /// Something is wrong with the other path of a move.
    Target(Box<StoreError>),
    /// It must not happen.
    Refused(Fault),
    /// Nobody waits for it any more.
    Ended,
    /// The change was made, but the system could not say that it is on the disk.
    NotDurable(io::Error),
    /// The system would not.
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
