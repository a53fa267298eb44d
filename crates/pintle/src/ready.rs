//! The ready file: there while the server serves, gone when it does not.

use std::path::PathBuf;

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
        match std::fs::write(&path, &content) {
            Ok(()) => Some(Self { path, content }),
            Err(error) => {
                notices::warning(&format!("cannot write the ready file {}: {error}", path.display()));
                None
            }
        }
    }
}

impl Drop for ReadyFile {
    fn drop(&mut self) {
        let ours = std::fs::read(&self.path).is_ok_and(|found| found == self.content.as_bytes());
        if ours {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
