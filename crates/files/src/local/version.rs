//! Whether a file is still the one that was read.

use std::os::fd::AsFd;

use pintle_root::Stamp;
use rustix::{
    fs::{AtFlags, Stat},
    io::Errno,
};

use crate::store::StoreError;

/// A file as it was when it was read: its stamp, and who may use it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) stamp: Stamp,
    mode: u32,
    owner: (u32, u32),
}

impl Version {
    /// Of what is open; to be taken before the file is read.
    pub(super) fn of(open: impl AsFd) -> Result<Self, Errno> {
        rustix::fs::fstat(open).map(|stat| Self::from_stat(&stat))
    }

    /// From what the system says of a file.
    // The types differ from system to system.
    #[allow(clippy::unnecessary_cast)]
    pub(super) fn from_stat(stat: &Stat) -> Self {
        let owner = (stat.st_uid as u32, stat.st_gid as u32);
        Self { stamp: Stamp::from_stat(stat), mode: stat.st_mode as u32, owner }
    }

    /// Sees that a name is still that of the same file, and that nobody has written to it or changed who may use it.
    pub(super) fn check(&self, folder: impl AsFd, name: &str) -> Result<(), StoreError> {
        self.check_found(folder, name, |found| found == *self)
    }

    /// The same, for a file that a rename of this call has just given the name. A rename is itself a change of status,
    /// so that time says nothing here.
    pub(super) fn check_renamed(&self, folder: impl AsFd, name: &str) -> Result<(), StoreError> {
        self.check_found(folder, name, |found| {
            found.stamp.has_same_content(self.stamp) && (found.mode, found.owner) == (self.mode, self.owner)
        })
    }

    fn check_found(
        &self,
        folder: impl AsFd,
        name: &str,
        is_same: impl Fn(Self) -> bool,
    ) -> Result<(), StoreError> {
        match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if is_same(Self::from_stat(&stat)) => Ok(()),
            _ => Err(StoreError::Changed),
        }
    }
}
