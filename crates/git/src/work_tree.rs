//! What differs between the index and the work tree.

use std::{
    os::fd::OwnedFd,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use parking_lot::Mutex;
use pintle_root::{Stamp, open_file_in};
use rustix::{
    fs::{AtFlags, FileType, Stat},
    io::Errno,
};

use crate::{
    attributes::{Attributes, Conversion},
    content::Blob,
    index::{Entry, Index, Time, mode},
    problem::{HasEnded, Problem, go_on},
    repository::Repository,
};

/// The most threads that read files. More of them would wait for the same disk.
const MOST_THREADS: usize = 4;
/// How many entries of the index a thread takes at a time.
const BATCH: usize = 512;

/// How a file differs from the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// It is there, and is meant to be added.
    Intended,
    Modified,
    Deleted,
}

/// What differs, as numbers of the index's entries, in their order.
pub(crate) fn changes(
    repository: &Repository,
    index: &Index,
    has_ended: HasEnded<'_>,
) -> Result<Vec<(usize, Found)>, Problem> {
    let beneath = index.beneath(repository.work_tree().prefix());
    let (next, all) = (AtomicUsize::new(beneath.start), Mutex::new(Ok(Vec::new())));
    let work = || {
        let mut visitor =
            Visitor { repository, index, has_ended, attributes: Attributes::new(repository), folder: None };
        loop {
            let start = next.fetch_add(BATCH, Ordering::Relaxed);
            if start >= beneath.end {
                return;
            }
            let found = visitor.visit(start..(start + BATCH).min(beneath.end));
            let mut all = all.lock();
            match (&mut *all, found) {
                (Ok(all), Ok(found)) => all.extend(found),
                (Ok(_), Err(problem)) => {
                    // The other threads find no entries left and end.
                    next.store(beneath.end, Ordering::Relaxed);
                    *all = Err(problem);
                }
                (Err(_), _) => {}
            }
        }
    };
    let batches = beneath.len().div_ceil(BATCH);
    let threads = thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS).min(batches);
    thread::scope(|scope| {
        for _ in 1..threads {
            // If a thread cannot be started, the others do its work.
            drop(thread::Builder::new().spawn_scoped(scope, work));
        }
        work();
    });
    let mut all = all.into_inner()?;
    all.sort_unstable_by_key(|(number, _)| *number);
    Ok(all)
}

struct Visitor<'a> {
    repository: &'a Repository,
    index: &'a Index,
    has_ended: HasEnded<'a>,
    attributes: Attributes<'a>,
    /// The folder of the last file, by its path; none if there is no such folder.
    folder: Option<(&'a [u8], Result<OwnedFd, Errno>)>,
}

impl<'a> Visitor<'a> {
    fn visit(&mut self, numbers: std::ops::Range<usize>) -> Result<Vec<(usize, Found)>, Problem> {
        go_on(self.has_ended)?;
        let index = self.index;
        let mut changes = Vec::new();
        for number in numbers {
            let entry = &index.entries[number];
            let is_left_alone = entry.stage > 0
                || entry.mode == mode::SUBMODULE
                || entry.is_assumed_unchanged
                || (entry.is_skipped && !self.repository.config.sparse_checkout);
            if is_left_alone {
                continue;
            }
            match self.compare(entry)? {
                // It is marked skip-worktree, so it is meant to be absent.
                Some(Found::Deleted) if entry.is_skipped => {}
                Some(found) => changes.push((number, found)),
                None => {}
            }
        }
        Ok(changes)
    }

    fn compare(&mut self, entry: &Entry) -> Result<Option<Found>, Problem> {
        let path = self.index.path(entry);
        let (folder, name) = match memchr::memrchr(b'/', path) {
            Some(slash) => (&path[..slash], &path[slash + 1..]),
            None => (&b""[..], path),
        };
        if self.folder.as_ref().is_none_or(|(own, _)| *own != folder) {
            self.folder = Some((folder, self.repository.work_tree().open_folder(folder)));
        }
        let stat = match &self.folder {
            Some((_, Ok(folder))) => rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW),
            Some((_, Err(error))) => Err(*error),
            None => Err(Errno::NOENT),
        };
        let (stat, kind) = match stat {
            Ok(stat) => (stat, FileType::from_raw_mode(stat.st_mode)),
            // What a link leads to is not part of the work tree.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(Some(Found::Deleted)),
            // A file that cannot be examined is not known to be unchanged.
            Err(_) => return Ok(Some(Found::Modified)),
        };
        if kind == FileType::Directory {
            return Ok(Some(Found::Deleted));
        }
        if entry.is_intended {
            return Ok(Some(Found::Intended));
        }
        let is_same = self.has_same_kind(entry, kind, &stat)
            && (self.looks_same(entry, Stamp::from_stat(&stat))
                || self.has_same_content(entry, path, name, kind, &stat)?);
        Ok((!is_same).then_some(Found::Modified))
    }

    fn has_same_kind(&self, entry: &Entry, kind: FileType, stat: &Stat) -> bool {
        let config = &self.repository.config;
        match (entry.mode, kind) {
            (mode::LINK, FileType::Symlink) => true,
            (mode::LINK, FileType::RegularFile) => !config.symlinks,
            (mode::FILE | mode::EXECUTABLE, FileType::RegularFile) => {
                let is_executable = stat.st_mode & 0o100 != 0;
                !config.file_mode || is_executable == (entry.mode == mode::EXECUTABLE)
            }
            _ => false,
        }
    }

    /// Whether a file was certainly not changed since the index was written.
    fn looks_same(&self, entry: &Entry, stamp: Stamp) -> bool {
        let (modified, changed) = (Time::new(stamp.modified), Time::new(stamp.changed));
        // Git sets the size to zero where it is not sure itself.
        entry.size != 0
            && entry.size == stamp.size as u32
            && entry.modified == modified
            && (!self.repository.config.trust_changed || entry.changed == changed)
            && modified < self.index.written
    }

    fn has_same_content(
        &mut self,
        entry: &Entry,
        path: &[u8],
        name: &[u8],
        kind: FileType,
        stat: &Stat,
    ) -> Result<bool, Problem> {
        let Some((_, Ok(folder))) = &self.folder else { return Ok(false) };
        let blob = Blob { id: &entry.id, hash: self.repository.config.hash };
        if kind == FileType::Symlink {
            let target = rustix::fs::readlinkat(folder, name, Vec::new());
            return Ok(target.is_ok_and(|target| blob.is(target.as_bytes())));
        }
        if stat.st_size == 0 {
            return Ok(blob.is(b""));
        }
        let conversion = match entry.mode {
            mode::LINK => Conversion::None,
            _ => self.attributes.conversion(path)?,
        };
        // The size in the index is that of the file, before anything was converted.
        let is_other_size = entry.size != 0 && entry.size != stat.st_size as u32;
        if is_other_size && conversion == Conversion::None {
            return Ok(false);
        }
        let Ok(mut file) = open_file_in(folder, name) else { return Ok(false) };
        let Ok(size) = file.metadata().map(|metadata| metadata.len()) else { return Ok(false) };
        blob.is_file(&mut file, size, conversion, self.has_ended)
    }
}
