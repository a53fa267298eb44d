//! The processes of this same program that running commands needs: which of them this one is, is its first argument.

use std::{ffi::OsStr, path::PathBuf, process::ExitCode};

use crate::{supervisor, watcher};

/// The first argument of a process that watches over the commands of a server. It is no word that anyone would type.
pub(crate) const WATCHER_ARGUMENT: &str = "--watch-over-commands";

/// The first argument of a process that supervises one command.
pub(crate) const SUPERVISOR_ARGUMENT: &str = "--supervise-one-command";

/// Is what the first argument says, to its end. `None` if it names no process of this crate.
pub fn act_as(first_argument: Option<&OsStr>) -> Option<ExitCode> {
    match first_argument?.to_str()? {
        WATCHER_ARGUMENT => Some(watcher::watch()),
        SUPERVISOR_ARGUMENT => Some(supervisor::supervise()),
        _ => None,
    }
}

/// The file that runs, whatever has become of its name.
pub(crate) fn own_executable() -> PathBuf {
    match cfg!(target_os = "linux") {
        true => PathBuf::from("/proc/self/exe"),
        false => std::env::current_exe().unwrap_or_default(),
    }
}
