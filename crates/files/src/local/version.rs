//! Detects changes: whether a file is still the version that was read.

use std::os::fd::AsFd;

use pintle_root::Stamp;
use rustix::{
    fs::{AtFlags, Stat},
    io::Errno,
};

use crate::store::StoreError;

/// The version of a file: its stamp (inode, size, times), mode and owner.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) stamp: Stamp,
    mode: u32,
    owner: (u32, u32),
}

impl Version {
    /// The version of an open file; take it before reading the content.
    pub(super) fn of(open: impl AsFd) -> Result<Self, Errno> {
        rustix::fs::fstat(open).map(|stat| Self::from_stat(&stat))
    }

    /// The version from a `stat` result.
    // The types differ from system to system.
    #[allow(clippy::unnecessary_cast)]
    pub(super) fn from_stat(stat: &Stat) -> Self {
        let owner = (stat.st_uid as u32, stat.st_gid as u32);
        Self { stamp: Stamp::from_stat(stat), mode: stat.st_mode as u32, owner }
    }

    /// Checks that a name still belongs to the same file and that its content, mode and owner did not change.
    pub(super) fn check(&self, folder: impl AsFd, name: &str) -> Result<(), StoreError> {
        self.check_found(folder, name, |found| found == *self)
    }

    /// The same for a file that this call has just renamed. A rename changes the ctime, so the ctime is not compared.
    pub(super) fn check_renamed(&self, folder: impl AsFd, name: &str) -> Result<(), StoreError> {
        self.check_found(folder, name, |found| found.is_same_but_renamed(self))
    }

    /// Whether all but the ctime is the same.
    pub(super) fn is_same_but_renamed(&self, other: &Self) -> bool {
        self.stamp.has_same_content(other.stamp) && (self.mode, self.owner) == (other.mode, other.owner)
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
