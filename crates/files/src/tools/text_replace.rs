//! `text.replace`.

use std::sync::Arc;

use pintle_contract::{Annotations, ClientHints, Fault, Permission, Verb, reread_lines};
use pintle_tool::{ArgumentProblem, CallContext, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{ALWAYS_LOAD, Edited, GUARDED_EDIT, LineEdit, arguments::check_replace, edit_lines};
use crate::{
    files::{self, Files},
    text::{Change, Replace},
};

pub(crate) struct TextReplace(pub(crate) Arc<Files>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The file, relative to the root of the workspace.
    path: String,
    /// The file's hash, or its first 8 digits or more, from text.read, file.read, search, show_file or the last edit. If the file has changed since, nothing is done.
    hash: String,
    /// `[start, end)`: the lines to look in, counted from 1 or, negative, from the end; 0 is open (default: all). Without `old`, exactly these lines are replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "[i64; 2]")]
    lines: Option<[i64; 2]>,
    /// The lines to be replaced, whole, joined by newlines, without the last one. They must be there once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    old: Option<String>,
    /// The new lines. The empty text deletes the old ones. One newline at the end is ignored; `"\n"` alone is one empty line.
    new: String,
    /// Whether to replace every occurrence of `old` (default: false).
    #[serde(default)]
    all: bool,
    /// Whether `old` may be a part of a line; `old` and `new` are then taken as they are (default: false).
    #[serde(default)]
    within: bool,
    /// Whether to show what has changed, as a diff (default: false).
    #[serde(default)]
    diff: bool,
}

impl Tool for TextReplace {
    type Input = Input;
    type Output = Edited;

    const NAME: &'static str = "text.replace";
    const TITLE: &'static str = "Replace lines";
    const DESCRIPTION: &'static str = "Use this to change or delete lines of a text file: those with the numbers `lines`, or the text `old` in them, exactly as in the file. All else stays as it is, byte for byte. Returns the new hash.";
    const ANNOTATIONS: Annotations = GUARDED_EDIT;
    const PERMISSIONS: &'static [Permission] = &[Permission::Argument(Verb::Write, "/path")];
    const CLIENT_HINTS: ClientHints = ALWAYS_LOAD;

    /// Accepts `"3-7"` for `lines` where `old` guards the edit: if it does not occur there, the error reports both
    /// readings.
    fn reread(argument: &str, text: &str) -> Option<Value> {
        reread_lines(argument, text)
    }

    fn check(arguments: &Value) -> Vec<ArgumentProblem> {
        let mut problems = Vec::new();
        check_replace(arguments, "", &mut problems);
        problems
    }

    async fn run(&self, input: Input, call: CallContext) -> Result<Edited, Fault> {
        let Input { path, hash, lines, old, new, all, within, diff } = input;
        let written = call.reread("lines").map(str::to_owned);
        if let (Some(written), Some(lines)) = (&written, lines)
            && (old.is_none() || all)
        {
            return Err(files::lines_not_confirmed(written, lines));
        }
        let change = Change::Replace(Replace { lines, old, new, all, within });
        edit_lines(&self.0, &call, LineEdit { path, hash, change, written, diff }).await
    }
}
