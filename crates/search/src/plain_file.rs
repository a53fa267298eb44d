//! Opens and creates the files of an index.
//!
//! They are regular files in a private folder. A pipe, link or folder under one of their names was put there by
//! something else. Opening it must neither block nor follow the link.

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

/// Opens a regular file. An error of kind `InvalidData` means that the path is something else.
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

/// Creates a file that only its owner may read, because an index has paths and words of private files. The file must
/// not exist.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// Creates a folder that only its owner may enter, and its missing parents.
pub(crate) fn create_private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}
