//! `show_file`: shows a file with line numbers.

use std::fmt::Write;

use pintle_contract::{Annotations, ClientHints, Fault, Permission, Verb, reread_lines};
use pintle_symbols::{Language, Outliner};
use pintle_tool::{CallContext, LARGE, Tool, ToolOutput};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::line_reader::LineReader;

pub(crate) struct ShowFile<F> {
    pub(crate) files: F,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The file, relative to the root of the workspace.
    path: String,
    /// `[start, end)`: the lines to show, counted from 1 or, negative, from the end; 0 is open. `[-2, 0]` is the last two (default: all).
    #[serde(default = "all")]
    lines: [i64; 2],
    /// Also list what the file defines (default: false).
    #[serde(default)]
    outline: bool,
}

fn all() -> [i64; 2] {
    [1, 0]
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Output {
    /// The lines, each after its number and a tab.
    text: String,
    /// The hash of the whole file; the next edit takes it.
    hash: String,
    /// How many lines the file has.
    total_lines: u64,
    /// The language, by the file's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    language: Option<&'static str>,
    /// On request: the file's definitions, by line.
    #[serde(skip_serializing_if = "Option::is_none")]
    outline: Option<Vec<Definition>>,
}

/// A definition.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
struct Definition {
    /// Its kind.
    kind: &'static str,
    /// Its name.
    name: String,
    /// The line of the name.
    line: u32,
    /// The last line of the definition.
    end_line: u32,
}

impl ToolOutput for Output {
    fn is_large(&self) -> bool {
        self.text.len() > LARGE
    }
}

impl<F: LineReader> Tool for ShowFile<F> {
    type Input = Input;
    type Output = Output;

    const NAME: &'static str = "show_file";
    const TITLE: &'static str = "Show a file";
    const DESCRIPTION: &'static str = "Shows a text file, or some of its lines, with line numbers, its language and on request an outline of definitions. Returns the hash that edits need.";
    const ANNOTATIONS: Annotations = Annotations::READ_ONLY;
    const PERMISSIONS: &'static [Permission] = &[Permission::Argument(Verb::Read, "/path")];
    const CLIENT_HINTS: ClientHints =
        ClientHints { always_load: false, max_result_chars: Some(ClientHints::LARGE_RESULT_CHARS) };
    const SCHEMA_VERSION: u32 = 2;

    fn reread(argument: &str, text: &str) -> Option<Value> {
        reread_lines(argument, text)
    }

    async fn run(&self, input: Input, call: CallContext) -> Result<Output, Fault> {
        let lines = self.files.read_lines(&call, &input.path, input.lines).await?;
        let language = Language::of_path(input.path.as_bytes());
        let outline = match language.filter(|language| language.has_symbols()) {
            _ if !input.outline => None,
            Some(language) => Some(self.outline(&call, &input.path, language).await?),
            None => Some(Vec::new()),
        };
        Ok(Output {
            text: numbered(&lines.content, lines.first_line),
            hash: lines.hash,
            total_lines: lines.total_lines,
            language: language.map(Language::name),
            outline,
        })
    }
}

impl<F: LineReader> ShowFile<F> {
    async fn outline(
        &self,
        call: &CallContext,
        path: &str,
        language: Language,
    ) -> Result<Vec<Definition>, Fault> {
        // A file that is too large to be read at once has no outline.
        let Ok(whole) = self.files.read_lines(call, path, all()).await else { return Ok(Vec::new()) };
        let work = move |call: &CallContext| {
            let text = whole.content.as_bytes();
            let outline = Outliner::new().outline(language, text, &|| call.has_ended());
            let symbols = outline.symbols().unwrap_or_default().into_iter();
            let definitions = symbols.map(|symbol| Definition {
                kind: symbol.kind.name(),
                name: String::from_utf8_lossy(&text[symbol.name]).into_owned(),
                line: symbol.line,
                end_line: symbol.end_line,
            });
            definitions.collect()
        };
        call.compute(work).await
    }
}

fn numbered(content: &str, first: u64) -> String {
    let mut text = String::with_capacity(content.len() + content.len() / 4);
    for (line, number) in content.split_inclusive('\n').zip(first..) {
        // Writing to a string cannot fail.
        let _ = write!(text, "{number}\t{line}");
    }
    text
}
