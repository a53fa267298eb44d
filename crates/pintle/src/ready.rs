//! The ready file: there while the server serves, gone when it does not.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use crate::notices;

/// A ready file that this process wrote. Removed when dropped, unless another process has written it
/// since.
pub struct ReadyFile {
    path: PathBuf,
    content: String,
}

impl ReadyFile {
    /// Writes the file. If it cannot be written, that is a warning: the server works without it.
    pub fn write(path: PathBuf) -> Option<Self> {
        let content = format!("{} {:.3}\n", std::process::id(), jiff::Timestamp::now());
        match replace(&path, &content) {
            Ok(()) => Some(Self { path, content }),
            Err(error) => {
                notices::warning(&format!("cannot write the ready file {}: {error}", path.display()));
                None
            }
        }
    }
}

/// Puts a whole new file in place, so that nobody sees half of one, no link is followed, and nothing but
/// a file or a link is ever replaced.
fn replace(path: &Path, content: &str) -> io::Result<()> {
    if let Ok(there) = fs::symlink_metadata(path)
        && !there.is_file()
        && !there.is_symlink()
    {
        return Err(io::Error::other("it is there already and is not a file"));
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = path.with_file_name(name);
    let _ = fs::remove_file(&temporary);
    let written = fs::File::create_new(&temporary)
        .and_then(|mut file| file.write_all(content.as_bytes()))
        .and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

impl Drop for ReadyFile {
    fn drop(&mut self) {
        let ours = fs::read(&self.path).is_ok_and(|found| found == self.content.as_bytes());
        if ours {
            let _ = fs::remove_file(&self.path);
        }
    }
}
