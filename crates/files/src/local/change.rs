//! What the changes of a store have in common: rules are asked, nothing is overwritten unseen, and nothing is left of a
//! change that was refused.

use std::os::fd::AsFd;

use pintle_contract::{ErrorCode, Fault, WorkspacePath};
use rustix::fs::{AtFlags, FileType};

use super::{
    LocalFolder, commit, leftover,
    lock::Lock,
    reach::Reached,
    source::OpenFile,
    temporary::{Temporary, rename_to_new},
};
use crate::{
    hash::{Hash, Hasher},
    store::{Source, Splice, StoreError, Terms},
};

/// The largest file that rules are applied to.
pub(super) const JUDGED: u64 = 8 << 20;

impl LocalFolder {
    /// Moves a file that was reached to another path.
    pub(super) fn move_reached(
        &self,
        reached: &Reached,
        path: &WorkspacePath,
        to: &WorkspacePath,
        terms: &Terms<'_>,
    ) -> Result<(), StoreError> {
        let (folder, name, made) = self.reach_new(to, terms, &|resolved| {
            if reached.leads_to.is_some()
                && resolved.split_last().map(|(folder, _)| folder) != reached.folder()
            {
                return Err(link_stays(path).into());
            }
            let ruled = ruled(terms, to, resolved);
            if ruled.is_empty() {
                return Ok(());
            }
            let content = judgeable(&reached.source, terms)?;
            ruled.iter().try_for_each(|path| judge(terms, path, None, &content))
        })?;
        // Within one folder the lock is this call's own.
        if let Some(lock) = Lock::try_take(&folder) {
            leftover::sweep(&lock, &self.warn);
        }
        refuse_taken(&folder, name)?;
        commit(terms)?;
        rename_to_new((&reached.lock, &reached.name), (&folder, name))?;
        made.keep();
        // Somebody who knows nothing of the lock may have put another file there in the last instant.
        if reached.leads_to.is_none()
            && let Err(changed) = reached.source.version.check_renamed(&folder, name)
        {
            // If the name has been taken since, that file is the newer one, and this one stays where it was moved to.
            return Err(match rename_to_new((&folder, name), (&reached.lock, &reached.name)) {
                Ok(()) => changed,
                Err(_) => self.warn_of_kept(&reached.lock, StoreError::Kept(to.to_string())),
            });
        }
        self.durability.settle_change(&folder)?;
        self.durability.settle_change(&reached.lock)
    }
}

/// Sees that nothing has a name. That it stays so until the end is for the system to see.
pub(super) fn refuse_taken(folder: impl AsFd, name: &str) -> Result<(), StoreError> {
    match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Directory => Err(StoreError::IsFolder),
        Ok(_) => Err(StoreError::Exists),
        Err(_) => Ok(()),
    }
}

/// The paths whose rules hold for a change: the one that was named, and the resolved one.
pub(super) fn ruled<'a>(
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

/// Asks the rules of a path whether a file may be changed so.
pub(super) fn judge(
    terms: &Terms<'_>,
    path: &WorkspacePath,
    before: Option<&[u8]>,
    after: &[u8],
) -> Result<(), StoreError> {
    let verdict = terms.rules.judge(path, before, after, terms.has_ended);
    // A verdict that was broken off counts for nothing.
    if (terms.has_ended)() { Err(StoreError::Ended) } else { Ok(verdict?) }
}

/// The content of a file that rules are to be asked about.
pub(super) fn judgeable(source: &OpenFile, terms: &Terms<'_>) -> Result<Vec<u8>, StoreError> {
    if source.size() > JUDGED { Err(too_large()) } else { source.whole(terms) }
}

/// The refusal of a file that is too large for rules.
pub(super) fn too_large() -> StoreError {
    let message = format!("a file that is bound to a schema may have {} MiB at most", JUDGED >> 20);
    StoreError::Refused(Fault::new(ErrorCode::InvalidRequest, message))
}

fn link_stays(path: &WorkspacePath) -> Fault {
    let message = format!("{path} is a link, which leads elsewhere from another folder; nothing was done");
    Fault::new(ErrorCode::InvalidRequest, message)
        .hint("move the file that it leads to, or give the link another name in its folder")
}

/// Writes what a splice makes of a source, and returns its hash.
pub(super) fn write_spliced(
    source: &OpenFile,
    splice: &Splice,
    temporary: &mut Temporary<'_>,
    terms: &Terms<'_>,
) -> Result<Hash, StoreError> {
    let mut hasher = Hasher::default();
    let mut write = |bytes: &[u8]| {
        hasher.update(bytes);
        temporary.write(bytes)
    };
    source.hand_on(0, splice.start, terms, &mut write)?;
    write(&splice.inserted)?;
    let rest = splice.start + splice.removed;
    source.hand_on(rest, source.size().saturating_sub(rest), terms, &mut write)?;
    Ok(hasher.finish())
}
