//! `text.append`.

use std::sync::Arc;

use pintle_contract::{Annotations, Fault, Permission, Verb};
use pintle_tool::{CallContext, Tool};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{ADDITION, Edited, LineEdit, edit_lines};
use crate::{files::Files, text::Change};

pub(crate) struct TextAppend(pub(crate) Arc<Files>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The file, relative to the root of the workspace.
    path: String,
    /// The file's hash, or its first 8 digits or more, from text.read, file.read, search, show_file or the last edit. If the file has changed since, nothing is done.
    hash: String,
    /// The lines to append, joined by newlines. One newline at the end is ignored; `"\n"` alone is one empty line.
    content: String,
    /// Whether to show what has changed, as a diff (default: false).
    #[serde(default)]
    diff: bool,
}

impl Tool for TextAppend {
    type Input = Input;
    type Output = Edited;

    const NAME: &'static str = "text.append";
    const TITLE: &'static str = "Append lines";
    const DESCRIPTION: &'static str =
        "Use this to add lines at the end of a text file. Returns the new hash.";
    const ANNOTATIONS: Annotations = ADDITION;
    const PERMISSIONS: &'static [Permission] = &[Permission::Argument(Verb::Write, "/path")];

    async fn run(&self, input: Input, call: CallContext) -> Result<Edited, Fault> {
        let Input { path, hash, content, diff } = input;
        let change = Change::Append { content };
        edit_lines(&self.0, &call, LineEdit { path, hash, change, written: None, diff }).await
    }
}
