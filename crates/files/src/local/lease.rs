//! Read leases (`F_SETLEASE`): they keep other programs from opening a file for writing while it is replaced.
//!
//! A program that saves by writing into the file, instead of renaming a new one over it, opens the file first and
//! writes a moment later. If the file was replaced in between, the write goes into a file that no longer has a name. Linux
//! lets the owner of a file take a **read lease** on it: that is refused while anybody has the file open for writing, and
//! whoever opens it for writing afterwards waits until the lease is returned. So its holder knows that no write is under
//! way, and learns of one that is about to begin.

use std::{
    fs::File,
    os::fd::AsRawFd,
    time::{Duration, Instant},
};

use libc::c_int;
use rustix::io::Errno;

use crate::store::StoreError;

/// `F_SETSIG` sets the signal that reports a waiting program. The crate `libc` does not define it.
const F_SETSIG: c_int = 10;

/// How long to wait for a program that has the file open for writing. A save takes milliseconds.
pub(super) const LEASE_TIMEOUT: Duration = Duration::from_secs(1);

/// A read lease on a file, returned when dropped.
pub(super) struct Lease<'a>(&'a File);

impl<'a> Lease<'a> {
    /// Takes a lease on a file that is open for reading only. Returns `None` where leases are not available: for a file
    /// of another user, and on file systems without leases. While another program has the file open for writing this
    /// waits until a deadline; `go_on` can stop the waiting with an error.
    pub(super) fn take(
        file: &'a File,
        deadline: Instant,
        go_on: impl Fn() -> Result<(), StoreError>,
    ) -> Result<Option<Self>, StoreError> {
        const FIRST: Duration = Duration::from_micros(50);
        const LONGEST: Duration = Duration::from_millis(5);
        // By default the kernel reports a waiting program by SIGIO, which would kill this process. SIGURG is ignored
        // by default.
        if control(file, F_SETSIG, libc::SIGURG).is_err() {
            return Ok(None);
        }
        let mut pause = FIRST;
        loop {
            match control(file, libc::F_SETLEASE, libc::F_RDLCK) {
                Ok(_) => return Ok(Some(Self(file))),
                Err(Errno::AGAIN) => {}
                Err(_) => return Ok(None),
            }
            go_on()?;
            if Instant::now() > deadline {
                return Err(StoreError::InUse);
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(LONGEST);
        }
    }

    /// Whether a program is waiting to open the file for writing (a lease break).
    pub(super) fn is_breaking(&self) -> bool {
        !control(self.0, libc::F_GETLEASE, 0).is_ok_and(|lease| lease == libc::F_RDLCK)
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        let _ = control(self.0, libc::F_SETLEASE, libc::F_UNLCK);
    }
}

fn control(file: &File, command: c_int, argument: c_int) -> Result<c_int, Errno> {
    // SAFETY: the descriptor is open as long as `file` is borrowed, and the commands of this module take a number and
    // return a number: the system reads and writes no memory of this process.
    #[allow(unsafe_code)]
    let result = unsafe { libc::fcntl(file.as_raw_fd(), command, argument) };
    if result >= 0 { Ok(result) } else { Err(last_error()) }
}

fn last_error() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}
