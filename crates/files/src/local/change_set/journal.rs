//! The journal of a change set: what it changes, and how far it has come.
//!
//! A journal is a file in the state folder, never in the root, where a repository could bring a forged one. Its owner
//! holds a lock (`flock`) on it, so whoever can take the lock knows that the owner is dead. The first line says what the
//! change set does; each line after it is a state that was reached, or names files that need not be undone any more. A line
//! without its newline was not written whole.

use std::{
    collections::BTreeSet,
    fs::{File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use pintle_contract::WorkspacePath;
use rustix::fs::{FlockOperation, OFlags, flock, fstat};
use serde::{Deserialize, Serialize};

use crate::hash::Hash;

/// The longest first line that is written: 500 files with the longest paths take less.
const LARGEST: u64 = 16 << 20;
/// How much of a journal is read; the lines after the first are short.
const LONGEST_READ: u64 = LARGEST + (1 << 20);
const SUFFIX: &str = ".journal";
const UNFINISHED_SUFFIX: &str = ".new";
/// How a line begins that names files by their numbers.
const SETTLED: &str = "settled ";
const OWNER_ONLY: u32 = 0o600;
const FOLDER_OF_OWNER: u32 = 0o700;

/// The version of journals. One of another version is not followed.
pub(super) const VERSION: u32 = 1;

/// What a change set does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Record {
    pub(super) version: u32,
    /// The root by its path, device and inode.
    pub(super) root: String,
    pub(super) device: u64,
    pub(super) inode: u64,
    pub(super) files: Vec<FileRecord>,
    /// The folders that are created, each after its parent.
    pub(super) folders: Vec<String>,
}

/// What happens to one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileRecord {
    /// Its resolved path.
    pub(super) path: String,
    /// The hash of the old content; none if the file is created.
    pub(super) old: Option<String>,
    /// The hash of the new content.
    pub(super) new: String,
    /// Its name in the staging folder next to it.
    pub(super) staged: String,
    /// The inode of its folder; none if the folder is created. A folder with another inode at the same path is another one,
    /// for example because a file system is not mounted now.
    pub(super) folder: Option<u64>,
}

/// What a journal says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entries {
    pub(super) record: Record,
    pub(super) state: State,
    /// The numbers of the files that are undone, or that others have saved since. They are not touched again: by now a file
    /// with the same content may be somebody else's.
    pub(super) settled: BTreeSet<usize>,
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

impl Record {
    /// Whether it can be one that was written by a change set. A damaged one must not be followed.
    fn is_sound(&self) -> bool {
        let is_path = |path: &String| WorkspacePath::parse(path).is_ok_and(|parsed| !parsed.is_root());
        let is_name = |name: &str| !matches!(name, "" | "." | "..") && !name.contains(['/', '\0']);
        let is_hash = |hash: &String| Hash::parse(hash).is_some();
        let is_sound = |file: &FileRecord| {
            is_path(&file.path)
                && is_name(&file.staged)
                && is_hash(&file.new)
                && file.old.as_ref().is_none_or(is_hash)
        };
        self.version == VERSION && self.files.iter().all(is_sound) && self.folders.iter().all(is_path)
    }
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
    /// How many of its bytes are on disk.
    synced: u64,
    /// Whether nothing can be added to it, because the state folder is read-only.
    is_read_only: bool,
}

/// Why a state could not be noted.
pub(super) struct NotNoted {
    pub(super) error: io::Error,
    /// Whether the journal may have it all the same.
    pub(super) may_be_noted: bool,
}

impl Journal {
    /// Writes a new journal, in the state [`State::Staging`]. When this returns, it is on disk.
    pub(super) fn create(folder: &Path, id: &str, record: &Record) -> io::Result<Self> {
        make_folder(folder)?;
        let unfinished = folder.join(format!("{id}{UNFINISHED_SUFFIX}"));
        loop {
            let file = options().append(true).create_new(true).open(&unfinished)?;
            flock(&file, FlockOperation::LockExclusive)?;
            let mut journal = Self { file, path: unfinished.clone(), synced: 0, is_read_only: false };
            // Before it was locked, somebody else may have taken it for one that a dead owner has left.
            if journal.is_gone()? {
                continue;
            }
            let written = journal.begin(folder, id, record);
            if written.is_err() {
                let _ = journal.remove();
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
        let size = line.len() as u64;
        if size > LARGEST {
            return Err(io::ErrorKind::ArgumentListTooLong.into());
        }
        self.file.write_all(&line)?;
        self.file.sync_all()?;
        self.synced = size;
        let path = folder.join(format!("{id}{SUFFIX}"));
        std::fs::rename(&self.path, &path)?;
        self.path = path;
        File::open(folder)?.sync_all()
    }

    /// Notes that a state was reached. When this returns, it is on disk. If it fails, the note is taken back, so that
    /// nobody who reads the journal later takes the state for reached.
    pub(super) fn reach(&mut self, state: State) -> Result<(), NotNoted> {
        self.note(state.line())
    }

    /// Notes that files are undone, or that others have saved them since. When this returns, it is on disk.
    pub(super) fn settle(&mut self, files: &BTreeSet<usize>) -> io::Result<()> {
        let numbers: Vec<String> = files.iter().map(usize::to_string).collect();
        self.note(&format!("{SETTLED}{}", numbers.join(" "))).map_err(|not_noted| not_noted.error)
    }

    fn note(&mut self, line: &str) -> Result<(), NotNoted> {
        let line = format!("{line}\n");
        let written = self.file.write_all(line.as_bytes()).and_then(|()| self.file.sync_data());
        written.map_err(|error| {
            let is_taken_back = self.file.set_len(self.synced).is_ok();
            // A disk that fails again may still have the line after a power failure; more cannot be done.
            let _ = self.file.sync_data();
            NotNoted { error, may_be_noted: !is_taken_back }
        })?;
        self.synced += line.len() as u64;
        Ok(())
    }

    /// Takes over the journal of a dead owner. `None` if its owner lives, or it is gone.
    pub(super) fn take_over(path: &Path) -> io::Result<Option<Self>> {
        let (opened, is_read_only) = match options().read(true).append(true).open(path) {
            Err(error) if is_refusal(&error) => (options().read(true).open(path), true),
            opened => (opened, false),
        };
        let file = match opened {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Ok(None);
        }
        let mut journal = Self { file, path: path.to_owned(), synced: 0, is_read_only };
        // Its owner may have finished and removed it before the lock was taken.
        if journal.is_gone()? {
            return Ok(None);
        }
        if !is_read_only {
            journal.cut_off_unfinished_line()?;
        }
        Ok(Some(journal))
    }

    /// Removes what the owner had not finished writing when it died. The next line would complete it.
    fn cut_off_unfinished_line(&mut self) -> io::Result<()> {
        let mut text = Vec::new();
        (&self.file).take(LONGEST_READ).read_to_end(&mut text)?;
        if let Some(end) = memchr::memrchr(b'\n', &text) {
            self.synced = end as u64 + 1;
            if self.synced < text.len() as u64 {
                self.file.set_len(self.synced)?;
            }
        }
        Ok(())
    }

    /// Whether the state folder is read-only, so that nothing can be noted.
    pub(super) fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    /// Reads it. `None` if it was not written whole: then nothing of the change set was done.
    pub(super) fn read(&self) -> io::Result<Option<Entries>> {
        // It gets its name only once it is complete.
        if self.path.to_string_lossy().ends_with(UNFINISHED_SUFFIX) {
            return Ok(None);
        }
        let mut text = String::new();
        options().read(true).open(&self.path)?.take(LONGEST_READ).read_to_string(&mut text)?;
        match parse(&text) {
            Some(entries) if entries.record.is_sound() => Ok(Some(entries)),
            _ => Err(io::Error::new(io::ErrorKind::InvalidData, "it is damaged, or of another version")),
        }
    }

    /// Removes it: nothing of the change set is left to do.
    pub(super) fn remove(&mut self) -> io::Result<()> {
        std::fs::remove_file(&self.path)
    }

    /// The device that it is on.
    pub(super) fn device(&self) -> io::Result<u64> {
        Ok(fstat(&self.file)?.st_dev)
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

fn is_refusal(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

/// Creates the folder of the journals, and what is missing above it, so that a journal in it survives a power failure.
pub(super) fn make_folder(folder: &Path) -> io::Result<()> {
    let missing: Vec<&Path> = folder.ancestors().take_while(|folder| !folder.exists()).collect();
    std::fs::DirBuilder::new().recursive(true).mode(FOLDER_OF_OWNER).create(folder)?;
    missing.iter().filter_map(|made| made.parent()).try_for_each(|parent| File::open(parent)?.sync_all())
}

fn parse(text: &str) -> Option<Entries> {
    let mut lines = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
    let record = serde_json::from_str(lines.next()?).ok()?;
    let (mut state, mut settled) = (State::Staging, BTreeSet::new());
    for line in lines {
        let states = [State::Staging, State::Staged, State::Done];
        if let Some(reached) = states.into_iter().find(|state| state.line() == line) {
            state = state.max(reached);
        } else {
            let numbers = line.strip_prefix(SETTLED)?.split(' ').filter(|number| !number.is_empty());
            settled.extend(numbers.map(str::parse).collect::<Result<Vec<usize>, _>>().ok()?);
        }
    }
    Some(Entries { record, state, settled })
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
            new: Hash::of(b"new").to_string(),
            staged: "0".into(),
            folder: old.map(|_| 7),
        };
        Record {
            version: VERSION,
            root: "/srv/root".into(),
            device: 5,
            inode: u64::MAX,
            files: vec![file("a/b\n.txt", Some(&Hash::of(b"old").to_string())), file("new/c", None)],
            folders: vec!["new".into()],
        }
    }

    #[test]
    fn a_journal_is_read_as_it_was_written_up_to_the_last_whole_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut journal = Journal::create(folder.path(), "id", &record()).expect("written");
        let entries = |state, settled: &[usize]| Entries {
            record: record(),
            state,
            settled: settled.iter().copied().collect(),
        };
        assert_eq!(journal.read().expect("read"), Some(entries(State::Staging, &[])));
        assert!(journal.reach(State::Staged).is_ok());
        assert_eq!(journal.read().expect("read"), Some(entries(State::Staged, &[])));
        for settled in [[0, 1].as_slice(), &[1]] {
            journal.settle(&settled.iter().copied().collect()).expect("noted");
            assert_eq!(journal.read().expect("read"), Some(entries(State::Staged, &[0, 1])));
        }
        assert!(journal.reach(State::Done).is_ok());
        let text = std::fs::read_to_string(journal.path()).expect("text");
        for end in 0..text.len() {
            let expected = match text[..end].matches('\n').count() {
                0 => None,
                1 => Some(entries(State::Staging, &[])),
                2 => Some(entries(State::Staged, &[])),
                _ => Some(entries(State::Staged, &[0, 1])),
            };
            assert_eq!(parse(&text[..end]), expected);
        }
    }

    #[test]
    fn a_journal_of_another_owner_is_continued_where_it_ends() {
        let folder = tempfile::tempdir().expect("a folder");
        let journal = Journal::create(folder.path(), "id", &record()).expect("written");
        let path = journal.path().to_owned();
        std::io::Write::write_all(&mut &journal.file, b"staged\nsettled 0 1").expect("written");
        drop(journal);
        for settled in [1, 0] {
            // The line that was cut off is not taken for a whole one, whatever follows it.
            let mut taken = Journal::take_over(&path).expect("read").expect("nobody has it");
            let before = taken.read().expect("read").expect("whole").settled;
            taken.settle(&[settled].into()).expect("noted");
            let entries = taken.read().expect("read").expect("whole");
            assert_eq!(entries.state, State::Staged);
            assert_eq!(entries.settled, &before | &[settled].into());
            std::io::Write::write_all(&mut &taken.file, b"done").expect("written");
        }
    }

    #[test]
    fn a_damaged_journal_is_an_error_and_not_an_empty_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let journal = Journal::create(folder.path(), "id", &record()).expect("written");
        let text = std::fs::read_to_string(journal.path()).expect("text");
        let damaged = [
            "",
            "{}\n",
            &text[..40],
            &text.replace("\"0\"", "\"../0\""),
            &text.replace("\"0\"", "\"..\""),
            &text.replace("new/c", "../c"),
            &text.replace("\"version\":1", "\"version\":2"),
            &text.replace("\"version\"", "\"more\":0,\"version\""),
            &format!("{text}stafed\n"),
            &format!("{text}settled 0 x\n"),
            &format!("{text}\n"),
            &text.replace("[\"new\"]", "[\"\"]"),
            &text.replace(&Hash::of(b"old").to_string(), "x"),
        ];
        for content in damaged {
            std::fs::write(journal.path(), content).expect("written");
            assert!(journal.read().is_err(), "{content}");
        }
        std::fs::write(journal.path(), text).expect("written");
        assert!(journal.read().is_ok_and(|read| read.is_some()));
    }

    #[test]
    fn a_journal_that_nobody_could_read_is_not_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut large = record();
        large.folders = vec!["x".repeat(4000); 5000];
        assert!(Journal::create(folder.path(), "id", &large).is_err());
        assert!(journals(folder.path()).expect("listed").is_empty());
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
        taken.remove().expect("removed");
        assert!(Journal::take_over(&path).expect("read").is_none());
        assert!(journals(folder.path()).expect("listed").is_empty());
    }
}
