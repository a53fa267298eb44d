//! Undoing a change set by its journal: while its owner still lives, and after its death.
//!
//! What a name holds is told by its hash, not by what the journal says was done last: the owner may have died in the middle of
//! any step, and other programs may have saved since.

use pintle_contract::WorkspacePath;
use pintle_root::STAGING_FOLDER;
use rustix::{fs::AtFlags, io::Errno};

use super::{
    folders::Folders,
    journal::{FileRecord, Record, State},
    staging::{Staging, hash_in, remove_folder},
};
use crate::{
    hash::Hash,
    local::{
        Durability,
        leftover::{self, Warn},
        lock::Lock,
        temporary::rename_to_new,
    },
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
    pub(super) unfinished: Vec<(WorkspacePath, StoreError)>,
    /// The file next to which a staging folder is left that could not be removed now, and why.
    pub(super) left: Option<(WorkspacePath, StoreError)>,
}

/// Undoes a change set that is not done.
pub(super) fn undo(
    record: &Record,
    state: State,
    folders: &Folders,
    durability: Durability,
    warn: &Warn,
) -> Undone {
    let mut result = Undone::default();
    for file in record.files.iter().rev() {
        let Ok(path) = WorkspacePath::parse(&file.path) else { continue };
        match undo_file(file, &path, state, folders, warn) {
            Ok(None) => result.undone.push(path),
            Ok(Some(reason)) => result.kept.push((path, reason)),
            Err(error) => result.unfinished.push((path, error)),
        }
    }
    result.left = remove_staging(record, folders, durability);
    for folder in record.folders.iter().rev() {
        remove_made_folder(folder, folders);
    }
    result.undone.reverse();
    result.kept.reverse();
    result.unfinished.reverse();
    result
}

/// Removes the old files of a change set that is done.
pub(super) fn clean_up(record: &Record, folders: &Folders, durability: Durability, warn: &Warn) -> Undone {
    let mut result = Undone::default();
    for file in &record.files {
        let Ok(path) = WorkspacePath::parse(&file.path) else { continue };
        let Some((folder, name)) = locked(&path, folders) else { continue };
        if let Err(error) = remove_old(file, folder, name, warn) {
            result.unfinished.push((path, error));
        }
    }
    result.left = remove_staging(record, folders, durability);
    result
}

/// Removes the staging folders, and makes it durable.
fn remove_staging(
    record: &Record,
    folders: &Folders,
    durability: Durability,
) -> Option<(WorkspacePath, StoreError)> {
    let mut left = None;
    for file in &record.files {
        let Ok(path) = WorkspacePath::parse(&file.path) else { continue };
        let Some((folder, _)) = locked(&path, folders) else { continue };
        if matches!(Staging::find(folder), Ok(None)) {
            continue;
        }
        match remove_folder(folder) {
            Ok(()) => drop(durability.sync(folder)),
            Err(error) => left = Some((path, error.into())),
        }
    }
    left
}

fn locked<'a>(path: &'a WorkspacePath, folders: &'a Folders) -> Option<(&'a Lock, &'a str)> {
    let (folder, name) = path.split_last()?;
    Some((folders.at(&folder).ok()?, name))
}

fn remove_made_folder(path: &str, folders: &Folders) {
    let Ok(path) = WorkspacePath::parse(path) else { return };
    if let Some((parent, name)) = locked(&path, folders) {
        // One that another program uses by now is not empty and stays.
        let _ = rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR);
    }
}

/// Undoes the change of one file. Returns why it is not as it was, if it is not.
fn undo_file(
    file: &FileRecord,
    path: &WorkspacePath,
    state: State,
    folders: &Folders,
    warn: &Warn,
) -> Result<Option<String>, StoreError> {
    let Some((folder, name)) = locked(path, folders) else {
        // A folder that was never made has nothing to undo.
        let is_lost = state == State::Staged && file.old.is_some();
        return Ok(is_lost.then(|| "its folder is not there any more".into()));
    };
    let staging = match Staging::find(folder)? {
        Some(staging) => staging,
        // A created file has left it, and somebody has removed it.
        None if state == State::Staging => return Ok(None),
        None if file.old.is_some() => return without_old(file, folder, name),
        None if look(file, folder, name)? == Visible::Ours => Staging::open_or_create(folder)?,
        None => return Ok(None),
    };
    if state == State::Staging {
        staging.remove(&file.staged)?;
        return Ok(None);
    }
    if file.old.is_none() {
        undo_creation(file, &staging, folder, name)
    } else {
        undo_edit(file, &staging, folder, name, warn)
    }
}

fn is(hash: Option<Hash>, expected: &str) -> bool {
    hash.is_some_and(|hash| Hash::parse(expected) == Some(hash))
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
        Ok(hash) if is(hash, &file.new) => Ok(Visible::Ours),
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

/// Exchanges a file back. The file that comes out is checked: it is removed only if it has our content. If it is a
/// newer save, it gets its name back.
fn undo_edit(
    file: &FileRecord,
    staging: &Staging,
    folder: &Lock,
    name: &str,
    warn: &Warn,
) -> Result<Option<String>, StoreError> {
    /// Another round is needed only if another program saved within microseconds.
    const ROUNDS: usize = 1000;
    let old = file.old.as_deref().unwrap_or_default();
    for _ in 0..ROUNDS {
        let staged = staging.hash(&file.staged)?;
        if staged.is_none() {
            return without_old(file, folder, name);
        }
        if is(staged, &file.new) {
            // It has not been exchanged, or was exchanged back.
            staging.remove(&file.staged)?;
            return Ok(None);
        }
        match look(file, folder, name)? {
            Visible::Ours => match staging.exchange(&file.staged, folder, name) {
                Ok(()) | Err(Errno::NOENT) => continue,
                Err(error) => return Err(error.into()),
            },
            // Somebody has removed it since.
            Visible::Nothing => match rename_to_new((staging, &file.staged), (folder, name)) {
                Ok(()) => return Ok(None),
                Err(StoreError::Exists) => continue,
                Err(error) => return Err(error),
            },
            Visible::Foreign => {}
        }
        if is(staged, old) {
            staging.remove(&file.staged)?;
        } else {
            keep_save(file, staging, folder, name, warn)?;
        }
        return Ok(Some("another program has saved it meanwhile".into()));
    }
    Err(StoreError::KeepsChanging)
}

/// Removes a created file that is still ours.
fn undo_creation(
    file: &FileRecord,
    staging: &Staging,
    folder: &Lock,
    name: &str,
) -> Result<Option<String>, StoreError> {
    if staging.hash(&file.staged)?.is_some() {
        staging.remove(&file.staged)?;
        return Ok(None);
    }
    if look(file, folder, name)? != Visible::Ours {
        return Ok(None);
    }
    // It is moved away before it is removed, so that a save at this instant is not removed in its place.
    rename_to_new((folder, name), (staging, &file.staged))?;
    if is(staging.hash(&file.staged)?, &file.new) {
        staging.remove(&file.staged)?;
        return Ok(None);
    }
    rename_to_new((staging, &file.staged), (folder, name))?;
    Ok(Some("another program has saved it meanwhile".into()))
}

/// Removes an old file after all have changed. If another program has saved into it, it is kept.
fn remove_old(file: &FileRecord, folder: &Lock, name: &str, warn: &Warn) -> Result<(), StoreError> {
    let Some(staging) = Staging::find(folder)? else { return Ok(()) };
    let staged = staging.hash(&file.staged)?;
    let is_old = file.old.as_deref().is_some_and(|old| is(staged, old));
    match staged {
        None => Ok(()),
        Some(_) if is_old => Ok(staging.remove(&file.staged)?),
        Some(_) => keep_save(file, &staging, folder, name, warn),
    }
}

/// Gives a save that another program made in the middle a visible name.
fn keep_save(
    file: &FileRecord,
    staging: &Staging,
    folder: &Lock,
    name: &str,
    warn: &Warn,
) -> Result<(), StoreError> {
    let kept = leftover::keep_from((staging, &file.staged), folder, name)?;
    let path = leftover::shown_path(folder);
    warn(&format!(
        "another program saved {name} in {path} while several files were being changed; that version is now {kept}: check it"
    ));
    Ok(())
}
