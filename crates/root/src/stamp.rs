//! What distinguishes one version of a file from the next without reading it.
//!
//! Two versions have different stamps only if the clock of the file system has moved on between them. Git calls an entry
//! "racily clean" if its file was changed so shortly before it was read that one more change could leave the same
//! stamp. Such a stamp is not trusted here either: it must be **settled**, which one of two things shows.
//!
//! - The time in it is past by more than the clock's step, by the clock of this machine. That says something only if
//!   the file system takes its times from the same clock; one on another machine may be behind by any amount.
//! - The same stamp was seen longer ago than the clock's step, as measured here. By then the clock that gave it has
//!   moved on, whatever time it shows.
//!
//! How long a clock's step is shows in the times themselves: one that counts whole seconds gives whole seconds.

use std::{
    fs::File,
    io,
    os::fd::AsFd,
    path::Path,
    time::{Duration, Instant, SystemTime},
};

use rustix::{
    fs::{AtFlags, CWD, FileType, Stat, fstat, statat},
    io::Errno,
};

/// Which file it is, its size, and when it was last changed. Times are nanoseconds since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// The number of the device; 0 in a stamp [without one](Self::without_device).
    pub device: u64,
    /// The number of the file on its device.
    pub inode: u64,
    /// How many bytes it has.
    pub size: u64,
    /// When its bytes were last changed (mtime). Programs may set this time.
    pub modified: i64,
    /// When anything about it was last changed (ctime). No program can set this time back.
    pub changed: i64,
}

/// A stamp, and when it was first seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// The stamp.
    pub stamp: Stamp,
    /// When it was first seen.
    pub at: Instant,
}

/// When the reading of a file began.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    /// By the clock of this process.
    pub at: Instant,
    /// By the clock that the file system takes its times from, if that is the clock of this machine.
    pub by_its_clock: Option<SystemTime>,
}

const SECOND: i64 = 1_000_000_000;
/// The kernel gives files the time of its last tick, of which there are a hundred a second at least.
const TICK: i64 = SECOND / 50;

impl Stamp {
    /// The time of modification of [`Stamp::unknown`].
    const UNKNOWN: i64 = i64::MIN;

    /// Of an open file; an error of kind `InvalidInput` if it is not a regular one.
    pub fn of_file(file: &File) -> io::Result<Self> {
        let stat = fstat(file)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Ok(Self::from_stat(&stat)),
            _ => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    /// Of what stands at a path, a link itself and not what it leads to; `None` if that is not a regular file.
    pub fn of_path(path: &Path) -> io::Result<Option<Self>> {
        let stat = statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW)?;
        let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        Ok(is_file.then(|| Self::from_stat(&stat)))
    }

    /// From what the system says of a file.
    // The types differ from system to system.
    #[allow(clippy::unnecessary_cast)]
    pub fn from_stat(stat: &Stat) -> Self {
        Self {
            device: stat.st_dev as u64,
            inode: stat.st_ino as u64,
            size: u64::try_from(stat.st_size).unwrap_or_default(),
            modified: nanoseconds(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            changed: nanoseconds(stat.st_ctime as i64, stat.st_ctime_nsec as i64),
        }
    }

    /// The same for what outlives a mount: the number of a device changes when its file system is mounted again, and an
    /// index that kept it would have to read all files again. Git leaves it out, too.
    #[must_use]
    pub fn without_device(self) -> Self {
        Self { device: 0, ..self }
    }

    /// Whether two stamps differ at most in the time of the last change of anything, which a rename changes as well.
    pub fn has_same_content(self, other: Self) -> bool {
        Self { changed: other.changed, ..self } == other
    }

    /// Whether every change after a reading shows. The file must have had this stamp when the reading began; `seen` is
    /// when a stamp of the file was seen before that.
    pub fn is_settled(self, reading: Reading, seen: Option<Sighting>) -> bool {
        let is_past = |now: SystemTime| {
            let now = now.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_nanos() as i64);
            self.latest().saturating_add(self.step()) < now
        };
        let is_old = |seen: Sighting| seen.stamp == self && reading.at >= seen.settles_at();
        reading.by_its_clock.is_some_and(is_past) || seen.is_some_and(is_old)
    }

    fn latest(self) -> i64 {
        self.modified.max(self.changed)
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
    #[must_use]
    pub fn unknown(self) -> Self {
        Self { modified: Self::UNKNOWN, ..self }
    }

    /// Whether this equals no file's.
    pub fn is_unknown(self) -> bool {
        self.modified == Self::UNKNOWN
    }
}

impl Sighting {
    /// When a reading shows all that was done while the file had this stamp.
    pub fn settles_at(self) -> Instant {
        self.at + Duration::from_nanos(self.stamp.step().unsigned_abs())
    }
}

fn nanoseconds(seconds: i64, rest: i64) -> i64 {
    seconds.saturating_mul(SECOND).saturating_add(rest)
}

/// Which file or folder an open one is, whatever its path, by device and inode: two handles with the same identity are
/// the same file.
pub fn identity(open: impl AsFd) -> Result<(u64, u64), Errno> {
    fstat(open).map(|stat| (stat.st_dev, stat.st_ino))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file that was last changed at a time.
    fn stamp(changed: i64) -> Stamp {
        Stamp { size: 3, modified: changed - 7 * SECOND, inode: 1, device: 1, changed }
    }

    fn at(nanoseconds: i64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_nanos(nanoseconds.unsigned_abs())
    }

    const NOW: i64 = 1_900_000_000 * SECOND;
    const MILLISECOND: i64 = SECOND / 1000;

    #[test]
    fn a_stamp_is_trusted_once_the_clock_that_gave_it_has_moved_on_by_one_of_its_steps() {
        let fine = 123_456_789;
        for (changed, settles_after) in [
            // Nanoseconds, by the tick.
            (NOW + fine, 20 * MILLISECOND),
            // Steps of 10 and 100 milliseconds.
            (NOW + 120 * MILLISECOND, 30 * MILLISECOND),
            (NOW + 100 * MILLISECOND, 120 * MILLISECOND),
            // Whole seconds, of which some file systems count every other.
            (NOW, 2020 * MILLISECOND),
        ] {
            for (after, is_settled) in [(0, false), (settles_after, false), (settles_after + 1, true)] {
                let by_its_clock = Some(at(changed + after));
                let reading = Reading { at: Instant::now(), by_its_clock };
                assert_eq!(stamp(changed).is_settled(reading, None), is_settled, "{changed} {after}");
            }
        }
    }

    #[test]
    fn of_a_clock_elsewhere_only_how_long_a_stamp_was_seen_counts() {
        let begin = Instant::now();
        for (changed, settles_after) in [(NOW + 123_456_789, 20), (NOW, 2020)] {
            let stamp = stamp(changed);
            let seen = Some(Sighting { stamp, at: begin });
            let reading = |after| Reading { at: begin + Duration::from_millis(after), by_its_clock: None };
            // A server that is years behind, or ahead, gives times that say nothing here.
            assert!(!stamp.is_settled(reading(settles_after - 1), seen));
            assert!(stamp.is_settled(reading(settles_after), seen));
            assert!(!stamp.is_settled(reading(settles_after), None));
            let other = Sighting { stamp: Stamp { changed: changed - 1, ..stamp }, at: begin };
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
}
