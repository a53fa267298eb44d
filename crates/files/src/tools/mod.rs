//! The tools, one a file.

mod arguments;
mod file_create;
mod file_list;
mod file_move;
mod file_read;
mod file_remove;
mod text_append;
mod text_edit;
mod text_insert;
mod text_read;
mod text_replace;
mod text_substitute;

use std::{cell::Cell, sync::Arc};

use pintle_contract::{Annotations, ClientHints, Fault};
use pintle_tool::{CallContext, DynTool, ToolOutput, erase};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    diff,
    files::{self, Files, Paths},
    planning::Planning,
    store::{Store, StoreError, Terms},
    text::{Change, Problem, Replace},
};

pub(crate) fn all(files: &Arc<Files>) -> Vec<Arc<dyn DynTool>> {
    let files = || Arc::clone(files);
    vec![
        erase(file_create::FileCreate(files())),
        erase(file_list::FileList(files())),
        erase(file_move::FileMove(files())),
        erase(file_read::FileRead(files())),
        erase(file_remove::FileRemove(files())),
        erase(text_append::TextAppend(files())),
        erase(text_edit::TextEdit(files())),
        erase(text_insert::TextInsert(files())),
        erase(text_read::TextRead(files())),
        erase(text_replace::TextReplace(files())),
        erase(text_substitute::TextSubstitute(files())),
    ]
}

/// Annotations of a tool that changes a file whose hash the caller gives.
const GUARDED_EDIT: Annotations = Annotations {
    read_only_hint: false,
    destructive_hint: true,
    idempotent_hint: false,
    open_world_hint: false,
};

/// Client hints of the tools that nearly every task needs.
const ALWAYS_LOAD: ClientHints = ClientHints { always_load: true, max_result_chars: None };

/// Annotations of a tool that only adds content.
const ADDITION: Annotations = Annotations {
    read_only_hint: false,
    destructive_hint: false,
    idempotent_hint: false,
    open_world_hint: false,
};

/// The result of an edit of lines.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Edited {
    /// The hash of the file as it is now; the next edit takes it.
    hash: String,
    /// How many lines the file has now.
    total_lines: u64,
    /// What has changed, if `diff` was true.
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<String>,
}

impl ToolOutput for Edited {}

/// An edit of one file, as it was asked for.
struct LineEdit {
    path: String,
    hash: String,
    change: Change,
    /// What the caller wrote for `lines`, if it was `"3-7"`.
    written: Option<String>,
    /// Whether to show what has changed.
    diff: bool,
}

/// Edits lines if the file still has the expected hash (compare-and-swap).
async fn edit_lines(files: &Arc<Files>, call: &CallContext, edit: LineEdit) -> Result<Edited, Fault> {
    let (path, expected) = (files::path(&edit.path)?, files::tag(&edit.hash)?);
    let work = move |store: &dyn Store, paths: &Paths, terms: &Terms<'_>| {
        let (changes, used) = ([edit.change], Cell::default());
        // Behind a link, the diff is of the file that it leads to.
        let resolved = if edit.diff { store.resolve(&paths.path, terms).ok() } else { None };
        let shown = resolved.as_ref().unwrap_or(&paths.path);
        let mut planning = Planning::new(shown, &changes, &expected, &used, edit.diff);
        let swapped =
            store.swap(&paths.path, &expected, &mut |source| planning.plan(source, terms.has_ended), terms);
        let hash = swapped.map_err(|error| {
            let problem = planning.problems.pop();
            match problem.filter(|_| matches!(error, StoreError::Stale(_) | StoreError::Refused(_))) {
                Some(Problem { fault, .. }) => match (&edit.written, &changes) {
                    (Some(written), [Change::Replace(Replace { lines: Some(lines), .. })]) => {
                        files::lines_unconfirmed(fault, written, *lines).into()
                    }
                    _ => fault.into(),
                },
                None => error,
            }
        })?;
        let diff = planning.diff.map(|diff| diff::join([diff]));
        Ok(Edited { hash: hash.to_string(), total_lines: planning.total_lines, diff })
    };
    files.with_store(call, path.into(), work).await
}

/// The result of a change of a whole file.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Hashed {
    /// The hash of the file as it is now; the next edit takes it.
    hash: String,
}

impl ToolOutput for Hashed {}
