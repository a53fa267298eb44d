//! A search finds what ripgrep finds: the same lines and columns, in the order of paths and lines. There are two
//! differences: files with a NUL are counted but not searched; and where ripgrep reports too late a column, Pintle
//! reports the right one (`leftmost`).

mod leftmost;
mod patterns;
mod trees;

use std::{
    fs::File,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use serde_json::{Value, json};

use self::{
    leftmost::{corrected, only_misses_lines},
    patterns::{CASES, EXPRESSIONS, Generator, LITERALS, Question, REFUSED},
    trees::Tree,
};
use crate::support::{Server, Setup, hash, hold_build_lock, pintle, random::Random, rounds};

/// A line that matches.
#[derive(Debug, PartialEq, Eq)]
struct Hit {
    path: Vec<u8>,
    line: u64,
    /// None if ripgrep does not print it.
    column: Option<u64>,
    text: Vec<u8>,
}

/// The reference.
fn ripgrep_path() -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.cache/ripgrep-15.1.0/bin/rg");
    assert!(path.is_file(), "ripgrep is not there to compare with; run scripts/ripgrep");
    path.canonicalize().expect("a path")
}

fn run(command: &mut Command) -> Output {
    command.stdin(Stdio::null()).output().expect("runs")
}

/// The hits of ripgrep, in order, in files without a NUL; `Err` if it refuses the pattern.
///
/// ripgrep finds the column of a match by a second search, in another text. A pattern that matches only at the start or
/// the end of a text may not match again, and is printed without a column. In that case no hit has a column here.
fn ripgrep(tree: &Tree, question: &Question) -> Result<Vec<Hit>, String> {
    match ripgrep_with(tree, question, true)? {
        Some(hits) => Ok(hits),
        None => Ok(ripgrep_with(tree, question, false)?.expect("hits without columns")),
    }
}

/// None if a hit has no column although columns were requested.
fn ripgrep_with(tree: &Tree, question: &Question, has_columns: bool) -> Result<Option<Vec<Hit>>, String> {
    let mut command = Command::new(ripgrep_path());
    command.env_clear().current_dir(tree.root());
    command.args(["--hidden", "--glob", "!.git", "--no-ignore-parent", "--no-messages", "--no-config"]);
    command.args(["--line-number", "--no-heading", "--with-filename", "--null", "--color=never"]);
    command.args(question.case.of_ripgrep).args(question.is_word.then_some("-w"));
    if has_columns {
        command.arg("--column");
    }
    if !question.is_regex {
        command.arg("-F");
    }
    for glob in &question.globs {
        command.arg("-g").arg(glob);
    }
    let output = run(command.arg("-e").arg(&question.text));
    // With --no-messages, only errors in a pattern are printed.
    if output.status.code() == Some(2) && !output.stderr.is_empty() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let mut hits = Vec::new();
    let mut rest = output.stdout.as_slice();
    while !rest.is_empty() {
        if let Some(after) = after_warning(tree, rest) {
            rest = after;
            continue;
        }
        let (path, after) = split(rest, 0);
        let (line, after) = split(after, b'\n');
        rest = after;
        if tree.with_nul.contains(path) {
            continue;
        }
        let (number, mut text) = split(line, b':');
        let mut column = None;
        if has_columns {
            let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
            if digits == 0 || text.get(digits) != Some(&b':') {
                return Ok(None);
            }
            let (number, after) = split(text, b':');
            (column, text) = (Some(parsed(number)), after);
        }
        let line = parsed(number);
        hits.push(Hit { path: path.to_owned(), line, column, text: text.to_owned() });
    }
    // The hits of a file are in order.
    hits.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(Some(hits))
}

/// The text after ripgrep's warning that it stopped searching a file at a NUL, if there is one.
fn after_warning<'a>(tree: &Tree, text: &'a [u8]) -> Option<&'a [u8]> {
    let rests = tree.with_nul.iter().filter_map(|path| text.strip_prefix(path.as_slice()));
    let warning =
        rests.filter_map(|rest| rest.strip_prefix(b": WARNING: stopped searching binary file")).next();
    warning.map(|rest| split(rest, b'\n').1)
}

fn split(text: &[u8], at: u8) -> (&[u8], &[u8]) {
    let position = text.iter().position(|byte| *byte == at).expect("a hit has all its parts");
    (&text[..position], &text[position + 1..])
}

fn parsed(number: &[u8]) -> u64 {
    let number = std::str::from_utf8(number).ok().and_then(|number| number.parse().ok());
    number.expect("a hit has a line and a column")
}

/// The output of `pintle search` for these hits.
fn printed(hits: &[Hit]) -> Vec<u8> {
    let mut all = Vec::new();
    for Hit { path, line, column, text } in hits {
        all.extend(path);
        write!(all, ":{line}:").expect("writes");
        if let Some(column) = column {
            write!(all, "{column}:").expect("writes");
        }
        all.extend(text);
        all.push(b'\n');
    }
    all
}

fn index(tree: &Tree) {
    let mut command = pintle();
    command.arg("index").arg("--root").arg(tree.root()).arg("--state-dir").arg(tree.state());
    let output = run(&mut command);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// What answers a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Index,
    /// The files: each one is read.
    Scan,
}

impl Source {
    const ALL: [Self; 2] = [Self::Index, Self::Scan];

    /// The state folder: one with an index, or one that does not exist.
    fn state(self, tree: &Tree) -> PathBuf {
        match self {
            Self::Index => tree.state(),
            Self::Scan => tree.state().with_file_name("no-state"),
        }
    }
}

/// The output of the command line; `Err` if it refuses the query.
fn command_line(
    tree: &Tree,
    source: Source,
    question: &Question,
    has_columns: bool,
) -> Result<Vec<u8>, String> {
    let mut command = pintle();
    command.args(["search", "--line-number", "--no-heading", "--color=never"]);
    command.arg("--root").arg(tree.root()).arg("--state-dir").arg(source.state(tree));
    command.args(question.case.of_pintle).args(question.is_word.then_some("--word"));
    if has_columns {
        command.arg("--column");
    }
    if question.is_regex {
        command.arg("--regex");
    }
    for glob in &question.globs {
        command.arg(format!("--path={glob}"));
    }
    let output = run(command.arg("--").arg(&question.text));
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let is_scan = errors.contains("answered without an index");
    let is_index = errors.contains("answered from the index");
    let is_right = match source {
        Source::Index => is_index && !is_scan,
        Source::Scan => is_scan && !is_index,
    };
    match output.status.code() {
        Some(0 | 1) if !is_right => panic!("{question:?} was not answered by {source:?}: {errors}"),
        Some(2) if errors.starts_with("error: INVALID_REQUEST") => Err(errors),
        Some(code @ (0 | 1)) if (code == 1) == output.stdout.is_empty() => Ok(output.stdout),
        code => panic!("{question:?} ended with {code:?}: {errors}"),
    }
}

fn lossy(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    text.chars().take(300).collect()
}

/// The first difference of two outputs.
fn difference(expected: &[u8], found: &[u8]) -> String {
    let count = |text: &[u8]| text.iter().filter(|byte| **byte == b'\n').count();
    let mut pairs = expected.split(|byte| *byte == b'\n').zip(found.split(|byte| *byte == b'\n'));
    let (one, other) = pairs.find(|(one, other)| one != other).unwrap_or((b"the end", b"the end"));
    let (one, other) = (lossy(one), lossy(other));
    format!("{} lines, not {}; first {other:?}, not {one:?}", count(found), count(expected))
}

/// The results of many searches.
#[derive(Default)]
struct Tally {
    searches: AtomicUsize,
    with_hits: AtomicUsize,
    lines: AtomicUsize,
    refused: AtomicUsize,
    /// The searches in which a column of ripgrep was too late.
    corrected: AtomicUsize,
    wrong: Mutex<Vec<String>>,
}

impl Tally {
    fn add(&self, question: &Question, expected: Result<&[Hit], &String>, found: &Result<Vec<u8>, String>) {
        self.searches.fetch_add(1, Ordering::Relaxed);
        let wrong = match (expected, found) {
            (Ok(hits), Ok(found)) => {
                self.with_hits.fetch_add(usize::from(!hits.is_empty()), Ordering::Relaxed);
                self.lines.fetch_add(hits.len(), Ordering::Relaxed);
                let mut expected = printed(hits);
                if expected != *found {
                    expected = printed(&corrected(question, hits));
                    if only_misses_lines(question, &expected, found) {
                        expected.clone_from(found);
                    }
                    self.corrected.fetch_add(usize::from(expected == *found), Ordering::Relaxed);
                }
                (expected != *found).then(|| difference(&expected, found))
            }
            (Err(_), Err(_)) => {
                self.refused.fetch_add(1, Ordering::Relaxed);
                None
            }
            (Ok(hits), Err(error)) => Some(format!("refused, not {} lines: {error}", hits.len())),
            (Err(error), Ok(found)) => Some(format!("{} bytes, not refused as in: {error}", found.len())),
        };
        if let Some(wrong) = wrong {
            self.wrong.lock().expect("unpoisoned").push(format!("{question:?}: {wrong}"));
        }
    }

    /// Fails if any search was wrong.
    fn finish(self, what: &str) -> Self {
        let wrong = self.wrong.lock().expect("unpoisoned");
        println!(
            "{what}: {:?} searches, {:?} with hits, {:?} lines, {:?} refused, {:?} corrected, {} wrong",
            self.searches,
            self.with_hits,
            self.lines,
            self.refused,
            self.corrected,
            wrong.len()
        );
        assert!(wrong.is_empty(), "{what}: {} differ from ripgrep:\n{}", wrong.len(), wrong.join("\n"));
        drop(wrong);
        self
    }
}

/// Runs every search with ripgrep, with the index and without it.
fn compare(tree: &Tree, questions: &[Question], tally: &Tally) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(question) = questions.get(number) else { break };
                    let expected = ripgrep(tree, question);
                    let hits = expected.as_deref().unwrap_or_default();
                    let has_columns = hits.first().is_none_or(|hit| hit.column.is_some());
                    // The short form searches without the index only for some of the queries, but for each case rule.
                    let is_scanned = number.is_multiple_of(rounds(3, 1));
                    for source in &Source::ALL[..1 + usize::from(is_scanned)] {
                        let source = *source;
                        let found = command_line(tree, source, question, has_columns);
                        tally.add(question, expected.as_deref(), &found);
                    }
                }
            });
        }
    });
}

/// The difficult patterns.
fn hard_questions() -> Vec<Question> {
    let literals = LITERALS.iter().map(|text| Question::literal(*text, CASES[0]));
    let expressions = EXPRESSIONS.iter().chain(REFUSED).map(|text| Question::regex(*text, CASES[0]));
    with_cases(&literals.chain(expressions).collect::<Vec<_>>())
}

/// Patterns from the text of a tree.
fn own_questions(tree: &Tree, seed: u64, count: usize) -> Vec<Question> {
    let mut generator = Generator { random: Random::new(seed), texts: &tree.texts };
    let questions: Vec<Question> = (0..count).map(|_| generator.question(CASES[0])).collect();
    with_cases(&questions)
}

/// The long form has each query with each case rule, the short form each with one rule in turn; some match whole words.
fn with_cases(questions: &[Question]) -> Vec<Question> {
    let cases_of = |number: usize| if rounds(0, 1) == 1 { &CASES[..] } else { &CASES[number % 4..][..1] };
    let numbered = questions.iter().enumerate();
    let cased = numbered.flat_map(|(number, question)| {
        let is_word = number % 5 == 4;
        cases_of(number).iter().map(move |case| Question { case: *case, is_word, ..question.clone() })
    });
    cased.collect()
}

/// A server on a tree, with an index.
fn serve(tree: &Tree) -> Server {
    let setup = Setup::new().arg("--root").arg(tree.root()).env("PINTLE_STATE_DIR", tree.state());
    let mut server = setup.start();
    server.result("index_build", json!({}));
    server
}

/// A server for a tree without an index. It cannot build one as long as the lock is held.
fn serve_without_index(tree: &Tree) -> (Server, File) {
    let state = Source::Scan.state(tree);
    let lock = hold_build_lock(&tree.root(), &state);
    let setup = Setup::new().arg("--root").arg(tree.root()).env("PINTLE_STATE_DIR", &state);
    (setup.start(), lock)
}

fn arguments(question: &Question, top: usize) -> Value {
    let how = if question.is_regex { "regex" } else { "literal" };
    let mut arguments = json!({"query": question.text, "match": how, "top": top});
    if let Some(case) = question.case.of_tool {
        arguments["case"] = json!(case);
    }
    if question.is_word {
        arguments["word"] = json!(true);
    }
    if !question.globs.is_empty() {
        arguments["path"] = json!(question.globs);
    }
    arguments
}

/// Follows the pages of a search to the end, and checks the counts of each.
fn all_pages(server: &mut Server, question: &Question, top: usize, total: usize) -> Vec<Value> {
    let mut hits = Vec::new();
    let mut arguments = arguments(question, top);
    loop {
        let page = server.result("search", arguments.clone());
        let of_page = page["hits"].as_array().expect("hits").clone();
        let is_last = hits.len() + of_page.len() >= total;
        assert!(of_page.len() == top || is_last, "{question:?}: a short page in the middle: {page}");
        hits.extend(of_page);
        assert_eq!(page["truncated"], json!(!is_last), "{question:?}: {} of {total} hits", hits.len());
        if is_last {
            let reported = (&page["total"], page.get("atLeast"), page.get("cursor"));
            assert_eq!(reported, (&json!(total), None, None), "{question:?}: the last page");
            return hits;
        }
        assert_eq!(page.get("total"), None, "{question:?}: what a full page has ended has no total");
        let reported = page["atLeast"].as_u64().expect("how many at least") as usize;
        assert!(
            (hits.len() + 1..=total).contains(&reported),
            "{question:?}: {reported} of {total} after {}",
            hits.len()
        );
        assert!(page["cursor"].is_string(), "{question:?}: more hits, and no cursor: {page}");
        arguments["cursor"] = page["cursor"].clone();
    }
}

/// The lines and files that ripgrep counts.
fn ripgrep_counts(hits: &[Hit]) -> Value {
    let of_files = hits.chunk_by(|one, next| one.path == next.path);
    let counts = of_files
        .map(|of_file| json!({"path": String::from_utf8_lossy(&of_file[0].path), "count": of_file.len()}));
    counts.take(1000).collect()
}

/// Compares the tool with ripgrep, page by page and with counts only.
fn compare_pages(server: &mut Server, tree: &Tree, question: &Question, top: usize) {
    match ripgrep(tree, question) {
        Err(_) => {
            let error = server.error("search", arguments(question, top));
            assert_eq!(error["code"], json!("INVALID_REQUEST"), "{question:?}: {error}");
        }
        Ok(expected) => {
            let mut counting = arguments(question, top);
            counting["count"] = json!(true);
            let counted = server.result("search", counting);
            assert_eq!(counted["total"], json!(expected.len()), "{question:?}");
            assert_eq!(counted["files"], ripgrep_counts(&expected), "{question:?}");
            assert!(counted.get("hits").is_none() && counted.get("cursor").is_none(), "{counted}");
            let hits = all_pages(server, question, top, expected.len());
            assert_eq!(hits.len(), expected.len(), "{question:?}");
            let is_same = |(hit, expected): (&Value, &Hit)| {
                expected.column.is_none_or(|column| hit["column"] == json!(column))
            };
            let expected = match hits.iter().zip(&expected).all(is_same) {
                true => expected,
                false => corrected(question, &expected),
            };
            for (hit, expected) in hits.iter().zip(&expected) {
                let path = String::from_utf8_lossy(&expected.path);
                let column = expected.column.map_or(hit["column"].clone(), |column| json!(column));
                let position = json!([path, expected.line, column, expected.line]);
                let found = json!([hit["path"], hit["line"], hit["column"], hit["endLine"]]);
                assert_eq!(found, position, "{question:?}");
            }
        }
    }
}

/// The number of patterns for each tree.
fn patterns_for_each_tree() -> usize {
    rounds(50, 400)
}

#[test]
fn search_has_exactly_ripgreps_hits_on_real_trees() {
    for (name, tree, seed) in [("crates", Tree::of_crates(), 1), ("project", Tree::of_project(), 2)] {
        index(&tree);
        let tally = Tally::default();
        let questions = own_questions(&tree, seed, patterns_for_each_tree());
        compare(&tree, &questions, &tally);
        if rounds(0, 1) == 1 {
            compare(&tree, &hard_questions(), &tally);
        }
        let tally = tally.finish(name);
        // Most of them occur in the tree.
        assert!(tally.with_hits.load(Ordering::Relaxed) * 2 > questions.len(), "hardly anything was found");
        let mut server = serve(&tree);
        let (mut scanning, _lock) = serve_without_index(&tree);
        for (number, question) in questions.iter().enumerate().step_by(rounds(17, 5)) {
            if ripgrep(&tree, question).is_ok_and(|hits| hits.len() > 20_000) {
                continue;
            }
            let top = [1000, 999, 50][number % 3];
            compare_pages(&mut server, &tree, question, top);
            compare_pages(&mut scanning, &tree, question, top);
        }
        let page = scanning.result("search", json!({"query": "e"}));
        assert_eq!((&page["indexed"], &page["generation"]), (&json!(false), &json!(0)));
        scanning.finish();
        server.finish();
    }
}

#[test]
fn search_has_exactly_ripgreps_hits_on_a_difficult_tree() {
    for (name, is_repository) in [("a repository", true), ("a plain folder", false)] {
        let tree = Tree::difficult(is_repository, is_repository);
        index(&tree);
        let tally = Tally::default();
        if is_repository {
            compare(&tree, &own_questions(&tree, 3, patterns_for_each_tree()), &tally);
            compare(&tree, &hard_questions(), &tally);
        } else {
            let few = ["needle", "NEEDLE", "e", "é"].map(|text| Question::literal(text, CASES[0]));
            compare(&tree, &few, &tally);
        }
        tally.finish(name);
    }
}

/// When ripgrep finds this match too, the correction is no longer needed.
#[test]
fn the_column_is_that_of_the_first_match_where_ripgrep_reports_a_later_one() {
    let tree = Tree::new(|root| std::fs::write(root.join("a.txt"), "zabb\n").expect("writes"));
    index(&tree);
    let question = Question::regex(".bb|b", CASES[1]);
    assert_eq!(printed(&ripgrep(&tree, &question).expect("hits")), b"a.txt:1:3:zabb\n");
    for source in Source::ALL {
        let found = command_line(&tree, source, &question, true).expect("hits");
        assert_eq!(found, b"a.txt:1:2:zabb\n", "{source:?}");
    }
    let tally = Tally::default();
    compare(&tree, &[question], &tally);
    assert_eq!(tally.finish("a later match").corrected.into_inner(), 2);
}

#[test]
fn search_skips_files_with_a_nul_and_counts_them() {
    let tree = Tree::difficult(true, false);
    let (scanning, _lock) = serve_without_index(&tree);
    for mut server in [serve(&tree), scanning] {
        // A full page would end a scan early.
        let page = server.result("search", json!({"query": "nowhere to be found"}));
        assert_eq!(page["coverage"]["skipped"]["binary"], json!(tree.with_nul.len()), "{}", page["coverage"]);
        assert_eq!(page["coverage"]["complete"], json!(true), "{}", page["coverage"]);
        assert!(tree.with_nul.len() > 10, "there are such files");
        let page = server.result("search", json!({"query": "needle", "path": "binary/**"}));
        assert_eq!((&page["hits"], &page["total"]), (&json!([]), &json!(0)));
        server.finish();
    }
}

#[test]
fn search_pages_have_ripgreps_hits_in_order_and_the_last_has_the_total() {
    let tree = Tree::difficult(true, false);
    check_pages(&tree, serve(&tree), &[7, 1]);
    // Each page of a scan walks the tree.
    let (scanning, _lock) = serve_without_index(&tree);
    check_pages(&tree, scanning, &[70]);
}

fn check_pages(tree: &Tree, mut server: Server, small: &[usize]) {
    let mut questions = vec![
        Question::literal("needle", CASES[0]),
        Question::literal("needle in ", CASES[1]),
        Question::literal("NEEDLE", CASES[2]),
        Question::literal("nowhere to be found", CASES[0]),
        Question::regex("^needle", CASES[0]),
        Question::regex(r"needle\r?$", CASES[0]),
        Question::regex("k|ſ", CASES[2]),
        Question { is_word: true, ..Question::literal("needle", CASES[0]) },
        Question::regex("(", CASES[0]),
        Question::regex(r"a\nb", CASES[0]),
    ];
    // Exactly some full pages, and one hit more or less.
    let expected = ripgrep(tree, &Question::literal("needle", CASES[0])).expect("hits");
    let large = [expected.len() - 1, expected.len(), expected.len() + 1, 1000];
    for top in small.iter().chain(&large) {
        compare_pages(&mut server, tree, &questions[0], (*top).min(1000));
    }
    questions.push(Question { globs: vec!["lines/*".into(), "!*crlf*".into()], ..questions[0].clone() });
    for question in &questions {
        compare_pages(&mut server, tree, question, small[0]);
    }
    // Each hit has the hash of its file on the disk.
    let page = server.result("search", json!({"query": "needle", "top": 1000}));
    for hit in page["hits"].as_array().expect("hits") {
        let path = hit["path"].as_str().expect("a path");
        if !path.contains('\u{fffd}') {
            let content = std::fs::read(tree.root().join(path)).expect("a file");
            assert_eq!(hit["hash"], json!(hash(content)), "{path}");
        }
    }
    server.finish();
}

#[test]
fn search_globs_select_the_same_files_as_in_ripgrep() {
    let paths = [
        "a/x.c",
        "a/y.h",
        "a/b/x.c",
        "a/b/c/x.rs",
        "b/x.c",
        "b/z.c",
        "c/x.c",
        "src/main.rs",
        "src/lib/mod.rs",
        "src/a/src/deep.rs",
        "tests/one.rs",
        "tests/data/two.json",
        "x/tests/three.rs",
        "x/test/four.rs",
        "x/testing/a/five.py",
        "README.md",
        "docs/guide.md",
        "docs/API.MD",
        "top.rs",
        "a.b/c.d",
        "sp ace/f ile.txt",
        "ünï/é.txt",
        ".hidden/x.rs",
        ".dot.rs",
        "br[ack]et/x.c",
        "-dash.rs",
        "a-b/x.c",
        "!bang.rs",
        "#hash.rs",
        "star*.rs",
        "x/src/inner.rs",
        "x/a/x.c",
        "Makefile",
        "x/Makefile",
        "build.rs/not-a-file.c",
    ];
    let tree = Tree::new(|root| {
        for path in paths {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            std::fs::write(path, "here\n").expect("writes");
        }
    });
    let table: &[&[&str]] = &[
        &["*.rs"],
        &["*.c"],
        &["*.{c,h}"],
        &["*.[ch]"],
        &["*.[!c]"],
        &["*.MD"],
        &["*.md"],
        &["src/**"],
        &["/src/**"],
        &["src/*"],
        &["src/**/*.rs"],
        &["**/src/**"],
        &["**/src/*.rs"],
        &["!*.md"],
        &["!*.rs"],
        &["!src/**"],
        &["!**/test*/**"],
        &["**/test*/**"],
        &["**/test*/*"],
        &["test*/**"],
        &["**/tests/**/*.rs"],
        &["/*.rs"],
        &["/top.rs"],
        &["top.rs"],
        &["Makefile"],
        &["/Makefile"],
        &["**/Makefile"],
        &["x/Makefile"],
        &["makefile"],
        &["{a,b}/*.c"],
        &["{a,b}/**"],
        &["/{a,b}/*.c"],
        &["{a,b/z}*"],
        &["a/*/x.c"],
        &["a/**/x.c"],
        &["a/?.c"],
        &["?.c"],
        &["a*"],
        &["a*/*"],
        &["/a*/**"],
        &["*"],
        &["**"],
        &["**/*"],
        &["*/*"],
        &["/*"],
        &["/**"],
        &["!*"],
        &["!**"],
        &["!/*"],
        &["!*/*"],
        &[".*"],
        &[".*/**"],
        &[".*.rs"],
        &["!.*"],
        &["sp ace/*"],
        &["* *"],
        &["ünï/*"],
        &["?n?/*"],
        &["é.txt"],
        &["br\\[ack\\]et/**"],
        &["br[[]ack]et/*"],
        &["star\\**"],
        &["star[*]*"],
        &["\\!bang.rs"],
        &["#hash.rs"],
        &["\\#hash.rs"],
        &["-dash.rs"],
        &["*.rs", "*.c"],
        &["*.rs", "!src/**"],
        &["!src/**", "*.rs"],
        &["*.rs", "!*.rs"],
        &["!*.rs", "*.rs"],
        &["!*.rs", "top.rs"],
        &["!*.md", "!*.rs"],
        &["src/**", "!**/mod.rs"],
        &["!src/*", "src/main.rs"],
        &["**/x.c", "!a/b/**", "a/b/x.c"],
        &["*.rs/**"],
        &["build.rs/*"],
        &["nothing*"],
        &["**/a/**/x.c"],
        &["x/**/five.py"],
        &["x/**five.py"],
        &["**five.py"],
        &["a**"],
        &["a/**b/x.c"],
        &["**/**/x.c"],
        &["/**/x.c"],
        &["./src/*"],
        &["src//main.rs"],
        &["[a-c]/x.c"],
        &["[!a-b]/x.c"],
        &["[^a-b]/x.c"],
        &["{src,tests}/*.{rs,json}"],
        &["{src/**,tests/**}"],
        &["{,x/}Makefile"],
        &["*a*"],
        &["*/"],
        &["a*/"],
        &["!a*/"],
        &["!*/"],
        &["  *.rs"],
        &["*.rs "],
        &[""],
        &["!"],
        &["["],
        &["{a"],
        &["a}"],
        &["[z-a]"],
        &["\\"],
        &["a\\"],
    ];
    index(&tree);
    let tally = Tally::default();
    let questions: Vec<Question> = table
        .iter()
        .map(|globs| {
            let globs = globs.iter().map(|glob| (*glob).to_owned()).collect();
            Question { globs, ..Question::literal("here", CASES[0]) }
        })
        .collect();
    compare(&tree, &questions, &tally);
    tally.finish("globs");
    let (mut scanning, _lock) = serve_without_index(&tree);
    let mut server = serve(&tree);
    for question in &questions {
        compare_pages(&mut server, &tree, question, 1000);
        compare_pages(&mut scanning, &tree, question, 1000);
    }
    scanning.finish();
    // Unlike in ripgrep, a folder stands for all files in it.
    for (glob, same) in [
        ("/", "**"),
        ("src", "/src/**"),
        ("src/", "/src/**"),
        ("/src", "/src/**"),
        ("!src", "!/src/**"),
        ("a/b", "/a/b/**"),
    ] {
        let question = Question { globs: vec![same.into()], ..Question::literal("here", CASES[0]) };
        let expected = ripgrep(&tree, &question).expect("hits");
        let paths: Vec<String> = expected.iter().map(|hit| lossy(&hit.path)).collect();
        let page = server.result("search", json!({"query": "here", "path": glob}));
        let hits = page["hits"].as_array().expect("hits").iter();
        assert_eq!(
            hits.map(|hit| hit["path"].as_str().expect("a path")).collect::<Vec<_>>(),
            paths,
            "{glob}"
        );
    }
    server.finish();
}

#[test]
fn lines_around_hits_are_printed_byte_for_byte_as_ripgrep_prints_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let (root, state) = (folder.path().join("root"), folder.path().join("state"));
    std::fs::create_dir(&root).expect("a root");
    let long = format!("{}needle{}", "x".repeat(5000), "y".repeat(5000));
    let many =
        (0..3000).map(|line| if line % 7 < 2 { "a needle\n" } else { "some hay\n" }).collect::<String>();
    for (name, content) in [
        ("a.txt", b"one\r\ntwo needle\r\nthree\r\nfour\r\n\r\nfive needle".to_vec()),
        ("b.txt", b"needle\nneedle\nother \xff\xfe\nnot \xc3 utf needle\n\nlast\n".to_vec()),
        ("c.txt", format!("short\n{long}\nshort\n{}\nneedle\n", "z".repeat(9000)).into_bytes()),
        ("d.txt", many.into_bytes()),
        ("e.txt", b"\xef\xbb\xbfneedle\nnext\n".to_vec()),
        ("f.txt", b"nothing\n".to_vec()),
        ("i.txt", format!("{}needle\n{}", "hay\n".repeat(1_200_000), "hay\n".repeat(10)).into_bytes()),
    ] {
        std::fs::write(root.join(name), content).expect("writes");
    }
    let index = run(pintle().arg("index").arg("--root").arg(&root).arg("--state-dir").arg(&state));
    assert!(index.status.success());
    let sources = [&state, &folder.path().join("no-state")];
    for (count, state) in ["-C1", "-C2", "-C5"].iter().flat_map(|count| sources.map(|state| (count, state))) {
        for look in [
            &["-n", "--no-heading"][..],
            &["--no-heading"],
            &["-n", "--heading"],
            &["--column", "--no-heading"],
        ] {
            let mut theirs = Command::new(ripgrep_path());
            theirs.env_clear().current_dir(&root).args(["--color=never", "--sort=path", count]);
            let mut ours = pintle();
            ours.arg("search").arg("--root").arg(&root).arg("--state-dir").arg(state).arg(count);
            if !look.contains(&"-n") && !look.contains(&"--column") {
                theirs.arg("-N");
            }
            let theirs = run(theirs.args(look).arg("needle")).stdout;
            let ours = run(ours.args(look).arg("needle")).stdout;
            let lines =
                |bytes: &[u8]| bytes.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect::<Vec<_>>();
            let (theirs, ours) = (lines(&theirs), lines(&ours));
            let position = theirs.iter().zip(&ours).position(|(theirs, ours)| theirs != ours);
            let shown = |lines: &[Vec<u8>]| {
                position.map(|position| {
                    String::from_utf8_lossy(&lines[position]).chars().take(200).collect::<String>()
                })
            };
            assert_eq!(
                (shown(&ours), ours.len()),
                (shown(&theirs), theirs.len()),
                "{count} {look:?} line {position:?}"
            );
            assert!(theirs.len() > 2000);
        }
    }
}
