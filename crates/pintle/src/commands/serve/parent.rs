//! Whether the process that started the server is still there.
//!
//! A client that is killed closes its pipes, and the server ends. But its ends of the pipes may have been inherited by
//! other processes, which hold them open: then nobody will ever send a request, and the server would stay for ever.

use std::{io, os::fd::OwnedFd};

use rustix::{
    event::{PollFd, PollFlags, poll},
    fs::{FileType, fstat},
    process::{Pid, getppid},
};

/// Waits, in a thread of its own, until the process that started this one has ended, and acts on it. Only if standard
/// input and output are pipes, and if there is such a process: what was started by the system itself serves on.
pub(super) fn on_end(act: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let is_client = is_pipe(rustix::stdio::stdin()) && is_pipe(rustix::stdio::stdout());
    let Some(parent) = getppid().filter(|parent| is_client && *parent != Pid::INIT) else { return Ok(()) };
    let Some(watched) = open(parent) else {
        // Where the system has no descriptor of a process, the end of the pipes has to do.
        if getppid() != Some(parent) {
            act();
        }
        return Ok(());
    };
    let wait = move || {
        // It may have ended before it was watched, and its number may be another's.
        while getppid() == Some(parent) {
            match poll(&mut [PollFd::new(&watched, PollFlags::IN)], None) {
                Ok(_) => break,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return,
            }
        }
        act();
    };
    std::thread::Builder::new().name("pintle-parent".into()).spawn(wait)?;
    Ok(())
}

#[cfg(target_os = "linux")]
fn open(process: Pid) -> Option<OwnedFd> {
    rustix::process::pidfd_open(process, rustix::process::PidfdFlags::empty()).ok()
}

#[cfg(not(target_os = "linux"))]
fn open(_: Pid) -> Option<OwnedFd> {
    None
}

/// Clients connect with pipes or, some of them, with pairs of sockets.
fn is_pipe(stream: rustix::fd::BorrowedFd<'_>) -> bool {
    let kind = fstat(stream).map(|stat| FileType::from_raw_mode(stat.st_mode));
    matches!(kind, Ok(FileType::Fifo | FileType::Socket))
}
