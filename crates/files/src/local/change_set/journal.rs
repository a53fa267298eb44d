//! The journal of a change set: what it changes, and how far it has come.
//!
//! A journal is a file in the state folder, never in the root, where a repository could bring a forged one. Its owner
//! holds a lock (`flock`) on it, so whoever can take the lock knows that the owner is dead. The first line says what the
//! change set does; each line after it is a state that was reached. A line without its newline was not written whole.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use rustix::fs::{FlockOperation, OFlags, flock, fstat};
use serde::{Deserialize, Serialize};

/// The largest journal that is read: 500 files with the longest paths take less.
const LARGEST: u64 = 16 << 20;
const SUFFIX: &str = ".journal";
const UNFINISHED_SUFFIX: &str = ".new";
const OWNER_ONLY: u32 = 0o600;

/// What a change set does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    /// The root by its path, device and inode.
    pub(super) root: PathBuf,
    pub(super) device: u64,
    pub(super) inode: u64,
    pub(super) files: Vec<FileRecord>,
    /// The folders that are created, each after its parent.
    pub(super) folders: Vec<String>,
}

/// What happens to one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileRecord {
    /// Its resolved path.
    pub(super) path: String,
    /// The hash of the old content; none if the file is created.
    pub(super) old: Option<String>,
    /// The hash of the new content.
    pub(super) new: String,
    /// Its name in the staging folder next to it.
    pub(super) staged: String,
}

/// How far a change set has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum State {
    /// New content is being written to staged files. No file of the root has changed.
    Staging,
    /// All staged files are on disk, and files may have been exchanged.
    Staged,
    /// All files have changed, and only the old ones have to be removed.
    Done,
}

impl State {
    fn line(self) -> &'static str {
        match self {
            Self::Staging => "staging",
            Self::Staged => "staged",
            Self::Done => "done",
        }
    }
}

/// A journal whose lock is held.
pub(super) struct Journal {
    file: File,
    path: PathBuf,
}

impl Journal {
    /// Writes a new journal, in the state [`State::Staging`]. When this returns, it is on disk.
    pub(super) fn create(folder: &Path, id: &str, record: &Record) -> io::Result<Self> {
        std::fs::DirBuilder::new().recursive(true).create(folder)?;
        let unfinished = folder.join(format!("{id}{UNFINISHED_SUFFIX}"));
        loop {
            let file = options().write(true).create_new(true).open(&unfinished)?;
            flock(&file, FlockOperation::LockExclusive)?;
            let mut journal = Self { file, path: unfinished.clone() };
            // Before it was locked, somebody else may have taken it for one that a dead owner has left.
            if journal.is_gone()? {
                continue;
            }
            let written = journal.begin(folder, id, record);
            if written.is_err() {
                journal.remove();
            }
            return written.map(|()| journal);
        }
    }

    fn is_gone(&self) -> io::Result<bool> {
        Ok(fstat(&self.file)?.st_nlink == 0)
    }

    fn begin(&mut self, folder: &Path, id: &str, record: &Record) -> io::Result<()> {
        let mut line = serde_json::to_vec(record)?;
        line.push(b'\n');
        self.file.write_all(&line)?;
        self.file.sync_all()?;
        let path = folder.join(format!("{id}{SUFFIX}"));
        std::fs::rename(&self.path, &path)?;
        self.path = path;
        File::open(folder)?.sync_all()
    }

    /// Notes that a state was reached. When this returns, it is on disk.
    pub(super) fn reach(&mut self, state: State) -> io::Result<()> {
        self.file.write_all(format!("{}\n", state.line()).as_bytes())?;
        self.file.sync_data()
    }

    /// Takes over the journal of a dead owner. `None` if its owner lives, or it is gone.
    pub(super) fn take_over(path: &Path) -> io::Result<Option<Self>> {
        let file = match options().read(true).append(true).open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Ok(None);
        }
        let journal = Self { file, path: path.to_owned() };
        // Its owner may have finished and removed it before the lock was taken.
        Ok(if journal.is_gone()? { None } else { Some(journal) })
    }

    /// Reads it. `None` if it was not written whole: then nothing of the change set was done.
    pub(super) fn read(&self) -> io::Result<Option<(Record, State)>> {
        // It gets its name only once it is complete.
        if self.path.to_string_lossy().ends_with(UNFINISHED_SUFFIX) {
            return Ok(None);
        }
        let mut text = Vec::new();
        options().read(true).open(&self.path)?.take(LARGEST).read_to_end(&mut text)?;
        Ok(parse(&String::from_utf8_lossy(&text)))
    }

    /// Removes it: nothing of the change set is left to do.
    pub(super) fn remove(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(OWNER_ONLY).custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed());
    options
}

fn parse(text: &str) -> Option<(Record, State)> {
    let mut lines = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
    let record = serde_json::from_str(lines.next()?).ok()?;
    let states = [State::Staging, State::Staged, State::Done];
    let reached = lines.filter_map(|line| states.into_iter().find(|state| state.line() == line));
    Some((record, reached.max().unwrap_or(State::Staging)))
}

/// The journals in a folder, also those that were not written whole.
pub(super) fn journals(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.ends_with(SUFFIX) || name.ends_with(UNFINISHED_SUFFIX) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        let file = |path: &str, old: Option<&str>| FileRecord {
            path: path.into(),
            old: old.map(str::to_owned),
            new: "b".repeat(64),
            staged: "0".into(),
        };
        Record {
            root: "/srv/root".into(),
            device: 5,
            inode: u64::MAX,
            files: vec![file("a/b\n.txt", Some("a")), file("new/c", None)],
            folders: vec!["new".into()],
        }
    }

    #[test]
    fn a_journal_is_read_as_it_was_written_up_to_the_last_whole_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut journal = Journal::create(folder.path(), "id", &record()).expect("written");
        assert_eq!(journal.read().expect("read"), Some((record(), State::Staging)));
        for state in [State::Staged, State::Done] {
            journal.reach(state).expect("written");
            assert_eq!(journal.read().expect("read"), Some((record(), state)));
        }
        let text = std::fs::read_to_string(journal.path()).expect("text");
        for end in 0..text.len() {
            let states = text[..end].matches('\n').count();
            let expected = [None, Some(State::Staging), Some(State::Staged), Some(State::Done)][states];
            assert_eq!(parse(&text[..end]).map(|(_, state)| state), expected);
        }
    }

    #[test]
    fn a_journal_is_taken_over_only_from_a_dead_owner_and_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let journal = Journal::create(folder.path(), "id", &record()).expect("written");
        let path = journal.path().to_owned();
        assert!(Journal::take_over(&path).expect("read").is_none());
        drop(journal);
        let mut taken = Journal::take_over(&path).expect("read").expect("nobody has it");
        assert!(Journal::take_over(&path).expect("read").is_none());
        assert_eq!(journals(folder.path()).expect("listed"), std::slice::from_ref(&path));
        taken.remove();
        assert!(Journal::take_over(&path).expect("read").is_none());
        assert!(journals(folder.path()).expect("listed").is_empty());
    }
}
