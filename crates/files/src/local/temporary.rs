//! Files that become others, whole or not at all.

use std::{
    fs::{File, Metadata},
    io::{Read, Seek, Write},
    os::{
        fd::AsFd,
        unix::fs::{MetadataExt, PermissionsExt},
    },
};

use rustix::{
    fs::{AtFlags, Gid, Mode, OFlags, RawMode, RenameFlags, Uid},
    io::Errno,
};

use super::{Durability, attributes, commit, lock::Lock, problem, version::Version};
use crate::store::{StoreError, Terms};

/// The name of the temporary file of a folder. Whoever writes holds the folder's lock, so there is one at most,
/// and one that is there without its writer is a dead writer's.
const NAME: &str = ".pintle-tmp";

/// Whether a name is the one of temporary files. Nobody else may use it.
pub(super) fn is_temporary(name: &str) -> bool {
    name == NAME
}

/// A file that is being written, in a folder whose lock is held. Removed when dropped, unless it was put in
/// its place.
pub(super) struct Temporary<'a> {
    folder: &'a Lock,
    file: File,
    is_placed: bool,
}

impl<'a> Temporary<'a> {
    pub(super) fn create(folder: &'a Lock, mode: Mode) -> Result<Self, StoreError> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = || rustix::fs::openat(folder, NAME, flags, mode);
        let file = match open() {
            Err(Errno::EXIST) => {
                sweep(folder);
                open()
            }
            opened => opened,
        };
        // What is still there is not ours, and cannot be done away with as if it were.
        let file = file.map_err(|error| match error {
            Errno::EXIST => StoreError::Blocked,
            error => problem(error),
        })?;
        Ok(Self { folder, file: file.into(), is_placed: false })
    }

    /// One that will replace a file, and so has its mode and owner, and whatever else says who may use it.
    pub(super) fn like(folder: &'a Lock, source: &File, file: &Metadata) -> Result<Self, StoreError> {
        let temporary = Self::create(folder, Mode::from_raw_mode(0o600))?;
        let own = temporary.file.metadata()?;
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
        durability.settle_change(self.folder)
    }

    /// Puts it in the place of a file, if that is still the one that was read. Programs that know nothing of the
    /// lock may have put another one there at any instant, so the two change places, and what came out is looked at.
    pub(super) fn replace(
        mut self,
        name: &str,
        read: &Version,
        durability: Durability,
        terms: &Terms<'_>,
    ) -> Result<(), StoreError> {
        durability.settle(&self.file)?;
        read.check(self.folder, name)?;
        commit(terms)?;
        let exchange = || {
            let flags = RenameFlags::EXCHANGE;
            rustix::fs::renameat_with(self.folder, NAME, self.folder, name, flags)
        };
        match exchange() {
            Ok(()) => {
                if let Err(changed) = read.check(self.folder, NAME) {
                    if exchange().is_err() {
                        // What came out is somebody's save: it must not go as if it were the temporary file.
                        self.is_placed = true;
                        rename_to_new((self.folder, NAME), (self.folder, name))?;
                    }
                    return Err(changed);
                }
                // Now it is the old file that has the name of the temporary one.
                let _ = rustix::fs::unlinkat(self.folder, NAME, AtFlags::empty());
            }
            // Some file systems cannot do that.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                rustix::fs::renameat(self.folder, NAME, self.folder, name).map_err(problem)?;
            }
            Err(error) => return Err(problem(error)),
        }
        self.is_placed = true;
        durability.settle_change(self.folder)
    }
}

/// Removes a file, if it is still the one that was read.
pub(super) fn remove(folder: &Lock, name: &str, read: &Version, terms: &Terms<'_>) -> Result<(), StoreError> {
    read.check(folder, name)?;
    commit(terms)?;
    rename_to_new((folder, name), (folder, NAME)).map_err(|error| match error {
        StoreError::Exists => StoreError::Blocked,
        error => error,
    })?;
    if let Err(changed) = read.check(folder, NAME) {
        rename_to_new((folder, NAME), (folder, name))?;
        return Err(changed);
    }
    rustix::fs::unlinkat(folder, NAME, AtFlags::empty()).map_err(problem)
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if !self.is_placed {
            // If it cannot be removed now, it is when the folder is next used.
            let _ = rustix::fs::unlinkat(self.folder, NAME, AtFlags::empty());
        }
    }
}

/// Removes what a writer who died has left behind. The lock is held, so nobody is writing now.
pub(super) fn sweep(folder: &Lock) {
    // Most often there is nothing, and that is as it should be.
    if let Err(Errno::ISDIR) = rustix::fs::unlinkat(folder, NAME, AtFlags::empty()) {
        // Nobody else may use the name, but what is in it is not ours.
        let _ = rustix::fs::unlinkat(folder, NAME, AtFlags::REMOVEDIR);
    }
}

/// Gives a file another name, where nothing may be.
pub(super) fn rename_to_new(
    (from_folder, from): (impl AsFd, &str),
    (folder, name): (impl AsFd, &str),
) -> Result<(), StoreError> {
    match rustix::fs::renameat_with(&from_folder, from, &folder, name, RenameFlags::NOREPLACE) {
        // Some file systems cannot do that in one step. Whoever else uses the lock is kept out all the same.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            if rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW).is_ok() {
                return Err(StoreError::Exists);
            }
            rustix::fs::renameat(&from_folder, from, &folder, name).map_err(problem)
        }
        Err(Errno::XDEV) => Err(StoreError::OtherFileSystem),
        renamed => renamed.map_err(problem),
    }
}
