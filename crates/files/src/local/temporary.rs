//! Atomic writes: a temporary file is written, synced, and then renamed to a new name or exchanged with an existing file.
//!
//! All temporary files of a folder have the same name. A writer holds the folder's lock, so there is at most one, and one
//! that exists while no writer holds the lock was left by a dead writer.

use std::{
    fs::{File, Metadata},
    io::{Read, Seek, Write},
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::{MetadataExt, PermissionsExt},
    },
    time::Instant,
};

use pintle_root::{Stamp, TEMPORARY_FILE as NAME};
use rustix::{
    fs::{AtFlags, Gid, Mode, OFlags, RawMode, RenameFlags, Uid},
    io::Errno,
};

use super::{
    Durability, attributes, commit,
    lease::{LEASE_TIMEOUT, Lease},
    leftover,
    lock::Lock,
    mark::{self, Replaced},
    source::OpenFile,
    version::Version,
};
use crate::store::{StoreError, Terms};

/// The sticky bit, which a temporary file has from its creation until it is marked. It has no effect on files, and other
/// programs do not set it: an empty file that has it was left by a writer that died before it could mark the file.
pub(super) const JUST_CREATED: Mode = Mode::SVTX;

/// A temporary file in a locked folder. It is removed on drop unless it got its final name.
pub(super) struct Temporary<'a> {
    folder: &'a Lock,
    file: File,
    has_final_name: bool,
}

impl<'a> Temporary<'a> {
    /// Creates a temporary file for a new file.
    pub(super) fn create(folder: &'a Lock) -> Result<Self, StoreError> {
        let (temporary, own) = Self::begin(folder, Mode::from_raw_mode(0o666), None)?;
        let mode = own.permissions().mode() as RawMode;
        rustix::fs::fchmod(&temporary.file, Mode::from_raw_mode(mode).difference(JUST_CREATED))?;
        Ok(temporary)
    }

    /// Creates a temporary file that will replace a file, with its mode, owner, ACL and extended attributes.
    pub(super) fn like(
        folder: &'a Lock,
        source: &File,
        file: &Metadata,
        replaced: Replaced,
    ) -> Result<Self, StoreError> {
        let (temporary, own) = Self::begin(folder, Mode::from_raw_mode(0o600), Some(replaced))?;
        make_alike(&temporary.file, &own, source, file)?;
        Ok(temporary)
    }

    /// Creates an empty temporary file and marks it as Pintle's own.
    fn begin(
        folder: &'a Lock,
        mode: Mode,
        replaced: Option<Replaced>,
    ) -> Result<(Self, Metadata), StoreError> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file =
            rustix::fs::openat(folder, NAME, flags, mode.union(JUST_CREATED)).map_err(
                |error| match error {
                    // `sweep` has cleaned up after dead writers, so something foreign has the name.
                    Errno::EXIST => StoreError::Blocked,
                    error => error.into(),
                },
            )?;
        let temporary = Self { folder, file: file.into(), has_final_name: false };
        let own = temporary.file.metadata()?;
        mark::set(&temporary.file, &own, replaced);
        Ok((temporary, own))
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        Ok(self.file.write_all(bytes)?)
    }

    /// Reads back what was written; none if it is larger than `most`.
    pub(super) fn read_back(&self, most: u64) -> Result<Option<Vec<u8>>, StoreError> {
        let mut file = &self.file;
        file.rewind()?;
        let mut content = Vec::new();
        let size = file.take(most + 1).read_to_end(&mut content)?;
        Ok((size as u64 <= most).then_some(content))
    }

    /// Renames it to a name that must not exist.
    pub(super) fn rename_new(
        mut self,
        name: &str,
        durability: Durability,
        terms: &Terms<'_>,
    ) -> Result<(), StoreError> {
        durability.sync(&self.file)?;
        commit(terms)?;
        rename_to_new((self.folder, NAME), (self.folder, name))?;
        self.has_final_name = true;
        mark::clear(&self.file);
        durability.sync_change(self.folder)
    }

    /// Replaces a file, if it is still the version that was read (compare-and-swap). Programs that do not use the lock can
    /// save at any instant, so the two files are exchanged atomically, and the old one is checked afterwards: if it is
    /// not the version that was read, the exchange is rolled back.
    pub(super) fn replace(
        mut self,
        name: &str,
        read: &OpenFile,
        durability: Durability,
        terms: &Terms<'_>,
    ) -> Result<(), StoreError> {
        durability.sync(&self.file)?;
        let lease = lease(self.folder, name, read, terms.has_ended)?;
        read.version.check(self.folder, name)?;
        let own = Version::of(&self.file)?.stamp;
        commit(terms)?;
        match self.exchange(name) {
            Ok(()) => {}
            // The file was removed at the last instant.
            Err(Errno::NOENT) => return Err(StoreError::Changed),
            // Some file systems have no RENAME_EXCHANGE: use a plain rename.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                rustix::fs::renameat(self.folder, NAME, self.folder, name)?;
                self.has_final_name = true;
                mark::clear(&self.file);
                return durability.sync_change(self.folder);
            }
            Err(error) => return Err(error.into()),
        }
        // From here on the old file has the temporary name.
        self.has_final_name = true;
        let is_as_read = || {
            let is_breaking = lease.as_ref().is_some_and(Lease::is_breaking);
            !is_breaking && read.version.check_renamed(self.folder, NAME).is_ok()
        };
        // While the folder is synced, a program that had the old file open may still write into it. So the sync comes
        // first, and the old file is checked once more before it is removed.
        let synced = is_as_read().then(|| durability.sync_change(self.folder));
        let is_still_as_read = || durability == Durability::Eventual || is_as_read();
        let Some(synced) = synced.filter(|_| is_still_as_read()) else {
            let refused = self.roll_back(name, own);
            // The call fails in any case; the sync only makes the rollback survive a power failure.
            let _ = durability.sync(self.folder);
            return Err(refused);
        };
        // If it cannot be removed now, `sweep` removes it when the folder is next used.
        let _ = rustix::fs::unlinkat(self.folder, NAME, AtFlags::empty());
        mark::clear(&self.file);
        synced
    }

    fn exchange(&self, name: &str) -> Result<(), Errno> {
        rustix::fs::renameat_with(self.folder, NAME, self.folder, name, RenameFlags::EXCHANGE)
    }

    /// Rolls an exchange back: gives the name back to the file that came out. Other programs can save at any instant, so
    /// the file that comes out this time is checked as well: it is deleted only if it is the one that the last exchange
    /// had put there. In the end the newest save has the name. Returns the error for the caller.
    fn roll_back(&self, name: &str, own: Stamp) -> StoreError {
        // Another round is needed only if another save came within microseconds.
        const ROUNDS: usize = 10_000;
        let mut put_there = Pinned { stamp: own, _open: None };
        for _ in 0..ROUNDS {
            let Ok(to_put) = Pinned::new(self.folder) else { return StoreError::Changed };
            match self.exchange(name) {
                Ok(()) => {}
                // The name does not exist any more.
                Err(Errno::NOENT) => match rename_to_new((self.folder, NAME), (self.folder, name)) {
                    Ok(()) => return StoreError::Changed,
                    Err(StoreError::Exists) => continue,
                    Err(_) => break,
                },
                Err(_) => break,
            }
            match Pinned::new(self.folder) {
                Ok(came_out) if came_out.stamp.has_same_content(put_there.stamp) => {
                    let _ = rustix::fs::unlinkat(self.folder, NAME, AtFlags::empty());
                    return StoreError::Changed;
                }
                // A save that is newer than the file that was just put there.
                Ok(_) => put_there = to_put,
                Err(_) => return StoreError::Changed,
            }
        }
        keep(self.folder, name)
    }
}

/// Gives a new file the mode, owner, ACL and extended attributes of the file that it is going to replace.
pub(super) fn make_alike(
    new: &File,
    own: &Metadata,
    source: &File,
    file: &Metadata,
) -> Result<(), StoreError> {
    let mut kept = 0o7777;
    if (own.uid(), own.gid()) != (file.uid(), file.gid()) {
        let (owner, group) = (Uid::from_raw(file.uid()), Gid::from_raw(file.gid()));
        // If the owner cannot be kept, try the group; if neither can, the edit still goes on. The setuid and setgid
        // bits are dropped then, so that the file cannot run as its new owner.
        if rustix::fs::fchown(new, Some(owner), Some(group)).is_err() {
            kept = 0o777;
            let _ = rustix::fs::fchown(new, None, Some(group));
        }
    }
    let mode = file.permissions().mode() & kept;
    attributes::copy(source, new, Mode::from_raw_mode(mode as RawMode))
}

/// Keeps a file that cannot get its name back under a visible name. If the file system refuses that, too, the file keeps
/// the name of temporary files until the folder is next used. Returns the error for the caller.
fn keep(folder: &Lock, name: &str) -> StoreError {
    StoreError::Kept(leftover::keep(folder, Some(name)).unwrap_or_else(|_| NAME.to_owned()))
}

/// The file that has the temporary name, kept open so that its inode number cannot be reused.
struct Pinned {
    stamp: Stamp,
    _open: Option<OwnedFd>,
}

impl Pinned {
    fn new(folder: &Lock) -> Result<Self, StoreError> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = rustix::fs::openat(folder, NAME, flags, Mode::empty())?;
        Ok(Self { stamp: Version::of(&open)?.stamp, _open: Some(open) })
    }
}

/// Takes a lease on a file that is about to be replaced or removed, where leases are available.
pub(super) fn lease<'a>(
    folder: &Lock,
    name: &str,
    read: &'a OpenFile,
    has_ended: &dyn Fn() -> bool,
) -> Result<Option<Lease<'a>>, StoreError> {
    Lease::take(&read.file, Instant::now() + LEASE_TIMEOUT, || {
        if has_ended() {
            return Err(StoreError::Ended);
        }
        read.version.check(folder, name)
    })
}

/// Removes a file, if it is still the version that was read.
pub(super) fn remove(
    folder: &Lock,
    name: &str,
    read: &OpenFile,
    terms: &Terms<'_>,
) -> Result<(), StoreError> {
    let lease = lease(folder, name, read, terms.has_ended)?;
    read.version.check(folder, name)?;
    commit(terms)?;
    rename_to_new((folder, name), (folder, NAME)).map_err(|error| match error {
        StoreError::Exists => StoreError::Blocked,
        StoreError::NotFound => StoreError::Changed,
        error => error,
    })?;
    let changed = read.version.check_renamed(folder, NAME).err();
    if changed.is_some() || lease.as_ref().is_some_and(Lease::is_breaking) {
        return Err(match rename_to_new((folder, NAME), (folder, name)) {
            Ok(()) => StoreError::Changed,
            Err(_) => keep(folder, name),
        });
    }
    Ok(rustix::fs::unlinkat(folder, NAME, AtFlags::empty())?)
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if !self.has_final_name {
            // If it cannot be removed now, `sweep` removes it when the folder is next used.
            let _ = rustix::fs::unlinkat(self.folder, NAME, AtFlags::empty());
        }
    }
}

/// Renames a file to a name that must not exist (`RENAME_NOREPLACE`).
pub(super) fn rename_to_new(
    (from_folder, from): (impl AsFd, &str),
    (folder, name): (impl AsFd, &str),
) -> Result<(), StoreError> {
    match rustix::fs::renameat_with(&from_folder, from, &folder, name, RenameFlags::NOREPLACE) {
        // Some file systems have no RENAME_NOREPLACE.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            link_to_new((from_folder, from), (folder, name))
        }
        Err(Errno::XDEV) => Err(StoreError::OtherFileSystem),
        renamed => Ok(renamed?),
    }
}

/// Renames a file in two steps, link and unlink, of which the first fails if the name exists.
fn link_to_new(
    (from_folder, from): (impl AsFd, &str),
    (folder, name): (impl AsFd, &str),
) -> Result<(), StoreError> {
    match rustix::fs::linkat(&from_folder, from, &folder, name, AtFlags::empty()) {
        Ok(()) => Ok(rustix::fs::unlinkat(&from_folder, from, AtFlags::empty())?),
        Err(Errno::XDEV) => Err(StoreError::OtherFileSystem),
        // No hard links either, or a folder, which cannot have one. Only a check before a plain rename is left: a program
        // that creates a file of that name right after the check loses that file.
        Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS | Errno::MLINK) => {
            if rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW).is_ok() {
                return Err(StoreError::Exists);
            }
            Ok(rustix::fs::renameat(&from_folder, from, &folder, name)?)
        }
        Err(error) => Err(error.into()),
    }
}
