//! The ready file: there while the server serves, gone when it does not.
//!
//! It often lies in a folder that everybody writes to, such as `/tmp`, and several servers may share its name. So what
//! is found there is looked at without following a link or waiting for a pipe, and a server replaces or removes only
//! a ready file of its own or of a process that has ended. Anything else at that path is a user's, and left alone.

use std::{
    fmt,
    fs::{self, File},
    io::{self, Read, Write},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::SystemTime,
};

use rustix::{
    fs::{CWD, FlockOperation, Mode, OFlags, RenameFlags, flock, open, renameat_with},
    io::Errno,
};

use crate::{living, notices};

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
        match put(&path, &content) {
            Ok(()) => Some(Self { path, content }),
            Err(problem) => {
                notices::warning(&format!("cannot write the ready file {}: {problem}", path.display()));
                None
            }
        }
    }
}

/// Why the file was not written.
enum Problem {
    /// It names a process that lives.
    InUse(u32),
    /// Somebody else replaces it at the same time.
    Contended,
    /// What is there is not a ready file.
    NotOurs,
    Failed(io::Error),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const REMEDY: &str = "give each server its own with --ready-file (MCP_READY_FILE)";
        match self {
            Self::InUse(pid) => write!(f, "it names process {pid}, which is running; {REMEDY}"),
            Self::Contended => write!(f, "another server is writing it; {REMEDY}"),
            Self::NotOurs => write!(f, "what is there is not a ready file; left alone; {REMEDY}"),
            Self::Failed(error) => error.fmt(f),
        }
    }
}

impl<E: Into<io::Error>> From<E> for Problem {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// Puts a whole new file in place, so that nobody sees half of one and no link is followed.
fn put(path: &Path, content: &str) -> Result<(), Problem> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = path.with_file_name(name);
    let _ = fs::remove_file(&temporary);
    let put = File::create_new(&temporary)
        .and_then(|mut file| file.write_all(content.as_bytes()))
        .map_err(Problem::from)
        .and_then(|()| put_in_place(&temporary, path));
    if put.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    put
}

/// Gives the new file its name. Of several servers that start at the same time one succeeds: where no file is there,
/// only the first name is taken; where one is to be replaced, only by whoever has it locked.
fn put_in_place(temporary: &Path, path: &Path) -> Result<(), Problem> {
    let file = match Found::at(path)? {
        Found::Nothing => return rename_to_free_name(temporary, path),
        Found::NotAFile => return Err(Problem::NotOurs),
        Found::File(file) => file,
    };
    // Where there are no locks, two servers that start in the same instant may both write the file.
    if flock(&file, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
        return Err(Problem::Contended);
    }
    let about = file.metadata()?;
    let still_there = fs::symlink_metadata(path)
        .is_ok_and(|there| (there.dev(), there.ino()) == (about.dev(), about.ino()));
    if !still_there {
        return Err(Problem::Contended);
    }
    let written = about.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    match ReadyContent::of(&file) {
        ReadyContent::Other => Err(Problem::NotOurs),
        // This process may have had another program before, or the same number in another container.
        ReadyContent::Process(pid) if pid != std::process::id() && living::since_before(pid, written) => {
            Err(Problem::InUse(pid))
        }
        ReadyContent::Process(_) | ReadyContent::Empty => Ok(fs::rename(temporary, path)?),
    }
}

fn rename_to_free_name(temporary: &Path, path: &Path) -> Result<(), Problem> {
    match renameat_with(CWD, temporary, CWD, path, RenameFlags::NOREPLACE) {
        Err(Errno::EXIST) => Err(Problem::Contended),
        // Some file systems know no such rename.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => Ok(fs::rename(temporary, path)?),
        renamed => Ok(renamed?),
    }
}

/// What lies at a path.
enum Found {
    Nothing,
    /// A folder, a symbolic link, a pipe, a device.
    NotAFile,
    File(File),
}

impl Found {
    fn at(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        match open(path, flags, Mode::empty()) {
            Ok(file) => {
                let file = File::from(file);
                Ok(if file.metadata()?.is_file() { Self::File(file) } else { Self::NotAFile })
            }
            Err(Errno::NOENT) => Ok(Self::Nothing),
            // A symbolic link, a socket, or a device without its driver.
            Err(Errno::LOOP | Errno::MLINK | Errno::NXIO | Errno::NODEV) => Ok(Self::NotAFile),
            Err(error) => Err(error.into()),
        }
    }
}

/// What a file contains that may be a ready file.
#[derive(Debug, PartialEq)]
enum ReadyContent {
    /// What this program writes: the number of a process and a time.
    Process(u32),
    /// Nothing, as a program leaves it that wanted the name to exist.
    Empty,
    /// Something else, which somebody may need.
    Other,
}

impl ReadyContent {
    /// Reads no more of a file than a ready file has: it may be of any length.
    fn of(file: &File) -> Self {
        const MOST: u64 = 64;
        let mut start = Vec::new();
        match file.take(MOST).read_to_end(&mut start) {
            Ok(_) => Self::parse(&start),
            Err(_) => Self::Other,
        }
    }

    fn parse(content: &[u8]) -> Self {
        if content.is_empty() {
            return Self::Empty;
        }
        let process = || {
            let line = std::str::from_utf8(content).ok()?.strip_suffix('\n')?;
            let (pid, time) = line.split_once(' ')?;
            time.parse::<jiff::Timestamp>().ok()?;
            pid.parse().ok().filter(|parsed: &u32| parsed.to_string() == pid)
        };
        process().map_or(Self::Other, Self::Process)
    }
}

impl Drop for ReadyFile {
    fn drop(&mut self) {
        let Ok(Found::File(file)) = Found::at(&self.path) else { return };
        let mut found = Vec::new();
        let read = file.take(self.content.len() as u64 + 1).read_to_end(&mut found);
        if read.is_ok() && found == self.content.as_bytes() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_process_number_and_a_time_are_a_ready_file() {
        for (content, expected) in [
            ("", ReadyContent::Empty),
            ("7 2026-01-01T00:00:00Z\n", ReadyContent::Process(7)),
            ("7 2026-01-01T00:00:00.123Z\n", ReadyContent::Process(7)),
            ("\n", ReadyContent::Other),
            ("7\n", ReadyContent::Other),
            ("7 \n", ReadyContent::Other),
            ("7 soon\n", ReadyContent::Other),
            ("+7 2026-01-01T00:00:00Z\n", ReadyContent::Other),
            ("7 2026-01-01T00:00:00Z", ReadyContent::Other),
            ("7 2026-01-01T00:00:00Z\nmore\n", ReadyContent::Other),
            (" 2026-01-01T00:00:00Z\n", ReadyContent::Other),
        ] {
            assert_eq!(ReadyContent::parse(content.as_bytes()), expected, "{content:?}");
        }
        let own = format!("{} {:.3}\n", std::process::id(), jiff::Timestamp::now());
        assert_eq!(ReadyContent::parse(own.as_bytes()), ReadyContent::Process(std::process::id()));
    }
}
