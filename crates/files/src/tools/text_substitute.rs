//! `text.substitute`.

use std::sync::Arc;

use pintle_contract::{Annotations, Fault, Permission, Verb};
use pintle_tool::{ArgumentProblem, CallContext, LARGE, Tool, ToolOutput};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::GUARDED_EDIT;
use crate::{
    files::Files,
    substitution::{Substituted, Substitution},
    text_search::{Case, TextQuery},
    together::{Done, EditedFile},
};

pub(crate) struct TextSubstitute(pub(crate) Arc<Files>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// What to replace, in single lines.
    query: String,
    /// How `query` is read: as it stands, or as ripgrep's regex (default: literal).
    #[serde(default, rename = "match")]
    matching: Match,
    /// `smart` ignores case unless `query` has a capital (default: sensitive).
    #[serde(default)]
    case: Case,
    /// Only whole words (default: false).
    #[serde(default)]
    word: bool,
    /// What replaces it. For a regex `$1` or `${name}` is a group, and `$$` a dollar.
    replacement: String,
    /// Only these files: a glob, or several, as in .gitignore; `!` leaves files out, a folder stands for all in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    path: Option<Globs>,
    /// Only files in this language, such as `rust`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    lang: Option<String>,
    /// How many matches there are; if it is wrong, nothing is done and the error has the number. Needed unless `dry_run`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u32")]
    expect: Option<u64>,
    /// Only show what would change, with the hashes to come (default: false).
    #[serde(default)]
    dry_run: bool,
}

/// How the query is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
enum Match {
    #[default]
    Literal,
    Regex,
}

// A derived schema would need a definition of its own in the list of tools, which clients pay for in tokens.
impl JsonSchema for Match {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Match".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": ["literal", "regex"] })
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum Globs {
    One(String),
    Several(Vec<String>),
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Output {
    /// The files, in the order of their paths.
    files: Vec<EditedFile>,
    /// How many matches they have; the next call takes it as `expect`.
    matches: u64,
    /// What has changed, as a unified diff.
    diff: String,
    /// True if nothing was changed because `dry_run` was true.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    dry_run: bool,
}

impl ToolOutput for Output {
    fn is_large(&self) -> bool {
        self.diff.len() + self.files.len() * 150 > LARGE
    }
}

impl Tool for TextSubstitute {
    type Input = Input;
    type Output = Output;

    const NAME: &'static str = "text.substitute";
    const TITLE: &'static str = "Replace everywhere";
    const DESCRIPTION: &'static str = "Use this to rename or replace a text in all files that `search` finds for the same arguments: all are changed, or none. Returns the new hashes and a diff.";
    const ANNOTATIONS: Annotations = GUARDED_EDIT;
    /// Which files have matches is known only when they are found.
    const PERMISSIONS: &'static [Permission] = &[Permission::SomePath(Verb::Write)];

    fn check(arguments: &Value) -> Vec<ArgumentProblem> {
        let is_given = |name: &str| arguments.get(name).is_some_and(|value| !value.is_null());
        let is_dry_run = arguments.get("dry_run") == Some(&Value::Bool(true));
        let mut problems = Vec::new();
        let mut refuse = |path: &str, message: &str| {
            problems.push(ArgumentProblem { path: path.to_owned(), message: message.to_owned() });
        };
        if arguments.get("query").is_some_and(|query| query == "") {
            refuse("/query", "`query` is empty: say what to replace");
        }
        if !is_given("expect") && !is_dry_run {
            refuse(
                "",
                "argument `expect` is missing: how many matches are to be replaced; a call with `dry_run` counts them",
            );
        }
        problems
    }

    async fn run(&self, input: Input, call: CallContext) -> Result<Output, Fault> {
        let Input { query, matching, case, word, replacement, path, lang, expect, dry_run } = input;
        let query = TextQuery {
            query,
            is_regex: matching == Match::Regex,
            case,
            is_word: word,
            globs: match path {
                None => Vec::new(),
                Some(Globs::One(glob)) => vec![glob],
                Some(Globs::Several(globs)) => globs,
            },
            language: lang,
        };
        let wanted = Substitution { query, replacement, expected: expect, dry_run };
        let Substituted { done: Done { files, diff }, matches } = self.0.substitute(&call, wanted).await?;
        Ok(Output { files, matches, diff, dry_run })
    }
}
