//! Change sets: several files change, or none of them.
//!
//! All new contents are written next to their files first (`staging.rs`), and the **journal** in the state folder says what
//! is going to be exchanged (`journal.rs`). Then the files are exchanged one by one. Whatever fails before the last one, the
//! death of the process included, is undone by the journal (`undo.rs`, `recovery.rs`). There is no roll-forward: a change
//! set that is not done has not happened.
//!
//! The folders of all files stay locked from the first check until the journal is gone, so nobody who uses the locks sees
//! a state in between.

mod folders;
mod journal;
mod plan;
mod recovery;
mod staging;
mod undo;

use std::{
    collections::BTreeSet,
    io,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    path::PathBuf,
    time::{Duration, Instant},
};

use parking_lot::{Mutex, MutexGuard};
use pintle_contract::{ErrorCode, Fault};
use pintle_root::{failure_reason, identity, open_any_in, storage_failed};
use rustix::{
    fs::{Access, AtFlags, CWD, RenameFlags, accessat, renameat_with},
    io::Errno,
};

pub(super) use folders::leads_to;
pub(super) use staging::Staging;

use self::{
    folders::Folders,
    journal::{Entries, FileRecord, Journal, NotNoted, Record, State},
    plan::{Planned, PlannedKind},
    recovery::Recovery,
    undo::{Undo, Undone},
};
use super::{
    LocalFolder,
    change::pass_spliced,
    commit,
    lease::Lease,
    lock::{LOCK_TIMEOUT, Lock},
    source::OpenFile,
    temporary::{lease, make_alike},
};
use crate::{
    hash::Hash,
    store::{ChangeKind, ChangeSetError, FileChange, StoreError, Terms},
};

/// How often everything is resolved again because a path leads elsewhere by now.
const TRIES: usize = 16;

/// What a store needs for change sets.
pub(super) struct ChangeSets {
    /// Where the journals are; none if there is no state folder.
    pub(super) journals: Option<PathBuf>,
    one_at_a_time: Mutex<()>,
    pub(super) recovery: Recovery,
    /// Called at each step, for tests that stop here.
    pub(super) checkpoint: Box<Checkpoint>,
}

/// Called with the name of a step before it is taken. An error makes the step fail.
pub type Checkpoint = dyn Fn(&str) -> io::Result<()> + Send + Sync;

/// Why an attempt came to nothing.
enum Stopped {
    /// A path leads elsewhere by now.
    Again,
    Failed(ChangeSetError),
}

/// An error of a step, and the number of the change that it is about.
type StepError = (Option<usize>, StoreError);

impl Default for ChangeSets {
    fn default() -> Self {
        Self {
            journals: None,
            one_at_a_time: Mutex::default(),
            recovery: Recovery::default(),
            checkpoint: Box::new(|_| Ok(())),
        }
    }
}

impl ChangeSets {
    /// Whether journals can be written.
    pub(super) fn can_write_journals(&self) -> bool {
        let can_write = |journals: &PathBuf| {
            journal::make_folder(journals)?;
            accessat(CWD, journals, Access::WRITE_OK, AtFlags::EACCESS).map_err(io::Error::from)
        };
        self.journals.as_ref().is_some_and(|journals| can_write(journals).is_ok())
    }
}

impl LocalFolder {
    /// Makes the change set, once all is resolved and nothing has moved until the locks are held.
    pub(super) fn change_files(
        &self,
        changes: &mut [FileChange<'_>],
        accept: &mut dyn FnMut() -> Result<(), Fault>,
        dry_run: bool,
        terms: &Terms<'_>,
    ) -> Result<Vec<Hash>, ChangeSetError> {
        let journals = match (&self.change_sets.journals, dry_run) {
            (_, true) => None,
            (Some(journals), false) => Some(journals),
            (None, false) => return Err(ChangeSetError::Whole(no_state_folder().into())),
        };
        // For everything that has to be waited for.
        let deadline = Instant::now() + LOCK_TIMEOUT;
        let _only_one = self.next_change_set(deadline, terms).map_err(ChangeSetError::Whole)?;
        for _ in 0..TRIES {
            match self.try_to_change(changes, accept, journals, (deadline, terms)) {
                Err(Stopped::Again) => {}
                Err(Stopped::Failed(error)) => return Err(error),
                Ok(hashes) => return Ok(hashes),
            }
        }
        Err(ChangeSetError::Whole(StoreError::KeepsChanging))
    }

    /// Waits until no other change set of this process runs in this root.
    fn next_change_set(
        &self,
        deadline: Instant,
        terms: &Terms<'_>,
    ) -> Result<MutexGuard<'_, ()>, StoreError> {
        const PAUSE: Duration = Duration::from_millis(5);
        loop {
            if let Some(guard) = self.change_sets.one_at_a_time.try_lock_for(PAUSE) {
                return Ok(guard);
            }
            if (terms.has_ended)() {
                return Err(StoreError::Ended);
            }
            if Instant::now() > deadline {
                return Err(StoreError::Locked(Some(std::process::id())));
            }
        }
    }

    fn try_to_change(
        &self,
        changes: &mut [FileChange<'_>],
        accept: &mut dyn FnMut() -> Result<(), Fault>,
        journals: Option<&PathBuf>,
        (deadline, terms): (Instant, &Terms<'_>),
    ) -> Result<Vec<Hash>, Stopped> {
        let resolved = self.resolve_all(changes, terms).map_err(Stopped::Failed)?;
        let (mut folders, problems) = self.lock_folders(&resolved, deadline, terms)?;
        let planned = self.plan_all(changes, resolved, (&folders, problems), terms)?;
        accept().map_err(|fault| Stopped::Failed(ChangeSetError::Whole(fault.into())))?;
        let hashes = planned.iter().map(|planned| planned.new).collect();
        let Some(journals) = journals else { return Ok(hashes) };
        let work: Vec<Planned> = planned.into_iter().filter(Planned::changes_something).collect();
        if !work.is_empty() {
            let made = self.make(journals, changes, &work, &mut folders, (deadline, terms));
            made.map_err(Stopped::Failed)?;
        }
        Ok(hashes)
    }

    /// Writes the journal and carries out what it says; undoes it if that fails.
    fn make(
        &self,
        journals: &std::path::Path,
        changes: &[FileChange<'_>],
        work: &[Planned],
        folders: &mut Folders,
        (deadline, terms): (Instant, &Terms<'_>),
    ) -> Result<(), ChangeSetError> {
        let (record, id) = self.record(work, folders).map_err(ChangeSetError::Whole)?;
        self.step("journal").map_err(ChangeSetError::Whole)?;
        let mut journal = Journal::create(journals, &id, &record)
            .map_err(|error| ChangeSetError::Whole(not_journaled(&error).into()))?;
        let mut state = State::Staging;
        let carry_out =
            || self.carry_out(&mut journal, &mut state, changes, work, folders, (deadline, terms));
        // A panic is undone before the locks are given up.
        let carried_out = catch_unwind(AssertUnwindSafe(carry_out));
        if state == State::Done {
            // What cannot be removed now is removed by recovery.
            if self.clean_up(work, folders, &journal) {
                let _ = journal.remove();
            }
            let carried_out = carried_out.unwrap_or_else(|panic| resume_unwind(panic));
            return carried_out.map_err(|(_, cause)| ChangeSetError::Whole(cause));
        }
        let (number, cause) = match carried_out {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(cause)) => cause,
            Err(panic) => {
                self.undo_all(journal, record, state, folders);
                resume_unwind(panic);
            }
        };
        let Undone { undone, kept, unfinished, .. } = self.undo_all(journal, record, state, folders);
        let is_tried_again = !unfinished.is_empty();
        let unfinished = unfinished.into_iter().map(|(path, obstacle)| {
            let reason = obstacle.reason(&path);
            (path, reason)
        });
        let kept: Vec<_> = kept.into_iter().chain(unfinished).collect();
        Err(match number {
            _ if !kept.is_empty() => {
                ChangeSetError::NotUndone { cause: Box::new((number, cause)), undone, kept, is_tried_again }
            }
            Some(number) => ChangeSetError::Files(vec![(number, cause)]),
            None => ChangeSetError::Whole(cause),
        })
    }

    /// Undoes the change set of a journal as far as possible, and removes the journal if nothing is left to do.
    fn undo_all(&self, mut journal: Journal, record: Record, state: State, folders: &Folders) -> Undone {
        let folders_made = folders.made().iter().map(|folder| folder.as_str().to_owned()).collect();
        let record = Record { folders: folders_made, ..record };
        let result = Undo::new(self, folders).undo(&Entries { record, state, settled: BTreeSet::new() });
        // A journal that is found later, however that comes, must not undo these files again.
        let _ = journal.settle(&result.settled);
        let is_complete = result.unfinished.is_empty() && result.left.is_none();
        if is_complete && self.step("remove journal").is_ok() {
            let _ = journal.remove();
        }
        result
    }

    fn record(&self, work: &[Planned], folders: &Folders) -> Result<(Record, String), StoreError> {
        let (device, inode) = self.root.identity()?;
        let files = work.iter().map(|planned| FileRecord {
            path: planned.path.as_str().to_owned(),
            old: planned.old().map(|hash| hash.to_string()),
            new: planned.new.to_string(),
            staged: planned.staged.clone(),
            folder: folders.inode(&planned.folder),
        });
        let record = Record {
            version: journal::VERSION,
            root: self.root.real_path()?.to_string_lossy().into_owned(),
            device,
            inode,
            files: files.collect(),
            folders: folders.missing().map(|path| path.as_str().to_owned()).collect(),
        };
        Ok((record, plan::id()?))
    }

    /// Everything between the journal and its last state.
    fn carry_out(
        &self,
        journal: &mut Journal,
        state: &mut State,
        changes: &[FileChange<'_>],
        work: &[Planned],
        folders: &mut Folders,
        (deadline, terms): (Instant, &Terms<'_>),
    ) -> Result<(), StepError> {
        let whole = |error: StoreError| (None, error);
        self.step("folders").map_err(whole)?;
        let with_files: BTreeSet<_> = work.iter().map(|planned| &planned.folder).collect();
        folders.make_missing(&self.root, &with_files, self.durability, (deadline, terms)).map_err(whole)?;
        for planned in work {
            self.step("stage").map_err(whole)?;
            self.stage(planned, changes, folders, terms).map_err(|error| (Some(planned.number), error))?;
        }
        for folder in folders_of(work, folders) {
            Staging::open(folder)
                .map_err(StoreError::from)
                .and_then(|it| it.sync(self.durability))
                .map_err(whole)?;
        }
        self.step("staged").map_err(whole)?;
        // From here on undoing means looking at every file, also if the line was not written whole.
        *state = State::Staged;
        journal.reach(State::Staged).map_err(|NotNoted { error, .. }| whole(not_journaled(&error).into()))?;
        self.step("commit").map_err(whole)?;
        commit(terms).map_err(whole)?;
        for planned in work {
            self.step("exchange").map_err(whole)?;
            self.exchange(planned, folders).map_err(|error| (Some(planned.number), error))?;
        }
        self.step("check").map_err(whole)?;
        self.check_old_files(work, folders)?;
        for folder in folders_of(work, folders) {
            self.durability.sync(folder).map_err(whole)?;
            Staging::open(folder)
                .map_err(StoreError::from)
                .and_then(|it| it.sync(self.durability))
                .map_err(whole)?;
        }
        // While the folders were synced, a program that had an old file open may have written into it.
        self.check_old_files(work, folders)?;
        self.step("done").map_err(whole)?;
        match journal.reach(State::Done) {
            Ok(()) => {
                *state = State::Done;
                Ok(())
            }
            // Who reads the journal now takes it for done, so it is not undone any more.
            Err(NotNoted { error, may_be_noted: true }) => {
                *state = State::Done;
                Err(whole(not_confirmed(&error).into()))
            }
            Err(NotNoted { error, .. }) => Err(whole(not_journaled(&error).into())),
        }
    }

    /// Writes the new content of a file next to it.
    fn stage(
        &self,
        planned: &Planned,
        changes: &[FileChange<'_>],
        folders: &Folders,
        terms: &Terms<'_>,
    ) -> Result<(), StoreError> {
        let folder = folders.at(&planned.folder)?;
        let staging = Staging::open_or_create(folder)?;
        let mode = if planned.old().is_some() { 0o600 } else { 0o666 };
        let mut file = staging.create(&planned.staged, mode)?;
        match &planned.kind {
            PlannedKind::Edit { version, splices, .. } => {
                let source = OpenFile::new(open_any_in(folder, planned.name.as_bytes())?)?;
                if source.version != *version {
                    return Err(StoreError::Changed);
                }
                make_alike(&file, &file.metadata()?, &source.file, &source.file.metadata()?)?;
                let write = |bytes: &[u8]| Ok(io::Write::write_all(&mut file, bytes)?);
                if pass_spliced(&source, splices, write, terms)? != planned.new {
                    return Err(StoreError::Changed);
                }
            }
            PlannedKind::Create => {
                let ChangeKind::Create(content) = &changes[planned.number].kind else {
                    return Err(StoreError::Changed);
                };
                io::Write::write_all(&mut file, content)?;
            }
        }
        self.durability.sync(&file)
    }

    /// Exchanges a file with its staged content, with the checks of a single edit.
    fn exchange(&self, planned: &Planned, folders: &Folders) -> Result<(), StoreError> {
        let folder = folders.at(&planned.folder)?;
        let staging = Staging::open(folder)?;
        let PlannedKind::Edit { version, is_linked, .. } = &planned.kind else {
            // Without a fallback in two steps, of which a kill could leave the first.
            return match renameat_with(
                &staging,
                &planned.staged,
                folder,
                &planned.name,
                RenameFlags::NOREPLACE,
            ) {
                Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => Err(cannot_exchange().into()),
                renamed => Ok(renamed?),
            };
        };
        let source = OpenFile::new(open_any_in(folder, planned.name.as_bytes())?)?;
        let is_same = source.version == *version
            // The exchange of its other name has changed the ctime.
            || (*is_linked && source.version.is_same_but_renamed(version));
        if !is_same {
            return Err(StoreError::Changed);
        }
        // The call can no longer be cancelled, but nobody waits for long here.
        let lease = lease(folder, &planned.name, &source, &|| false)?;
        source.version.check(folder, &planned.name)?;
        self.step("swap")?;
        match staging.exchange(&planned.staged, folder, &planned.name) {
            Ok(()) => {}
            Err(Errno::NOENT) => return Err(StoreError::Changed),
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => return Err(cannot_exchange().into()),
            Err(error) => return Err(error.into()),
        }
        if lease.as_ref().is_some_and(Lease::is_breaking) {
            return Err(StoreError::Changed);
        }
        version.check_renamed(&staging, &planned.staged)
    }

    /// Checks that no old file was written to since it came out.
    fn check_old_files(&self, work: &[Planned], folders: &Folders) -> Result<(), StepError> {
        for planned in work {
            let PlannedKind::Edit { version, .. } = &planned.kind else { continue };
            let check = || {
                let staging = Staging::open(folders.at(&planned.folder)?)?;
                version.check_renamed(&staging, &planned.staged)
            };
            check().map_err(|error| (Some(planned.number), error))?;
        }
        Ok(())
    }

    /// Removes the old files. Returns whether all are gone.
    fn clean_up(&self, work: &[Planned], folders: &Folders, journal: &Journal) -> bool {
        let removed: Vec<_> = work.iter().map(|planned| self.remove_old(planned, folders)).collect();
        let remove_staging = |folder: &Lock| -> Result<(), StoreError> {
            staging::remove_folder(folder)?;
            // On one device, the journal is not removed before the old files are, even if there is a power failure.
            let is_elsewhere = identity(folder)?.0 != journal.device()?;
            if is_elsewhere { self.durability.sync(folder) } else { Ok(()) }
        };
        let staging: Vec<_> = folders_of(work, folders).map(remove_staging).collect();
        removed.iter().chain(&staging).all(Result::is_ok) && self.step("remove journal").is_ok()
    }

    /// Removes an old file. If another program has written into it since it came out, it is kept.
    fn remove_old(&self, planned: &Planned, folders: &Folders) -> Result<(), StoreError> {
        self.step("clean up")?;
        let (folder, PlannedKind::Edit { version, .. }) = (folders.at(&planned.folder)?, &planned.kind)
        else {
            return Ok(());
        };
        let Some(staging) = Staging::find(folder)? else { return Ok(()) };
        match version.check_renamed(&staging, &planned.staged) {
            Ok(()) => Ok(staging.remove(&planned.staged)?),
            Err(_) => {
                let undo = Undo::new(self, folders);
                undo.keep_save(&planned.staged, &staging, folder, &planned.name).map(drop)
            }
        }
    }

    fn step(&self, name: &str) -> Result<(), StoreError> {
        Ok((self.change_sets.checkpoint)(name)?)
    }
}

/// The locked folders that files of a change set are in, each once.
fn folders_of<'a>(work: &'a [Planned], folders: &'a Folders) -> impl Iterator<Item = &'a Lock> {
    folders.among(work.iter().map(|planned| &planned.folder))
}

/// All files are exchanged, and the journal could not be synced after that.
fn not_confirmed(error: &io::Error) -> Fault {
    let message = format!(
        "all files were changed, but the system could not confirm that the changes are on disk: {error}"
    );
    storage_failed(message, error)
        .hint("read them again before you continue; the disk may be failing or full")
        .after_effect()
}

/// The journal cannot be written.
fn not_journaled(error: &io::Error) -> Fault {
    use io::ErrorKind::{
        AlreadyExists, ArgumentListTooLong, NotADirectory, NotFound, PermissionDenied, ReadOnlyFilesystem,
    };
    match error.kind() {
        PermissionDenied | ReadOnlyFilesystem | AlreadyExists | NotADirectory | NotFound => no_state_folder(),
        ArgumentListTooLong => Fault::new(
            ErrorCode::InvalidRequest,
            "the paths of all files and folders of this call are too long together; nothing was done",
        )
        .hint("make several calls, each for some of the files"),
        _ => {
            let message =
                format!("the journal in the state folder could not be written: {error}; nothing was done");
            storage_failed(message, error).hint(match failure_reason(error) {
                "no_space" => "free some space on the disk that holds the state folder, or change one file in each call",
                _ => "a person has to check the disk that holds the state folder; one file in each call can be changed",
            })
        }
    }
}

fn no_state_folder() -> Fault {
    Fault::new(ErrorCode::CapabilityMissing, "several files can only be changed together with a state folder that can be written to; nothing was done")
        .hint("change one file in each call, or restart the server with --state-dir (PINTLE_STATE_DIR)")
}

fn cannot_exchange() -> Fault {
    Fault::new(
        ErrorCode::CapabilityMissing,
        "this file system cannot exchange two files, so several cannot be changed together; nothing was done",
    )
    .hint("change one file in each call")
}
