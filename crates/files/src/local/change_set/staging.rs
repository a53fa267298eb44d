//! Staged files: the new contents of a change set before they get their names, and the old ones after that.
//!
//! They lie in a **staging folder** next to the files that they belong to, so that an exchange is one step of one file
//! system. One system call shows that a folder has none. Nobody but their owner and recovery touches them.

use std::{
    fs::File,
    os::fd::{AsFd, OwnedFd},
    time::Instant,
};

use pintle_root::{STAGING_FOLDER, open_file_in};
use rustix::{
    fs::{AtFlags, FileType, Mode, OFlags, RenameFlags, renameat_with},
    io::Errno,
};

use crate::{
    hash::{Hash, Hasher},
    local::{Durability, lease::Lease, lock::Lock},
    store::StoreError,
};

/// Whether a staged file was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Removed {
    Yes,
    /// It has other content, or a program is about to write into it.
    NotOurs,
}

/// A staging folder, held open.
pub(in crate::local) struct Staging(OwnedFd);

impl Staging {
    /// Whether dead writers have left their staging folder in a locked one. It may be empty: a file that was created has left
    /// it, and has to be removed by recovery all the same.
    pub(in crate::local) fn is_left_in(folder: impl AsFd) -> bool {
        rustix::fs::statat(folder, STAGING_FOLDER, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// Whether something in a folder has the name of its staging folder and is none.
    pub(super) fn is_blocked(folder: impl AsFd) -> bool {
        rustix::fs::statat(folder, STAGING_FOLDER, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) != FileType::Directory)
    }

    /// Opens the staging folder of a folder, if there is one.
    pub(super) fn find(folder: impl AsFd) -> Result<Option<Self>, StoreError> {
        match Self::open(folder) {
            Ok(staging) => Ok(Some(staging)),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens the staging folder of a folder; creates it if there is none.
    pub(super) fn open_or_create(folder: &Lock) -> Result<Self, StoreError> {
        match rustix::fs::mkdirat(folder, STAGING_FOLDER, Mode::from_raw_mode(0o700)) {
            // Another one's staged files may be left in it.
            Ok(()) | Err(Errno::EXIST) => Ok(Self::open(folder).map_err(|error| match error {
                Errno::LOOP | Errno::NOTDIR => StoreError::Blocked,
                error => error.into(),
            })?),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens the staging folder of a folder.
    pub(super) fn open(folder: impl AsFd) -> Result<Self, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(folder, STAGING_FOLDER, flags, Mode::empty()).map(Self)
    }

    /// Creates a staged file.
    pub(super) fn create(&self, name: &str, mode: u32) -> Result<File, StoreError> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&self.0, name, flags, Mode::from_raw_mode(mode))?.into())
    }

    /// The hash of a staged file; none if there is none.
    pub(super) fn hash(&self, name: &str) -> Result<Option<Hash>, StoreError> {
        hash_in(&self.0, name)
    }

    /// Exchanges a staged file with the file that has a name in the folder.
    pub(super) fn exchange(&self, staged: &str, folder: &Lock, name: &str) -> Result<(), Errno> {
        renameat_with(&self.0, staged, folder, name, RenameFlags::EXCHANGE)
    }

    /// Removes a staged file if it has the expected content. While its content is looked at, no program can open the file to
    /// write into it; one that has it open is waited for until a deadline.
    pub(super) fn remove_if(
        &self,
        staged: &str,
        expected: &Hash,
        deadline: Instant,
    ) -> Result<Removed, StoreError> {
        let file = match open_file_in(&self.0, staged.as_bytes()) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(Removed::Yes),
            Err(error) => return Err(error.into()),
        };
        let lease = match Lease::take(&file, deadline, || Ok(())) {
            Err(StoreError::InUse) => return Ok(Removed::NotOurs),
            taken => taken?,
        };
        let has_changed = Hasher::hash_file(&file)? != *expected;
        if has_changed || lease.as_ref().is_some_and(Lease::is_breaking) {
            return Ok(Removed::NotOurs);
        }
        self.remove(staged)?;
        Ok(Removed::Yes)
    }

    /// Removes a staged file.
    pub(super) fn remove(&self, staged: &str) -> Result<(), Errno> {
        match rustix::fs::unlinkat(&self.0, staged, AtFlags::empty()) {
            Err(Errno::NOENT) => Ok(()),
            removed => removed,
        }
    }

    pub(super) fn sync(&self, durability: Durability) -> Result<(), StoreError> {
        durability.sync(&self.0)
    }
}

impl AsFd for Staging {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Removes the staging folder of a folder, unless files are left in it.
pub(super) fn remove_folder(folder: impl AsFd) -> Result<(), Errno> {
    match rustix::fs::unlinkat(folder, STAGING_FOLDER, AtFlags::REMOVEDIR) {
        // Others have staged files in it, or it is none.
        Err(Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => Ok(()),
        removed => removed,
    }
}

/// The hash of a regular file; none if nothing has the name.
pub(super) fn hash_in(folder: impl AsFd, name: &str) -> Result<Option<Hash>, StoreError> {
    let file = match open_file_in(&folder, name.as_bytes()) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    Hasher::hash_file(file).map(Some).map_err(StoreError::Io)
}
