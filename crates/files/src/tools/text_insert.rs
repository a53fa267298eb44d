//! `text.insert`.

use std::sync::Arc;

use pintle_contract::{Annotations, ClientHints, Fault, Permission, Verb};
use pintle_tool::{CallContext, Tool};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{ADDITION, ALWAYS_LOAD, Edited, LineEdit, edit_lines};
use crate::{files::Files, text::Change};

pub(crate) struct TextInsert(pub(crate) Arc<Files>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The file, relative to the root of the workspace.
    path: String,
    /// The file's hash, or its first 8 digits or more, from text.read, file.read, search, show_file or the last edit. If the file has changed since, nothing is done.
    hash: String,
    /// The line to insert before, counted from 1 or, negative, from the end.
    line: i64,
    /// That line as it is now, without its newline: checked if it is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    anchor: Option<String>,
    /// The lines to insert, joined by newlines. One newline at the end is ignored; `"\n"` alone is one empty line.
    content: String,
    /// Whether to show what has changed, as a diff (default: false).
    #[serde(default)]
    diff: bool,
}

impl Tool for TextInsert {
    type Input = Input;
    type Output = Edited;

    const NAME: &'static str = "text.insert";
    const TITLE: &'static str = "Insert lines";
    const DESCRIPTION: &'static str =
        "Use this to add lines before a line of a text file. Returns the new hash.";
    const ANNOTATIONS: Annotations = ADDITION;
    const PERMISSIONS: &'static [Permission] = &[Permission::Argument(Verb::Write, "/path")];
    const CLIENT_HINTS: ClientHints = ALWAYS_LOAD;

    async fn run(&self, input: Input, call: CallContext) -> Result<Edited, Fault> {
        let Input { path, hash, line, anchor, content, diff } = input;
        let change = Change::Insert { line, anchor, content };
        edit_lines(&self.0, &call, LineEdit { path, hash, change, written: None, diff }).await
    }
}
