//! What is wrong with the entries of a batch: all of it in one error.

use pintle_contract::{ErrorCode, Fault, WorkspacePath};
use serde_json::{Value, json};

use super::{BatchEntry, BatchFile, Kind};
use crate::{
    fault::fault,
    files::{Files, lines_unconfirmed},
    store::{Store, StoreError, Terms},
    text::{Change, Replace},
};

/// How many problems the message has; the details have all.
const SHOWN: usize = 3;

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
            (Some(written), Change::Replace(Replace { lines: Some(lines), old: Some(_), .. })) => {
                lines_unconfirmed(fault, written, *lines)
            }
            _ => fault,
        };
        self.found.push((entry, fault));
    }

    pub(super) fn extend(&mut self, found: impl IntoIterator<Item = (usize, Fault)>) {
        found.into_iter().for_each(|(entry, fault)| self.push(entry, fault));
    }

    /// One error for all of them. Its code is that of the first, unless something is forbidden.
    pub(super) fn into_fault(mut self) -> Fault {
        self.found.sort_by_key(|(entry, _)| *entry);
        let codes = || self.found.iter().map(|(_, fault)| fault.code);
        let is_forbidden = codes().any(|code| code == ErrorCode::Forbidden);
        let code =
            if is_forbidden { ErrorCode::Forbidden } else { codes().next().unwrap_or(ErrorCode::Internal) };
        let shown = self.found.iter().take(SHOWN).map(|(entry, fault)| {
            format!("edit {entry} (`{}`): {}", shorten(&self.entries[*entry].path), fault.message)
        });
        let shown = shown.collect::<Vec<_>>().join("; ");
        let more = match self.found.len().saturating_sub(SHOWN) {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        let errors: Vec<Value> = self.found.iter().map(|(entry, fault)| self.shown(*entry, fault)).collect();
        let took_effect = self.found.iter().any(|(_, fault)| fault.took_effect);
        let nothing = if took_effect { "" } else { "nothing was done: " };
        let error = Fault::new(code, format!("{nothing}{shown}{more}")).details(json!({"errors": errors}));
        let error = if took_effect { error.after_effect() } else { error };
        match self.found.as_slice() {
            [(_, fault)] => match &fault.hint {
                Some(hint) => error.hint(hint.clone()),
                None => error,
            },
            _ => error.hint("`details.errors` has each of them, with what to do; edits are counted from 0"),
        }
    }

    fn shown(&self, entry: usize, fault: &Fault) -> Value {
        let path = self.entries[entry].path.trim_start_matches('/');
        let mut shown = json!({"entry": entry, "path": path, "code": fault.code, "message": fault.message});
        if let Some(hint) = &fault.hint {
            shown["hint"] = json!(hint);
        }
        if let Some(details) = &fault.details {
            shown["details"] = details.clone();
        }
        shown
    }
}

fn shorten(path: &str) -> String {
    const MOST: usize = 80;
    match path.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &path[..end]),
        None => path.to_owned(),
    }
}

/// What is wrong with a path.
pub(super) fn of_path(
    files: &Files,
    store: &dyn Store,
    terms: &Terms<'_>,
    path: &WorkspacePath,
    error: StoreError,
) -> Fault {
    match error {
        StoreError::NotFound => files.not_found(path, store, terms),
        error => fault(error, path),
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
        (Kind::Edit { .. }, error) => of_path(files, store, terms, &file.path, error),
    }
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

/// The error of a change set that could not be undone in every file.
pub(super) fn not_undone(
    path: Option<&WorkspacePath>,
    cause: StoreError,
    undone: &[WorkspacePath],
    kept: &[(WorkspacePath, String)],
) -> Fault {
    let code = match cause {
        StoreError::Io(_) | StoreError::NotDurable(_) => ErrorCode::UpstreamFailed,
        _ => ErrorCode::Conflict,
    };
    let root = WorkspacePath::root();
    let cause = fault(cause, path.unwrap_or(&root)).message.replace("; nothing was done", "");
    let shown = |path: &WorkspacePath| path.as_str().to_owned();
    let named: Vec<String> = kept.iter().map(|(path, reason)| format!("{path} ({reason})")).collect();
    let message = format!(
        "the edits could not be completed: {cause}. They were undone, except in {}",
        named.join(", ")
    );
    let kept: Vec<Value> =
        kept.iter().map(|(path, reason)| json!({"path": shown(path), "reason": reason})).collect();
    Fault::new(code, message)
        .hint("read the files in `details.kept` again before you continue")
        .details(json!({"undone": undone.iter().map(shown).collect::<Vec<_>>(), "kept": kept}))
        .after_effect()
}
