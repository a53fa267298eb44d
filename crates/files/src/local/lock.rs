//! The lock on a folder (`flock`), which allows one writer at a time, across processes.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    time::{Duration, Instant},
};

use rustix::{
    fs::{FlockOperation, flock, major, minor},
    io::Errno,
};

use crate::store::StoreError;

/// How long a call waits for a lock. A writer holds it only for the time of one write; a program that holds it longer
/// locks folders for reasons of its own.
pub(super) const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// The lock on a folder, released when dropped. The open folder itself is locked, so all servers on this folder share
/// the lock whatever their state folders, and the kernel releases it when a writer dies.
pub(super) struct Lock(OwnedFd);

impl Lock {
    /// Waits for the lock until it is free, the call is cancelled, or [`LOCK_TIMEOUT`] has passed.
    pub(super) fn take(folder: OwnedFd, has_ended: &dyn Fn() -> bool) -> Result<Self, StoreError> {
        Self::take_until(folder, Instant::now() + LOCK_TIMEOUT, has_ended)
    }

    /// The same, until a deadline.
    pub(super) fn take_until(
        folder: OwnedFd,
        deadline: Instant,
        has_ended: &dyn Fn() -> bool,
    ) -> Result<Self, StoreError> {
        const FIRST: Duration = Duration::from_micros(50);
        const LONGEST: Duration = Duration::from_millis(5);
        let mut pause = FIRST;
        loop {
            match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Self(folder)),
                Err(Errno::WOULDBLOCK | Errno::INTR) => {}
                Err(error) => return Err(StoreError::Io(error.into())),
            }
            if has_ended() {
                return Err(StoreError::Ended);
            }
            if Instant::now() > deadline {
                return Err(StoreError::Locked(holder(&folder)));
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(LONGEST);
        }
    }

    /// Gives the lock up, and keeps the folder open.
    pub(super) fn release(self) -> OwnedFd {
        let _ = flock(&self.0, FlockOperation::Unlock);
        self.0
    }

    /// Takes the lock if it is free.
    pub(super) fn try_take(folder: &OwnedFd) -> Option<Self> {
        let own = reopen(folder).ok()?;
        flock(&own, FlockOperation::NonBlockingLockExclusive).ok()?;
        Some(Self(own))
    }
}

/// Opens the same folder again, because a `flock` belongs to the open file description, which duplicates share.
fn reopen(folder: &OwnedFd) -> io::Result<OwnedFd> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(folder, ".", flags, Mode::empty())?)
}

/// The process that holds the lock on a folder, from `/proc/locks`, if the system has it.
fn holder(folder: &OwnedFd) -> Option<u32> {
    let stat = rustix::fs::fstat(folder).ok()?;
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    holder_among(&locks, (major(stat.st_dev), minor(stat.st_dev)), stat.st_ino)
}

/// Reads lines such as `1: FLOCK  ADVISORY  WRITE 1234 08:02:131077 0 EOF`. Waiting processes have `->` before the kind.
fn holder_among(locks: &str, device: (u32, u32), inode: u64) -> Option<u32> {
    let file = format!("{:02x}:{:02x}:{inode}", device.0, device.1);
    let mut found = locks.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [_, "FLOCK", _, _, process, locked, ..] if locked == file => process.parse().ok(),
            _ => None,
        }
    });
    // The kernel reports 0 for a process of another namespace.
    found.find(|process| *process != 0)
}

impl AsFd for Lock {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_of_a_lock_is_read_from_the_systems_table() {
        let locks = "1: POSIX  ADVISORY  WRITE 10 08:02:77 0 EOF\n\
                     2: FLOCK  ADVISORY  WRITE 11 08:02:78 0 EOF\n\
                     3: FLOCK  ADVISORY  READ  0 fe:10:77 0 EOF\n\
                     3: -> FLOCK  ADVISORY  WRITE 12 fe:10:77 0 EOF\n\
                     4: FLOCK  ADVISORY  READ  13 fe:10:77 0 EOF\n\
                     5: LEASE  ACTIVE    READ  14 fe:10:78 0 EOF\nnonsense\n";
        assert_eq!(holder_among(locks, (0xfe, 0x10), 77), Some(13));
        assert_eq!(holder_among(locks, (8, 2), 78), Some(11));
        assert_eq!(holder_among(locks, (8, 2), 77), None, "another kind of lock");
        assert_eq!(holder_among(locks, (0xfe, 0x10), 78), None);
    }
}
