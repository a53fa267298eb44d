//! The parts that all changes share: content rules are checked, nothing is overwritten that the caller has not seen, and
//! a refused change is rolled back.

use std::os::fd::AsFd;

use pintle_contract::{ErrorCode, Fault, WorkspacePath};
use rustix::fs::{AtFlags, FileType};

use super::{
    LocalFolder, commit, leftover,
    lock::Lock,
    reach::{NewName, Reached},
    source::OpenFile,
    temporary::rename_to_new,
};
use crate::{
    hash::{Hash, Hasher},
    store::{Source, Splice, StoreError, Terms},
};

/// The largest file whose content is checked against rules; a larger one under a rule cannot be changed.
pub(super) const MAX_CHECKED_BYTES: u64 = 8 << 20;

impl LocalFolder {
    /// Moves a file to another path, with its folder locked by `reached`.
    pub(super) fn move_reached(
        &self,
        reached: &Reached,
        path: &WorkspacePath,
        to: &WorkspacePath,
        terms: &Terms<'_>,
    ) -> Result<(), StoreError> {
        let NewName { folder, name, made, .. } = self.reach_new(to, terms, &|resolved| {
            if reached.leads_to.is_some()
                && resolved.split_last().map(|(folder, _)| folder) != reached.folder()
            {
                return Err(link_stays(path).into());
            }
            let paths_with_rules = paths_with_rules(terms, to, resolved);
            if paths_with_rules.is_empty() {
                return Ok(());
            }
            let content = content_to_check(&reached.source, terms)?;
            paths_with_rules.iter().try_for_each(|path| check_rules(terms, path, None, &content))
        })?;
        // If both are in one folder, this call already holds its lock.
        if let Some(lock) = Lock::try_take(&folder) {
            leftover::sweep(&lock, &self.warn);
        }
        refuse_taken(&folder, name)?;
        commit(terms)?;
        rename_to_new((&reached.lock, &reached.name), (&folder, name))?;
        made.keep();
        // A program that does not use the lock may have replaced the file at the last instant.
        if reached.leads_to.is_none()
            && let Err(changed) = reached.source.version.check_renamed(&folder, name)
        {
            // Undo the move. If the old name was taken in the meantime, that file is newer, and this one stays at the target.
            return Err(match rename_to_new((&folder, name), (&reached.lock, &reached.name)) {
                Ok(()) => changed,
                Err(_) => self.warn_of_kept(&reached.lock, StoreError::Kept(to.to_string())),
            });
        }
        self.durability.sync_change(&folder)?;
        self.durability.sync_change(&reached.lock)
    }
}

/// Refuses a name that exists. The final rename checks again, atomically.
pub(super) fn refuse_taken(folder: impl AsFd, name: &str) -> Result<(), StoreError> {
    match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Directory => Err(StoreError::IsFolder),
        Ok(_) => Err(StoreError::Exists),
        Err(_) => Ok(()),
    }
}

/// The paths of a change that have rules: the caller's path and the resolved one.
pub(super) fn paths_with_rules<'a>(
    terms: &Terms<'_>,
    named: &'a WorkspacePath,
    resolved: &'a WorkspacePath,
) -> Vec<&'a WorkspacePath> {
    let mut paths = vec![named];
    if resolved != named {
        paths.push(resolved);
    }
    paths.retain(|path| terms.rules.apply_to(path));
    paths
}

/// Validates new content against the rules of a path.
pub(super) fn check_rules(
    terms: &Terms<'_>,
    path: &WorkspacePath,
    before: Option<&[u8]>,
    after: &[u8],
) -> Result<(), StoreError> {
    let verdict = terms.rules.judge(path, before, after, terms.has_ended);
    // The verdict of a cancelled validation must not be used.
    if (terms.has_ended)() { Err(StoreError::Ended) } else { verdict.map_err(StoreError::RuleBroken) }
}

/// The content of a file for the rules.
pub(super) fn content_to_check(source: &OpenFile, terms: &Terms<'_>) -> Result<Vec<u8>, StoreError> {
    if source.size() > MAX_CHECKED_BYTES { Err(too_large()) } else { source.read_all(terms) }
}

/// The refusal of a file that is too large to be checked.
pub(super) fn too_large() -> StoreError {
    let message =
        format!("a file that is bound to a schema must not be larger than {} MiB", MAX_CHECKED_BYTES >> 20);
    StoreError::RuleBroken(Fault::new(ErrorCode::InvalidRequest, message))
}

fn link_stays(path: &WorkspacePath) -> Fault {
    let message =
        format!("{path} is a link that would point elsewhere from another folder; nothing was done");
    Fault::new(ErrorCode::InvalidRequest, message)
        .hint("move its target instead, or rename the link within its folder")
}

/// Passes the source with the splices applied to `write`, piece by piece, and returns the hash of the result.
pub(super) fn pass_spliced(
    source: &OpenFile,
    splices: &[Splice],
    mut write: impl FnMut(&[u8]) -> Result<(), StoreError>,
    terms: &Terms<'_>,
) -> Result<Hash, StoreError> {
    let mut hasher = Hasher::default();
    let mut pass = |bytes: &[u8]| {
        hasher.update(bytes);
        write(bytes)
    };
    let mut rest = 0;
    for splice in splices {
        source.for_each_chunk(rest, splice.start - rest, terms, &mut pass)?;
        pass(&splice.inserted)?;
        rest = splice.start + splice.removed;
    }
    source.for_each_chunk(rest, source.size().saturating_sub(rest), terms, &mut pass)?;
    Ok(hasher.finish())
}
