//! What tells one version of a file from the next without reading it.

use std::{
    fs::File,
    io,
    path::Path,
    time::{Duration, SystemTime},
};

use rustix::fs::{AtFlags, FileType, Stat, fstat};

/// Size, times of the last changes and number of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) size: u64,
    /// Nanoseconds since 1970; [`Stamp::UNKNOWN`] equals no file's.
    pub(crate) modified: i64,
    pub(crate) inode: u64,
    /// When anything about the file last changed; nobody can set it back.
    pub(crate) touched: i64,
}

impl Stamp {
    const UNKNOWN: i64 = i64::MIN;
    /// A change within this time after another may leave the same time of change: file systems keep time by the
    /// kernel's tick.
    const GRAIN: i64 = 20_000_000;
    /// After this time a change shows.
    pub(crate) const SETTLING: Duration = Duration::from_millis(25);

    /// Of an open file; an error if it is not a regular one.
    pub(crate) fn of_file(file: &File) -> io::Result<Self> {
        let stat = fstat(file)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Ok(Self::from_stat(&stat)),
            _ => Err(io::Error::from(io::ErrorKind::InvalidInput)),
        }
    }

    /// Of a path, with its type; links are not followed.
    pub(crate) fn of_path(path: &Path) -> io::Result<(Self, FileType)> {
        let stat = rustix::fs::statat(rustix::fs::CWD, path, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok((Self::from_stat(&stat), FileType::from_raw_mode(stat.st_mode)))
    }

    fn from_stat(stat: &Stat) -> Self {
        Self {
            size: stat.st_size as u64,
            modified: nanoseconds(stat.st_mtime, stat.st_mtime_nsec as i64),
            inode: stat.st_ino,
            touched: nanoseconds(stat.st_ctime, stat.st_ctime_nsec as i64),
        }
    }

    /// The same, unless the file was changed so shortly before `now` that another change could hide behind the
    /// same time: then one that equals no file's.
    pub(crate) fn settled(self, now: SystemTime) -> Self {
        let now = now.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_nanos() as i64);
        if self.modified.max(self.touched).saturating_add(Self::GRAIN) >= now { self.unknown() } else { self }
    }

    /// A stamp that equals no file's.
    pub(crate) fn unknown(self) -> Self {
        Self { modified: Self::UNKNOWN, ..self }
    }

    pub(crate) fn is_unknown(self) -> bool {
        self.modified == Self::UNKNOWN
    }
}

fn nanoseconds(seconds: i64, rest: i64) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(rest)
}
