//! What is wrong with the entries of a batch: all of it in one error.

use pintle_contract::{ErrorCode, Fault};
use serde_json::json;

use super::{BatchEntry, BatchFile, Kind};
use crate::{
    fault::fault,
    files::{Files, lines_unconfirmed},
    store::{Store, StoreError, Terms},
    text::{Change, Replace},
    together::{FileProblem, all_problems},
};

/// What is wrong with which entries.
pub(super) struct Problems<'a> {
    entries: &'a [BatchEntry],
    found: Vec<(usize, Fault)>,
}

impl<'a> Problems<'a> {
    pub(super) fn new(entries: &'a [BatchEntry]) -> Self {
        Self { entries, found: Vec::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    pub(super) fn push(&mut self, entry: usize, fault: Fault) {
        let of_entry = &self.entries[entry];
        let fault = match (&of_entry.written, &of_entry.change) {
            (
                Some(written),
                Change::Replace(Replace { lines: Some(lines), old: Some(_), all: false, .. }),
            ) => lines_unconfirmed(fault, written, *lines),
            _ => fault,
        };
        self.found.push((entry, fault));
    }

    /// The same is wrong with all of these entries, and whatever else was said of them does not matter.
    pub(super) fn set_for_all(&mut self, entries: &[usize], fault: &Fault) {
        self.found.retain(|(entry, _)| !entries.contains(entry));
        self.found.extend(entries.iter().map(|entry| (*entry, fault.clone())));
    }

    /// One error for all of them. Its code is that of the first, unless something is forbidden.
    pub(super) fn into_fault(mut self) -> Fault {
        self.found.sort_by_key(|(entry, _)| *entry);
        let problem = |(entry, fault): (usize, Fault)| FileProblem {
            entry: Some(entry),
            path: self.entries[entry].path.clone(),
            fault,
        };
        all_problems(&self.found.into_iter().map(problem).collect::<Vec<_>>())
    }
}

/// What is wrong with a file.
pub(super) fn of_file(
    files: &Files,
    store: &dyn Store,
    terms: &Terms<'_>,
    file: &BatchFile<'_>,
    error: StoreError,
) -> Fault {
    match (&file.kind, error) {
        (Kind::Create(_), StoreError::Exists) => {
            Fault::new(ErrorCode::Conflict, format!("{} already exists", file.path))
                .hint("give its hash to append, or choose another path to create a file")
        }
        (Kind::Create(_), error) => fault(error, &file.path),
        (Kind::Edit { .. }, error) => files.fault(error, &file.path, store, terms),
    }
}

/// A fault that is about another edit, too, with its number.
pub(super) fn naming(fault: Fault, other: Option<usize>) -> Fault {
    let Some(other) = other else { return fault };
    let message = format!("{} (edit {other})", fault.message);
    let mut details = fault.details.clone().unwrap_or_else(|| json!({}));
    details["otherEntry"] = json!(other);
    fault.with_message(message).details(details)
}

pub(super) fn no_hash() -> Fault {
    Fault::new(
        ErrorCode::InvalidRequest,
        "`hash` is missing: one of the edits of each file must have the hash of the version that was read",
    )
    .hint("text.read, file.read, search, show_file and every edit return a file's hash")
}

pub(super) fn created_twice(first: usize) -> Fault {
    Fault::new(
        ErrorCode::InvalidRequest,
        format!("the file is created by edit {first} already, which has to have all of its content"),
    )
    .hint("join the two; or, if the file exists, give its hash to append")
}

pub(super) fn two_hashes(first: usize) -> Fault {
    Fault::new(
        ErrorCode::InvalidRequest,
        format!("`hash` is another one than in edit {first}, which is about the same file"),
    )
    .hint("all edits of a file mean one version of it; read it again")
}
