//! Turns a store's errors into faults: an error code, a message and a hint for the caller.

use std::io;

use pintle_contract::{ErrorCode, Fault, WorkspacePath};
use pintle_root::{STAGING_FOLDER, TEMPORARY_FILE, failure_reason, storage_failed};
use rustix::io::Errno;
use serde_json::json;

use crate::{files::stale, store::StoreError};

/// The fault for an error at the target path of a move.
pub(crate) fn target_fault(error: StoreError, to: &WorkspacePath) -> Fault {
    let is_folder = matches!(error, StoreError::IsFolder);
    let fault = fault(error, to);
    if is_folder { fault.hint("add the file's new name to the path") } else { fault }
}

/// What is wrong, as a part of an error after which something was done.
pub(crate) fn cause(error: StoreError, path: &WorkspacePath) -> String {
    without_nothing_was_done(&fault(error, path).message)
}

pub(crate) fn without_nothing_was_done(message: &str) -> String {
    message.replace("; nothing was done", "")
}

/// The fault for an error at a path.
pub(crate) fn fault(error: StoreError, path: &WorkspacePath) -> Fault {
    let invalid = |message: String| Fault::new(ErrorCode::InvalidRequest, message);
    match error {
        StoreError::NotFound => Fault::new(ErrorCode::NotFound, format!("there is nothing at {path}")),
        StoreError::IsFile => invalid(format!("{path} is a file, not a folder"))
            .hint("use text.read for its lines, file.read for its bytes"),
        StoreError::IsFolder => invalid(format!("{path} is a folder")).hint("use file.list for its entries"),
        StoreError::NotFolder => invalid(format!("{path} passes through something that is not a folder")),
        StoreError::Special => {
            invalid(format!("{path} is neither a file nor a folder, or its name is not text"))
        }
        StoreError::Escapes => {
            invalid(format!("{path} is or passes a link that leaves the root or forms a loop"))
        }
        StoreError::Exists => {
            Fault::new(ErrorCode::Conflict, format!("{path} already exists; nothing was done"))
                .hint("read it and edit it, or choose another name")
        }
        StoreError::Stale(_) => stale(),
        StoreError::Changed => {
            let message =
                format!("{path} was changed by another program at the same moment; nothing was done");
            Fault::new(ErrorCode::Conflict, message).hint("read it again before you change it")
        }
        StoreError::Kept(kept) => {
            let message = format!(
                "{path} was saved by another program at the same moment, and that version could not get its name back; it was kept as {kept}"
            );
            Fault::new(ErrorCode::Conflict, message)
                .hint(format!("a person has to compare {path} with {kept}"))
                .details(json!({"reason": "kept", "kept": kept}))
                .after_effect()
        }
        StoreError::InUse => {
            let message = format!("another program has {path} open for writing; nothing was done");
            Fault::new(ErrorCode::Conflict, message)
                .hint("wait until it has saved or close the file there, then read it again")
                .details(json!({"reason": "open_for_writing"}))
        }
        StoreError::Locked(holder) => {
            let by = holder.map_or_else(|| "another program".to_owned(), |pid| format!("process {pid}"));
            let message = format!("the folder of {path} is locked by {by}; nothing was done");
            let mut details = json!({"reason": "locked"});
            if let Some(pid) = holder {
                details["pid"] = json!(pid);
            }
            Fault::new(ErrorCode::Conflict, message)
                .hint("call again when that program has finished, or stop it")
                .details(details)
        }
        StoreError::Unfinished => {
            let message = format!(
                "{path} belongs to a change of several files that was cut off and is not undone yet; nothing was done"
            );
            Fault::new(ErrorCode::Conflict, message)
                .hint("check_status says what stands in the way; it is tried again with every call")
                .details(json!({"reason": "unfinished_change"}))
        }
        StoreError::KeepsChanging => {
            let message = format!("the target of {path} keeps changing; nothing was done");
            Fault::new(ErrorCode::Conflict, message).hint("call again")
        }
        StoreError::OtherFileSystem => {
            invalid(format!("{path} is on another file system, where a file cannot be moved atomically"))
                .hint("create the file there, then remove the old one")
        }
        StoreError::NameTooLong => invalid(format!("{path} has a name that is too long for this system")),
        StoreError::Target(error) => fault(*error, path),
        StoreError::Blocked => {
            let message = format!(
                "{path} cannot be changed: something in its folder has a name that is reserved for temporary files, {TEMPORARY_FILE} or {STAGING_FOLDER}"
            );
            Fault::new(ErrorCode::Forbidden, message).hint("a person has to move it away")
        }
        StoreError::Reserved => invalid(format!("{path} has a name that is reserved for temporary files")),
        StoreError::Refused(fault) | StoreError::RuleBroken(fault) => fault,
        StoreError::Ended => Fault::new(ErrorCode::Cancelled, "the call was cancelled"),
        StoreError::Io(error) => system_fault(&error, path),
        StoreError::NotDurable(error) => {
            let message = format!(
                "{path} was changed, but the system could not confirm that the change is on disk: {error}"
            );
            storage_failed(message, &error)
                .hint("read it again before you continue; the disk may be failing or full")
                .after_effect()
        }
    }
}

/// The fault for an I/O error before anything was changed.
fn system_fault(error: &io::Error, path: &WorkspacePath) -> Fault {
    use io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    if let PermissionDenied | ReadOnlyFilesystem = error.kind() {
        let message = format!("the system refused access to {path}: {error}");
        return Fault::new(ErrorCode::Forbidden, message);
    }
    // These mean that the server made a wrong system call: a bug.
    if let Some(Errno::INVAL | Errno::BADF | Errno::FAULT) = Errno::from_io_error(error) {
        return Fault::internal(format!("{path} could not be used: {error}"));
    }
    let (message, hint) = match failure_reason(error) {
        "no_space" => (
            format!("there is no space left to write {path}: {error}; nothing was done"),
            "free some space, or raise the quota, on the disk that holds the workspace; then call again",
        ),
        _ => (
            format!("the file system failed at {path}: {error}; nothing was done"),
            "call again; if it fails again, a person has to check the disk and the server's limits",
        ),
    };
    storage_failed(message, error).hint(hint)
}
