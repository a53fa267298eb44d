//! Whether a file is still the one that was read.

use std::os::fd::AsFd;

use rustix::fs::{AtFlags, Stat};

use crate::store::StoreError;

/// What tells a file, as it was when it was read, from others and from what it becomes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Version {
    device: u64,
    inode: u64,
    size: i64,
    modified: (i64, i64),
}

impl Version {
    /// How many bytes it has.
    pub(super) fn size(&self) -> u64 {
        u64::try_from(self.size).unwrap_or_default()
    }

    /// Sees that a name is still that of the same file, and that nobody has written to it.
    pub(super) fn check(&self, folder: impl AsFd, name: &str) -> Result<(), StoreError> {
        match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if Self::from_stat(&stat) == *self => Ok(()),
            _ => Err(StoreError::Changed),
        }
    }

    /// To be taken before the file is read.
    // The types differ from system to system.
    #[allow(clippy::unnecessary_cast)]
    pub(super) fn from_stat(stat: &Stat) -> Self {
        Self {
            device: stat.st_dev as u64,
            inode: stat.st_ino as u64,
            size: stat.st_size as i64,
            modified: (stat.st_mtime as i64, stat.st_mtime_nsec as i64),
        }
    }
}
