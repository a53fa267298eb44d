//! Recovery: undoes the change sets of processes that died in the middle.
//!
//! It runs before the first call, before any call when there is a journal whose owner is dead, and when a writer finds staged
//! files. It is the server's own act: no scopes and no rules apply, and no call fails because of it.

use std::{
    collections::{BTreeMap, HashSet},
    io,
    path::Path,
    time::{Duration, Instant, SystemTime},
};

use parking_lot::Mutex;
use pintle_contract::WorkspacePath;
use pintle_root::STAGING_FOLDER;
use rustix::{
    fs::{AtFlags, CWD, statat},
    io::Errno,
};

use super::{
    folders::Folders,
    journal::{Journal, Record, State, journals},
    reason,
    undo::{Undone, clean_up, undo},
};
use crate::{
    local::{LocalFolder, lock::LOCK_TIMEOUT},
    store::{StoreError, UnfinishedChange},
};

/// A time of a file system may be as old as this although it was taken just now.
const CLOCK_STEP: Duration = Duration::from_millis(50);
const MOST_WARNINGS: usize = 1000;
/// How many files of an unfinished change set are named with the reason.
const REASONS_SHOWN: usize = 3;
/// How often an unfinished change set is tried again.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

const MOVED_AWAY: &str = "serve that folder from where it is now, with this state folder; or check its files, and remove the journal";

/// The inode of a folder, and when it was changed: seconds and nanoseconds.
type Stamp = (u64, i64, i64);

fn stamp(folder: &Path) -> Option<Stamp> {
    let stat = statat(CWD, folder, AtFlags::empty()).ok()?;
    Some((stat.st_ino, stat.st_mtime, stat.st_mtime_nsec as i64))
}

/// What is known about the journals.
#[derive(Default)]
pub(in crate::local) struct Recovery(Mutex<Known>);

#[derive(Default)]
struct Known {
    /// The folder of the journals when it was read last.
    stamp: Option<Stamp>,
    /// Whether a journal may have come or gone since without a trace in the stamp, or an owner may have died.
    is_unsettled: bool,
    unfinished: Vec<UnfinishedChange>,
    last_attempt: Option<Instant>,
    /// The folders with staged files of others, of which there was a warning.
    warned_of: HashSet<String>,
}

impl Known {
    /// Whether there is nothing to do as long as the folder of the journals has this stamp.
    fn is_settled(&self, stamp: Option<Stamp>) -> bool {
        let may_retry = self.last_attempt.is_none_or(|last| last.elapsed() >= RETRY_INTERVAL);
        self.stamp == stamp && !self.is_unsettled && (self.unfinished.is_empty() || !may_retry)
    }
}

impl LocalFolder {
    /// Whether a change set of a dead process may have to be undone. Without a new journal this is one system call.
    pub fn needs_recovery(&self) -> bool {
        let Some(folder) = &self.change_sets.journals else { return false };
        let stamp = stamp(folder);
        // Whoever holds the lock is recovering, and that has to be waited for.
        self.change_sets.recovery.0.try_lock().is_none_or(|known| !known.is_settled(stamp))
    }

    /// Undoes the change sets of dead processes, if there are any.
    pub fn recover(&self) {
        let Some(folder) = &self.change_sets.journals else { return };
        let mut known = self.change_sets.recovery.0.lock();
        let stamp = stamp(folder);
        if !known.is_settled(stamp) {
            self.recover_all(folder, stamp, &mut known);
        }
    }

    /// Recovers because a writer has found staged files in a folder, whose lock it does not hold now. Returns whether
    /// something was done. If not, they belong to somebody with another state folder, who has to recover them.
    pub(in crate::local) fn recover_found(&self, path: &str) -> bool {
        let mut known = self.change_sets.recovery.0.lock();
        let folder = self.change_sets.journals.as_ref();
        let has_recovered = folder.is_some_and(|folder| self.recover_all(folder, None, &mut known));
        // What is left by this server's own change sets has been warned of.
        let is_foreign = !has_recovered && known.unfinished.is_empty();
        if is_foreign && known.warned_of.len() < MOST_WARNINGS && known.warned_of.insert(path.to_owned()) {
            (self.warn)(&format!(
                "{path} has {STAGING_FOLDER}, left by a change of several files that was cut off; a server with the state \
                 folder of the one that left it recovers it. It may have the only copy of a file's old content: look at it \
                 before you remove it"
            ));
        }
        has_recovered
    }

    /// The change sets that could not be undone.
    pub fn unfinished_changes(&self) -> Vec<UnfinishedChange> {
        self.recover();
        self.change_sets.recovery.0.lock().unfinished.clone()
    }

    /// Refuses to change a file of a change set that could not be undone.
    pub(in crate::local) fn refuse_unfinished(&self, path: &WorkspacePath) -> Result<(), StoreError> {
        if self.change_sets.journals.is_none() {
            return Ok(());
        }
        let known = self.change_sets.recovery.0.lock();
        match known.unfinished.iter().any(|change| change.files.contains(path)) {
            true => Err(StoreError::Unfinished),
            false => Ok(()),
        }
    }

    fn recover_all(&self, folder: &Path, stamp: Option<Stamp>, known: &mut Known) -> bool {
        let patience = if known.unfinished.is_empty() { LOCK_TIMEOUT } else { Duration::from_millis(100) };
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
        for change in unfinished.iter().filter(|change| !known.unfinished.contains(change)) {
            (self.warn)(&format!(
                "a change of several files was cut off and is not undone yet: {}; {}",
                change.reason, change.remedy
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
        known.unfinished = unfinished;
        known.last_attempt = Some(Instant::now());
        has_recovered
    }

    /// Recovers by one journal. An error is what is left to do, if it is this root's.
    fn recover_by(&self, mut journal: Journal, patience: Duration) -> Result<(), Option<UnfinishedChange>> {
        let path = journal.path().to_owned();
        let failed = |files: Vec<WorkspacePath>, reason: &str, remedy: &str| {
            Some(UnfinishedChange { files, reason: about(&path, reason), remedy: remedy.into() })
        };
        let (record, state) = match journal.read() {
            Ok(Some(read)) => read,
            Ok(None) => {
                // Nothing was done before it was written whole.
                journal.remove();
                return Ok(());
            }
            Err(error) => return Err(Some(unreadable(&path, &error))),
        };
        if !self.is_own(&record) {
            let now = statat(CWD, Path::new(&record.root), AtFlags::empty());
            return Err(match now {
                // Whoever serves that root recovers it.
                Ok(stat) if stat.st_ino == record.inode => None,
                Ok(_) => {
                    let reason = format!("it changed files in {}, where another folder is now", record.root);
                    failed(Vec::new(), &reason, MOVED_AWAY)
                }
                Err(_) => {
                    let reason = format!("it changed files in {}, which is not there any more", record.root);
                    failed(Vec::new(), &reason, MOVED_AWAY)
                }
            });
        }
        let files: Vec<_> =
            record.files.iter().filter_map(|file| WorkspacePath::parse(&file.path).ok()).collect();
        let folders = self.lock_recorded(&files, &record, patience).map_err(|(folder, error)| {
            let remedy = remedy(&error);
            failed(files.clone(), &format!("{folder}: {}", reason(error, &folder)), remedy)
        })?;
        let Undone { kept, mut unfinished, left, .. } = match state {
            State::Done => clean_up(&record, &folders, self.durability, &self.warn),
            state => undo(&record, state, &folders, self.durability, &self.warn),
        };
        files.iter().for_each(&self.recovered);
        unfinished.extend(left);
        if let Some((_, error)) = unfinished.first() {
            let remedy = remedy(error);
            let files = unfinished.iter().map(|(path, _)| path.clone()).collect();
            let reasons =
                unfinished.into_iter().map(|(path, error)| format!("{path}: {}", reason(error, &path)));
            return Err(failed(files, &reasons.take(REASONS_SHOWN).collect::<Vec<_>>().join("; "), remedy));
        }
        journal.remove();
        let what = if state == State::Done { "was finished" } else { "was undone" };
        let files = if files.len() == 1 { "1 file".into() } else { format!("{} files", files.len()) };
        (self.warn)(&format!("a change of {files} that was cut off {what}"));
        for (path, reason) in kept {
            (self.warn)(&format!("{path} is not as it was: {reason}"));
        }
        Ok(())
    }

    /// Whether a journal is about this root: it may have moved, and another folder may be at its old path.
    fn is_own(&self, record: &Record) -> bool {
        let Ok((device, inode)) = self.root.identity() else { return false };
        let is_same_path = self.root.real_path().is_ok_and(|path| path.to_string_lossy() == record.root);
        inode == record.inode && (is_same_path || device == record.device)
    }

    /// Locks the folders of the files in a journal. One that is gone, or is another one now, is left out.
    fn lock_recorded(
        &self,
        files: &[WorkspacePath],
        record: &Record,
        patience: Duration,
    ) -> Result<Folders, (WorkspacePath, StoreError)> {
        let made = record.folders.iter().filter_map(|folder| WorkspacePath::parse(folder).ok());
        let paths: Vec<_> = files.iter().cloned().chain(made).collect();
        let mut opened = BTreeMap::new();
        for path in &paths {
            let Some((folder, _)) = path.split_last() else { continue };
            match self.root.open_folder(&folder) {
                Ok((handle, found)) if found == folder => drop(opened.insert(folder, handle)),
                Ok(_) | Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => {}
                Err(error) => return Err((folder, error.into())),
            }
        }
        Folders::lock(opened, Instant::now() + patience, &|| false)
    }
}

fn about(journal: &Path, reason: &str) -> String {
    format!("{reason} (journal {})", journal.display())
}

/// Nobody can know what it was about, so it stays for a person to look at.
fn unreadable(journal: &Path, error: &io::Error) -> UnfinishedChange {
    UnfinishedChange {
        files: Vec::new(),
        reason: about(journal, &format!("its journal cannot be read: {error}")),
        remedy: format!(
            "check the files that were edited last, and each {STAGING_FOLDER}; then remove the journal"
        ),
    }
}

fn remedy(error: &StoreError) -> &'static str {
    match error {
        StoreError::Locked(_) => "end the program that holds the lock; it is undone with the next call",
        StoreError::Io(_) => "check the disk, and the rights of the files; it is tried again with every call",
        _ => "move away what stands in the way; it is undone with the next call",
    }
}
