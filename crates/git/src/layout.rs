//! Where the parts of a repository are: the work tree, the git directory and the common directory, each held open.

use std::{fs::File, os::fd::OwnedFd};

use pintle_root::Directory;
use rustix::io::Errno;

use crate::directory::GitDirectory;

/// The parts of a repository.
pub(crate) struct Layout {
    pub(crate) work_tree: WorkTree,
    /// What belongs to this work tree alone: HEAD and the index.
    pub(crate) git_dir: GitDirectory,
    /// What a linked worktree shares with the others of its repository: refs, objects, configuration. None for any other
    /// work tree, whose git directory holds these as well.
    pub(crate) common_dir: Option<GitDirectory>,
    /// Whether `core.worktree` has to name this work tree, because nothing else shows that the git directory is its own.
    pub(crate) needs_back_pointer: bool,
}

/// The work tree, of which the root is all or a part. Paths are those of git, relative to the top of the work tree.
pub(crate) struct WorkTree {
    root: Directory,
    /// None if the root is the top.
    top: Option<Directory>,
    /// The path of the root, seen from the top: empty, or with a slash at its end.
    prefix: Vec<u8>,
}

impl WorkTree {
    pub(crate) fn new(root: Directory, top: Option<Directory>, prefix: Vec<u8>) -> Self {
        Self { root, top, prefix }
    }

    /// The path of the root: empty, or with a slash at its end.
    pub(crate) fn prefix(&self) -> &[u8] {
        &self.prefix
    }

    pub(crate) fn top(&self) -> &Directory {
        self.top.as_ref().unwrap_or(&self.root)
    }

    /// The folders that lie between the top and the root, from the top on; not the root itself. Each is empty or has a
    /// slash at its end.
    pub(crate) fn folders_above_root(&self) -> impl Iterator<Item = &[u8]> {
        let starts = memchr::memchr_iter(b'/', &self.prefix).map(|slash| &self.prefix[..=slash]);
        let top = (!self.prefix.is_empty()).then_some(&b""[..]);
        top.into_iter().chain(starts).filter(|folder| folder.len() < self.prefix.len())
    }

    /// Opens a folder; its path has no slash at its end.
    pub(crate) fn open_folder(&self, path: &[u8]) -> Result<OwnedFd, Errno> {
        match self.beneath_root(path) {
            Some(own) => self.root.open_folder(own),
            None => self.top().open_folder(path),
        }
    }

    /// Opens a file. Anything else, such as a link, is refused.
    pub(crate) fn open_file(&self, path: &[u8]) -> Result<File, Errno> {
        match self.beneath_root(path) {
            Some(own) => self.root.open_file(own),
            None => self.top().open_file(path),
        }
    }

    /// A path as the root's handle reaches it. `None` for what lies above the root, of which git's own files are read.
    fn beneath_root<'a>(&self, path: &'a [u8]) -> Option<&'a [u8]> {
        if self.prefix.strip_suffix(b"/") == Some(path) {
            Some(b"")
        } else {
            path.strip_prefix(&self.prefix[..])
        }
    }
}
