//! One writer at a time in a folder.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    time::Duration,
};

use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};

use crate::store::StoreError;

/// The lock on a folder, held while this lives. It is the open folder itself that is locked, so writers with
/// nothing else in common meet here; a writer that dies lets go of it.
pub(super) struct Lock(OwnedFd);

impl Lock {
    /// Waits for the lock, as long as anybody waits for the result.
    pub(super) fn take(folder: OwnedFd, has_ended: &dyn Fn() -> bool) -> Result<Self, StoreError> {
        // Others hold it for the time that a write takes.
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
            std::thread::sleep(pause);
            pause = (pause * 2).min(LONGEST);
        }
    }

    /// The lock, if nobody has it.
    pub(super) fn try_take(folder: &OwnedFd) -> Option<Self> {
        let own = reopen(folder).ok()?;
        flock(&own, FlockOperation::NonBlockingLockExclusive).ok()?;
        Some(Self(own))
    }
}

/// The same folder, opened once more: a lock belongs to what was opened, and copies of a handle share it.
fn reopen(folder: &OwnedFd) -> io::Result<OwnedFd> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(folder, ".", flags, Mode::empty())?)
}

impl AsFd for Lock {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
