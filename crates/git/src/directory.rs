//! A directory held open: the one way to reach what lies beneath it, through no symbolic link.

use std::{
    fs::File,
    io::Read,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::Path,
};

use rustix::{
    fs::{CWD, Mode, OFlags, ResolveFlags},
    io::Errno,
};

use crate::problem::Problem;

/// Opens whatever it is without waiting for anything and without becoming its terminal.
const READ: OFlags = OFlags::RDONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A directory held open.
pub(crate) struct Directory {
    handle: OwnedFd,
    /// What stands before a path in a message. Absolute paths are never shown.
    label: &'static str,
    /// Set where the kernel does not know `openat2`, which resolves a whole path without links.
    is_portable: bool,
}

impl Directory {
    /// Opens a directory by a path that is trusted, such as the root that the operator named.
    pub(crate) fn open(path: &Path) -> Result<Self, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Self::new(rustix::fs::openat(CWD, path, flags, Mode::empty())?, "")
    }

    pub(crate) fn new(handle: OwnedFd, label: &'static str) -> Result<Self, Errno> {
        let mut directory = Self { handle, label, is_portable: false };
        // Old kernels do not know the call, and some sandboxes forbid it.
        match directory.resolve(b".", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC) {
            Ok(_) => {}
            Err(Errno::NOSYS | Errno::PERM) => directory.is_portable = true,
            Err(error) => return Err(error),
        }
        Ok(directory)
    }

    /// Opens a directory beneath this one to hold it open as well.
    pub(crate) fn subdirectory(&self, path: &[u8], label: &'static str) -> Result<Self, Errno> {
        Ok(Self { handle: self.open_folder(path)?, label, is_portable: self.is_portable })
    }

    /// The directory that this one lies in; `None` at the top of the file system. It may be searched, even if its names
    /// may not be listed.
    pub(crate) fn parent(&self) -> Result<Option<Self>, Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = rustix::fs::openat(&self.handle, "..", flags, Mode::empty())?;
        if identity(&handle)? == identity(&self.handle)? {
            return Ok(None);
        }
        Ok(Some(Self { handle, label: self.label, is_portable: self.is_portable }))
    }

    /// Opens a folder; an empty path is the directory itself.
    pub(crate) fn open_folder(&self, path: &[u8]) -> Result<OwnedFd, Errno> {
        self.open_any(if path.is_empty() { b"." } else { path }, FOLDER)
    }

    /// Opens a file. Anything else, such as a link, is refused.
    pub(crate) fn open_file(&self, path: &[u8]) -> Result<File, Errno> {
        only_file(self.open_any(path, READ)?)
    }

    /// The content of a file; `None` if there is no such file.
    pub(crate) fn read(&self, path: &[u8], limit: u64) -> Result<Option<Vec<u8>>, Problem> {
        match self.open_file(path) {
            Ok(file) => read_all(&file, &self.name_of(path), limit).map(Some),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::ISDIR) => Ok(None),
            Err(error) => Err(Problem::unreadable(self.name_of(path), error)),
        }
    }

    /// A path in this directory as a message shows it.
    pub(crate) fn name_of(&self, path: &[u8]) -> String {
        format!("{}{}", self.label, name_of(path))
    }

    fn open_any(&self, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
        if !self.is_portable {
            return self.resolve(path, flags);
        }
        let mut names = path.split(|byte| *byte == b'/').peekable();
        let mut folder: Option<OwnedFd> = None;
        while let Some(name) = names.next() {
            if name == b".." {
                return Err(Errno::XDEV);
            }
            let flags = if names.peek().is_some() { FOLDER } else { flags };
            let from = folder.as_ref().unwrap_or(&self.handle);
            folder = Some(rustix::fs::openat(from, name, flags, Mode::empty())?);
        }
        folder.ok_or(Errno::NOENT)
    }

    fn resolve(&self, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        rustix::fs::openat2(&self.handle, path, flags, Mode::empty(), resolve)
    }
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

/// Opens a file that lies in an open folder. Anything else, such as a link, is refused.
pub(crate) fn open_file_in(folder: impl AsFd, name: &[u8]) -> Result<File, Errno> {
    only_file(rustix::fs::openat(folder, name, READ, Mode::empty())?)
}

/// Opens a folder that lies in an open folder. Anything else, such as a link, is refused.
pub(crate) fn open_folder_in(folder: impl AsFd, name: &[u8]) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(folder, name, FOLDER, Mode::empty())
}

/// Opens a folder by a path that a file of git holds, relative to `from` or absolute, wherever it leads. What comes back
/// may be compared with another folder; nothing beneath it may be read before [`crate::gitfile`] has checked it.
pub(crate) fn open_folder_anywhere(from: impl AsFd, path: &[u8]) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    // Links below /proc lead into other processes, whatever the path says.
    match rustix::fs::openat2(&from, path, flags, Mode::empty(), ResolveFlags::NO_MAGICLINKS) {
        Err(Errno::NOSYS | Errno::PERM) => rustix::fs::openat(from, path, flags, Mode::empty()),
        opened => opened,
    }
}

/// Which folder an open one is, whatever its path: two handles with the same identity are the same folder.
pub(crate) fn identity(folder: impl AsFd) -> Result<(u64, u64), Errno> {
    rustix::fs::fstat(folder).map(|stat| (stat.st_dev, stat.st_ino))
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

fn only_file(opened: OwnedFd) -> Result<File, Errno> {
    let file = File::from(opened);
    match file.metadata() {
        Ok(metadata) if metadata.is_file() => Ok(file),
        Ok(metadata) if metadata.is_dir() => Err(Errno::ISDIR),
        Ok(_) => Err(Errno::NXIO),
        Err(error) => Err(Errno::from_io_error(&error).unwrap_or(Errno::IO)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::symlink};

    #[test]
    fn no_link_is_followed_with_the_kernels_help_or_without() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path();
        fs::create_dir_all(path.join("in/deep")).expect("made");
        fs::write(path.join("in/deep/file"), "x").expect("written");
        symlink("deep", path.join("in/link")).expect("linked");
        symlink("deep/file", path.join("in/file")).expect("linked");
        for is_portable in [false, true] {
            let directory = Directory { is_portable, ..Directory::open(path).expect("opened") };
            assert!(directory.open_file(b"in/deep/file").is_ok());
            assert_eq!(
                directory.open_file(b"in/link/file").map(drop),
                Err(if is_portable { Errno::NOTDIR } else { Errno::LOOP })
            );
            assert_eq!(directory.open_file(b"in/file").map(drop), Err(Errno::LOOP));
            assert_eq!(directory.open_file(b"in/deep").map(drop), Err(Errno::ISDIR));
            assert_eq!(directory.open_folder(b"in/..").map(drop).is_err(), is_portable);
            assert_eq!(directory.open_folder(b"..").map(drop), Err(Errno::XDEV));
            assert!(directory.read(b"in/none", 9).expect("no problem").is_none());
            assert!(matches!(directory.read(b"in/deep/file", 0), Err(Problem::TooLarge { .. })));
        }
    }
}
