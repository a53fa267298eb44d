//! The tools, one file each.

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

use pintle_auth::{Access, Verb};
use pintle_contract::{Annotations, Fault};
use pintle_engine::{DynTool, ToolOutput, erase};
use schemars::JsonSchema;
use serde::Serialize;

use crate::files::{Files, path};

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

/// Hints on a tool that changes something that it was told the version of.
const GUARDED_EDIT: Annotations = Annotations {
    read_only_hint: false,
    destructive_hint: true,
    idempotent_hint: false,
    open_world_hint: false,
};

/// Hints on a tool that only adds.
const ADDITION: Annotations = Annotations {
    read_only_hint: false,
    destructive_hint: false,
    idempotent_hint: false,
    open_world_hint: false,
};

fn reads(text: &str) -> Result<Vec<Access>, Fault> {
    Ok(vec![Access::Path(Verb::Read, path(text)?)])
}

fn writes(text: &str) -> Result<Vec<Access>, Fault> {
    Ok(vec![Access::Path(Verb::Write, path(text)?)])
}

/// What an edit of lines gives.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Edited {
    /// The hash of the file as it is now; the next edit takes it.
    hash: String,
    /// How many lines the file has now.
    total_lines: u64,
}

impl ToolOutput for Edited {}

/// What a change of a whole file gives.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Hashed {
    /// The hash of the file as it is now; the next edit takes it.
    hash: String,
}

impl ToolOutput for Hashed {}
