//! `text.read`.

use std::sync::Arc;

use pintle_contract::{Annotations, ClientHints, Fault, Permission, Verb, reread_lines};
use pintle_tool::{CallContext, LARGE, Tool, ToolOutput};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::files::{Files, Lines};

pub(crate) struct TextRead(pub(crate) Arc<Files>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The file, relative to the root of the workspace.
    path: String,
    /// `[start, end)`: the lines to read, counted from 1 or, negative, from the end; 0 is open. `[-2, 0]` is the last two (default: all).
    #[serde(default = "all")]
    lines: [i64; 2],
}

fn all() -> [i64; 2] {
    [1, 0]
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Output {
    /// The lines, with their terminators as they are in the file.
    content: String,
    /// The hash of the whole file; the next edit takes it.
    hash: String,
    /// How many lines the file has.
    total_lines: u64,
}

impl ToolOutput for Output {
    fn is_large(&self) -> bool {
        self.content.len() > LARGE
    }
}

impl Tool for TextRead {
    type Input = Input;
    type Output = Output;

    const NAME: &'static str = "text.read";
    const TITLE: &'static str = "Read text";
    const DESCRIPTION: &'static str = "Use this to read a text file, or some of its lines, exactly as stored. Returns the hash that edits need.";
    const ANNOTATIONS: Annotations = Annotations::READ_ONLY;
    const PERMISSIONS: &'static [Permission] = &[Permission::Argument(Verb::Read, "/path")];
    const CLIENT_HINTS: ClientHints =
        ClientHints { always_load: true, max_result_chars: Some(ClientHints::LARGE_RESULT_CHARS) };

    fn reread(argument: &str, text: &str) -> Option<Value> {
        reread_lines(argument, text)
    }

    async fn run(&self, input: Input, call: CallContext) -> Result<Output, Fault> {
        let Lines { content, hash, total_lines, .. } =
            self.0.read_lines(&call, &input.path, input.lines).await?;
        Ok(Output { content, hash: hash.to_string(), total_lines })
    }
}
