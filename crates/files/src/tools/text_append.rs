//! `text.append`.

use std::sync::Arc;

use pintle_contract::{Annotations, Fault, Permission, Verb};
use pintle_tool::{CallContext, Tool};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{ADDITION, Edited, edit_lines};
use crate::{files::Files, text};

pub(crate) struct TextAppend(pub(crate) Arc<Files>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The file, relative to the root of the workspace.
    path: String,
    /// The file's hash, from text.read, file.read, search, show_file or the last edit. If the file has changed since, nothing is done.
    hash: String,
    /// The lines to append, joined by newlines. One newline at the end is ignored; `"\n"` alone is one empty line.
    content: String,
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
        let (path, hash) = (input.path.clone(), input.hash.clone());
        edit_lines(&self.0, &call, (&path, &hash), false, move |source, has_ended| {
            text::append(source, &input.content, has_ended)
        })
        .await
    }
}
