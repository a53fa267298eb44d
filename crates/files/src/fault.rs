//! What a caller is told when a store did not do what it was asked to.

use std::io;

use pintle_contract::{ErrorCode, Fault, WorkspacePath};
use pintle_root::{failure_reason, storage_failed};
use rustix::io::Errno;
use serde_json::json;

use crate::{files::stale, store::StoreError};

/// The fault of the path that a file was to move to.
pub(crate) fn target_fault(error: StoreError, to: &WorkspacePath) -> Fault {
    let is_folder = matches!(error, StoreError::IsFolder);
    let fault = fault(error, to);
    if is_folder { fault.hint("give the file's new name in it, too") } else { fault }
}

/// The fault of a file or a folder.
pub(crate) fn fault(error: StoreError, path: &WorkspacePath) -> Fault {
    let invalid = |message: String| Fault::new(ErrorCode::InvalidRequest, message);
    match error {
        StoreError::NotFound => Fault::new(ErrorCode::NotFound, format!("there is nothing at {path}")),
        StoreError::IsFile => invalid(format!("{path} is a file, not a folder"))
            .hint("text.read gives its lines, file.read its bytes"),
        StoreError::IsFolder => {
            invalid(format!("{path} is a folder")).hint("file.list shows what lies in it")
        }
        StoreError::NotFolder => invalid(format!("{path} leads through something that is not a folder")),
        StoreError::Special => {
            invalid(format!("{path} is neither a file nor a folder, or has no name in text"))
        }
        StoreError::Escapes => {
            invalid(format!("{path} is or passes a link that leaves the root or leads in a circle"))
        }
        StoreError::Exists => {
            Fault::new(ErrorCode::Conflict, format!("{path} is there already; nothing was done"))
                .hint("read it and edit it, or choose another name")
        }
        StoreError::Stale(found) => stale(found, false),
        StoreError::Changed => {
            let message =
                format!("{path} was changed by another program in this very moment; nothing was done");
            Fault::new(ErrorCode::Conflict, message).hint("read it again and decide anew")
        }
        StoreError::Kept(kept) => {
            let message = format!(
                "{path} was saved by another program in this very moment, and that save could not go back to its name; it was kept as {kept}"
            );
            Fault::new(ErrorCode::Conflict, message)
                .hint(format!("a person has to compare {path} with {kept}"))
                .details(json!({"reason": "kept", "kept": kept}))
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
                .hint("repeat the call when that program has finished, or end it")
                .details(details)
        }
        StoreError::Unsteady => {
            let message = format!("what {path} leads to changes again and again; nothing was done");
            Fault::new(ErrorCode::Conflict, message).hint("repeat the call")
        }
        StoreError::OtherFileSystem => {
            invalid(format!("{path} lies on another file system, where a file cannot move in one step"))
                .hint("create the file there, then remove the old one")
        }
        StoreError::NameTooLong => invalid(format!("{path} has a name that is too long for this system")),
        StoreError::Target(error) => fault(*error, path),
        StoreError::Blocked => {
            let message =
                format!("{path} cannot be changed: something in its folder has the name .pintle-tmp");
            Fault::new(ErrorCode::Forbidden, message).hint("a person has to move that away")
        }
        StoreError::Reserved => invalid(format!("{path} has a name that is kept for unfinished files")),
        StoreError::Refused(fault) => fault,
        StoreError::Ended => Fault::new(ErrorCode::Cancelled, "nobody waits for the result any more"),
        StoreError::Io(error) => system_fault(&error, path),
        StoreError::NotDurable(error) => {
            let message = format!(
                "{path} was changed, but the system could not say that the change is on the disk: {error}"
            );
            storage_failed(message, &error)
                .hint("read it again before you go on; the disk may be failing or full")
        }
    }
}

/// The fault of a system that would not. Nothing was done.
fn system_fault(error: &io::Error, path: &WorkspacePath) -> Fault {
    use io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    if let PermissionDenied | ReadOnlyFilesystem = error.kind() {
        let message = format!("the system does not let the server use {path}: {error}");
        return Fault::new(ErrorCode::Forbidden, message);
    }
    // These say that the call itself was wrong.
    if let Some(Errno::INVAL | Errno::BADF | Errno::FAULT) = Errno::from_io_error(error) {
        return Fault::internal(format!("{path} could not be used: {error}"));
    }
    let (message, hint) = match failure_reason(error) {
        "no_space" => (
            format!("there is no space left to write {path}: {error}; nothing was done"),
            "free some space, or raise the quota, on the disk that holds the workspace; then repeat the call",
        ),
        _ => (
            format!("the file system failed at {path}: {error}; nothing was done"),
            "repeat the call; if it fails again, a person has to look at the disk and the limits of the server",
        ),
    };
    storage_failed(message, error).hint(hint)
}
