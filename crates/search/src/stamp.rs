//! What tells one version of a file from the next without reading it.
//!
//! A stamp tells two versions apart only if the clock of the file system has moved on between them. Git calls an entry
//! "racily clean" if its file was changed so shortly before it was read that one more change could leave the same
//! stamp. Such a stamp is not trusted here either: it must be **settled**, which one of two things shows.
//!
//! - The time in it is past by more than the clock's step, by the clock of this machine. That says something only if
//!   the file system takes its times from the same clock; one on another machine may be behind by any amount.
//! - The same stamp was seen longer ago than the clock's step, as measured here. By then the clock that gave it has
//!   moved on, whatever time it shows.
//!
//! How long a clock's step is shows in the times themselves: one that counts whole seconds gives whole seconds.
//!
//! The device is left out on purpose, as git does: its number changes when a file system is mounted again, and all files
//! would have to be read.

use std::{
    fs::File,
    io,
    path::Path,
    time::{Duration, Instant, SystemTime},
};

use rustix::fs::{AtFlags, FileType, Stat, fstat, fstatfs};

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

/// A stamp, and when it was first seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sighting {
    pub(crate) stamp: Stamp,
    pub(crate) at: Instant,
}

/// When the reading of a file began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    pub(crate) at: Instant,
    /// By the clock that the file system takes its times from, if that is the clock of this machine.
    pub(crate) by_its_clock: Option<SystemTime>,
}

const SECOND: i64 = 1_000_000_000;
/// The kernel gives files the time of its last tick, of which there are a hundred a second at least.
const TICK: i64 = SECOND / 50;

impl Stamp {
    const UNKNOWN: i64 = i64::MIN;

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

    /// Whether every change after a reading shows. The file must have had this stamp when the reading began; `seen` is
    /// when a stamp of the file was seen before that.
    pub(crate) fn is_settled(self, reading: Reading, seen: Option<Sighting>) -> bool {
        let is_past = |now: SystemTime| {
            let now = now.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_nanos() as i64);
            self.latest().saturating_add(self.step()) < now
        };
        let is_old = |seen: Sighting| seen.stamp == self && reading.at >= seen.settles_at();
        reading.by_its_clock.is_some_and(is_past) || seen.is_some_and(is_old)
    }

    fn latest(self) -> i64 {
        self.modified.max(self.touched)
    }

    /// For how long after its time another change could leave the same stamp, in nanoseconds.
    fn step(self) -> i64 {
        // FAT counts in steps of two seconds. A finer clock shows a round time once in a long while; then this waits
        // for nothing.
        let step = match self.latest() {
            time if time % SECOND == 0 => 2 * SECOND,
            time if time % (SECOND / 10) == 0 => SECOND / 10,
            time if time % (SECOND / 100) == 0 => SECOND / 100,
            _ => 0,
        };
        step + TICK
    }

    /// A stamp that equals no file's.
    pub(crate) fn unknown(self) -> Self {
        Self { modified: Self::UNKNOWN, ..self }
    }

    pub(crate) fn is_unknown(self) -> bool {
        self.modified == Self::UNKNOWN
    }
}

impl Sighting {
    /// When a reading shows all that was done while the file had this stamp.
    pub(crate) fn settles_at(self) -> Instant {
        self.at + Duration::from_nanos(self.stamp.step().unsigned_abs())
    }
}

fn nanoseconds(seconds: i64, rest: i64) -> i64 {
    seconds.saturating_mul(SECOND).saturating_add(rest)
}

/// Which file systems take their times from the clock of this machine, asked once for each.
#[derive(Default)]
pub(crate) struct Clocks {
    known: Vec<(u64, bool)>,
    #[cfg(test)]
    are_elsewhere: bool,
}

impl Clocks {
    /// The beginning of a reading of an open file.
    pub(crate) fn reading(&mut self, file: &File) -> Reading {
        let by_its_clock = self.is_ours(file).then(SystemTime::now);
        Reading { at: Instant::now(), by_its_clock }
    }

    /// As if all files lay on other machines.
    #[cfg(test)]
    pub(crate) fn of_other_machines() -> Self {
        Self { known: Vec::new(), are_elsewhere: true }
    }

    fn is_ours(&mut self, file: &File) -> bool {
        #[cfg(test)]
        if self.are_elsewhere {
            return false;
        }
        let Ok(device) = fstat(file).map(|stat| stat.st_dev) else { return false };
        if let Some((_, is_ours)) = self.known.iter().find(|(known, _)| *known == device) {
            return *is_ours;
        }
        let is_ours = fstatfs(file).is_ok_and(|system| OURS.contains(&(system.f_type as u32)));
        self.known.push((device, is_ours));
        is_ours
    }
}

/// The file systems that run in this kernel on storage of its own, by the numbers of `statfs(2)`. Of all others (network
/// and user-space file systems, folders that a virtual machine shares with its host) somebody else may set the times.
const OURS: [u32; 20] = [
    0x0000_4d44, // FAT
    0x0000_482b, // HFS+
    0x0000_3434, // NILFS
    0x0000_9660, // ISO 9660
    0x0000_ef53, // ext2, ext3, ext4
    0x0102_1994, // tmpfs
    0x1501_3346, // UDF
    0x2011_bab0, // exFAT
    0x2fc1_2fc1, // ZFS
    0x3153_464a, // JFS
    0x5265_4973, // ReiserFS
    0x5846_5342, // XFS
    0x7366_746e, // NTFS
    0x7371_7368, // SquashFS
    0x794c_7630, // overlayfs
    0x8584_58f6, // ramfs
    0x9123_683e, // Btrfs
    0xca45_1a4e, // bcachefs
    0xe0f5_e1e2, // EROFS
    0xf2f5_2010, // F2FS
];

#[cfg(test)]
mod tests {
    use super::*;

    /// A file that was last changed at a time.
    fn stamp(touched: i64) -> Stamp {
        Stamp { size: 3, modified: touched - 7 * SECOND, inode: 1, touched }
    }

    fn at(nanoseconds: i64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_nanos(nanoseconds.unsigned_abs())
    }

    const NOW: i64 = 1_900_000_000 * SECOND;
    const MILLISECOND: i64 = SECOND / 1000;

    #[test]
    fn a_stamp_is_trusted_once_the_clock_that_gave_it_has_moved_on_by_one_of_its_steps() {
        let fine = 123_456_789;
        for (touched, settles_after) in [
            // Nanoseconds, by the tick.
            (NOW + fine, 20 * MILLISECOND),
            // Steps of 10 and 100 milliseconds.
            (NOW + 120 * MILLISECOND, 30 * MILLISECOND),
            (NOW + 100 * MILLISECOND, 120 * MILLISECOND),
            // Whole seconds, of which some file systems count every other.
            (NOW, 2020 * MILLISECOND),
        ] {
            for (after, is_settled) in [(0, false), (settles_after, false), (settles_after + 1, true)] {
                let by_its_clock = Some(at(touched + after));
                let reading = Reading { at: Instant::now(), by_its_clock };
                assert_eq!(stamp(touched).is_settled(reading, None), is_settled, "{touched} {after}");
            }
        }
    }

    #[test]
    fn of_a_clock_elsewhere_only_how_long_a_stamp_was_seen_counts() {
        let begin = Instant::now();
        for (touched, settles_after) in [(NOW + 123_456_789, 20), (NOW, 2020)] {
            let stamp = stamp(touched);
            let seen = Some(Sighting { stamp, at: begin });
            let reading = |after| Reading { at: begin + Duration::from_millis(after), by_its_clock: None };
            // A server that is years behind, or ahead, gives times that say nothing here.
            assert!(!stamp.is_settled(reading(settles_after - 1), seen));
            assert!(stamp.is_settled(reading(settles_after), seen));
            assert!(!stamp.is_settled(reading(settles_after), None));
            let other = Sighting { stamp: Stamp { touched: touched - 1, ..stamp }, at: begin };
            assert!(!stamp.is_settled(reading(settles_after), Some(other)));
        }
    }

    #[test]
    fn a_time_in_the_future_is_trusted_once_it_was_seen_for_long_enough() {
        let begin = Instant::now();
        let stamp = stamp(NOW + 3600 * SECOND);
        let reading = |after| Reading {
            at: begin + Duration::from_millis(after),
            by_its_clock: Some(at(NOW + i64::try_from(after).expect("small") * MILLISECOND)),
        };
        let seen = Some(Sighting { stamp, at: begin });
        assert!(!stamp.is_settled(reading(0), seen));
        assert!(stamp.is_settled(reading(2020), seen));
    }

    #[test]
    fn temporary_files_lie_on_a_file_system_whose_clock_is_told() {
        let file = tempfile::tempfile().expect("a file");
        let mut clocks = Clocks::default();
        let first = clocks.reading(&file).by_its_clock.is_some();
        assert_eq!(clocks.reading(&file).by_its_clock.is_some(), first);
        assert_eq!(clocks.known.len(), 1);
    }
}
