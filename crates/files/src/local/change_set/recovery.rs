//! Recovery: undoes the change sets of processes that died in the middle.
//!
//! It runs before the first call, before any call when there is a journal whose owner is dead, and when a writer finds staged
//! files. It is the server's own act: no scopes and no rules apply, and no call fails because of it.

use std::{
    collections::{BTreeMap, HashSet},
    io,
    os::fd::AsFd,
    path::Path,
    time::{Duration, Instant, SystemTime},
};

use parking_lot::{Mutex, RwLock};
use pintle_contract::WorkspacePath;
use pintle_root::{STAGING_FOLDER, identity};
use rustix::{
    fs::{AtFlags, CWD, statat},
    io::Errno,
};

use super::{
    folders::Folders,
    journal::{Entries, Journal, Record, State, journals},
    staging::{Staging, remove_folder},
    undo::{Obstacle, Undo, Undone},
};
use crate::{
    local::{
        LocalFolder, leftover,
        lock::{LOCK_TIMEOUT, Lock},
    },
    store::{StoreError, UnfinishedChange},
};

/// A time of a file system may be as old as this although it was taken just now.
const CLOCK_STEP: Duration = Duration::from_millis(50);
const MOST_WARNINGS: usize = 1000;
/// How many files of an unfinished change set are named with the reason.
const REASONS_SHOWN: usize = 3;
/// How often an unfinished change set is tried again.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

const MOVED_AWAY: &str = "the server's log names that folder: serve it from where it is now, with this state folder; or check its files, and remove the journal";
const STATE_IS_READ_ONLY: &str = "make the state folder writable; it is undone with the next call";

/// The inode of a folder, and when it was changed: seconds and nanoseconds.
type Stamp = (u64, i64, i64);

fn stamp(folder: &Path) -> Option<Stamp> {
    let stat = statat(CWD, folder, AtFlags::empty()).ok()?;
    Some((stat.st_ino, stat.st_mtime, stat.st_mtime_nsec as i64))
}

/// What is known about the journals.
#[derive(Default)]
pub(in crate::local) struct Recovery {
    /// Held while somebody recovers. Recovery waits for locks on folders, so nobody who holds one may wait for this.
    known: Mutex<Known>,
    /// The change sets that could not be undone when that was tried last.
    unfinished: RwLock<Vec<UnfinishedChange>>,
    /// The folders with staged files of others, of which there was a warning.
    warned_of: Mutex<HashSet<String>>,
}

#[derive(Default)]
struct Known {
    /// The folder of the journals when it was read last.
    stamp: Option<Stamp>,
    /// Whether a journal may have come or gone since without a trace in the stamp, or an owner may have died.
    is_unsettled: bool,
    has_unfinished: bool,
    last_attempt: Option<Instant>,
}

impl Known {
    /// Whether there is nothing to do as long as the folder of the journals has this stamp.
    fn is_settled(&self, stamp: Option<Stamp>) -> bool {
        let may_retry = self.last_attempt.is_none_or(|last| last.elapsed() >= RETRY_INTERVAL);
        self.stamp == stamp && !self.is_unsettled && !(self.has_unfinished && may_retry)
    }
}

impl LocalFolder {
    /// Whether a change set of a dead process may have to be undone. Without a new journal this is one system call.
    pub fn needs_recovery(&self) -> bool {
        let Some(folder) = &self.change_sets.journals else { return false };
        let stamp = stamp(folder);
        // Whoever holds the lock is recovering, and that has to be waited for.
        self.change_sets.recovery.known.try_lock().is_none_or(|known| !known.is_settled(stamp))
    }

    /// Undoes the change sets of dead processes, if there are any.
    pub fn recover(&self) {
        let Some(folder) = &self.change_sets.journals else { return };
        let mut known = self.change_sets.recovery.known.lock();
        let stamp = stamp(folder);
        if !known.is_settled(stamp) {
            self.recover_all(folder, stamp, &mut known);
        }
    }

    /// Recovers because a writer has found staged files in a folder, whose lock it does not hold now. Returns whether
    /// something was done.
    pub(in crate::local) fn recover_found(&self) -> bool {
        let Some(folder) = &self.change_sets.journals else { return false };
        let mut known = self.change_sets.recovery.known.lock();
        self.recover_all(folder, None, &mut known)
    }

    /// Leaves staged files in a locked folder alone after recovery: they belong to somebody with another state folder, who
    /// has to recover them. Without files, the staging folder is removed.
    pub(in crate::local) fn leave_staged(&self, folder: &Lock, has_recovered: bool) {
        if Staging::is_left_in(folder) {
            let _ = remove_folder(folder);
        }
        if !has_recovered {
            self.warn_of_staged(folder);
        }
    }

    /// Warns of staged files that somebody with another state folder has left, once for each folder.
    pub(in crate::local) fn warn_of_staged(&self, folder: impl AsFd) {
        let recovery = &self.change_sets.recovery;
        // What is left by this server's own change sets has been warned of.
        if !Staging::is_left_in(&folder) || !recovery.unfinished.read().is_empty() {
            return;
        }
        let path = leftover::shown_path(folder);
        let mut warned_of = recovery.warned_of.lock();
        if warned_of.len() < MOST_WARNINGS && warned_of.insert(path.clone()) {
            (self.warn)(&format!(
                "{path} has {STAGING_FOLDER}, left by a change of several files that was cut off; a server with the state \
                 folder of the one that left it recovers it. It may have the only copy of a file's old content: look at it \
                 before you remove it"
            ));
        }
    }

    /// The change sets that could not be undone.
    pub fn unfinished_changes(&self) -> Vec<UnfinishedChange> {
        self.recover();
        self.change_sets.recovery.unfinished.read().clone()
    }

    /// Refuses to change a file of a change set that could not be undone.
    pub(in crate::local) fn refuse_unfinished(&self, path: &WorkspacePath) -> Result<(), StoreError> {
        let unfinished = self.change_sets.recovery.unfinished.read();
        match unfinished.iter().any(|change| change.blocks_edits && change.files.contains(path)) {
            true => Err(StoreError::Unfinished),
            false => Ok(()),
        }
    }

    fn recover_all(&self, folder: &Path, stamp: Option<Stamp>, known: &mut Known) -> bool {
        let patience = if known.has_unfinished { Duration::from_millis(100) } else { LOCK_TIMEOUT };
        let (mut unfinished, mut is_unsettled, mut has_recovered) = (Vec::new(), false, false);
        // No folder, no journals.
        for path in journals(folder).unwrap_or_default() {
            match Journal::take_over(&path) {
                Ok(Some(journal)) => match self.recover_by(journal, patience) {
                    Ok(()) => has_recovered = true,
                    Err(Some(change)) => unfinished.push(change),
                    Err(None) => {}
                },
                // Its owner lives; it may die without a trace in the stamp.
                Ok(None) => is_unsettled = true,
                Err(error) => unfinished.push(unreadable(&path, &error)),
            }
        }
        let before =
            std::mem::replace(&mut *self.change_sets.recovery.unfinished.write(), unfinished.clone());
        for change in unfinished.iter().filter(|change| !before.contains(change)) {
            let UnfinishedChange { elsewhere, reason, remedy, .. } = change;
            let elsewhere = elsewhere.as_ref().map(|root| format!(" in {root}")).unwrap_or_default();
            (self.warn)(&format!(
                "a change of several files{elsewhere} was cut off, and something is left to do: {reason}; {remedy}"
            ));
        }
        let is_fresh = stamp.is_none_or(|(_, seconds, nanoseconds)| {
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            let then = Duration::new(seconds.try_into().unwrap_or(0), nanoseconds.try_into().unwrap_or(0));
            now.saturating_sub(then) < CLOCK_STEP
        });
        // A folder that does not exist has no journal until its parent gets an entry, which changes the stamp.
        known.is_unsettled = is_unsettled || has_recovered || (is_fresh && stamp.is_some());
        known.stamp = stamp;
        known.has_unfinished = !unfinished.is_empty();
        known.last_attempt = Some(Instant::now());
        has_recovered
    }

    /// Recovers by one journal. An error is what is left to do, if it is this root's.
    fn recover_by(&self, mut journal: Journal, patience: Duration) -> Result<(), Option<UnfinishedChange>> {
        let path = journal.path().to_owned();
        let failed = |files: Vec<WorkspacePath>, reason: &str, remedy: &str| {
            Some(UnfinishedChange {
                files,
                blocks_edits: true,
                elsewhere: None,
                reason: about(&path, reason),
                remedy: remedy.into(),
            })
        };
        let entries = match journal.read() {
            Ok(Some(read)) => read,
            Ok(None) => {
                // Nothing was done before it was written whole.
                let removed = journal.remove();
                return removed.map_err(|error| failed(Vec::new(), &not_removed(&error), STATE_IS_READ_ONLY));
            }
            Err(error) => return Err(Some(unreadable(&path, &error))),
        };
        let Entries { record, state, .. } = &entries;
        if !self.is_own(record) {
            let now = statat(CWD, Path::new(&record.root), AtFlags::empty());
            let reason = match now {
                // Whoever serves that root recovers it.
                Ok(stat) if stat.st_ino == record.inode => return Err(None),
                Ok(_) => "it changed files in a folder that was moved away; another one has its path now",
                Err(_) => "it changed files in a folder that is not there any more",
            };
            let elsewhere = Some(record.root.clone());
            let reason = about(&path, reason);
            return Err(Some(UnfinishedChange {
                files: Vec::new(),
                blocks_edits: false,
                elsewhere,
                reason,
                remedy: MOVED_AWAY.into(),
            }));
        }
        let to_undo = |number: &usize| !entries.settled.contains(number);
        let paths = record.files.iter().enumerate().filter(|(number, _)| to_undo(number));
        let files: Vec<_> = paths.filter_map(|(_, file)| WorkspacePath::parse(&file.path).ok()).collect();
        if journal.is_read_only() {
            return Err(failed(files, "the state folder cannot be written to", STATE_IS_READ_ONLY));
        }
        let (folders, unreachable) = self.lock_recorded(record, patience).map_err(|(folder, error)| {
            let obstacle = Obstacle::from(error);
            let remedy = obstacle.remedy();
            failed(files.clone(), &format!("{folder}: {}", obstacle.reason(&folder)), remedy)
        })?;
        let undo = Undo::new(self, &folders).with_unreachable(unreachable);
        let Undone { kept, mut unfinished, left, settled, .. } = match state {
            State::Done => undo.clean_up(record),
            _ => undo.undo(&entries),
        };
        files.iter().for_each(&self.recovered);
        let noted = if settled == entries.settled { Ok(()) } else { journal.settle(&settled) };
        unfinished.extend(left);
        if let Some((_, obstacle)) = unfinished.first() {
            let remedy = obstacle.remedy();
            let unfinished_files = match noted {
                Ok(()) => unfinished.iter().map(|(path, _)| path.clone()).collect(),
                // All of them are looked at again.
                Err(_) => files,
            };
            let reasons =
                unfinished.into_iter().map(|(path, obstacle)| format!("{path}: {}", obstacle.reason(&path)));
            let reasons = reasons.take(REASONS_SHOWN).collect::<Vec<_>>().join("; ");
            let left = failed(unfinished_files, &reasons, remedy);
            // Otherwise the files are as they should be.
            return Err(left.map(|left| UnfinishedChange { blocks_edits: *state == State::Staged, ..left }));
        }
        journal.remove().map_err(|error| {
            let files = if noted.is_ok() { Vec::new() } else { files.clone() };
            failed(files, &not_removed(&error), STATE_IS_READ_ONLY)
        })?;
        let what = if *state == State::Done { "was finished" } else { "was undone" };
        let files = if files.len() == 1 { "1 file".into() } else { format!("{} files", files.len()) };
        (self.warn)(&format!("a change of {files} that was cut off {what}"));
        for (path, reason) in kept {
            (self.warn)(&format!("{path}: {reason}"));
        }
        Ok(())
    }

    /// Whether a journal is about this root: it may have moved, and another folder may be at its old path.
    fn is_own(&self, record: &Record) -> bool {
        let Ok((device, inode)) = self.root.identity() else { return false };
        let is_same_path = self.root.real_path().is_ok_and(|path| path.to_string_lossy() == record.root);
        inode == record.inode && (is_same_path || device == record.device)
    }

    /// Locks the folders of the files in a journal. One that is gone, or is another one now, is left out. Also returns
    /// those that cannot be opened.
    fn lock_recorded(
        &self,
        record: &Record,
        patience: Duration,
    ) -> Result<(Folders, BTreeMap<WorkspacePath, Errno>), (WorkspacePath, StoreError)> {
        let (mut opened, mut unreachable) = (BTreeMap::new(), BTreeMap::new());
        for file in &record.files {
            let Ok(path) = WorkspacePath::parse(&file.path) else { continue };
            let Some((folder, _)) = path.split_last() else { continue };
            match self.root.open_folder(&folder) {
                Ok((handle, found)) if found == folder => match identity(&handle) {
                    Ok((_, inode)) if file.folder.is_some_and(|recorded| recorded != inode) => {}
                    Ok(_) => drop(opened.insert(folder, handle)),
                    Err(error) => drop(unreachable.insert(folder, error)),
                },
                Ok(_) | Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => {}
                Err(error) => drop(unreachable.insert(folder, error)),
            }
        }
        Ok((Folders::lock(opened, Instant::now() + patience, &|| false)?, unreachable))
    }
}

fn about(journal: &Path, reason: &str) -> String {
    let name = journal.file_name().unwrap_or_default().display();
    format!("{reason} (journal {name}, in `changes` of the state folder)")
}

/// Nobody can know what it was about, so it stays for a person to look at.
fn unreadable(journal: &Path, error: &io::Error) -> UnfinishedChange {
    UnfinishedChange {
        files: Vec::new(),
        blocks_edits: false,
        elsewhere: None,
        reason: about(journal, &format!("its journal cannot be read: {error}")),
        remedy: format!(
            "check the files that were edited last, and each {STAGING_FOLDER}; then remove the journal"
        ),
    }
}

fn not_removed(error: &io::Error) -> String {
    format!("it is undone, but its journal cannot be removed: {error}")
}
