//! What the search tools answer and what they refuse.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Server, Setup, hash, http::initialize, pintle, request, run, wait_until};

/// A root and a state folder next to it. Several servers can use them.
pub(crate) struct World {
    folder: TempDir,
}

impl World {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("root")).expect("a root");
        Self { folder }
    }

    /// A world with these files.
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let world = Self::new();
        for (path, content) in files {
            world.write(path, content);
        }
        world
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.path("root")
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.path("state")
    }

    /// A path below the root.
    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.root().join(path)
    }

    /// Writes a file as any program would, and creates its folders.
    pub(crate) fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, content).expect("writes");
    }

    pub(crate) fn setup(&self) -> Setup {
        Setup::new().arg("--root").arg(self.root()).env("PINTLE_STATE_DIR", self.state())
    }

    pub(crate) fn start(&self) -> Server {
        self.setup().start()
    }

    /// A server with an index.
    pub(crate) fn built(&self) -> Server {
        let mut server = self.start();
        server.result("index_build", json!({}));
        server
    }

    /// The folder of the one index in the state folder.
    pub(crate) fn index(&self) -> PathBuf {
        self.index_if_any().expect("an index")
    }

    /// The folder of the only index in the state folder, if its first build has created it.
    pub(crate) fn index_if_any(&self) -> Option<PathBuf> {
        let mut entries = fs::read_dir(self.state().join("index")).ok()?;
        let index = entries.next()?.expect("an entry").path();
        assert!(entries.next().is_none(), "there is one index");
        Some(index)
    }

    /// Runs a command of the binary in this root.
    pub(crate) fn run(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        let mut command = pintle();
        command.args(arguments).arg("--root").arg(self.root()).env("PINTLE_STATE_DIR", self.state());
        run(command.current_dir(self.folder.path()), b"")
    }
}

/// The answer to a search with the largest page.
pub(crate) fn search(server: &mut Server, how: &str, query: &str) -> Value {
    server.result("search", json!({"query": query, "match": how, "top": 1000}))
}

/// The path and line of each hit of an answer.
pub(crate) fn positions(answer: &Value) -> Vec<(String, u64)> {
    let hits = answer["hits"].as_array().unwrap_or_else(|| panic!("no hits: {answer}"));
    let position = |hit: &Value| Some((hit["path"].as_str()?.to_owned(), hit["line"].as_u64()?));
    hits.iter().map(|hit| position(hit).unwrap_or_else(|| panic!("no position: {hit}"))).collect()
}

/// The paths of the hits of an answer, in order.
pub(crate) fn paths(answer: &Value) -> Vec<String> {
    positions(answer).into_iter().map(|(path, _)| path).collect()
}

/// The names in a folder on the disk.
pub(crate) fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("text")).collect()
}

/// Asserts that a call is refused as invalid, with these parts in the message or the hint.
pub(crate) fn assert_refused(server: &mut Server, tool: &str, arguments: Value, pieces: &[&str]) {
    let frame = server.call(tool, arguments.clone());
    let error = &frame["error"]["data"];
    assert_eq!(error["code"], json!("INVALID_REQUEST"), "{arguments}: {frame}");
    let reported = error.to_string();
    for piece in pieces {
        assert!(reported.contains(piece), "{arguments}: {piece} is not in {error}");
    }
}

fn small() -> World {
    World::of(&[
        (
            "src/shapes.rs",
            "pub struct Circle {\n    radius: f64,\n}\n\nimpl Circle {\n    pub fn area_of_circle(&self) -> f64 {\n        self.radius\n    }\n}\n\nfn helper() {}\n",
        ),
        (
            "src/shapes.py",
            "class Circle:\n    def area_of_circle(self):\n        return 1\n\ndef helper():\n    pass\n",
        ),
        ("notes/circle.md", "# Circle\n\nthe circle is round\n"),
        ("notes/other.md", "nothing here is round\nbut a square\n"),
    ])
}

#[test]
fn a_hit_has_its_position_and_the_hash_for_an_edit() {
    let world =
        World::of(&[("a.txt", "one\r\ntwo needle and needle\r\n\tthree\n"), ("b/c.txt", "Ünï needle\n")]);
    let mut server = world.built();
    let answer = search(&mut server, "literal", "needle");
    let expected = json!([
        {
            "path": "a.txt", "line": 2, "column": 5, "endLine": 2, "text": "two needle and needle",
            "before": [], "after": [], "hash": hash("one\r\ntwo needle and needle\r\n\tthree\n"),
        },
        {
            "path": "b/c.txt", "line": 1, "column": 7, "endLine": 1, "text": "Ünï needle",
            "before": [], "after": [], "hash": hash("Ünï needle\n"),
        },
    ]);
    assert_eq!(answer["hits"], expected);
    assert_eq!((&answer["total"], &answer["truncated"]), (&json!(2), &json!(false)));
    assert!(answer.get("cursor").is_none(), "{answer}");
    let edit = json!({
        "path": "a.txt", "hash": answer["hits"][0]["hash"], "lines": [2, 3],
        "old": answer["hits"][0]["text"], "new": "done",
    });
    server.result("text.replace", edit);
    assert_eq!(positions(&search(&mut server, "literal", "needle")), [("b/c.txt".to_owned(), 1)]);
    server.finish();
}

#[test]
fn context_is_the_lines_before_and_after_as_far_as_there_are_any() {
    let world = World::of(&[
        ("a.txt", "1\n2\n3\nneedle\n5\n6\n7\n"),
        ("b.txt", "needle"),
        ("c.txt", "x\r\nneedle\r\ny\r\n"),
    ]);
    let mut server = world.built();
    let answer = server.result("search", json!({"query": "needle", "context": 2}));
    let around: Vec<_> =
        answer["hits"].as_array().expect("hits").iter().map(|hit| (&hit["before"], &hit["after"])).collect();
    let expected =
        [(json!(["2", "3"]), json!(["5", "6"])), (json!([]), json!([])), (json!(["x"]), json!(["y"]))];
    assert_eq!(around, expected.iter().map(|(before, after)| (before, after)).collect::<Vec<_>>());
    for how in ["words", "symbol"] {
        world.write("d.rs", "// above\nfn zeppelin() {}\n// below\n");
        let answer = server.result("search", json!({"query": "zeppelin", "match": how, "context": 1}));
        let hit = &answer["hits"][0];
        assert_eq!(
            (&hit["before"], &hit["after"]),
            (&json!(["// above"]), &json!(["// below"])),
            "{how}: {answer}"
        );
    }
    assert_refused(&mut server, "search", json!({"query": "x", "context": 51}), &["context"]);
    server.finish();
}

#[test]
fn a_long_line_is_cut_around_the_match_and_has_the_offset_of_the_cut() {
    let line = format!("{}needle{}", "ä".repeat(5000), "z".repeat(5000));
    let world = World::of(&[
        ("long.txt", &format!("{line}\n")),
        ("start.txt", &format!("needle{}\n", "y".repeat(9000))),
    ]);
    let mut server = world.built();
    for how in ["literal", "regex", "words"] {
        let answer = search(&mut server, how, if how == "words" { "yneedle needle" } else { "needle" });
        for hit in answer["hits"].as_array().expect("hits") {
            let complete =
                fs::read_to_string(world.at(hit["path"].as_str().expect("a path"))).expect("reads");
            let text = hit["text"].as_str().expect("text");
            assert!(text.len() < 3000, "{how}: {} bytes", text.len());
            let from =
                hit["textColumn"].as_u64().map_or(0, |column| usize::try_from(column).expect("small") - 1);
            assert!(complete[from..].starts_with(text), "{how}: it is not what is at {from}");
            let column = usize::try_from(hit["column"].as_u64().expect("a column")).expect("small") - 1;
            if how != "words" {
                assert!(text[column - from..].starts_with("needle"), "{how}: {column} {from}");
            }
        }
        if how != "words" {
            assert_eq!(paths(&answer), ["long.txt", "start.txt"], "{how}");
            assert_eq!(answer["hits"][0]["column"], json!(10_001), "{how}");
        }
    }
    server.finish();
}

#[test]
fn searches_are_case_sensitive_by_default() {
    let world = World::of(&[("a.txt", "Needle\nneedle\nNEEDLE\n")]);
    let mut server = world.built();
    for (query, case, lines) in [
        ("needle", None, vec![2]),
        ("Needle", None, vec![1]),
        ("Needle", Some("smart"), vec![1]),
        ("needle", Some("smart"), vec![1, 2, 3]),
        ("needle", Some("sensitive"), vec![2]),
        ("NEEdle", Some("insensitive"), vec![1, 2, 3]),
    ] {
        for how in ["literal", "regex"] {
            let mut arguments = json!({"query": query, "match": how});
            if let Some(case) = case {
                arguments["case"] = json!(case);
            }
            let answer = server.result("search", arguments);
            let found: Vec<u64> = positions(&answer).into_iter().map(|(_, line)| line).collect();
            assert_eq!(found, lines, "{query} {case:?} {how}");
        }
    }
    // In an expression, the letter of an escape does not count as upper case.
    let arguments = json!({"query": r"needl\S", "match": "regex", "case": "smart"});
    assert_eq!(server.result("search", arguments)["total"], json!(3));
    server.finish();
}

#[test]
fn globs_select_files_and_a_folder_stands_for_all_files_in_it() {
    let world = World::new();
    for path in ["a.rs", "src/a.rs", "src/b.txt", "src/deep/c.rs", "other/src/d.rs", ".hid/e.rs"] {
        world.write(path, "needle\n");
    }
    let mut server = world.built();
    for (globs, expected) in [
        (json!("src"), vec!["src/a.rs", "src/b.txt", "src/deep/c.rs"]),
        (json!("/src/"), vec!["src/a.rs", "src/b.txt", "src/deep/c.rs"]),
        (json!("*.txt"), vec!["src/b.txt"]),
        (json!("src/**/*.rs"), vec!["src/a.rs", "src/deep/c.rs"]),
        (json!("/*.rs"), vec!["a.rs"]),
        (json!(["*.rs", "!src"]), vec![".hid/e.rs", "a.rs", "other/src/d.rs"]),
        (json!("!*.rs"), vec!["src/b.txt"]),
        (json!("missing"), vec![]),
    ] {
        for (how, query) in [("literal", "needle"), ("regex", "ne+dle")] {
            let answer = server.result("search", json!({"query": query, "match": how, "path": globs}));
            assert_eq!(paths(&answer), expected, "{globs} {how}");
            assert_eq!(answer["total"], json!(expected.len()), "{globs} {how}");
        }
        let answer = server.result("search", json!({"query": "needle", "match": "words", "path": globs}));
        assert_eq!(
            paths(&answer).into_iter().collect::<BTreeSet<_>>(),
            expected.iter().map(|path| (*path).to_owned()).collect(),
            "{globs} words"
        );
    }
    let answer = server.result("search", json!({"query": "needle", "lang": "rust", "path": "src"}));
    assert_eq!(paths(&answer), ["src/a.rs", "src/deep/c.rs"]);
    assert_refused(&mut server, "search", json!({"query": "x", "path": "a{b"}), &["path", "glob"]);
    server.finish();
}

#[test]
fn words_rank_the_file_that_is_about_them_first() {
    let world = World::new();
    let filler = "lorem ipsum dolor sit amet\n".repeat(60);
    world.write("about.txt", "zebra habits\nthe zebra eats, the zebra sleeps\nzebra stripes\n");
    world.write("once.txt", format!("{filler}a zebra was here\n{filler}"));
    world.write("both.txt", "zebra and quagga side by side\n");
    for number in 0..30 {
        world.write(&format!("filler/{number}.txt"), &filler);
    }
    let mut server = world.built();
    let answer = search(&mut server, "words", "zebra");
    assert_eq!(answer["total"], json!(3), "{answer}");
    assert_eq!(paths(&answer).last().map(String::as_str), Some("once.txt"), "{answer}");
    let scores: Vec<f64> =
        answer["hits"].as_array().expect("hits").iter().filter_map(|hit| hit["score"].as_f64()).collect();
    assert_eq!(scores.len(), 3, "{answer}");
    assert!(
        scores.is_sorted_by(|one, next| one >= next) && scores.iter().all(|score| *score > 0.0),
        "{scores:?}"
    );
    let once = answer["hits"].as_array().expect("hits").iter().find(|hit| hit["path"] == "once.txt");
    assert_eq!(once.map(|hit| (&hit["line"], &hit["column"])), Some((&json!(61), &json!(3))), "{answer}");
    // The file with both words is first, and words match in any case.
    assert_eq!(paths(&search(&mut server, "words", "quagga ZEBRA"))[0], "both.txt");
    assert_eq!(search(&mut server, "words", "unheard")["total"], json!(0));
    // The pages together have all hits, in the same order.
    let mut gathered = Vec::new();
    let mut arguments = json!({"query": "zebra", "match": "words", "top": 1});
    loop {
        let page = server.result("search", arguments.clone());
        gathered.extend(paths(&page));
        let Some(cursor) = page.get("cursor") else { break };
        assert_eq!(page["truncated"], json!(true), "{page}");
        arguments["cursor"] = cursor.clone();
    }
    assert_eq!(gathered, paths(&answer));
    server.finish();
}

#[test]
fn symbols_are_found_exactly_by_their_start_and_nearly() {
    let world = small();
    let mut server = world.built();
    let found = |answer: &Value| -> Vec<(String, String, String)> {
        let text = |hit: &Value, field: &str| hit[field].as_str().expect("text").to_owned();
        let hits = answer["hits"].as_array().expect("hits").iter();
        hits.map(|hit| (text(hit, "path"), text(hit, "kind"), text(hit, "name"))).collect()
    };
    let all = found(&search(&mut server, "symbol", "area_of_circle"));
    assert_eq!(all.len(), 2, "{all:?}");
    assert!(all.iter().all(|(_, kind, name)| kind == "method" && name == "area_of_circle"), "{all:?}");
    for query in ["area", "area_of", "areaofcircle", "aoc"] {
        let names: BTreeSet<_> =
            found(&search(&mut server, "symbol", query)).into_iter().map(|(.., name)| name).collect();
        assert!(names.contains("area_of_circle"), "{query}: {names:?}");
        assert!(!names.contains("helper"), "{query}: {names:?}");
    }
    // The exact name comes before longer ones.
    let named = found(&search(&mut server, "symbol", "Circle"));
    assert_eq!(named[0].2, "Circle", "{named:?}");
    let arguments = json!({"query": "Circle", "match": "symbol", "kind": "struct"});
    let structs = server.result("search", arguments);
    assert_eq!(found(&structs), [("src/shapes.rs".to_owned(), "struct".to_owned(), "Circle".to_owned())]);
    let hit = &structs["hits"][0];
    assert_eq!((&hit["line"], &hit["endLine"], &hit["column"]), (&json!(1), &json!(3), &json!(12)), "{hit}");
    let arguments = json!({"query": "helper", "match": "symbol", "lang": "python"});
    let helpers = found(&server.result("search", arguments));
    assert_eq!(helpers, [("src/shapes.py".to_owned(), "function".to_owned(), "helper".to_owned())]);
    let arguments = json!({"query": "helper", "match": "symbol", "kind": "class"});
    assert_eq!(server.result("search", arguments)["total"], json!(0));
    let arguments = json!({"query": "HELPER", "match": "symbol", "case": "insensitive"});
    assert_eq!(server.result("search", arguments)["total"], json!(2));
    server.finish();
}

#[test]
fn an_invalid_query_is_refused_and_the_error_says_what_to_do() {
    let world = small();
    let mut server = world.built();
    for (arguments, pieces) in [
        (json!({"query": "x", "lang": "rus"}), &["rus", "rust"][..]),
        (json!({"query": "x", "lang": "klingon"}), &["klingon"]),
        (json!({"query": "x", "match": "symbol", "kind": "func"}), &["func", "function"]),
        (json!({"query": "x", "kind": "function"}), &["kind", "symbol"]),
        (json!({"query": "x", "match": "words", "kind": "function"}), &["kind", "symbol"]),
        (json!({"query": "x", "match": "words", "case": "smart"}), &["case", "words"]),
        (json!({"query": "x", "top": 0}), &["top"]),
        (json!({"query": "x", "top": 1001}), &["top"]),
        (json!({"query": "x", "top": -1}), &["top"]),
        (json!({"query": "x", "top": 1.5}), &["top"]),
        (json!({"query": "x", "context": -1}), &["context"]),
        (json!({"query": "(", "match": "regex"}), &["expression"]),
        (json!({"query": "a{2,1}", "match": "regex"}), &["expression"]),
        (json!({"query": "(?=x)", "match": "regex"}), &["expression"]),
        (json!({"query": "a\nb"}), &["line"]),
        (json!({"query": "a\\nb", "match": "regex"}), &[]),
        (json!({"query": "", "match": "words"}), &["query"]),
        (json!({"query": "", "match": "symbol"}), &["query"]),
        (json!({"query": "x", "match": "glob"}), &["match"]),
        (json!({"query": "x", "case": "upper"}), &["case"]),
        (json!({"query": "x", "cursor": "nonsense"}), &["cursor"]),
        (json!({"query": "x", "cursor": ""}), &["cursor"]),
        (json!({"query": "x", "paths": "y"}), &["paths", "path"]),
        (json!({}), &["query"]),
    ] {
        assert_refused(&mut server, "search", arguments, pieces);
    }
    assert_refused(&mut server, "index_build", json!({"mode": "quick"}), &["mode"]);
    assert_refused(&mut server, "index_build", json!({"path": "../x"}), &["leaves the root"]);
    assert_refused(&mut server, "index_status", json!({"path": "x"}), &["path"]);
    server.finish();
}

#[test]
fn all_pages_together_have_all_hits_and_a_cursor_of_another_search_is_refused() {
    let world = World::new();
    for number in 0..25 {
        world.write(&format!("{:02}/a.txt", number), "needle\nother\nneedle\nneedle needle\n");
    }
    let mut server = world.built();
    let complete = search(&mut server, "literal", "needle");
    assert_eq!((&complete["total"], &complete["truncated"]), (&json!(75), &json!(false)));
    for top in [1, 2, 7, 74, 75, 76] {
        let mut hits = Vec::new();
        let mut arguments = json!({"query": "needle", "top": top});
        loop {
            let page = server.result("search", arguments.clone());
            let some = page["hits"].as_array().expect("hits");
            assert!(some.len() <= top, "{page}");
            hits.extend(some.clone());
            assert_eq!(page["truncated"].as_bool(), Some(page.get("cursor").is_some()), "{page}");
            if page["truncated"] == json!(false) {
                assert_eq!(page["total"], json!(75), "{page}");
                break;
            }
            assert!(page.get("total").is_none(), "{page}");
            let at_least = page["atLeast"].as_u64().expect("how many at least");
            assert!((hits.len() as u64 + 1..=75).contains(&at_least), "{page}");
            arguments["cursor"] = page["cursor"].clone();
        }
        assert_eq!(json!(hits), complete["hits"], "{top}");
    }
    let first = server.result("search", json!({"query": "needle", "top": 10}));
    let cursor = &first["cursor"];
    for other in [
        json!({"query": "other", "top": 10, "cursor": cursor}),
        json!({"query": "needle", "top": 10, "match": "regex", "cursor": cursor}),
        json!({"query": "needle", "top": 10, "match": "words", "cursor": cursor}),
        json!({"query": "needle", "top": 10, "case": "sensitive", "cursor": cursor}),
        json!({"query": "needle", "top": 10, "path": "01", "cursor": cursor}),
    ] {
        assert_refused(&mut server, "search", other, &["cursor", "another search"]);
    }
    // A file that is removed between two pages does not shift the others.
    fs::remove_dir_all(world.at("00")).expect("removes");
    fs::remove_dir_all(world.at("24")).expect("removes");
    let next = server.result("search", json!({"query": "needle", "top": 10, "cursor": cursor}));
    assert_eq!(
        next["hits"].as_array().expect("hits")[..],
        complete["hits"].as_array().expect("hits")[10..20]
    );
    server.finish();
}

#[test]
fn an_expression_that_is_huge_is_refused_or_answered_and_the_next_search_works() {
    let world = World::of(&[("a.txt", &format!("{}\nneedle\n", "a".repeat(100_000)))]);
    let mut server = world.built();
    for query in [
        r"(\w{1000}){1000}",
        r"(((\w{100}){100}){100}){100}",
        r"(a|b|c|d|e){500}(x+x+)+y",
        r"\p{L}{300}\p{N}{300}",
        &"(".repeat(5000),
        &"a|".repeat(5_000),
        &format!("{}{}", "(".repeat(300), ")".repeat(300)),
    ] {
        let frame = server.call("search", json!({"query": query, "match": "regex"}));
        let short: String = query.chars().take(30).collect();
        assert!(
            frame.get("result").is_some() || frame["error"]["data"]["code"] == json!("INVALID_REQUEST"),
            "{short}: {frame}"
        );
        assert_eq!(search(&mut server, "literal", "needle")["total"], json!(1), "{short}");
    }
    server.finish();
}

#[test]
fn a_search_that_takes_long_can_be_cancelled_and_others_are_answered_meanwhile() {
    let world = World::new();
    // One line, on which every start of a match is tried in vain.
    world.write("long.txt", format!("{}\n", "ab".repeat(8 << 20)));
    world.write("short.txt", "needle\n");
    let mut server = world.built();
    server.send(&initialize("2025-11-25"));
    server.frame();
    server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let call = |id: &str, arguments: Value| {
        request(json!(id), "tools/call", json!({"name": "search", "arguments": arguments}))
    };
    let slow = json!({"query": r"[ab]{1,900}[ba]{1,900}(a|ab|b){40}[^ab]$", "match": "regex"});
    server.send(&call("slow", slow));
    server.send(&call("quick", json!({"query": "needle"})));
    // The quick search is answered although the slow one was sent before it.
    let mut frame = server.frame();
    let was_slow_first = frame["id"] == json!("slow");
    if was_slow_first {
        println!("the slow search was not slow enough to be overtaken");
        frame = server.frame();
    }
    assert_eq!(frame["id"], json!("quick"), "{frame}");
    assert_eq!(frame["result"]["structuredContent"]["total"], json!(1), "{frame}");
    if !was_slow_first {
        server.send(&json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "slow"}}));
        let frame = server.frame();
        assert_eq!(frame["id"], json!("slow"), "{frame}");
    }
    server.send(&call("after", json!({"query": "needle"})));
    assert_eq!(server.frame()["id"], json!("after"));
    server.finish();
}

#[test]
fn a_search_over_its_deadline_fails_with_a_timeout() {
    let world = World::new();
    world.write("long.txt", format!("{}\n", "ab".repeat(8 << 20)));
    world.write("short.txt", "needle\n");
    world.built().finish();
    let mut server = world.setup().args(["--timeout", "search=1ms"]).start();
    let slow = json!({"query": r"[ab]{1,900}[ba]{1,900}(a|ab|b){40}[^ab]$", "match": "regex"});
    let error = server.error("search", slow);
    assert_eq!((&error["code"], &error["timeoutMs"]), (&json!("TOOL_TIMEOUT"), &json!(1)), "{error}");
    assert_eq!(server.result("index_status", json!({}))["files"], json!(2));
    server.finish();
}

#[test]
fn a_file_is_shown_with_line_numbers_an_outline_and_the_hash_of_text_read() {
    let world = small();
    let mut server = world.start();
    // No index is needed, and there is none.
    let shown = server.result("show_file", json!({"path": "src/shapes.rs", "outline": true}));
    let text = fs::read_to_string(world.at("src/shapes.rs")).expect("reads");
    let numbered: String =
        text.lines().zip(1..).map(|(line, number)| format!("{number}\t{line}\n")).collect();
    assert_eq!(shown["text"], json!(numbered));
    assert_eq!((&shown["total_lines"], &shown["language"]), (&json!(11), &json!("rust")));
    assert_eq!(shown["hash"], json!(hash(&text)));
    let outline = json!([
        {"kind": "struct", "name": "Circle", "line": 1, "endLine": 3},
        {"kind": "method", "name": "area_of_circle", "line": 6, "endLine": 8},
        {"kind": "function", "name": "helper", "line": 11, "endLine": 11},
    ]);
    let reported: Vec<&Value> = outline.as_array().expect("a list").iter().collect();
    let given = shown["outline"].as_array().expect("an outline");
    assert!(reported.iter().all(|one| given.contains(one)), "{shown}");
    for (path, lines) in [
        ("src/shapes.rs", [1, 0]),
        ("src/shapes.rs", [2, 4]),
        ("src/shapes.rs", [-2, 0]),
        ("src/shapes.rs", [-3, -1]),
        ("src/shapes.rs", [10, 500]),
        ("notes/other.md", [1, 2]),
    ] {
        let read = server.result("text.read", json!({"path": path, "lines": lines}));
        let shown = server.result("show_file", json!({"path": path, "lines": lines}));
        assert!(shown.get("outline").is_none(), "it was not asked for: {shown}");
        let text = shown["text"].as_str().expect("text");
        let bare: String =
            text.split_inclusive('\n').map(|line| line.split_once('\t').expect("a tab").1).collect();
        assert_eq!(json!(bare), read["content"], "{path} {lines:?}");
        assert_eq!(
            (&shown["hash"], &shown["total_lines"]),
            (&read["hash"], &read["total_lines"]),
            "{path} {lines:?}"
        );
        let all = i64::try_from(shown["total_lines"].as_u64().expect("a count")).expect("small");
        let first = if lines[0] < 0 { all + lines[0] + 1 } else { lines[0] };
        assert!(text.starts_with(&format!("{first}\t")), "{path} {lines:?}: {text}");
    }
    for lines in [[12, 0], [3, 3], [0, 0], [5, 2]] {
        let shown = server.call("show_file", json!({"path": "src/shapes.rs", "lines": lines}));
        let read = server.call("text.read", json!({"path": "src/shapes.rs", "lines": lines}));
        assert_eq!(
            shown["error"]["data"]["code"], read["error"]["data"]["code"],
            "{lines:?}: {shown} {read}"
        );
    }
    world.write("empty.rs", "");
    world.write("binary.rs", b"\xff\xfe\0");
    let shown = server.result("show_file", json!({"path": "empty.rs", "outline": true}));
    assert_eq!(
        (&shown["text"], &shown["total_lines"], &shown["outline"]),
        (&json!(""), &json!(0), &json!([]))
    );
    assert_refused(&mut server, "show_file", json!({"path": "binary.rs"}), &["file.read"]);
    assert_refused(&mut server, "show_file", json!({"path": "src"}), &["folder"]);
    assert_refused(&mut server, "show_file", json!({"path": "../x"}), &["leaves the root"]);
    assert_eq!(server.error("show_file", json!({"path": "missing"}))["code"], json!("NOT_FOUND"));
    // The outline is that of the current content.
    let edit = json!({"path": "src/shapes.rs", "hash": hash(&text), "content": "fn added() {}"});
    server.result("text.append", edit);
    let shown =
        server.result("show_file", json!({"path": "src/shapes.rs", "lines": [1, 2], "outline": true}));
    assert!(shown["outline"].to_string().contains("added"), "{shown}");
    server.finish();
}

#[test]
fn the_command_line_finds_the_same_and_never_shows_outdated_lines() {
    let world = small();
    let (code, scanned, errors) = world.run(&["search", "circle"]);
    assert!(code == Some(0) && errors.contains("`pintle index`"), "{code:?}: {errors}");
    assert!(!world.state().exists(), "a search makes nothing");
    let (code, _, errors) = world.run(&["index"]);
    assert_eq!(code, Some(0), "{errors}");
    assert_eq!(world.run(&["search", "circle"]).1, scanned);
    let mut server = world.start();
    for (how, query) in
        [("literal", "circle"), ("regex", "c[a-z]rcle"), ("words", "circle round"), ("symbol", "Circle")]
    {
        let (code, output, errors) = world.run(&["search", query, "--match", how, "--json"]);
        assert_eq!(code, Some(0), "{errors}");
        let reported: Value =
            serde_json::from_str(&output).unwrap_or_else(|error| panic!("{error}: {output}"));
        assert_eq!(reported["hits"], search(&mut server, how, query)["hits"], "{how}");
    }
    server.finish();
    world.write("notes/circle.md", "# Nothing any more\n");
    fs::remove_file(world.at("src/shapes.py")).expect("removes");
    world.write("notes/new.md", "a new circle\n");
    let (_, output, _) = world.run(&["search", "circle", "--json"]);
    let reported: Value = serde_json::from_str(&output).unwrap_or_else(|error| panic!("{error}: {output}"));
    let found: BTreeSet<String> = paths(&reported).into_iter().collect();
    assert!(found.contains("src/shapes.rs"), "{reported}");
    assert!(!found.contains("notes/circle.md") && !found.contains("src/shapes.py"), "{reported}");
    let (_, output, _) = world.run(&["search", "circle", "--json", "--fresh"]);
    let reported: Value = serde_json::from_str(&output).unwrap_or_else(|error| panic!("{error}: {output}"));
    let found: BTreeSet<String> = paths(&reported).into_iter().collect();
    assert_eq!(found, ["notes/new.md", "src/shapes.rs"].map(String::from).into());
}

#[test]
fn a_slow_expression_on_one_line_stops_with_its_call() {
    let world = World::new();
    let mut random = crate::support::random::Random::new(1);
    let line = (0..2 << 20).map(|_| b"ab"[random.below(2)]).collect::<Vec<u8>>();
    world.write("one", line);
    world.write("two", "foo small\n");
    world.built().finish();
    let mut server = world.setup().args(["--timeout", "search=500ms", "--running", "4"]).start();
    // On a busy machine half a second may be too short for any search, so a search that must succeed is repeated until
    // it does.
    let is_answered = |server: &mut Server| {
        let frame = server.call("search", json!({"query": "foo small"}));
        frame["result"]["total"] == json!(1)
    };
    wait_until("a search is answered", || is_answered(&mut server));
    // As many calls as may run at the same time.
    for end in ["", "x?", "y?", "z?"] {
        let query = json!({"query": format!("a[^z]{{900}}[^ab]{end}"), "match": "regex", "path": "one"});
        let frame = server.call("search", query);
        assert_eq!(frame["error"]["data"]["code"], json!("TOOL_TIMEOUT"), "{frame}");
    }
    // If those were still running, no slot would be free for this one.
    wait_until("a search is answered", || is_answered(&mut server));
    assert_eq!(server.result("text.read", json!({"path": "two"}))["total_lines"], json!(1));
    server.finish();
}

#[test]
fn an_expression_whose_matches_are_longer_than_a_line_is_not_tried_on_it() {
    // To try every start of a match would take minutes, longer than the timeout of this test.
    let world = World::of(&[("one", &format!("{}\n", "x".repeat(60_000))), ("two", "xxx Q\n")]);
    let mut server = world.built();
    for query in ["x{61000}", "[a-z]{61000}", "(xx|yy){30001}", "x{50000}Q", "x{40000}[QR]"] {
        let answer = search(&mut server, "regex", query);
        assert_eq!(answer["total"], json!(0), "{query}: {answer}");
    }
    server.finish();
}

#[test]
fn long_lines_have_ripgreps_columns() {
    let filler = "x".repeat(100_000);
    let world = World::of(&[("a", &format!("{filler}needle7{filler}needle8\nshort needle9\n{filler}"))]);
    let mut server = world.built();
    let answer = server.result("search", json!({"query": "need[a-z]+[789]", "match": "regex"}));
    let positions = answer["hits"].as_array().expect("hits").iter();
    let positions = positions.map(|hit| (hit["line"].clone(), hit["column"].clone())).collect::<Vec<_>>();
    assert_eq!(positions, [(json!(1), json!(100_001)), (json!(2), json!(7))]);
    server.finish();
}

#[test]
fn a_replaced_root_is_reported_and_its_index_is_kept() {
    let world = World::of(&[("a", "needle\n")]);
    let mut server = world.built();
    assert_eq!(search(&mut server, "literal", "needle")["total"], json!(1));
    fs::rename(world.root(), world.path("elsewhere")).expect("moves");
    fs::create_dir(world.root()).expect("a folder");
    for tool in ["search", "index_build"] {
        let arguments = if tool == "search" { json!({"query": "needle"}) } else { json!({}) };
        let frame = server.call(tool, arguments);
        assert_eq!(frame["error"]["data"]["code"], json!("CAPABILITY_MISSING"), "{frame}");
    }
    assert_eq!(server.result("check_status", json!({}))["ok"], json!(false));
    fs::remove_dir(world.root()).expect("removes");
    fs::rename(world.path("elsewhere"), world.root()).expect("moves");
    assert_eq!(search(&mut server, "literal", "needle")["total"], json!(1));
    server.finish();
}

#[test]
fn the_size_limit_is_the_index_s_own_until_it_is_built_again() {
    let world = World::of(&[("small", "foo\n"), ("big", &"foo foo foo\n".repeat(400))]);
    let mut first = world.setup().args(["--max-file-bytes", "1000"]).start();
    first.result("index_build", json!({}));
    let mut second = world.start();
    world.write("big2", "foo bar baz\n".repeat(400));
    for server in [&mut first, &mut second] {
        let answer = search(server, "literal", "foo");
        assert_eq!(answer["total"], json!(1), "{answer}");
        assert_eq!(answer["coverage"]["files"], json!(1));
        assert_eq!(answer["coverage"]["skipped"]["too_large"], json!(2));
        assert_eq!(server.result("index_status", json!({}))["maxFileBytes"], json!(1000));
    }
    let warnings = second.result("check_status", json!({}))["warnings"].to_string();
    assert!(warnings.contains("up to 1000 bytes"), "{warnings}");
    second.result("index_build", json!({}));
    assert_eq!(search(&mut second, "literal", "foo")["total"], json!(801));
    first.finish();
    second.finish();
}

#[test]
fn a_result_with_too_many_context_lines_is_refused_within_bounded_memory() {
    let line = format!("needle {}\n", "x".repeat(1_900));
    let world = World::of(&[("a.txt", &line.repeat(1_500))]);
    let mut server = world.built();
    for how in ["literal", "words"] {
        let query = json!({"query": "needle", "match": how, "top": 1000, "context": 50});
        let frame = server.call("search", query);
        if how == "literal" {
            let error = &frame["error"]["data"];
            assert_eq!(error["details"]["reason"], json!("result_too_large"), "{frame}");
            assert!(error["hint"].as_str().is_some_and(|hint| hint.contains("`context`")), "{frame}");
        }
    }
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).expect("a status");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("peak memory");
    let kilobytes = peak.trim().trim_end_matches(" kB").parse::<u64>().expect("a number");
    assert!(kilobytes < 200 << 10, "{kilobytes} kB");
    server.finish();
}

#[test]
fn a_path_may_begin_with_a_dot_and_a_slash() {
    let world = World::of(&[("src/a.rs", "needle\n"), ("b.rs", "needle\n")]);
    let mut server = world.built();
    for (path, found) in [("./src", &["src/a.rs"][..]), ("./b.rs", &["b.rs"]), (".", &["b.rs", "src/a.rs"])] {
        let answer = server.result("search", json!({"query": "needle", "path": path}));
        assert_eq!(paths(&answer), found, "{path}");
    }
    server.finish();
}

/// Runs the real git in a folder, without any configuration from outside.
fn git(folder: &Path, arguments: &[&str]) {
    let mut command = Command::new("git");
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("GIT_")) {
        command.env_remove(name);
    }
    command.args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always"]);
    command.args(arguments).current_dir(folder).env("HOME", folder).env("GIT_CONFIG_NOSYSTEM", "1");
    let output = command.output().expect("git runs");
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// The git state in `workspace_status`, with this folder as the root.
fn git_state(world: &World, root: &str) -> (Value, Value) {
    let setup = Setup::new().arg("--root").arg(world.path(root)).env("PINTLE_STATE_DIR", world.path("state"));
    let status = setup.start().result("workspace_status", json!({}));
    (status["git"].clone(), status["gitProblem"].clone())
}

#[test]
fn workspace_status_has_the_git_state_in_worktrees_subfolders_and_submodules() {
    let world = World::of(&[("top.txt", "top"), ("sub/kept.txt", "kept"), ("sub/changed.txt", "before")]);
    let root = world.root();
    git(&root, &["init", "-q", "-b", "trunk"]);
    git(&root, &["add", "-A"]);
    git(&root, &["commit", "-qm", "first"]);
    git(&root, &["worktree", "add", "-q", "-b", "side", "../linked"]);
    git(&root, &["init", "-q", "-b", "outer", "../outer"]);
    git(&world.path("outer"), &["submodule", "add", "-q", "../root", "module"]);
    for folder in ["root", "linked", "outer/module"] {
        fs::write(world.path(folder).join("top.txt"), "changed at the top").expect("writes");
        fs::write(world.path(folder).join("sub/changed.txt"), "after").expect("writes");
        fs::write(world.path(folder).join("sub/new.txt"), "").expect("writes");
    }
    let below = json!([
        {"path": "changed.txt", "change": "modified"},
        {"path": "new.txt", "change": "untracked"},
    ]);
    let complete = json!([
        {"path": "sub/changed.txt", "change": "modified"},
        {"path": "sub/new.txt", "change": "untracked"},
        {"path": "top.txt", "change": "modified"},
    ]);
    for (root, branch, dirty) in [
        ("root", "trunk", &complete),
        ("root/sub", "trunk", &below),
        ("linked", "side", &complete),
        ("linked/sub", "side", &below),
        ("outer/module", "trunk", &complete),
        ("outer/module/sub", "trunk", &below),
    ] {
        let (state, problem) = git_state(&world, root);
        assert_eq!(problem, Value::Null, "{root}: {state}");
        assert_eq!((&state["branch"], &state["dirty"]), (&json!(branch), dirty), "{root}: {state}");
        assert!(state["head"].as_str().is_some_and(|head| head.len() == 40), "{root}: {state}");
    }
}

#[test]
fn workspace_status_names_200_dirty_files_and_says_how_many_there_are() {
    let world = World::of(&[("kept.txt", "kept")]);
    git(&world.root(), &["init", "-q", "-b", "trunk"]);
    git(&world.root(), &["add", "-A"]);
    git(&world.root(), &["commit", "-qm", "first"]);
    for number in 0..200 {
        world.write(&format!("new/{number:03}.txt"), "new");
    }
    let (state, _) = git_state(&world, "root");
    assert_eq!(state["dirty"].as_array().map(Vec::len), Some(200));
    assert_eq!((&state["total"], &state["truncated"]), (&json!(200), &json!(false)));
    world.write("new/more.txt", "new");
    let (state, _) = git_state(&world, "root");
    assert_eq!(state["dirty"].as_array().map(Vec::len), Some(200));
    assert_eq!((&state["total"], &state["truncated"]), (&json!(201), &json!(true)));
}

#[test]
fn workspace_status_does_not_count_temporary_and_staged_files() {
    let world = World::of(&[("kept.txt", "kept")]);
    git(&world.root(), &["init", "-q", "-b", "trunk"]);
    for path in [".pintle-tmp", "src/.pintle-tmp", "src/.pintle-staged/1-0"] {
        world.write(path, "half");
    }
    let (state, _) = git_state(&world, "root");
    assert_eq!(state["dirty"], json!([{"path": "kept.txt", "change": "untracked"}]));
    assert_eq!(state["total"], json!(1));
}

#[test]
fn workspace_status_says_why_the_git_state_is_missing() {
    let world = World::of(&[("sub/a", "a")]);
    let (state, problem) = git_state(&world, "root");
    assert_eq!((state, problem), (Value::Null, Value::Null), "there is no repository");
    git(&world.root(), &["init", "-q", "--bare", "../bare"]);
    world.write("../nowhere/.git", "gitdir: /nowhere\n");
    world.write("../borrowed/.git", "gitdir: ../owned/.git\n");
    git(&world.root(), &["init", "-q", "../owned"]);
    fs::create_dir_all(world.path("empty/.git")).expect("a folder");
    fs::create_dir_all(world.path("linked/sub")).expect("a folder");
    std::os::unix::fs::symlink("../owned/.git", world.path("linked/.git")).expect("links");
    for (root, piece) in [
        ("bare", "bare"),
        ("nowhere", "does not exist"),
        ("borrowed", "core.worktree"),
        ("empty", "`HEAD` is missing"),
        ("linked", "symbolic link"),
        ("linked/sub", "symbolic link"),
    ] {
        let (state, problem) = git_state(&world, root);
        assert_eq!(state, Value::Null, "{root}");
        assert!(problem.as_str().is_some_and(|problem| problem.contains(piece)), "{root}: {problem}");
    }
}

#[test]
fn a_file_that_is_being_written_is_not_found_or_counted() {
    let world =
        World::of(&[("a/.pintle-tmp", "needle\n"), ("a/b.txt", "needle\n"), (".pintle-tmp", "needle\n")]);
    let mut server = world.built();
    let found = search(&mut server, "literal", "needle");
    assert_eq!(paths(&found), ["a/b.txt"]);
    let counted = found["coverage"]["skipped"].as_object().expect("reasons");
    assert!(counted.values().all(|count| *count == json!(0)), "{found}");
    // The same holds if the file is created while the server watches.
    world.write("c/.pintle-tmp", "needle\n");
    world.write("c/d.txt", "needle\n");
    assert_eq!(paths(&search(&mut server, "literal", "needle")), ["a/b.txt", "c/d.txt"]);
    server.finish();
}
