//! Whether a file is still the one that was read.

use std::os::fd::AsFd;

use rustix::fs::{AtFlags, Stat};

use crate::store::StoreError;

/// What tells a file, as it was when it was read, from others and from what it becomes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Version {
    content: Content,
    mode: u32,
    owner: (u32, u32),
    /// The time of the last change of status (ctime), which no program can set back.
    status_changed: (i64, i64),
}

/// Which file it is, and when its bytes were last changed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Content {
    device: u64,
    inode: u64,
    size: i64,
    modified: (i64, i64),
}

impl Version {
    /// How many bytes it has.
    pub(super) fn size(&self) -> u64 {
        u64::try_from(self.content.size).unwrap_or_default()
    }

    /// Which file it is, and when its bytes were last changed.
    pub(super) fn content(&self) -> Content {
        self.content
    }

    /// Sees that a name is still that of the same file, and that nobody has written to it or changed who may use it.
    pub(super) fn check(&self, folder: impl AsFd, name: &str) -> Result<(), StoreError> {
        self.check_found(folder, name, |found| found == *self)
    }

    /// The same, for a file that a rename of this call has just given the name. A rename is itself a change of status,
    /// so that time says nothing here.
    pub(super) fn check_renamed(&self, folder: impl AsFd, name: &str) -> Result<(), StoreError> {
        self.check_found(folder, name, |found| {
            (found.content, found.mode, found.owner) == (self.content, self.mode, self.owner)
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

    /// To be taken before the file is read.
    // The types differ from system to system.
    #[allow(clippy::unnecessary_cast)]
    pub(super) fn from_stat(stat: &Stat) -> Self {
        Self {
            content: Content {
                device: stat.st_dev as u64,
                inode: stat.st_ino as u64,
                size: stat.st_size as i64,
                modified: (stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            },
            mode: stat.st_mode as u32,
            owner: (stat.st_uid as u32, stat.st_gid as u32),
            status_changed: (stat.st_ctime as i64, stat.st_ctime_nsec as i64),
        }
    }
}
