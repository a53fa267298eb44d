//! The tools, one a file.

mod file_create;
mod file_list;
mod file_move;
mod file_read;
mod file_remove;
mod text_append;
mod text_insert;
mod text_read;
mod text_replace;

use std::sync::Arc;

use pintle_contract::{Annotations, ClientHints, Fault};
use pintle_tool::{CallContext, DynTool, ToolOutput, erase};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    files::{self, Files, Paths},
    store::{Source, Store, StoreError, Terms},
    text,
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
        erase(text_insert::TextInsert(files())),
        erase(text_read::TextRead(files())),
        erase(text_replace::TextReplace(files())),
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
}

impl ToolOutput for Edited {}

/// A planned edit of lines.
type Planned = Result<text::Edit, StoreError>;

/// Edits lines if the file still has the expected hash (compare-and-swap). A conflict names the current hash only if
/// `old` or `anchor` matches, which shows that the caller knows these lines.
async fn edit_lines(
    files: &Arc<Files>,
    call: &CallContext,
    (path, hash): (&str, &str),
    tells_current_hash: bool,
    plan: impl Fn(&dyn Source, &dyn Fn() -> bool) -> Planned + Send + 'static,
) -> Result<Edited, Fault> {
    let (path, expected) = (files::path(path)?, files::tag(hash)?);
    let work = move |store: &dyn Store, paths: &Paths, terms: &Terms<'_>| {
        let mut total_lines = 0;
        let mut plan = |source: &dyn Source| {
            let edit = plan(source, terms.has_ended)?;
            total_lines = edit.total_lines;
            Ok(edit.plan)
        };
        let hash = store.swap(&paths.path, &expected, &mut plan, terms).map_err(|error| match error {
            StoreError::Stale(found) => StoreError::Refused(files::stale(found, tells_current_hash)),
            error => error,
        })?;
        Ok(Edited { hash: hash.to_string(), total_lines })
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
