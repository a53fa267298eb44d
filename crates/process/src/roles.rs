//! The roles of this program: its first argument says whether it runs as a watcher or a supervisor.

use std::{ffi::OsStr, path::PathBuf, process::ExitCode};

use crate::{supervisor, watcher};

/// The first argument of a watcher process. Nobody would type it by accident.
pub(crate) const WATCHER_ARGUMENT: &str = "--watch-over-commands";

/// The first argument of a supervisor process.
pub(crate) const SUPERVISOR_ARGUMENT: &str = "--supervise-one-command";

/// Runs the role that the first argument names, to its end. `None` if it names none.
pub fn act_as(first_argument: Option<&OsStr>) -> Option<ExitCode> {
    match first_argument?.to_str()? {
        WATCHER_ARGUMENT => Some(watcher::watch()),
        SUPERVISOR_ARGUMENT => Some(supervisor::supervise()),
        _ => None,
    }
}

/// The running executable, even if its file was renamed or removed.
pub(crate) fn own_executable() -> PathBuf {
    match cfg!(target_os = "linux") {
        true => PathBuf::from("/proc/self/exe"),
        false => std::env::current_exe().unwrap_or_default(),
    }
}
