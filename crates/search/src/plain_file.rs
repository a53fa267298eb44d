//! Opening and creating the files of an index.
//!
//! They are plain files in a folder of their own. What lies there under such a name and is none (a pipe, a link, a
//! folder) was put there by somebody else: to wait for it, or to follow it, would be wrong.

use std::{
    fs::{DirBuilder, File, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::Path,
};

use rustix::{
    fs::{Mode, OFlags, open},
    io::Errno,
};

/// Opens a plain file. An error of kind `InvalidData` tells that it is none.
pub(crate) fn open_plain(path: &Path, access: OFlags) -> io::Result<File> {
    let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let is_none =
        || io::Error::new(io::ErrorKind::InvalidData, format!("{} is not a plain file", path.display()));
    let opened = open(path, flags, Mode::from_raw_mode(0o600)).map_err(|error| match error {
        Errno::LOOP | Errno::ISDIR | Errno::NXIO => is_none(),
        error => error.into(),
    });
    let file = File::from(opened?);
    if file.metadata()?.is_file() { Ok(file) } else { Err(is_none()) }
}

/// Creates a file, where none may be, that only its owner may read: paths and words of private files are in an index.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// Creates a folder, and those above it that are missing, which only their owner may enter.
pub(crate) fn create_private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}
