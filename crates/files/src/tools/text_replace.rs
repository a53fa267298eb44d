//! `text.replace`.

use std::sync::Arc;

use pintle_contract::{Annotations, ClientHints, Fault, Permission, Verb, reread_lines};
use pintle_tool::{CallContext, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{ALWAYS_LOAD, Edited, GUARDED_EDIT, edit_lines};
use crate::{files::Files, text};

pub(crate) struct TextReplace(pub(crate) Arc<Files>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The file, relative to the root of the workspace.
    path: String,
    /// The file's hash, from text.read, file.read, search, show_file or the last edit. If the file has changed since, nothing is done.
    hash: String,
    /// `[start, end)`: the lines to look in, counted from 1 or, negative, from the end; 0 is open. `[1, 0]` is all.
    lines: [i64; 2],
    /// The lines to be replaced, whole, joined by newlines, without the last one.
    old: String,
    /// The new lines. The empty text deletes the old ones. One newline at the end is ignored; `"\n"` alone is one empty line.
    new: String,
}

impl Tool for TextReplace {
    type Input = Input;
    type Output = Edited;

    const NAME: &'static str = "text.replace";
    const TITLE: &'static str = "Replace lines";
    const DESCRIPTION: &'static str = "Use this to change or delete whole lines of a text file. `old` must occur in `lines` exactly once, exactly as in the file; all else stays as it is, byte for byte. Returns the new hash.";
    const ANNOTATIONS: Annotations = GUARDED_EDIT;
    const PERMISSIONS: &'static [Permission] = &[Permission::Argument(Verb::Write, "/path")];
    const CLIENT_HINTS: ClientHints = ALWAYS_LOAD;

    /// Accepts `"3-7"` for `lines`, because `old` guards the edit: if it does not occur there exactly once, the error
    /// reports both readings.
    fn reread(argument: &str, text: &str) -> Option<Value> {
        reread_lines(argument, text)
    }

    async fn run(&self, input: Input, call: CallContext) -> Result<Edited, Fault> {
        let (path, hash) = (input.path.clone(), input.hash.clone());
        let written = call.reread("lines").map(str::to_owned);
        edit_lines(&self.0, &call, (&path, &hash), true, move |source, has_ended| {
            let mut edit = text::replace(source, input.lines, &input.old, &input.new, has_ended)?;
            if let Some(written) = &written {
                edit.plan.change = edit.plan.change.map_err(|fault| unconfirmed(fault, written, input.lines));
            }
            Ok(edit)
        })
        .await
    }
}

/// The fault for `lines` written as `"3-7"` if `old` does not occur there.
fn unconfirmed(fault: Fault, written: &str, [start, end]: [i64; 2]) -> Fault {
    let last = end - 1;
    let hint = format!(
        "`lines` was written as `{written}`: [{start}, {end}] if line {last} is included, [{start}, {last}] if it is not; `old` confirms neither, so send the two numbers that are meant"
    );
    fault.hint(hint)
}
