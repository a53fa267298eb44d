//! Changes: each happens whole or not at all, and nothing is left of one that was refused.

use std::os::fd::AsFd;

use pintle_contract::{ErrorCode, Fault, WorkspacePath};
use rustix::fs::{Access, AtFlags, FileType};

use super::{
    LocalFolder, commit, leftover,
    lock::Lock,
    mark::Replaced,
    problem,
    reach::Reached,
    source::OpenFile,
    temporary::{self, Temporary, rename_to_new},
};
use crate::{
    hash::{Hash, Hasher},
    store::{Plan, Source, Splice, StoreError, Terms},
};

/// The largest file that rules are applied to.
const JUDGED: u64 = 8 << 20;

impl LocalFolder {
    pub(super) fn create_file(
        &self,
        path: &WorkspacePath,
        content: &[u8],
        terms: &Terms<'_>,
    ) -> Result<Hash, StoreError> {
        let (folder, name, made) = self.reach_new(path, terms, &|real| {
            ruled(terms, path, real).iter().try_for_each(|place| judge(terms, place, None, content))
        })?;
        let lock = Lock::take(folder, terms.has_ended)?;
        leftover::sweep(&lock, &self.warn);
        refuse_taken(&lock, name)?;
        let mut temporary = Temporary::create(&lock)?;
        temporary.write(content)?;
        let placed = temporary.put_new(name, self.durability, terms);
        // What may be there already stays, also where nobody can say that it is on the disk.
        if let Ok(()) | Err(StoreError::NotDurable(_)) = placed {
            made.keep();
        }
        placed?;
        Ok(Hash::of(content))
    }

    pub(super) fn swap_file(
        &self,
        path: &WorkspacePath,
        expected: Hash,
        plan: &mut dyn FnMut(&dyn Source) -> Result<Plan, StoreError>,
        terms: &Terms<'_>,
    ) -> Result<Hash, StoreError> {
        let Reached { place, name, lock, mut source, .. } = self.reach_file(path, terms)?;
        // Replacing a file needs no right to write it, but somebody who took that right away meant it.
        rustix::fs::accessat(&lock, &name, Access::WRITE_OK, AtFlags::EACCESS).map_err(problem)?;
        source.unmark()?;
        let before = source.file.metadata()?;
        let Plan { found, change } = plan(&source)?;
        if found != expected {
            return Err(StoreError::Stale(found));
        }
        let splice = change?;
        let replaced = Replaced { size: source.size(), hash: found };
        let mut temporary = Temporary::like(&lock, &source.file, &before, replaced)?;
        let hash = write_spliced(&source, &splice, &mut temporary, terms)?;
        let ruled = ruled(terms, path, &place);
        if !ruled.is_empty() {
            let (old, new) =
                (judgeable(&source, terms)?, temporary.read_back(JUDGED)?.ok_or_else(too_large)?);
            ruled.iter().try_for_each(|place| judge(terms, place, Some(&old), &new))?;
        }
        let replaced = temporary.replace(&name, &source, self.durability, terms);
        replaced.map_err(|error| self.tell_kept(&lock, error))?;
        Ok(hash)
    }

    pub(super) fn remove_file(
        &self,
        path: &WorkspacePath,
        expected: Hash,
        terms: &Terms<'_>,
    ) -> Result<(), StoreError> {
        let reached = self.reach_name(path, terms)?;
        reached.source.check(expected, terms)?;
        match reached.leads_to {
            None => temporary::remove(&reached.lock, &reached.name, &reached.source, terms)
                .map_err(|error| self.tell_kept(&reached.lock, error))?,
            Some(_) => {
                commit(terms)?;
                rustix::fs::unlinkat(&reached.lock, &reached.name, AtFlags::empty()).map_err(problem)?;
            }
        }
        self.durability.settle_change(&reached.lock)
    }

    pub(super) fn rename_file(
        &self,
        path: &WorkspacePath,
        expected: Hash,
        to: &WorkspacePath,
        terms: &Terms<'_>,
    ) -> Result<(), StoreError> {
        let reached = self.reach_name(path, terms)?;
        reached.source.check(expected, terms)?;
        self.put_elsewhere(&reached, path, to, terms).map_err(|error| match error {
            StoreError::Ended | StoreError::Refused(_) | StoreError::Changed | StoreError::Kept(_) => error,
            error => StoreError::Target(Box::new(error)),
        })
    }

    fn put_elsewhere(
        &self,
        reached: &Reached,
        path: &WorkspacePath,
        to: &WorkspacePath,
        terms: &Terms<'_>,
    ) -> Result<(), StoreError> {
        let (folder, name, made) = self.reach_new(to, terms, &|real| {
            if reached.leads_to.is_some() && real.split_last().map(|(folder, _)| folder) != reached.folder() {
                return Err(link_stays(path).into());
            }
            let ruled = ruled(terms, to, real);
            if ruled.is_empty() {
                return Ok(());
            }
            let content = judgeable(&reached.source, terms)?;
            ruled.iter().try_for_each(|place| judge(terms, place, None, &content))
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
                Err(_) => self.tell_kept(&reached.lock, StoreError::Kept(to.to_string())),
            });
        }
        self.durability.settle_change(&folder)?;
        self.durability.settle_change(&reached.lock)
    }
}

/// Sees that nothing has a name. That it stays so until the end is for the system to see.
fn refuse_taken(folder: impl AsFd, name: &str) -> Result<(), StoreError> {
    match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Directory => Err(StoreError::IsFolder),
        Ok(_) => Err(StoreError::Exists),
        Err(_) => Ok(()),
    }
}

/// The places whose rules hold for a change: the one that was named, and the one that was reached.
fn ruled<'a>(terms: &Terms<'_>, named: &'a WorkspacePath, real: &'a WorkspacePath) -> Vec<&'a WorkspacePath> {
    let mut places = vec![named];
    if real != named {
        places.push(real);
    }
    places.retain(|place| terms.rules.apply_to(place));
    places
}

fn judge(
    terms: &Terms<'_>,
    place: &WorkspacePath,
    before: Option<&[u8]>,
    after: &[u8],
) -> Result<(), StoreError> {
    let verdict = terms.rules.judge(place, before, after, terms.has_ended);
    // What was left before its end is no verdict.
    if (terms.has_ended)() { Err(StoreError::Ended) } else { Ok(verdict?) }
}

fn judgeable(source: &OpenFile, terms: &Terms<'_>) -> Result<Vec<u8>, StoreError> {
    if source.size() > JUDGED { Err(too_large()) } else { source.whole(terms) }
}

fn too_large() -> StoreError {
    let message = format!("a file that is bound to a schema may have {} MiB at most", JUDGED >> 20);
    StoreError::Refused(Fault::new(ErrorCode::InvalidRequest, message))
}

fn link_stays(path: &WorkspacePath) -> Fault {
    let message = format!("{path} is a link, which leads elsewhere from another folder; nothing was done");
    Fault::new(ErrorCode::InvalidRequest, message)
        .hint("move the file that it leads to, or give the link another name in its folder")
}

/// Writes what a splice makes of a source, and gives its hash.
fn write_spliced(
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
