//! Opening the files of an index.
//!
//! They are plain files in a folder of their own. What lies there under such a name and is none (a pipe, a link, a
//! folder) was put there by somebody else: to wait for it, or to follow it, would be wrong.

use std::{fs::File, io, path::Path};

use rustix::{
    fs::{Mode, OFlags, open},
    io::Errno,
};

/// Opens a plain file. An error of kind `InvalidData` tells that it is none.
pub(crate) fn open_plain(path: &Path, access: OFlags) -> io::Result<File> {
    let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let is_none =
        || io::Error::new(io::ErrorKind::InvalidData, format!("{} is not a plain file", path.display()));
    let opened = open(path, flags, Mode::from_raw_mode(0o666)).map_err(|error| match error {
        Errno::LOOP | Errno::ISDIR | Errno::NXIO => is_none(),
        error => error.into(),
    });
    let file = File::from(opened?);
    if file.metadata()?.is_file() { Ok(file) } else { Err(is_none()) }
}
