//! Git's own directories, held open, and how their files are read.

use std::{fs::File, io::Read, ops::Deref, os::fd::OwnedFd};

use pintle_root::Directory;
use rustix::io::Errno;

use crate::problem::Problem;

/// The git directory or the common directory of a repository. Messages name what lies in it `.git/…`, wherever it is:
/// absolute paths are never shown.
pub(crate) struct GitDirectory(Directory);

impl GitDirectory {
    /// Takes a directory that is open already.
    pub(crate) fn from_handle(handle: OwnedFd) -> Result<Self, Errno> {
        Directory::from_handle(handle).map(Self)
    }

    /// Opens a directory beneath another one, through no link.
    pub(crate) fn beneath(directory: &Directory, path: &[u8]) -> Result<Self, Errno> {
        directory.subdirectory(path).map(Self)
    }

    /// The content of a file; `None` if there is no such file.
    pub(crate) fn read(&self, path: &[u8], limit: u64) -> Result<Option<Vec<u8>>, Problem> {
        read_file(&self.0, path, &self.name_of(path), limit)
    }

    /// A path in this directory as a message shows it.
    pub(crate) fn name_of(&self, path: &[u8]) -> String {
        format!(".git/{}", name_of(path))
    }
}

impl Deref for GitDirectory {
    type Target = Directory;

    fn deref(&self) -> &Directory {
        &self.0
    }
}

/// The content of a file; `None` if there is no such file. `name` is for the error.
pub(crate) fn read_file(
    directory: &Directory,
    path: &[u8],
    name: &str,
    limit: u64,
) -> Result<Option<Vec<u8>>, Problem> {
    match directory.open_file(path) {
        Ok(file) => read_all(&file, name, limit).map(Some),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::ISDIR) => Ok(None),
        Err(error) => Err(Problem::unreadable(name, error)),
    }
}

/// The whole content of an open file; `name` is for the error.
pub(crate) fn read_all(file: &File, name: &str, limit: u64) -> Result<Vec<u8>, Problem> {
    let size = file.metadata().map_or(0, |metadata| metadata.len().min(limit));
    let mut content = Vec::with_capacity(usize::try_from(size).unwrap_or(0) + 1);
    let read = file.take(limit + 1).read_to_end(&mut content);
    read.map_err(|error| Problem::unreadable(name, error))?;
    if content.len() as u64 > limit {
        return Err(Problem::too_many_bytes(name, limit));
    }
    Ok(content)
}

/// A path as a message shows it.
pub(crate) fn name_of(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}

/// Two paths, one below the other.
pub(crate) fn joined(folder: &[u8], name: &[u8]) -> Vec<u8> {
    [folder, b"/", name].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_up_to_its_limit_and_named_as_one_of_git() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("git")).expect("made");
        std::fs::write(folder.path().join("git/file"), "x").expect("written");
        let root = Directory::open(folder.path()).expect("opened");
        let directory = GitDirectory::beneath(&root, b"git").expect("opened");
        assert!(directory.read(b"none", 9).expect("no problem").is_none());
        assert_eq!(directory.read(b"file", 1).expect("no problem"), Some(b"x".to_vec()));
        let problem = directory.read(b"file", 0).expect_err("too large");
        assert!(problem.to_string().starts_with(".git/file "), "{problem}");
    }
}
