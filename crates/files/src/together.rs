//! Several files that one call changes: all of them or none, and what the caller is told about it.

use pintle_contract::{ErrorCode, Fault, WorkspacePath};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    fault::{fault, without_nothing_was_done},
    hash::Hash,
    store::{ChangeKind, ChangeSetError, FileChange, Store, StoreError, Terms},
};

/// A file that a call has changed, or would change.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct EditedFile {
    /// Its path.
    pub(crate) path: String,
    /// Its hash after the edits; the next edit takes it.
    pub(crate) hash: String,
    /// How many lines it has then.
    pub(crate) total_lines: u64,
    /// How many places of it are changed.
    pub(crate) changes: u64,
}

/// What a call has done, or would do.
pub(crate) struct Done {
    pub(crate) files: Vec<EditedFile>,
    pub(crate) diff: String,
}

/// Changes all files, or none of them. One file needs no journal.
pub(crate) fn change_together(
    store: &dyn Store,
    terms: &Terms<'_>,
    mut changes: Vec<FileChange<'_>>,
    accept: &mut dyn FnMut() -> Result<(), Fault>,
    dry_run: bool,
) -> Result<Vec<Hash>, ChangeSetError> {
    match changes.as_mut_slice() {
        [] => accept().map(|()| Vec::new()).map_err(|fault| ChangeSetError::Whole(fault.into())),
        [FileChange { path, kind }] if !dry_run => change_one(store, terms, (path, kind), accept)
            .map(|hash| vec![hash])
            .map_err(|error| ChangeSetError::Files(vec![(0, error)])),
        several => store.change_set(several, accept, dry_run, terms),
    }
}

fn change_one(
    store: &dyn Store,
    terms: &Terms<'_>,
    (path, kind): (&WorkspacePath, &mut ChangeKind<'_>),
    accept: &mut dyn FnMut() -> Result<(), Fault>,
) -> Result<Hash, StoreError> {
    match kind {
        ChangeKind::Create(content) => {
            accept()?;
            store.create(path, content, terms)
        }
        ChangeKind::Edit { expected, plan } => {
            let mut accepted = |source: &dyn crate::store::Source| {
                let plan = plan(source)?;
                accept()?;
                Ok(plan)
            };
            store.swap(path, expected, &mut accepted, terms)
        }
    }
}

/// What is wrong with a file, or with one edit of it.
pub(crate) struct FileProblem {
    /// The number of the edit, if there are several.
    pub(crate) entry: Option<usize>,
    /// The path, as it is written.
    pub(crate) path: String,
    pub(crate) fault: Fault,
}

/// How many problems the message has; the details have all.
const SHOWN: usize = 3;

/// One error for all problems. Its code is that of the first, unless something is forbidden.
pub(crate) fn all_problems(problems: &[FileProblem]) -> Fault {
    let codes = || problems.iter().map(|problem| problem.fault.code);
    let is_forbidden = codes().any(|code| code == ErrorCode::Forbidden);
    let code =
        if is_forbidden { ErrorCode::Forbidden } else { codes().next().unwrap_or(ErrorCode::Internal) };
    let shown = problems.iter().take(SHOWN).map(|FileProblem { entry, path, fault }| {
        // The whole message begins with it.
        let message = without_nothing_was_done(&fault.message);
        match entry {
            Some(entry) => format!("edit {entry} (`{}`): {message}", shorten(path)),
            None => format!("`{}`: {message}", shorten(path)),
        }
    });
    let shown = shown.collect::<Vec<_>>().join("; ");
    let more = match problems.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    let errors: Vec<Value> = problems.iter().map(details).collect();
    let took_effect = problems.iter().any(|problem| problem.fault.took_effect);
    let nothing = if took_effect { "" } else { "nothing was done: " };
    let error = Fault::new(code, format!("{nothing}{shown}{more}")).details(json!({"errors": errors}));
    let error = if took_effect { error.after_effect() } else { error };
    match problems {
        [FileProblem { fault, .. }] => match &fault.hint {
            Some(hint) => error.hint(hint.clone()),
            None => error,
        },
        [FileProblem { entry: Some(_), .. }, ..] => {
            error.hint("`details.errors` has each of them, with what to do; edits are counted from 0")
        }
        _ => error.hint("`details.errors` has each of them, with what to do"),
    }
}

fn details(problem: &FileProblem) -> Value {
    let FileProblem { entry, path, fault } = problem;
    let mut shown =
        json!({"path": path.trim_start_matches('/'), "code": fault.code, "message": fault.message});
    if let Some(entry) = entry {
        shown["entry"] = json!(entry);
    }
    if let Some(hint) = &fault.hint {
        shown["hint"] = json!(hint);
    }
    if let Some(details) = &fault.details {
        shown["details"] = details.clone();
    }
    shown
}

fn shorten(path: &str) -> String {
    const MOST: usize = 80;
    match path.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &path[..end]),
        None => path.to_owned(),
    }
}

/// The error of a change set that could not be undone in every file.
pub(crate) fn not_undone(
    path: Option<&WorkspacePath>,
    error: StoreError,
    undone: &[WorkspacePath],
    (kept, is_tried_again): (&[(WorkspacePath, String)], bool),
) -> Fault {
    let root = WorkspacePath::root();
    let cause = fault(error, path.unwrap_or(&root));
    let code = match cause.code {
        ErrorCode::UpstreamFailed => ErrorCode::UpstreamFailed,
        _ => ErrorCode::Conflict,
    };
    let cause = without_nothing_was_done(&cause.message);
    let shown = |path: &WorkspacePath| path.as_str().to_owned();
    let named: Vec<String> = kept.iter().map(|(path, reason)| format!("{path} ({reason})")).collect();
    let message = format!(
        "the edits could not be completed: {cause}. They were undone, except in {}",
        named.join(", ")
    );
    let kept: Vec<Value> =
        kept.iter().map(|(path, reason)| json!({"path": shown(path), "reason": reason})).collect();
    let hint = match is_tried_again {
        true => {
            "they are tried again with every call, and cannot be edited until then; check_status says what stands in the way"
        }
        false => "read the files in `details.kept` again before you continue",
    };
    Fault::new(code, message)
        .hint(hint)
        .details(json!({"undone": undone.iter().map(shown).collect::<Vec<_>>(), "kept": kept}))
        .after_effect()
}
