//! Opening what lies beneath a directory, and nothing else: `openat2`, and what stands in for it.
//!
//! The kernel resolves a whole path in one call and refuses each step that would leave the directory, whatever others
//! rename meanwhile. Kernels before 5.6 do not know the call, and some sandboxes forbid it. There a path without links
//! is opened name by name, and `cap-std` follows links.
//!
//! Errors are those of the system. `XDEV` and `LOOP` say that the path leaves the directory, leads in a circle, or
//! passes a link where none is followed; `AGAIN` says that others moved the path about at each of many tries.

use std::{
    fs::File,
    io,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
};

use cap_std::fs::{Dir, MetadataExt, OpenOptions, OpenOptionsExt};
use rustix::{
    fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags},
    io::Errno,
};

use crate::stamp::identity;

/// Opens whatever it is without waiting for anything and without becoming its terminal.
pub(crate) const READ: OFlags =
    OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);
/// Opens a folder to be read and locked.
pub(crate) const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// Opens a folder only to reach what lies beneath it: that needs no right to list it.
const THROUGH: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// A directory held open: the one way to reach what lies beneath it.
pub struct Directory {
    handle: OwnedFd,
    /// Set where the kernel does not resolve paths beneath a directory by itself.
    portable: Option<Dir>,
}

impl Directory {
    /// Opens a directory by a path that is trusted, such as the root that the operator named.
    pub fn open(path: &Path) -> Result<Self, Errno> {
        Self::from_handle(rustix::fs::openat(CWD, path, THROUGH, Mode::empty())?)
    }

    /// The same, in the way that works without the kernel's help.
    pub fn open_portably(path: &Path) -> Result<Self, Errno> {
        Self::new(rustix::fs::openat(CWD, path, THROUGH, Mode::empty())?, true)
    }

    /// Takes a directory that is open already.
    pub fn from_handle(handle: OwnedFd) -> Result<Self, Errno> {
        match resolve(&handle, b".", THROUGH, ResolveFlags::NO_SYMLINKS) {
            Ok(_) => Self::new(handle, false),
            Err(Errno::NOSYS | Errno::PERM) => Self::new(handle, true),
            Err(error) => Err(error),
        }
    }

    fn new(handle: OwnedFd, is_portable: bool) -> Result<Self, Errno> {
        let portable = match is_portable {
            true => Some(Dir::from_std_file(File::from(handle.try_clone().map_err(errno)?))),
            false => None,
        };
        Ok(Self { handle, portable })
    }

    /// Opens a directory beneath this one, through no link, to hold it open as well.
    pub fn subdirectory(&self, path: &[u8]) -> Result<Self, Errno> {
        Self::new(self.open_folder(path)?, self.is_portable())
    }

    /// The directory that this one lies in; `None` at the top of the file system. It may be searched, even if its names
    /// may not be listed.
    pub fn parent(&self) -> Result<Option<Self>, Errno> {
        let handle = rustix::fs::openat(&self.handle, "..", THROUGH, Mode::empty())?;
        match identity(&handle)? == identity(&self.handle)? {
            true => Ok(None),
            false => Self::new(handle, self.is_portable()).map(Some),
        }
    }

    /// Opens a folder through no link; an empty path is the directory itself.
    pub fn open_folder(&self, path: &[u8]) -> Result<OwnedFd, Errno> {
        // So that a link is refused as anything else that is no folder, as by `open_folder_in`.
        self.open_without_links(path, FOLDER | OFlags::NOFOLLOW)
    }

    /// Opens a folder through no link, only to reach what lies beneath it; an empty path is the directory itself.
    pub(crate) fn open_to_reach(&self, path: &[u8]) -> Result<OwnedFd, Errno> {
        self.open_without_links(path, THROUGH | OFlags::NOFOLLOW)
    }

    /// Opens a regular file through no link. A folder is `ISDIR`, anything else `NXIO`.
    pub fn open_file(&self, path: &[u8]) -> Result<File, Errno> {
        only_file(self.open_without_links(path, READ)?)
    }

    pub(crate) fn is_portable(&self) -> bool {
        self.portable.is_some()
    }

    /// Opens what a path leads to through no link.
    pub(crate) fn open_without_links(&self, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
        let path = or_itself(path);
        match self.portable {
            Some(_) => self.open_name_by_name(path, flags | OFlags::NOFOLLOW),
            None => steadily(|| resolve(&self.handle, path, flags, ResolveFlags::NO_SYMLINKS)),
        }
    }

    /// The same, if the system has all that it takes to resolve the path in memory; otherwise `AGAIN`.
    pub(crate) fn open_cached(&self, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
        let cached = ResolveFlags::NO_SYMLINKS | ResolveFlags::CACHED;
        match self.portable {
            Some(_) => Err(Errno::AGAIN),
            None => resolve(&self.handle, or_itself(path), flags, cached),
        }
    }

    /// Opens what a path leads to through links that stay beneath the directory.
    pub(crate) fn open_through_links(&self, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
        let path = or_itself(path);
        match &self.portable {
            Some(dir) => {
                let path = as_path(path);
                steadily(|| settled(|| open_portably(dir, path, flags), || parts(dir, path)))
            }
            None => steadily(|| resolve(&self.handle, path, flags, ResolveFlags::empty())),
        }
    }

    /// Where something that was opened is beneath the directory, for systems without `/proc`: the path is followed once
    /// more, and what is there has to be the same thing.
    pub(crate) fn resolve_again(&self, path: &[u8], opened: &OwnedFd) -> Result<PathBuf, Errno> {
        let dir = self.portable.as_ref().ok_or(Errno::NOSYS)?;
        let resolved = steadily(|| dir.canonicalize(as_path(or_itself(path))).map_err(errno))?;
        let there = rustix::fs::statat(dir, &resolved, AtFlags::SYMLINK_NOFOLLOW)?;
        let is_same = identity(opened)? == (there.st_dev, there.st_ino);
        if is_same { Ok(resolved) } else { Err(Errno::NOENT) }
    }

    /// Opens one name after the other, each from the folder before it.
    fn open_name_by_name(&self, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
        let mut names = path.split(|byte| *byte == b'/').peekable();
        let mut opened: Option<OwnedFd> = None;
        while let Some(name) = names.next() {
            if name == b".." {
                return Err(Errno::XDEV);
            }
            let flags = if names.peek().is_some() { THROUGH | OFlags::NOFOLLOW } else { flags };
            let from = opened.as_ref().unwrap_or(&self.handle);
            opened = Some(rustix::fs::openat(from, name, flags, Mode::empty())?);
        }
        opened.ok_or(Errno::NOENT)
    }
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

/// Opens a folder in an open folder, only to reach what lies beneath it; a link is not followed.
pub(crate) fn open_to_reach_in(folder: impl AsFd, name: &[u8]) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(folder, name, THROUGH | OFlags::NOFOLLOW, Mode::empty())
}

/// Opens whatever has a name in an open folder; a link is `LOOP`.
pub fn open_any_in(folder: impl AsFd, name: &[u8]) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(folder, name, READ | OFlags::NOFOLLOW, Mode::empty())
}

/// Opens a regular file by its name in an open folder. A link is `LOOP`, a folder `ISDIR`, anything else `NXIO`.
pub fn open_file_in(folder: impl AsFd, name: &[u8]) -> Result<File, Errno> {
    only_file(open_any_in(folder, name)?)
}

/// Opens a folder by its name in an open folder. Anything else, such as a link, is refused.
pub fn open_folder_in(folder: impl AsFd, name: &[u8]) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(folder, name, FOLDER | OFlags::NOFOLLOW, Mode::empty())
}

/// Opens a folder by a path that is not trusted, relative to `from` or absolute, wherever it leads. What comes back may be
/// compared with another folder; whoever reads beneath it has to know first that it is meant.
pub fn open_folder_anywhere(from: impl AsFd, path: &[u8]) -> Result<OwnedFd, Errno> {
    // Links below /proc lead into other processes, whatever the path says.
    match rustix::fs::openat2(&from, path, THROUGH, Mode::empty(), ResolveFlags::NO_MAGICLINKS) {
        Err(Errno::NOSYS | Errno::PERM) => rustix::fs::openat(from, path, THROUGH, Mode::empty()),
        opened => opened,
    }
}

fn only_file(opened: OwnedFd) -> Result<File, Errno> {
    let file = File::from(opened);
    match file.metadata() {
        Ok(metadata) if metadata.is_file() => Ok(file),
        Ok(metadata) if metadata.is_dir() => Err(Errno::ISDIR),
        Ok(_) => Err(Errno::NXIO),
        Err(error) => Err(errno(error)),
    }
}

fn resolve(from: &OwnedFd, path: &[u8], flags: OFlags, more: ResolveFlags) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | more;
    rustix::fs::openat2(from, path, flags, Mode::empty(), resolve)
}

fn or_itself(path: &[u8]) -> &[u8] {
    if path.is_empty() { b"." } else { path }
}

fn as_path(path: &[u8]) -> &Path {
    Path::new(std::ffi::OsStr::from_bytes(path))
}

/// Resolves a path, again and again if others move it about meanwhile.
fn steadily<T>(resolve: impl Fn() -> Result<T, Errno>) -> Result<T, Errno> {
    const TRIES: usize = 64;
    for _ in 0..TRIES {
        match resolve() {
            Err(Errno::AGAIN | Errno::INTR) => {}
            resolved => return resolved,
        }
    }
    Err(Errno::AGAIN)
}

/// Resolves a path part by part. Where a part is a folder at one look and a link at the next, a single look may find
/// something that was never there: it counts only if every look finds it, and `stamp` says that nothing has changed.
fn settled<T, S: PartialEq>(
    resolve: impl Fn() -> Result<T, Errno>,
    stamp: impl Fn() -> S,
) -> Result<T, Errno> {
    /// So many looks that find the same are enough.
    const SAME: usize = 24;
    const LOOKS: usize = 256;
    let before = stamp();
    let mut is_steady = true;
    for look in 1..=LOOKS {
        let error = match resolve() {
            Err(error @ (Errno::NOTDIR | Errno::NXIO | Errno::NODEV)) => error,
            resolved => return resolved,
        };
        is_steady &= stamp() == before;
        if is_steady && look >= SAME {
            return Err(error);
        }
    }
    Err(Errno::AGAIN)
}

/// What each part of a path is, without following the last link of each: this changes when a part is replaced.
fn parts(dir: &Dir, path: &Path) -> Vec<Option<(u64, u64)>> {
    let part = |part: &Path| dir.symlink_metadata(part).ok().map(|found| (found.dev(), found.ino()));
    path.ancestors().filter(|part| !part.as_os_str().is_empty()).map(part).collect()
}

fn open_portably(dir: &Dir, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    if flags.contains(OFlags::DIRECTORY) {
        // What the crate gives can only be a starting point; it is to be read and locked, too.
        let found = dir.open_dir(path).map_err(errno)?;
        return rustix::fs::openat(&found, ".", flags, Mode::empty());
    }
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits() as i32;
    let file = dir.open_with(path, OpenOptions::new().read(true).custom_flags(flags)).map_err(errno)?;
    Ok(file.into_std().into())
}

/// What the refusals of the crate that stands in for the kernel mean.
fn errno(error: io::Error) -> Errno {
    match (Errno::from_io_error(&error), error.kind()) {
        // The crate found a link, and something else when it read where the link leads.
        (Some(Errno::INVAL), _) | (None, io::ErrorKind::InvalidInput) => Errno::AGAIN,
        (Some(error), _) => error,
        // The crate's own word for a path that leaves.
        (None, io::ErrorKind::PermissionDenied) => Errno::XDEV,
        (None, _) => Errno::IO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{cell::Cell, fs, os::unix::fs::symlink};

    /// Resolves what is no folder until the `good`th look, while parts change until the `steady`th; gives whether it was
    /// found, the error, and how often it was looked.
    fn resolve(good: usize, steady: usize) -> (Option<Errno>, usize) {
        let (looks, stamps) = (Cell::new(0), Cell::new(0));
        let look = || {
            looks.set(looks.get() + 1);
            if looks.get() >= good { Ok(()) } else { Err(Errno::NOTDIR) }
        };
        let stamp = || {
            stamps.set(stamps.get() + 1);
            stamps.get().min(steady)
        };
        (settled(look, stamp).err(), looks.get())
    }

    #[test]
    fn a_part_that_is_a_link_at_one_look_and_a_folder_at_the_next_is_looked_at_again() {
        assert_eq!(resolve(1, 1), (None, 1));
        assert_eq!(resolve(4, 1), (None, 4));
        // As long as something changes, what was found may never have been there.
        assert_eq!(resolve(100, usize::MAX), (None, 100));
        assert_eq!(resolve(usize::MAX, usize::MAX).0, Some(Errno::AGAIN));
        // What is no folder each time, while nothing changes, is none.
        assert_eq!(resolve(usize::MAX, 1), (Some(Errno::NOTDIR), 24));
    }

    #[test]
    fn no_link_is_followed_with_the_kernels_help_or_without() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path();
        fs::create_dir_all(path.join("in/deep")).expect("made");
        fs::write(path.join("in/deep/file"), "x").expect("written");
        symlink("deep", path.join("in/link")).expect("linked");
        symlink("deep/file", path.join("in/file")).expect("linked");
        for open in [Directory::open, Directory::open_portably] {
            let directory = open(path).expect("opened");
            assert!(directory.open_file(b"in/deep/file").is_ok());
            assert_eq!(
                directory.open_file(b"in/link/file").map(drop),
                Err(if directory.is_portable() { Errno::NOTDIR } else { Errno::LOOP })
            );
            assert_eq!(directory.open_file(b"in/file").map(drop), Err(Errno::LOOP));
            assert_eq!(directory.open_file(b"in/deep").map(drop), Err(Errno::ISDIR));
            assert_eq!(directory.open_folder(b"in/..").map(drop).is_err(), directory.is_portable());
            assert_eq!(directory.open_folder(b"..").map(drop), Err(Errno::XDEV));
            assert!(directory.open_through_links(b"in/link/file", READ).is_ok());
            assert!(directory.subdirectory(b"in").expect("opened").open_file(b"deep/file").is_ok());
        }
    }
}
