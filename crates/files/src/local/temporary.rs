//! Files that become others, whole or not at all.
//!
//! The temporary file of a folder has one name. Whoever writes holds the folder's lock, so there is one at most, and one
//! that is there without its writer is a dead writer's.

use std::{
    fs::{File, Metadata},
    io::{Read, Seek, Write},
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::{MetadataExt, PermissionsExt},
    },
};

use pintle_root::{Stamp, TEMPORARY_FILE as NAME};
use rustix::{
    fs::{AtFlags, Gid, Mode, OFlags, RawMode, RenameFlags, Uid},
    io::Errno,
};

use super::{
    Durability, attributes, commit,
    lease::Lease,
    leftover,
    lock::Lock,
    mark::{self, Replaced},
    source::OpenFile,
    version::Version,
};
use crate::store::{StoreError, Terms};

/// The part of the mode that a temporary file is created with and soon loses. It means nothing on a file, and other
/// programs do not set it: an empty file that has it is one whose writer died before it could mark it.
pub(super) const BORN: Mode = Mode::SVTX;

/// A file that is being written, in a folder whose lock is held. Removed when dropped, unless it was put in
/// its place.
pub(super) struct Temporary<'a> {
    folder: &'a Lock,
    file: File,
    is_placed: bool,
}

impl<'a> Temporary<'a> {
    /// One that will be a new file.
    pub(super) fn create(folder: &'a Lock) -> Result<Self, StoreError> {
        let (temporary, own) = Self::begin(folder, Mode::from_raw_mode(0o666), None)?;
        let mode = own.permissions().mode() as RawMode;
        rustix::fs::fchmod(&temporary.file, Mode::from_raw_mode(mode).difference(BORN))?;
        Ok(temporary)
    }

    /// One that will replace a file, and so has its mode and owner, and whatever else says who may use it.
    pub(super) fn like(
        folder: &'a Lock,
        source: &File,
        file: &Metadata,
        replaced: Replaced,
    ) -> Result<Self, StoreError> {
        let (temporary, own) = Self::begin(folder, Mode::from_raw_mode(0o600), Some(replaced))?;
        let mut kept = 0o7777;
        if (own.uid(), own.gid()) != (file.uid(), file.gid()) {
            let (owner, group) = (Uid::from_raw(file.uid()), Gid::from_raw(file.gid()));
            // Where the owner cannot be kept, the group may be; where neither can, the content matters more.
            // Then nobody may run the file as somebody who it does not belong to.
            if rustix::fs::fchown(&temporary.file, Some(owner), Some(group)).is_err() {
                kept = 0o777;
                let _ = rustix::fs::fchown(&temporary.file, None, Some(group));
            }
        }
        let mode = file.permissions().mode() & kept;
        attributes::copy(source, &temporary.file, Mode::from_raw_mode(mode as RawMode))?;
        Ok(temporary)
    }

    /// An empty one that is marked as Pintle's own.
    fn begin(
        folder: &'a Lock,
        mode: Mode,
        replaced: Option<Replaced>,
    ) -> Result<(Self, Metadata), StoreError> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file =
            rustix::fs::openat(folder, NAME, flags, mode.union(BORN)).map_err(|error| match error {
                // Whatever was there when the folder was locked has been cleaned up, so this is not a dead writer's.
                Errno::EXIST => StoreError::Blocked,
                error => error.into(),
            })?;
        let temporary = Self { folder, file: file.into(), is_placed: false };
        let own = temporary.file.metadata()?;
        mark::set(&temporary.file, &own, replaced);
        Ok((temporary, own))
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        Ok(self.file.write_all(bytes)?)
    }

    /// What was written; none if it is too large.
    pub(super) fn read_back(&self, most: u64) -> Result<Option<Vec<u8>>, StoreError> {
        let mut file = &self.file;
        file.rewind()?;
        let mut content = Vec::new();
        let size = file.take(most + 1).read_to_end(&mut content)?;
        Ok((size as u64 <= most).then_some(content))
    }

    /// Gives it a name that nothing has.
    pub(super) fn put_new(
        mut self,
        name: &str,
        durability: Durability,
        terms: &Terms<'_>,
    ) -> Result<(), StoreError> {
        durability.settle(&self.file)?;
        commit(terms)?;
        rename_to_new((self.folder, NAME), (self.folder, name))?;
        self.is_placed = true;
        mark::clear(&self.file);
        durability.settle_change(self.folder)
    }

    /// Puts it in the place of a file, if that is still the one that was read. Programs that know nothing of the
    /// lock may have put another one there at any instant, so the two change places, and what came out is looked at.
    pub(super) fn replace(
        mut self,
        name: &str,
        read: &OpenFile,
        durability: Durability,
        terms: &Terms<'_>,
    ) -> Result<(), StoreError> {
        durability.settle(&self.file)?;
        let lease = lease(self.folder, name, read, terms)?;
        read.version.check(self.folder, name)?;
        let own = Version::of(&self.file)?.stamp;
        commit(terms)?;
        match self.exchange(name) {
            Ok(()) => {}
            // The file was taken away in the last instant.
            Err(Errno::NOENT) => return Err(StoreError::Changed),
            // Some file systems cannot do that.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                rustix::fs::renameat(self.folder, NAME, self.folder, name)?;
                self.is_placed = true;
                mark::clear(&self.file);
                return durability.settle_change(self.folder);
            }
            Err(error) => return Err(error.into()),
        }
        // From here on it is another file that has the temporary name.
        self.is_placed = true;
        let is_as_read = || {
            let is_wanted = lease.as_ref().is_some_and(Lease::is_wanted);
            !is_wanted && read.version.check_renamed(self.folder, NAME).is_ok()
        };
        // While the folder is written to the disk, a program that had the file open may still write into it. So
        // that is done first, and the old file is looked at once more before it goes.
        let settled = is_as_read().then(|| durability.settle_change(self.folder));
        let is_still_as_read = || durability == Durability::Eventual || is_as_read();
        let Some(settled) = settled.filter(|_| is_still_as_read()) else {
            let refused = self.put_back(name, own);
            // The answer is a refusal in any case; that the file is as it was should also survive a failure of power.
            let _ = durability.settle(self.folder);
            return Err(refused);
        };
        // If it cannot be removed now, it is when the folder is next used.
        let _ = rustix::fs::unlinkat(self.folder, NAME, AtFlags::empty());
        mark::clear(&self.file);
        settled
    }

    fn exchange(&self, name: &str) -> Result<(), Errno> {
        rustix::fs::renameat_with(self.folder, NAME, self.folder, name, RenameFlags::EXCHANGE)
    }

    /// Gives the name back to the file that came out of an exchange. Other programs may save at any instant, so what
    /// comes out this time is looked at as well: it is deleted only if it is what the last exchange had put there. In
    /// the end the newest save has the name. Returns what the caller is told.
    fn put_back(&self, name: &str, own: Stamp) -> StoreError {
        // Each further round takes another save within microseconds.
        const ROUNDS: usize = 10_000;
        let mut put_there = Pinned { stamp: own, _open: None };
        for _ in 0..ROUNDS {
            let Ok(to_put) = Pinned::new(self.folder) else { return StoreError::Changed };
            match self.exchange(name) {
                Ok(()) => {}
                // Nothing has the name now.
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
                // A save that is newer than what was just put in its place.
                Ok(_) => put_there = to_put,
                Err(_) => return StoreError::Changed,
            }
        }
        keep(self.folder, name)
    }
}

/// Keeps what came out of a rename, and cannot go back, under a visible name. Where the file system refuses that, too, it
/// stays under the name of temporary files until the folder is next used. Returns what the caller is told.
fn keep(folder: &Lock, name: &str) -> StoreError {
    StoreError::Kept(leftover::keep(folder, Some(name)).unwrap_or_else(|_| NAME.to_owned()))
}

/// What has the name of temporary files, held open so that no other file can get the number of its inode.
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

/// A lease on a file that was read and is about to go, where there is one to be had.
fn lease<'a>(
    folder: &Lock,
    name: &str,
    read: &'a OpenFile,
    terms: &Terms<'_>,
) -> Result<Option<Lease<'a>>, StoreError> {
    Lease::take(&read.file, || {
        if (terms.has_ended)() {
            return Err(StoreError::Ended);
        }
        read.version.check(folder, name)
    })
}

/// Removes a file, if it is still the one that was read.
pub(super) fn remove(
    folder: &Lock,
    name: &str,
    read: &OpenFile,
    terms: &Terms<'_>,
) -> Result<(), StoreError> {
    let lease = lease(folder, name, read, terms)?;
    read.version.check(folder, name)?;
    commit(terms)?;
    rename_to_new((folder, name), (folder, NAME)).map_err(|error| match error {
        StoreError::Exists => StoreError::Blocked,
        StoreError::NotFound => StoreError::Changed,
        error => error,
    })?;
    let changed = read.version.check_renamed(folder, NAME).err();
    if changed.is_some() || lease.as_ref().is_some_and(Lease::is_wanted) {
        return Err(match rename_to_new((folder, NAME), (folder, name)) {
            Ok(()) => StoreError::Changed,
            Err(_) => keep(folder, name),
        });
    }
    Ok(rustix::fs::unlinkat(folder, NAME, AtFlags::empty())?)
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if !self.is_placed {
            // If it cannot be removed now, it is when the folder is next used.
            let _ = rustix::fs::unlinkat(self.folder, NAME, AtFlags::empty());
        }
    }
}

/// Gives a file another name, where nothing may be.
pub(super) fn rename_to_new(
    (from_folder, from): (impl AsFd, &str),
    (folder, name): (impl AsFd, &str),
) -> Result<(), StoreError> {
    match rustix::fs::renameat_with(&from_folder, from, &folder, name, RenameFlags::NOREPLACE) {
        // Some file systems cannot do that.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            link_to_new((from_folder, from), (folder, name))
        }
        Err(Errno::XDEV) => Err(StoreError::OtherFileSystem),
        renamed => Ok(renamed?),
    }
}

/// Gives a file another name in two steps, of which the first fails if something has the name already.
fn link_to_new(
    (from_folder, from): (impl AsFd, &str),
    (folder, name): (impl AsFd, &str),
) -> Result<(), StoreError> {
    match rustix::fs::linkat(&from_folder, from, &folder, name, AtFlags::empty()) {
        Ok(()) => Ok(rustix::fs::unlinkat(&from_folder, from, AtFlags::empty())?),
        Err(Errno::XDEV) => Err(StoreError::OtherFileSystem),
        // No second names either, or a folder, which cannot have one. This look is all that is left; a program that makes
        // a file of that name right after it loses that file.
        Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS | Errno::MLINK) => {
            if rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW).is_ok() {
                return Err(StoreError::Exists);
            }
            Ok(rustix::fs::renameat(&from_folder, from, &folder, name)?)
        }
        Err(error) => Err(error.into()),
    }
}
