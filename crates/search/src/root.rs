//! The root, opened: files are reached from it without ever passing a link.
//!
//! ripgrep does not follow links, so a path of the index that leads through one names something else by now, and
//! nothing outside the root can be reached through it.

use std::{
    fs::File,
    io,
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{Access, AtFlags, CWD, Mode, OFlags, ResolveFlags, accessat, fstat, openat, openat2, statat},
    io::Errno,
};

use crate::stamp::Stamp;

/// The folder that is searched.
pub(crate) struct Root {
    path: PathBuf,
    folder: OwnedFd,
}

impl Root {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self { path: path.to_owned(), folder: openat(CWD, path, flags, Mode::empty())? })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the path still leads to the folder that was opened, and that may be read. `Err` says what is wrong.
    pub(crate) fn check(&self) -> Result<(), String> {
        let here = statat(CWD, &self.path, AtFlags::empty()).map_err(|error| format!("is gone: {error}"))?;
        let opened = fstat(&self.folder).map_err(|error| format!("is gone: {error}"))?;
        if (here.st_dev, here.st_ino) != (opened.st_dev, opened.st_ino) {
            return Err("is another folder than the one that was opened".into());
        }
        accessat(CWD, &self.path, Access::READ_OK | Access::EXEC_OK, AtFlags::empty())
            .map_err(|error| format!("cannot be read: {error}"))
    }

    /// Opens a regular file and tells its stamp.
    pub(crate) fn open_file(&self, path: &[u8]) -> io::Result<(File, Stamp)> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
        let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let opened = loop {
            match openat2(&self.folder, path, flags, Mode::empty(), beneath) {
                // The kernel could not be sure because of a rename elsewhere.
                Err(Errno::AGAIN) => {}
                Err(Errno::NOSYS | Errno::PERM) => break self.open_step_by_step(path, flags)?,
                opened => break opened?,
            }
        };
        let file = File::from(opened);
        let stamp = Stamp::of_file(&file)?;
        Ok((file, stamp))
    }

    /// For kernels without `openat2`.
    fn open_step_by_step(&self, path: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
        let path = Path::new(std::ffi::OsStr::from_bytes(path));
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(Errno::INVAL.into());
        };
        let through = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut at = openat(&self.folder, ".", through, Mode::empty())?;
        for component in folder.components() {
            match component {
                std::path::Component::Normal(name) => at = openat(&at, name, through, Mode::empty())?,
                _ => return Err(Errno::INVAL.into()),
            }
        }
        Ok(openat(&at, name, flags, Mode::empty())?)
    }
}
