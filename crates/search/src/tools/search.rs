//! `search`.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bstr::ByteSlice;
use pintle_contract::{
    Annotations, ClientHints, ErrorCode, Fault, Permission, Permissions, Verb, WorkspacePath, nearest,
};
use pintle_root::scan::Within;
use pintle_symbols::{Kind, Language};
use pintle_tool::{CallContext, LARGE, Tool, ToolOutput};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::{Coverage, hint};
use crate::{
    command::HitSearch,
    pattern::{Case, Meaning, Pattern, Syntax},
    query::{
        ContextLines, Counts, Cursor, Filter, Hit, Page, TextQuery, count_lines, find_names, find_words,
        fingerprint, glob_prefixes, ranked::PageRequest, search_text,
    },
    search::{RankedPart, Search},
    snapshot::Snapshot,
    summary::{ScanCounts, Summary},
};

pub(crate) struct SearchTool(pub(crate) Arc<Search>);

#[derive(Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// What to search for.
    query: String,
    /// How `query` is read: as it stands, as ripgrep's regex, as words to rank files by, or as the name of a symbol (default: literal).
    #[serde(default, rename = "match")]
    matching: Match,
    /// `smart` ignores case unless `query` has a capital; `sensitive` by default, `smart` for symbols.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    case: Option<Case>,
    /// Only whole words (default: false).
    #[serde(default)]
    word: bool,
    /// Only these files: a glob, or several, as in .gitignore; `!` leaves files out, a folder stands for all in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    path: Option<Globs>,
    /// Only files in this language, such as `rust`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lang: Option<String>,
    /// Only symbols of this kind, such as `function`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    /// How many lines to show before and after each hit (default: 0).
    #[serde(default)]
    #[schemars(range(max = 50))]
    context: u32,
    /// How many before, if not `context`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 50))]
    before: Option<u32>,
    /// How many after, if not `context`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 50))]
    after: Option<u32>,
    /// How many hits to return (default: 50).
    #[serde(default = "fifty")]
    #[schemars(range(min = 1, max = 1000))]
    top: u32,
    /// The `cursor` of the last page; all else as before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cursor: Option<String>,
    /// Only count matching lines, in all and in each file (default: false).
    #[serde(default)]
    count: bool,
}

fn fifty() -> u32 {
    50
}

/// How a query is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Match {
    /// As literal text.
    #[default]
    Literal,
    /// As a regular expression.
    Regex,
    /// As words, by which files are ranked.
    Words,
    /// As the name of a symbol.
    Symbol,
}

// A derived schema would repeat the comments of the variants in the list of tools, which clients pay for in tokens.
impl JsonSchema for Match {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Match".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": ["literal", "regex", "words", "symbol"] })
    }
}

impl JsonSchema for Case {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Case".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": ["smart", "sensitive", "insensitive"] })
    }
}

impl From<&HitSearch<'_>> for Input {
    fn from(search: &HitSearch<'_>) -> Self {
        Self {
            query: search.query.to_owned(),
            matching: search.matching,
            case: search.case,
            word: search.is_word,
            path: (!search.globs.is_empty()).then(|| Globs::Several(search.globs.to_vec())),
            lang: search.language.map(str::to_owned),
            kind: search.kind.map(str::to_owned),
            context: search.around,
            before: None,
            after: None,
            top: fifty(),
            cursor: None,
            count: false,
        }
    }
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(untagged)]
enum Globs {
    One(String),
    Several(Vec<String>),
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub(crate) struct Output {
    /// The matches: by path and line, or best first for words and symbols. None with `count`.
    #[serde(skip_serializing_if = "Option::is_none")]
    hits: Option<Vec<Hit>>,
    /// With `count`: the files with matching lines, in the order of paths.
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<Vec<FileCount>>,
    /// How many there are in all, unless a full page ended the search.
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<u64>,
    /// Without `total`: how many there are at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    at_least: Option<u64>,
    /// Whether there are more hits, or files, than these.
    truncated: bool,
    /// Pass it as `cursor` for the next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<String>,
    /// The generation of the index that answered; 0 without one.
    generation: u64,
    /// Whether an index answered; without one the files were scanned.
    indexed: bool,
    /// What was searched.
    coverage: Coverage,
    /// Without hits: what may be the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

impl Output {
    /// The hits; empty if lines were only counted.
    pub(crate) fn hits(&self) -> &[Hit] {
        self.hits.as_deref().unwrap_or_default()
    }
}

/// How many lines of a file match.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct FileCount {
    /// The file, relative to the root of the workspace.
    path: String,
    /// How many of its lines.
    count: u64,
}

/// With `count`, at most this many files are named.
const MOST_COUNTED: usize = 1000;

impl ToolOutput for Output {
    fn is_large(&self) -> bool {
        let hits = self.hits().iter().map(|hit| hit.bytes() + 300).sum::<usize>();
        hits + self.files.as_ref().map_or(0, |files| files.len() * 64) > LARGE
    }
}

impl Tool for SearchTool {
    type Input = Input;
    type Output = Output;

    const NAME: &'static str = "search";
    const TITLE: &'static str = "Search";
    const DESCRIPTION: &'static str = "Searches the files of the workspace: use it to find what to read or edit. Text and regular expressions return exactly ripgrep's hits; words are ranked; symbols are found by name. Each hit has the hash that an edit needs.";
    const ANNOTATIONS: Annotations = Annotations::READ_ONLY;
    const PERMISSIONS: &'static [Permission] = &[Permission::SomePath(Verb::Read)];
    const CLIENT_HINTS: ClientHints =
        ClientHints { always_load: true, max_result_chars: Some(ClientHints::LARGE_RESULT_CHARS) };
    const SCHEMA_VERSION: u32 = 2;

    async fn run(&self, input: Input, call: CallContext) -> Result<Output, Fault> {
        let search = Arc::clone(&self.0);
        call.compute(move |call| answer(&search, &input, call)).await?
    }
}

/// Answers from the index or, without one, by scanning files. Without an index this also starts to build one in the
/// background.
fn answer(search: &Search, input: &Input, call: &CallContext) -> Result<Output, Fault> {
    check(input)?;
    let begun = Instant::now();
    let ranked = match input.matching {
        Match::Literal | Match::Regex => None,
        Match::Words => Some(RankedPart::Words),
        Match::Symbol => Some(RankedPart::Symbols),
    };
    let snapshot = match ranked {
        None => {
            let within = walk_within(search, globs(input), call.caller().permissions());
            search.snapshot_or_files(within, call)
        }
        Some(part) => search.wait_for(part, call).and_then(|()| search.snapshot(call)),
    };
    let is_unindexed = snapshot.as_ref().map_or(true, |snapshot| !snapshot.is_indexed());
    let output = snapshot.and_then(|snapshot| {
        let asked = Asked { input, top: input.top as usize, begun };
        run(search, &asked, &snapshot, call)
    });
    search.rebuild_if_damaged();
    if is_unindexed && ranked.is_none() {
        search.build_in_background();
    }
    output
}

/// Answers a search from the index on disk, with all hits unless `top` is less.
pub(crate) fn search_now(
    search: &Search,
    asked: &HitSearch<'_>,
    is_fresh: bool,
    call: &CallContext,
) -> Result<(Output, Snapshot), Fault> {
    let input = Input::from(asked);
    check(&input)?;
    let begun = Instant::now();
    let snapshot = match input.matching {
        Match::Literal | Match::Regex => {
            let within = walk_within(search, globs(&input), call.caller().permissions());
            search.snapshot_on_disk_or_files(within, is_fresh)?
        }
        Match::Words | Match::Symbol => search.snapshot_on_disk(is_fresh)?,
    };
    // Half of the largest number, so that adding to it cannot overflow.
    let top = asked.top.and_then(|top| usize::try_from(top).ok()).unwrap_or(usize::MAX / 2);
    let output = run(search, &Asked { input: &input, top, begun }, &snapshot, call)?;
    Ok((output, snapshot))
}

/// A search, how many of its hits are wanted, and when it began.
struct Asked<'a> {
    input: &'a Input,
    top: usize,
    begun: Instant,
}

fn run(search: &Search, asked: &Asked<'_>, snapshot: &Snapshot, call: &CallContext) -> Result<Output, Fault> {
    let Asked { input, top, .. } = *asked;
    // `top` and the context lines may change from page to page, so they are not part of the fingerprint.
    let same = Input { cursor: None, top: 0, context: 0, before: None, after: None, ..input.clone() };
    let fingerprint = fingerprint(&same);
    let from = input.cursor.as_deref().map(|text| continued(text, fingerprint)).transpose()?;
    let filter = filter(search, input, call)?;
    let has_ended = || call.has_ended();
    let around = around(input);
    let start = from.as_ref().map_or(0, |from| usize::try_from(from.count).unwrap_or(usize::MAX));
    let most_bytes = call.largest_result();
    let request = PageRequest { start, top, around, most_bytes, fingerprint };
    let page = match input.matching {
        Match::Literal | Match::Regex => {
            let pattern = pattern_of(&input.query, meaning(input))?;
            if input.count {
                return count(search, asked, snapshot, &pattern, &filter, call);
            }
            let from = from.as_ref();
            let (pattern, filter) = (&pattern, &filter);
            let query = TextQuery { pattern, filter, top, around, most_bytes, from, fingerprint };
            search_text(&search.root, snapshot, &query, &has_ended).map(Some)
        }
        Match::Words => find_words(&search.root, snapshot, &input.query, &filter, &request, &has_ended),
        Match::Symbol => {
            let kind = input.kind.as_deref().map(kind).transpose()?;
            let query = (input.query.as_str(), is_sensitive(input), kind);
            find_names(&search.root, snapshot, query, &filter, &request, &has_ended)
        }
    };
    let page = page.map_err(|error| search.handle_error(error))?;
    let Some(Page { hits, total, is_total_exact, has_more, next, scanned }) = page else {
        let what = if input.matching == Match::Words { "words" } else { "symbols" };
        let message = format!("the index has no {what} yet; they are built after the text");
        return Err(Fault::new(ErrorCode::NoIndex, message).hint(
            "wait for the build to end, call index_build or run `pintle index`; literal and regex searches work already",
        ));
    };
    let mut summary = summary(search, snapshot, scanned, call)?;
    let is_void = hits.is_empty() && from.is_none();
    let hint =
        if is_void { no_hits_hint(search, asked, snapshot, &filter, &mut summary, call)? } else { None };
    Ok(Output {
        hits: Some(hits),
        files: None,
        total: is_total_exact.then_some(total),
        at_least: (!is_total_exact).then_some(total),
        truncated: has_more,
        cursor: next.map(|next| next.encode()),
        generation: snapshot.index.generation,
        indexed: snapshot.is_indexed(),
        coverage: Coverage::new(&summary, snapshot.is_indexed() || !has_more),
        hint,
    })
}

/// Counts the matching lines.
fn count(
    search: &Search,
    asked: &Asked<'_>,
    snapshot: &Snapshot,
    pattern: &Pattern,
    filter: &Filter<'_>,
    call: &CallContext,
) -> Result<Output, Fault> {
    let has_ended = || call.has_ended();
    let counts = count_lines(&search.root, snapshot, (pattern, filter), MOST_COUNTED, &has_ended);
    let Counts { total, files, matching_files, scanned } =
        counts.map_err(|error| search.handle_error(error))?;
    let mut summary = summary(search, snapshot, scanned, call)?;
    let hint =
        if total == 0 { no_hits_hint(search, asked, snapshot, filter, &mut summary, call)? } else { None };
    let truncated = matching_files > files.len() as u64;
    let files =
        files.into_iter().map(|(path, count)| FileCount { path: path.to_str_lossy().into_owned(), count });
    Ok(Output {
        hits: None,
        files: Some(files.collect()),
        total: Some(total),
        at_least: None,
        truncated,
        cursor: None,
        generation: snapshot.index.generation,
        indexed: snapshot.is_indexed(),
        coverage: Coverage::new(&summary, true),
        hint,
    })
}

/// Counts of what the search covers.
fn summary(
    search: &Search,
    snapshot: &Snapshot,
    scanned: ScanCounts,
    call: &CallContext,
) -> Result<Summary, Fault> {
    match snapshot.is_indexed() {
        true => search.summary(snapshot, call.caller().permissions()),
        false => Ok(Summary::of_scan(scanned)),
    }
}

/// Explains why there may be no hits.
fn no_hits_hint(
    search: &Search,
    asked: &Asked<'_>,
    snapshot: &Snapshot,
    filter: &Filter<'_>,
    summary: &mut Summary,
    call: &CallContext,
) -> Result<Option<String>, Fault> {
    /// Looking for reasons may always take this long, which nobody notices.
    const LEAST: Duration = Duration::from_millis(10);
    let input = asked.input;
    let until = Instant::now() + asked.begun.elapsed().max(LEAST);
    let meaning = meaning(input);
    let is_text = matches!(input.matching, Match::Literal | Match::Regex);
    let other_case = Meaning { case: Case::Insensitive, ..meaning };
    let other_case =
        (is_text && meaning.case != Case::Insensitive).then_some((input.query.as_str(), other_case));
    let permissions = call.caller().permissions();
    let no_hits = hint::NoHits { search, snapshot, filter, permissions, globs: globs(input), other_case };
    no_hits.hint(summary, &|| call.has_ended() || Instant::now() > until)
}

fn invalid(message: impl Into<String>) -> Fault {
    Fault::new(ErrorCode::InvalidRequest, message)
}

/// Refuses arguments that contradict each other.
fn check(input: &Input) -> Result<(), Fault> {
    check_query(&input.query)?;
    if input.query.is_empty() && matches!(input.matching, Match::Words | Match::Symbol) {
        return Err(invalid("`query` is empty").hint("say which words, or which name, to look for"));
    }
    if input.kind.is_some() && input.matching != Match::Symbol {
        return Err(invalid("`kind` is for symbols").hint("set `match` to `symbol`, or leave `kind` out"));
    }
    let is_text = matches!(input.matching, Match::Literal | Match::Regex);
    if (input.word || input.count) && !is_text {
        let name = if input.word { "word" } else { "count" };
        return Err(invalid(format!("`{name}` is for text"))
            .hint(format!("set `match` to `literal` or `regex`, or leave `{name}` out")));
    }
    if input.count && input.cursor.is_some() {
        return Err(invalid("`cursor` cannot be used with `count`, which counts all lines at once")
            .hint("leave `cursor` out"));
    }
    if input.case.is_some() && input.matching == Match::Words {
        return Err(invalid("`case` cannot be used with words, which match in any case")
            .hint("leave `case` out, or set `match` to `literal`"));
    }
    Ok(())
}

fn continued(text: &str, fingerprint: u64) -> Result<Cursor, Fault> {
    let cursor = Cursor::decode(text).ok_or_else(|| {
        invalid("`cursor` is not valid")
            .hint("pass it as the last page returned it, or leave it out to start over")
    })?;
    if cursor.query != fingerprint {
        return Err(invalid("`cursor` belongs to another search")
            .hint("repeat the search with all other arguments as before, or leave `cursor` out"));
    }
    Ok(cursor)
}

/// A longer query takes long to compile, and nobody types one.
const LONGEST_QUERY: usize = 16 << 10;

fn check_query(query: &str) -> Result<(), Fault> {
    if query.len() > LONGEST_QUERY {
        let message = format!("`query` has {} bytes, and may have {LONGEST_QUERY}", query.len());
        return Err(invalid(message).hint("search for a part of it"));
    }
    Ok(())
}

fn meaning(input: &Input) -> Meaning {
    let syntax = if input.matching == Match::Regex { Syntax::Regex } else { Syntax::Literal };
    let case = input.case.unwrap_or_default();
    Meaning { syntax, case, is_word: input.word }
}

fn around(input: &Input) -> ContextLines {
    let lines = |own: Option<u32>| own.unwrap_or(input.context) as usize;
    ContextLines { before: lines(input.before), after: lines(input.after) }
}

/// Compiles the query of a text search.
pub(crate) fn pattern_of(query: &str, meaning: Meaning) -> Result<Pattern, Fault> {
    check_query(query)?;
    Pattern::new(query, meaning).map_err(|problem| {
        let fault = invalid(format!("`query` is not valid: {problem}"));
        match meaning.syntax {
            Syntax::Regex => fault.hint("fix the expression, or set `match` to `literal`"),
            Syntax::Literal => fault.hint("search for one line, or a part of it"),
        }
    })
}

fn is_sensitive(input: &Input) -> bool {
    match input.case {
        None | Some(Case::Smart) => input.query.chars().any(char::is_uppercase),
        Some(Case::Sensitive) => true,
        Some(Case::Insensitive) => false,
    }
}

fn filter<'a>(search: &Search, input: &Input, call: &'a CallContext) -> Result<Filter<'a>, Fault> {
    filter_of(search, globs(input), input.lang.as_deref(), call.caller().permissions())
}

fn globs(input: &Input) -> &[String] {
    match &input.path {
        None => &[],
        Some(Globs::One(glob)) => std::slice::from_ref(glob),
        Some(Globs::Several(globs)) => globs.as_slice(),
    }
}

/// The filter for the files that a search covers.
pub(crate) fn filter_of<'a>(
    search: &Search,
    globs: &[String],
    lang: Option<&str>,
    permissions: &'a Permissions,
) -> Result<Filter<'a>, Fault> {
    let language = lang.map(language).transpose()?;
    globs.iter().try_for_each(|glob| refuse_absolute(search, permissions, glob))?;
    Filter::new(permissions, globs, |path| is_folder(search, permissions, path), language).map_err(
        |problem| invalid(format!("`path` is not a glob: {problem}")).hint("write it as in `src/**/*.rs`"),
    )
}

/// The paths that a scan must walk, if `path` restricts them.
pub(crate) fn walk_within(search: &Search, globs: &[String], permissions: &Permissions) -> Option<Within> {
    glob_prefixes(globs, |path| is_folder(search, permissions, path))
}

/// Refuses a glob that begins with the absolute path of the root, which would match nothing, unless the root really
/// contains such a folder.
fn refuse_absolute(search: &Search, permissions: &Permissions, glob: &str) -> Result<(), Fault> {
    let bare = glob.strip_prefix('!').unwrap_or(glob);
    match search.root_name().split(bare) {
        Some((root, relative)) if !is_folder(search, permissions, root) => {
            Err(search.root_name().refuse_absolute(glob, relative))
        }
        _ => Ok(()),
    }
}

/// Whether a path is a folder. For paths that the caller may not read this is always false, so that it does not learn
/// what exists there.
fn is_folder(search: &Search, permissions: &Permissions, path: &str) -> bool {
    WorkspacePath::parse(path).is_ok_and(|path| {
        let relative = path.as_str().trim_start_matches('/');
        permissions.may_read(&path) && search.root_path().join(relative).is_dir()
    })
}

fn language(name: &str) -> Result<Language, Fault> {
    Language::from_name(name).ok_or_else(|| {
        let hint = match nearest(name, Language::all().map(Language::name)) {
            Some(near) => format!("the nearest is `{near}`"),
            None => "write its usual name, such as `rust`, `python` or `markdown`".into(),
        };
        invalid(format!("there is no language `{name}`")).hint(hint)
    })
}

fn kind(name: &str) -> Result<Kind, Fault> {
    Kind::from_name(name).ok_or_else(|| {
        let all = Kind::all().map(Kind::name).collect::<Vec<_>>().join(", ");
        invalid(format!("there is no kind of symbol `{name}`")).hint(format!("the kinds are {all}"))
    })
}
