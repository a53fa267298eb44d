//! The plan of a change set: each file is resolved without locks, and read, checked and planned under them.

use std::collections::{
    HashMap, HashSet,
    hash_map::Entry::{Occupied, Vacant},
};

use pintle_contract::{ErrorCode, Fault, Verb, WorkspacePath};
use pintle_root::{is_reserved, open_any_in};
use rustix::{
    fs::{Access, AtFlags, accessat},
    io::Errno,
};

use super::{Folders, Staging, Stopped, folders::Problems};
use crate::{
    hash::Hash,
    local::{
        LocalFolder,
        change::{
            MAX_CHECKED_BYTES, check_rules, content_to_check, pass_spliced, paths_with_rules, refuse_taken,
            too_large,
        },
        reach::may_write,
        source::OpenFile,
        version::Version,
    },
    store::{ChangeKind, ChangeSetError, FileChange, Plan, Source, Splice, StoreError, Terms},
};

/// What is going to happen to a file.
pub(super) struct Planned {
    /// The number of its change.
    pub(super) number: usize,
    /// Its resolved path, which is a name in a folder.
    pub(super) path: WorkspacePath,
    pub(super) folder: WorkspacePath,
    pub(super) name: String,
    /// Its name in the staging folder.
    pub(super) staged: String,
    /// The hash of the new content.
    pub(super) new: Hash,
    pub(super) kind: PlannedKind,
}

pub(super) enum PlannedKind {
    Edit {
        /// The version that was read.
        version: Version,
        /// Whether another name of the same file (a hard link) is changed, too, and before this one.
        is_linked: bool,
        old: Hash,
        splices: Vec<Splice>,
    },
    Create,
}

impl Planned {
    /// The hash of the old content; none if the file is created.
    pub(super) fn old(&self) -> Option<Hash> {
        match self.kind {
            PlannedKind::Edit { old, .. } => Some(old),
            PlannedKind::Create => None,
        }
    }

    /// Whether the file will be another one. An edit that gives the same bytes leaves it alone.
    pub(super) fn changes_something(&self) -> bool {
        self.old() != Some(self.new)
    }
}

/// A name that no other change set has.
pub(super) fn id() -> Result<String, StoreError> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|error| StoreError::Io(std::io::Error::other(error.to_string())))?;
    Ok(format!("{:016x}", u64::from_le_bytes(bytes)))
}

impl LocalFolder {
    /// Where a path leads, and whether it may be changed there.
    pub(in crate::local) fn resolve_target(
        &self,
        path: &WorkspacePath,
        terms: &Terms<'_>,
    ) -> Result<WorkspacePath, StoreError> {
        if is_reserved(path) {
            return Err(StoreError::Reserved);
        }
        let (folder, name) = path.split_last().ok_or(StoreError::IsFolder)?;
        let hidden = |error: StoreError| self.unless_hidden(error, path, Verb::Write, terms);
        let resolved = match self.root.open_any(path) {
            Ok((_, resolved)) => resolved,
            Err(Errno::NOENT) => {
                self.refuse_hidden(path, Verb::Write, terms)?;
                self.root.resolve_folder(&folder)?.join(name).ok_or(StoreError::Reserved)?
            }
            Err(error) => return Err(hidden(error.into())),
        };
        may_write(&resolved, terms).map_err(hidden)?;
        Ok(resolved)
    }

    /// The resolved paths of all changes.
    pub(super) fn resolve_all(
        &self,
        changes: &[FileChange<'_>],
        terms: &Terms<'_>,
    ) -> Result<Vec<WorkspacePath>, ChangeSetError> {
        let (mut resolved, mut problems) = (Vec::new(), Vec::new());
        for (number, change) in changes.iter().enumerate() {
            match self.resolve_target(&change.path, terms) {
                Ok(path) => resolved.push(path),
                Err(error) => problems.push((number, error)),
            }
        }
        if !problems.is_empty() {
            return Err(ChangeSetError::Files(problems));
        }
        // They were different when the changes were put together.
        let different: HashSet<_> = resolved.iter().collect();
        if different.len() < resolved.len() {
            return Err(ChangeSetError::Whole(StoreError::KeepsChanging));
        }
        Ok(resolved)
    }

    /// Reads, checks and plans all files, and reports all that is wrong with any of them.
    pub(super) fn plan_all(
        &self,
        changes: &mut [FileChange<'_>],
        resolved: Vec<WorkspacePath>,
        (folders, mut problems): (&Folders, Problems),
        terms: &Terms<'_>,
    ) -> Result<Vec<Planned>, Stopped> {
        let id = id().map_err(|error| Stopped::Failed(ChangeSetError::Whole(error)))?;
        let mut planned = Vec::new();
        let cannot_be_used: HashSet<usize> = problems.iter().map(|(number, _)| *number).collect();
        let created = changes.iter().zip(&resolved);
        let created: HashSet<WorkspacePath> = created
            .filter(|(change, _)| matches!(change.kind, ChangeKind::Create(_)))
            .map(|(_, path)| path.clone())
            .collect();
        let is_alone = changes.len() == 1;
        let mut known: HashMap<(usize, String), WorkspacePath> = HashMap::new();
        for (number, (change, path)) in changes.iter_mut().zip(resolved).enumerate() {
            if cannot_be_used.contains(&number) {
                continue;
            }
            // The path is only valid if it still leads there now that the lock is held.
            match self.resolve_target(&change.path, terms) {
                Ok(now) if now == path => {}
                _ => return Err(Stopped::Again),
            }
            let Some((folder, name)) = path.split_last().map(|(folder, name)| (folder, name.to_owned()))
            else {
                return Err(Stopped::Again);
            };
            let staged = format!("{id}-{number}");
            if created.iter().any(|file| folder.is_within(file)) {
                problems.push((number, StoreError::NotFolder));
                continue;
            }
            if let Some(number_of_folder) = folders.number(&folder) {
                match known.entry((number_of_folder, name.clone())) {
                    Occupied(first) => {
                        problems.push((number, same_file(&path, first.get()).into()));
                        continue;
                    }
                    Vacant(first) => drop(first.insert(path.clone())),
                }
            }
            // A file that is changed alone is not staged.
            if !is_alone && folders.at(&folder).is_ok_and(Staging::is_blocked) {
                problems.push((number, StoreError::Blocked));
                continue;
            }
            match self.plan_one(change, (&path, &folder, &name), folders, terms) {
                Ok((new, kind)) => planned.push(Planned { number, path, folder, name, staged, new, kind }),
                Err(StoreError::Ended) => {
                    return Err(Stopped::Failed(ChangeSetError::Whole(StoreError::Ended)));
                }
                Err(error) => problems.push((number, error)),
            }
        }
        problems.sort_by_key(|(number, _)| *number);
        mark_linked(&mut planned);
        if problems.is_empty() { Ok(planned) } else { Err(Stopped::Failed(ChangeSetError::Files(problems))) }
    }

    fn plan_one(
        &self,
        change: &mut FileChange<'_>,
        (path, folder, name): (&WorkspacePath, &WorkspacePath, &str),
        folders: &Folders,
        terms: &Terms<'_>,
    ) -> Result<(Hash, PlannedKind), StoreError> {
        self.refuse_unfinished(path)?;
        let with_rules = paths_with_rules(terms, &change.path, path);
        match &mut change.kind {
            ChangeKind::Create(content) => {
                self.root.refuse_too_deep(path)?;
                if let Ok(folder) = folders.at(folder) {
                    refuse_taken(folder, name)?;
                }
                with_rules.iter().try_for_each(|path| check_rules(terms, path, None, content))?;
                Ok((Hash::of(content), PlannedKind::Create))
            }
            ChangeKind::Edit { expected, plan } => {
                let folder = folders.at(folder)?;
                let mut source = OpenFile::new(open_any_in(folder, name.as_bytes())?)?;
                accessat(folder, name, Access::WRITE_OK, AtFlags::EACCESS)?;
                source.unmark()?;
                let Plan { found, change } = plan(&source)?;
                if !expected.names(found) {
                    return Err(StoreError::Stale(found));
                }
                let splices = change?;
                let mut content = (!with_rules.is_empty()).then(Vec::new);
                let new =
                    pass_spliced(&source, &splices, |bytes| keep_for_rules(&mut content, bytes), terms)?;
                if let Some(content) = content {
                    let before = content_to_check(&source, terms)?;
                    with_rules
                        .iter()
                        .try_for_each(|path| check_rules(terms, path, Some(&before), &content))?;
                }
                debug_assert_eq!(source.size(), source.version.stamp.size);
                let version = source.version;
                Ok((new, PlannedKind::Edit { version, is_linked: false, old: found, splices }))
            }
        }
    }
}

/// The fault for a file that is named twice, by two paths to its folder.
fn same_file(path: &WorkspacePath, first: &WorkspacePath) -> Fault {
    let message =
        format!("{path} is the same file as {first}: its folder is mounted at both places; nothing was done");
    Fault::new(ErrorCode::InvalidRequest, message).hint("use only one of the two paths")
}

/// Marks the names of files that have another name among those before.
fn mark_linked(planned: &mut [Planned]) {
    let mut known = HashSet::new();
    for planned in planned {
        if let PlannedKind::Edit { version, is_linked, .. } = &mut planned.kind {
            *is_linked = !known.insert((version.stamp.device, version.stamp.inode));
        }
    }
}

/// Keeps new content that is going to be checked against rules.
fn keep_for_rules(content: &mut Option<Vec<u8>>, bytes: &[u8]) -> Result<(), StoreError> {
    let Some(content) = content else { return Ok(()) };
    if (content.len() + bytes.len()) as u64 > MAX_CHECKED_BYTES {
        return Err(too_large());
    }
    content.extend_from_slice(bytes);
    Ok(())
}
