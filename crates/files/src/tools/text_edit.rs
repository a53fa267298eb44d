//! `text.edit`.

use std::sync::Arc;

use pintle_contract::{Annotations, ClientHints, Fault, Permission, Verb, reread_lines};
use pintle_tool::{ArgumentProblem, CallContext, LARGE, Tool, ToolOutput};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ALWAYS_LOAD, GUARDED_EDIT, arguments::check_edits};
use crate::{
    batch::BatchEntry,
    files::Files,
    text::{Change, Replace},
    together::{Done, EditedFile},
};

pub(crate) struct TextEdit(pub(crate) Arc<Files>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// In any order, not overlapping. All mean the files as they were read, never the result of another edit.
    edits: Vec<Entry>,
    /// Only show what would change, with the hashes to come (default: false).
    #[serde(default)]
    dry_run: bool,
}

/// The arguments of text.replace, text.insert, text.append or, without a hash, file.create.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    /// The file.
    path: String,
    /// Its hash, or the first 8 digits; once a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    hash: Option<String>,
    /// `[start, end)`: the lines to replace, or to look for `old` in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "[i64; 2]")]
    lines: Option<[i64; 2]>,
    /// The lines to replace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    old: Option<String>,
    /// What replaces them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    new: Option<String>,
    /// Every `old`.
    #[serde(default)]
    all: bool,
    /// `old` is a part of a line.
    #[serde(default)]
    within: bool,
    /// The line to insert before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64")]
    line: Option<i64>,
    /// That line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    anchor: Option<String>,
    /// The lines to insert; without `line` to append; without any hash the content of a new file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    content: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Output {
    /// The files, in the order of their first edits.
    files: Vec<EditedFile>,
    /// What has changed, as a unified diff.
    diff: String,
    /// True if nothing was changed because `dry_run` was true.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    dry_run: bool,
}

impl ToolOutput for Output {
    fn is_large(&self) -> bool {
        self.diff.len() > LARGE
    }
}

impl Tool for TextEdit {
    type Input = Input;
    type Output = Output;

    const NAME: &'static str = "text.edit";
    const TITLE: &'static str = "Edit several places";
    const DESCRIPTION: &'static str = "Use this for several edits in one file or many: all are made, or none. Returns the new hashes and a diff.";
    const ANNOTATIONS: Annotations = GUARDED_EDIT;
    const PERMISSIONS: &'static [Permission] = &[Permission::Argument(Verb::Write, "/edits/*/path")];
    const CLIENT_HINTS: ClientHints = ALWAYS_LOAD;

    fn reread(argument: &str, text: &str) -> Option<Value> {
        reread_lines(argument, text)
    }

    fn check(arguments: &Value) -> Vec<ArgumentProblem> {
        check_edits(arguments)
    }

    async fn run(&self, input: Input, call: CallContext) -> Result<Output, Fault> {
        let Input { edits, dry_run } = input;
        let entries: Vec<BatchEntry> =
            edits.into_iter().enumerate().map(|(number, entry)| batch_entry(number, entry, &call)).collect();
        let Done { files, diff } = self.0.edit_files(&call, entries, dry_run).await?;
        Ok(Output { files, diff, dry_run })
    }
}

/// Tells edits apart by which arguments are given. That they fit together was checked before.
fn batch_entry(number: usize, entry: Entry, call: &CallContext) -> BatchEntry {
    let Entry { path, hash, lines, old, new, all, within, line, anchor, content } = entry;
    let written = call.reread(&format!("edits/{number}/lines")).map(str::to_owned);
    let content = content.unwrap_or_default();
    let change = match (new, line) {
        (Some(new), _) => Change::Replace(Replace { lines, old, new, all, within }),
        (None, Some(line)) => Change::Insert { line, anchor, content },
        (None, None) => Change::Append { content },
    };
    BatchEntry { path, hash, change, written }
}
