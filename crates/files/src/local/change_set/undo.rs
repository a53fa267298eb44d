//! Undoing a change set by its journal: while its owner still lives, and after its death.
//!
//! What a name holds is told by its hash, not by what the journal says was done last: the owner may have died in the middle of
//! any step, and other programs may have saved since.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Instant,
};

use pintle_contract::WorkspacePath;
use pintle_root::STAGING_FOLDER;
use rustix::io::Errno;

use super::{
    folders::Folders,
    journal::{Entries, FileRecord, Record, State},
    staging::{Removed, Staging, hash_in, remove_folder},
};
use crate::{
    fault::cause,
    hash::Hash,
    local::{LocalFolder, lease::LEASE_TIMEOUT, leftover, lock::Lock, temporary::rename_to_new},
    store::StoreError,
};

/// What has become of the files.
#[derive(Debug, Default)]
pub(super) struct Undone {
    /// Those that are as they were.
    pub(super) undone: Vec<WorkspacePath>,
    /// Those that are not, because another program has saved them, and why.
    pub(super) kept: Vec<(WorkspacePath, String)>,
    /// Those that could not be looked at or changed now.
    pub(super) unfinished: Vec<(WorkspacePath, Obstacle)>,
    /// The file next to which a staging folder is left that could not be removed now, and why.
    pub(super) left: Option<(WorkspacePath, Obstacle)>,
    /// The numbers of all files that need no further look.
    pub(super) settled: BTreeSet<usize>,
}

/// Why a file cannot be undone now.
#[derive(Debug)]
pub(super) enum Obstacle {
    Failed(StoreError),
    /// Its folder is gone, or another one has its path.
    FolderGone,
}

impl<T: Into<StoreError>> From<T> for Obstacle {
    fn from(error: T) -> Self {
        Self::Failed(error.into())
    }
}

impl Obstacle {
    /// What it is.
    pub(super) fn reason(self, path: &WorkspacePath) -> String {
        match self {
            Self::FolderGone => "its folder is not there any more, or another one has its path".into(),
            Self::Failed(StoreError::Io(error)) => error.to_string(),
            Self::Failed(StoreError::Locked(Some(process))) => {
                format!("process {process} holds the lock on its folder")
            }
            Self::Failed(StoreError::Locked(None)) => "another program holds the lock on its folder".into(),
            Self::Failed(error) => cause(error, path),
        }
    }

    /// What a person can do.
    pub(super) fn remedy(&self) -> &'static str {
        match self {
            Self::FolderGone => {
                "put the folder back where it was, and it is undone with the next call; or check the files, and remove the journal"
            }
            Self::Failed(StoreError::Locked(_)) => {
                "end the program that holds the lock; it is undone with the next call"
            }
            Self::Failed(StoreError::Io(_)) => {
                "check the disk, and the rights of the files; it is tried again with every call"
            }
            Self::Failed(_) => "move away what stands in the way; it is undone with the next call",
        }
    }
}

/// Undoes change sets in a store whose folders are locked.
pub(super) struct Undo<'a> {
    store: &'a LocalFolder,
    folders: &'a Folders,
    /// The folders that cannot be opened now, and why.
    unreachable: BTreeMap<WorkspacePath, Errno>,
    /// How long programs are waited for that have files open to write into them, all of them together.
    deadline: Instant,
}

impl<'a> Undo<'a> {
    pub(super) fn new(store: &'a LocalFolder, folders: &'a Folders) -> Self {
        Self { store, folders, unreachable: BTreeMap::new(), deadline: Instant::now() + LEASE_TIMEOUT }
    }

    /// For files some of which are in folders that cannot be opened now.
    pub(super) fn with_unreachable(self, unreachable: BTreeMap<WorkspacePath, Errno>) -> Self {
        Self { unreachable, ..self }
    }

    /// Undoes a change set that is not done.
    pub(super) fn undo(&self, Entries { record, state, settled }: &Entries) -> Undone {
        let mut result = Undone { settled: settled.clone(), ..Undone::default() };
        for (number, file) in record.files.iter().enumerate().rev() {
            let Ok(path) = WorkspacePath::parse(&file.path) else { continue };
            if settled.contains(&number) {
                continue;
            }
            match self.undo_file(file, &path, *state) {
                Ok(outcome) => {
                    result.settled.insert(number);
                    match outcome {
                        None => result.undone.push(path),
                        Some(reason) => result.kept.push((path, reason)),
                    }
                }
                Err(error) => result.unfinished.push((path, error)),
            }
        }
        result.left = self.remove_staging(record);
        let settled_now = || result.undone.iter().chain(result.kept.iter().map(|(path, _)| path));
        for folder in record.folders.iter().rev().filter_map(|folder| WorkspacePath::parse(folder).ok()) {
            // Later it is not removed any more: one that is made again belongs to somebody else.
            if settled_now().any(|file| file.is_within(&folder)) {
                self.folders.remove_made(&self.store.root, &folder);
            }
        }
        result.undone.reverse();
        result.kept.reverse();
        result.unfinished.reverse();
        result
    }

    /// Removes the old files of a change set that is done.
    pub(super) fn clean_up(&self, record: &Record) -> Undone {
        let mut result = Undone::default();
        for file in &record.files {
            let Ok(path) = WorkspacePath::parse(&file.path) else { continue };
            let removed = match self.locked(&path) {
                Some((folder, name)) => self.remove_old(file, folder, name).map_err(Obstacle::from),
                None => self.check_away(file, &path),
            };
            if let Err(obstacle) = removed {
                result.unfinished.push((path, obstacle));
            }
        }
        result.left = self.remove_staging(record);
        result
    }

    /// Removes the staging folders, and makes it durable.
    fn remove_staging(&self, record: &Record) -> Option<(WorkspacePath, Obstacle)> {
        let mut left = None;
        for file in &record.files {
            let Ok(path) = WorkspacePath::parse(&file.path) else { continue };
            let Some((folder, _)) = self.locked(&path) else { continue };
            if matches!(Staging::find(folder), Ok(None)) {
                continue;
            }
            match remove_folder(folder) {
                Ok(()) => drop(self.store.durability.sync(folder)),
                Err(error) => left = Some((path, error.into())),
            }
        }
        left
    }

    fn locked<'b>(&'b self, path: &'b WorkspacePath) -> Option<(&'b Lock, &'b str)> {
        let (folder, name) = path.split_last()?;
        Some((self.folders.at(&folder).ok()?, name))
    }

    /// Whether nothing has to be done for a file whose folder is not there: only if the folder was never made.
    fn check_away(&self, file: &FileRecord, path: &WorkspacePath) -> Result<(), Obstacle> {
        let folder = path.split_last().map(|(folder, _)| folder);
        match folder.and_then(|folder| self.unreachable.get(&folder)) {
            Some(error) => Err((*error).into()),
            None if file.folder.is_some() => Err(Obstacle::FolderGone),
            None => Ok(()),
        }
    }

    /// Undoes the change of one file. Returns why it is not as it was, if it is not.
    fn undo_file(
        &self,
        file: &FileRecord,
        path: &WorkspacePath,
        state: State,
    ) -> Result<Option<String>, Obstacle> {
        let Some((folder, name)) = self.locked(path) else {
            return self.check_away(file, path).map(|()| None);
        };
        let staging = match Staging::find(folder)? {
            Some(staging) => staging,
            // A created file has left it, and somebody has removed it.
            None if state == State::Staging => return Ok(None),
            None if file.old.is_some() => return Ok(without_old(file, folder, name)?),
            None if look(file, folder, name)? == Visible::Ours => Staging::open_or_create(folder)?,
            None => return Ok(None),
        };
        let old = file.old.as_deref().and_then(Hash::parse);
        // Whatever the journal says, the old content is not removed as long as the file has the new one.
        let is_exchanged = || -> Result<bool, StoreError> {
            Ok(old.is_some()
                && staging.hash(&file.staged)? == old
                && look(file, folder, name)? == Visible::Ours)
        };
        if state == State::Staging && !is_exchanged()? {
            staging.remove(&file.staged)?;
            return Ok(None);
        }
        Ok(match old {
            None => self.undo_creation(file, &staging, folder, name),
            Some(old) => self.undo_edit((file, old), &staging, folder, name),
        }?)
    }

    /// Exchanges a file back. The file that comes out is checked: it is removed only if it has our content. If it is a
    /// newer save, it gets its name back.
    fn undo_edit(
        &self,
        (file, old): (&FileRecord, Hash),
        staging: &Staging,
        folder: &Lock,
        name: &str,
    ) -> Result<Option<String>, StoreError> {
        /// Another round is needed only if another program saved within microseconds.
        const ROUNDS: usize = 1000;
        let new = Hash::parse(&file.new);
        // What had its name may be open in other programs.
        let mut had_name = false;
        for _ in 0..ROUNDS {
            let staged = staging.hash(&file.staged)?;
            let Some(content) = staged else { return without_old(file, folder, name) };
            if staged == new {
                // It has not been exchanged, or was exchanged back.
                if !had_name {
                    staging.remove(&file.staged)?;
                    return Ok(None);
                }
                if staging.remove_if(&file.staged, &content, self.deadline)? == Removed::Yes {
                    return Ok(None);
                }
                let kept = self.keep_save(&file.staged, staging, folder, name)?;
                return Ok(Some(format!(
                    "it has its old content; another program had the new one open to write into it, which is now {kept}"
                )));
            }
            match look(file, folder, name)? {
                Visible::Ours => {
                    let _ = self.store.step("undo");
                    match staging.exchange(&file.staged, folder, name) {
                        Ok(()) | Err(Errno::NOENT) => {}
                        Err(error) => return Err(error.into()),
                    }
                    had_name = true;
                    // What another program has just saved gets its name back.
                    let came_out = staging.hash(&file.staged)?;
                    if came_out.is_some() && came_out != new && came_out != staged {
                        staging.exchange(&file.staged, folder, name)?;
                    }
                    continue;
                }
                // Somebody has removed it since.
                Visible::Nothing => match rename_to_new((staging, &file.staged), (folder, name)) {
                    Ok(()) => return Ok(None),
                    Err(StoreError::Exists) => continue,
                    Err(error) => return Err(error),
                },
                Visible::Foreign => {}
            }
            if content != old || staging.remove_if(&file.staged, &old, self.deadline)? == Removed::NotOurs {
                self.keep_save(&file.staged, staging, folder, name)?;
            }
            return Ok(Some("another program has saved it meanwhile".into()));
        }
        Err(StoreError::KeepsChanging)
    }

    /// Removes a created file that is still ours.
    fn undo_creation(
        &self,
        file: &FileRecord,
        staging: &Staging,
        folder: &Lock,
        name: &str,
    ) -> Result<Option<String>, StoreError> {
        let Some(new) = Hash::parse(&file.new) else { return Ok(None) };
        let staged = staging.hash(&file.staged)?;
        if staged == Some(new) {
            // It never had its name.
            staging.remove(&file.staged)?;
            return Ok(None);
        }
        if staged.is_none() {
            if look(file, folder, name)? != Visible::Ours {
                return Ok(None);
            }
            // It is moved away before it is removed, so that a save at this instant is not removed in its place.
            let _ = self.store.step("undo");
            rename_to_new((folder, name), (staging, &file.staged))?;
        }
        if staging.remove_if(&file.staged, &new, self.deadline)? == Removed::Yes {
            return Ok(None);
        }
        match rename_to_new((staging, &file.staged), (folder, name)) {
            Ok(()) => {}
            Err(StoreError::Exists) => drop(self.keep_save(&file.staged, staging, folder, name)?),
            Err(error) => return Err(error),
        }
        Ok(Some("another program has saved it meanwhile".into()))
    }

    /// Removes an old file after all have changed. If another program has saved into it, it is kept.
    fn remove_old(&self, file: &FileRecord, folder: &Lock, name: &str) -> Result<(), StoreError> {
        let Some(staging) = Staging::find(folder)? else { return Ok(()) };
        match file.old.as_deref().and_then(Hash::parse) {
            Some(old) if staging.remove_if(&file.staged, &old, self.deadline)? == Removed::Yes => Ok(()),
            _ if staging.hash(&file.staged)?.is_none() => Ok(()),
            _ => self.keep_save(&file.staged, &staging, folder, name).map(drop),
        }
    }

    /// Gives a save that another program made in the middle a visible name, and returns that.
    pub(super) fn keep_save(
        &self,
        staged: &str,
        staging: &Staging,
        folder: &Lock,
        name: &str,
    ) -> Result<String, StoreError> {
        let kept = leftover::keep_from((staging, staged), folder, name)?;
        let path = leftover::shown_path(folder);
        (self.store.warn)(&format!(
            "another program saved {name} in {path} while several files were being changed; that version is now {kept}: check it"
        ));
        Ok(kept)
    }
}

/// What has the name of a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Visible {
    /// The new content.
    Ours,
    Nothing,
    /// What another program has put there.
    Foreign,
}

fn look(file: &FileRecord, folder: &Lock, name: &str) -> Result<Visible, StoreError> {
    match hash_in(folder, name) {
        Ok(None) => Ok(Visible::Nothing),
        Ok(hash) if hash == Hash::parse(&file.new) => Ok(Visible::Ours),
        Ok(Some(_)) | Err(StoreError::Escapes | StoreError::IsFolder | StoreError::Special) => {
            Ok(Visible::Foreign)
        }
        Err(error) => Err(error),
    }
}

/// There is no staged file: the change was undone before, or somebody has removed the old file.
fn without_old(file: &FileRecord, folder: &Lock, name: &str) -> Result<Option<String>, StoreError> {
    let is_new = look(file, folder, name)? == Visible::Ours;
    Ok(is_new.then(|| format!("somebody has removed its old content from {STAGING_FOLDER}")))
}
