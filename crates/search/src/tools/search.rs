//! `search`.

use std::sync::Arc;

use pintle_auth::{Need, Scopes, Verb};
use pintle_contract::{Annotations, ClientHints, ErrorCode, Fault, WorkspacePath, nearest};
use pintle_engine::{CallContext, LARGE, Tool, ToolOutput};
use pintle_files::LARGE_RESULT_CHARS;
use pintle_symbols::{Kind, Language};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Coverage;
use crate::{
    live::Snapshot,
    pattern::{Case, Pattern, Syntax},
    query::{
        Cursor, Filter, Hit, Page, TextQuery, find_names, find_words, fingerprint, ranked::Slice, search_text,
    },
    search::Search,
    summary::Ready,
};

pub(crate) struct SearchTool(pub(crate) Arc<Search>);

#[derive(Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// What to search for.
    query: String,
    /// How the query is read: `literal` text, a `regex` as ripgrep takes it, `words` ranked by how well files match, or the name of a `symbol`.
    #[serde(default, rename = "match")]
    matching: Match,
    /// `smart` ignores case unless the query has a letter in upper case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    case: Option<CaseInput>,
    /// Which files: a glob, or several, as in .gitignore; `!` leaves files out. A folder stands for all in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    path: Option<Globs>,
    /// Only files in this language, such as `rust`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lang: Option<String>,
    /// Only symbols of this kind, such as `function`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    /// How many lines to show before and after each hit.
    #[serde(default)]
    #[schemars(range(max = 50))]
    context: u32,
    /// How many hits to give.
    #[serde(default = "fifty")]
    #[schemars(range(min = 1, max = 1000))]
    top: u32,
    /// The `cursor` of the last page, to get the next one; all else as before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cursor: Option<String>,
}

fn fifty() -> u32 {
    50
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Match {
    #[default]
    Literal,
    Regex,
    Words,
    Symbol,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum CaseInput {
    Smart,
    Sensitive,
    Insensitive,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(untagged)]
enum Globs {
    One(String),
    Several(Vec<String>),
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Output {
    /// The places that match: in the order of paths and lines, or the best first for words and symbols.
    pub(crate) hits: Vec<Hit>,
    /// How many there are in all; if `truncated`, at least.
    total: u64,
    /// Whether there are more hits than these.
    truncated: bool,
    /// What gives the next page, if there are more.
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<String>,
    /// The generation of the index that answered.
    generation: u64,
    /// What was searched.
    coverage: Coverage,
}

impl ToolOutput for Output {
    fn is_large(&self) -> bool {
        self.hits.iter().map(|hit| hit.bytes() + 300).sum::<usize>() > LARGE
    }
}

impl Tool for SearchTool {
    type Input = Input;
    type Output = Output;

    const NAME: &'static str = "search";
    const TITLE: &'static str = "Search";
    const DESCRIPTION: &'static str = "Searches the files of the workspace: literal text or regular expressions with exactly ripgrep's hits, ranked words, or symbols by name. Each hit has the hash that an edit of its file needs.";
    const ANNOTATIONS: Annotations = Annotations::READ_ONLY;
    const CLIENT_HINTS: ClientHints =
        ClientHints { always_load: true, max_result_chars: Some(LARGE_RESULT_CHARS) };

    fn need() -> Need {
        Need::SomePath(Verb::Read)
    }

    async fn run(&self, input: Input, call: CallContext) -> Result<Output, Fault> {
        let search = Arc::clone(&self.0);
        let work = move |call: &CallContext| {
            check(&input)?;
            let snapshot = search.snapshot(call);
            let output =
                snapshot.and_then(|snapshot| run(&search, &input, input.top as usize, &snapshot, call));
            search.mend();
            output
        };
        call.compute(work).await?
    }
}

/// Answers a search from a snapshot, with all hits unless `top` says less.
pub(crate) fn search_now(
    search: &Search,
    arguments: serde_json::Value,
    top: Option<u64>,
    snapshot: &Snapshot,
    call: &CallContext,
) -> Result<Output, Fault> {
    let input: Input = serde_json::from_value(arguments).map_err(|error| invalid(error.to_string()))?;
    check(&input)?;
    // Half of what can be counted, so that adding to it is safe.
    let top = top.and_then(|top| usize::try_from(top).ok()).unwrap_or(usize::MAX / 2);
    run(search, &input, top, snapshot, call)
}

fn run(
    search: &Search,
    input: &Input,
    top: usize,
    snapshot: &Snapshot,
    call: &CallContext,
) -> Result<Output, Fault> {
    // Pages of another size are pages of the same search.
    let fingerprint = fingerprint(&Input { cursor: None, top: 0, context: 0, ..input.clone() });
    let from = input.cursor.as_deref().map(|text| continued(text, fingerprint)).transpose()?;
    let filter = filter(search, input, call)?;
    let has_ended = || call.has_ended();
    let context = input.context as usize;
    let start = from.as_ref().map_or(0, |from| usize::try_from(from.count).unwrap_or(usize::MAX));
    let most_bytes = call.largest_result();
    let slice = Slice { start, top, context, most_bytes, fingerprint };
    let page = match input.matching {
        Match::Literal | Match::Regex => {
            let syntax = if input.matching == Match::Regex { Syntax::Regex } else { Syntax::Literal };
            let pattern = pattern_of(&input.query, syntax, case(input))?;
            let query = TextQuery {
                pattern: &pattern,
                filter: &filter,
                top,
                context,
                most_bytes,
                from: from.as_ref(),
                fingerprint,
            };
            search_text(&search.root, snapshot, &query, &has_ended).map(Some)
        }
        Match::Words => find_words(&search.root, snapshot, &input.query, &filter, &slice, &has_ended),
        Match::Symbol => {
            let kind = input.kind.as_deref().map(kind).transpose()?;
            let query = (input.query.as_str(), is_sensitive(input), kind);
            find_names(&search.root, snapshot, query, &filter, &slice, &has_ended)
        }
    };
    let page = page.map_err(|unready| search.unready(unready))?;
    let Some(Page { hits, total, has_more, next }) = page else {
        let what = if input.matching == Match::Words { "words" } else { "symbols" };
        let message = format!("the index has no {what} yet; they are built after the text");
        return Err(Fault::new(ErrorCode::NoIndex, message).hint(
            "wait for the build to end, call index_build or run `pintle index`; literal and regex searches answer already",
        ));
    };
    let summary = search.summary(snapshot, call.caller().scopes())?;
    Ok(Output {
        hits,
        total,
        truncated: has_more,
        cursor: next.map(|next| next.encode()),
        generation: snapshot.index.generation,
        coverage: Coverage::new(&summary, Ready::of(snapshot)),
    })
}

fn invalid(message: impl Into<String>) -> Fault {
    Fault::new(ErrorCode::InvalidRequest, message)
}

/// Refuses what would do nothing.
fn check(input: &Input) -> Result<(), Fault> {
    check_query(&input.query)?;
    if input.query.is_empty() && matches!(input.matching, Match::Words | Match::Symbol) {
        return Err(invalid("`query` is empty").hint("say which words, or which name, to look for"));
    }
    if input.kind.is_some() && input.matching != Match::Symbol {
        return Err(invalid("`kind` is for symbols").hint("set `match` to `symbol`, or leave `kind` out"));
    }
    if input.case.is_some() && input.matching == Match::Words {
        return Err(invalid("`case` means nothing to words: they are found in every case")
            .hint("leave `case` out, or set `match` to `literal`"));
    }
    Ok(())
}

fn continued(text: &str, fingerprint: u64) -> Result<Cursor, Fault> {
    let cursor = Cursor::decode(text).ok_or_else(|| {
        invalid("`cursor` is not one").hint("give it as the last page had it, or leave it out to begin anew")
    })?;
    if cursor.query != fingerprint {
        return Err(invalid("`cursor` belongs to another search")
            .hint("repeat the search with all other arguments as before, or leave `cursor` out"));
    }
    Ok(cursor)
}

/// A longer query takes long to prepare, and was not typed by anybody.
const LONGEST_QUERY: usize = 16 << 10;

fn check_query(query: &str) -> Result<(), Fault> {
    if query.len() > LONGEST_QUERY {
        let message = format!("`query` has {} bytes, and may have {LONGEST_QUERY}", query.len());
        return Err(invalid(message).hint("search for a part of it"));
    }
    Ok(())
}

fn case(input: &Input) -> Case {
    match input.case {
        None | Some(CaseInput::Smart) => Case::Smart,
        Some(CaseInput::Sensitive) => Case::Sensitive,
        Some(CaseInput::Insensitive) => Case::Insensitive,
    }
}

/// What is searched for in texts.
pub(crate) fn pattern_of(query: &str, syntax: Syntax, case: Case) -> Result<Pattern, Fault> {
    check_query(query)?;
    Pattern::new(query, syntax, case).map_err(|problem| {
        let fault = invalid(format!("the query cannot be searched for: {problem}"));
        match syntax {
            Syntax::Regex => fault.hint("mend the expression, or search for it as a literal"),
            Syntax::Literal => fault.hint("search for one line, or a part of it"),
        }
    })
}

fn is_sensitive(input: &Input) -> bool {
    match input.case {
        None | Some(CaseInput::Smart) => input.query.chars().any(char::is_uppercase),
        Some(CaseInput::Sensitive) => true,
        Some(CaseInput::Insensitive) => false,
    }
}

fn filter<'a>(search: &Search, input: &Input, call: &'a CallContext) -> Result<Filter<'a>, Fault> {
    let globs = match &input.path {
        None => &[],
        Some(Globs::One(glob)) => std::slice::from_ref(glob),
        Some(Globs::Several(globs)) => globs.as_slice(),
    };
    filter_of(search, globs, input.lang.as_deref(), call.caller().scopes())
}

/// Which files a search is about.
pub(crate) fn filter_of<'a>(
    search: &Search,
    globs: &[String],
    lang: Option<&str>,
    scopes: &'a Scopes,
) -> Result<Filter<'a>, Fault> {
    let language = lang.map(language).transpose()?;
    // A caller must not learn which folders there are where it may not read.
    let is_folder = |path: &str| {
        WorkspacePath::parse(path).is_ok_and(|path| {
            let relative = path.as_str().trim_start_matches('/');
            scopes.may_read(&path) && search.root_path().join(relative).is_dir()
        })
    };
    Filter::new(scopes, globs, is_folder, language)
        .map_err(|problem| invalid(format!("`path` is not a glob: {problem}")).hint("`src/**/*.rs` is one"))
}

fn language(name: &str) -> Result<Language, Fault> {
    Language::from_name(name).ok_or_else(|| {
        let near = nearest(name, Language::all().map(Language::name)).unwrap_or("rust");
        invalid(format!("there is no language `{name}`")).hint(format!("the nearest is `{near}`"))
    })
}

fn kind(name: &str) -> Result<Kind, Fault> {
    Kind::from_name(name).ok_or_else(|| {
        let all = Kind::all().map(Kind::name).collect::<Vec<_>>().join(", ");
        invalid(format!("there is no kind of symbol `{name}`")).hint(format!("the kinds are {all}"))
    })
}
