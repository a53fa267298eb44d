//! `text.insert`.

use std::sync::Arc;

use pintle_contract::{Annotations, ClientHints, Fault, Permission, Verb};
use pintle_tool::{CallContext, Tool};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{ADDITION, ALWAYS_LOAD, Edited, edit_lines};
use crate::{files::Files, text};

pub(crate) struct TextInsert(pub(crate) Arc<Files>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The file, relative to the root of the workspace.
    path: String,
    /// The file's hash, from text.read, file.read, search, show_file or the last edit. If the file has changed since, nothing is done.
    hash: String,
    /// The line to insert before, counted from 1 or, negative, from the end.
    line: i64,
    /// That line as it is now, without its newline.
    anchor: String,
    /// The lines to insert, joined by newlines. One newline at the end is ignored; `"\n"` alone is one empty line.
    content: String,
}

impl Tool for TextInsert {
    type Input = Input;
    type Output = Edited;

    const NAME: &'static str = "text.insert";
    const TITLE: &'static str = "Insert lines";
    const DESCRIPTION: &'static str =
        "Use this to add lines before a line of a text file; `anchor` is that line. Returns the new hash.";
    const ANNOTATIONS: Annotations = ADDITION;
    const PERMISSIONS: &'static [Permission] = &[Permission::Argument(Verb::Write, "/path")];
    const CLIENT_HINTS: ClientHints = ALWAYS_LOAD;

    async fn run(&self, input: Input, call: CallContext) -> Result<Edited, Fault> {
        let (path, hash) = (input.path.clone(), input.hash.clone());
        edit_lines(&self.0, &call, (&path, &hash), true, move |source, has_ended| {
            text::insert(source, input.line, &input.anchor, &input.content, has_ended)
        })
        .await
    }
}
