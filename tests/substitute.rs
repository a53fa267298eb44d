//! `text.substitute`: every match that `search` finds is replaced in one call, in all files or in none.

use std::fs;

use regex::bytes::{NoExpand, RegexBuilder};
use serde_json::{Value, json};

use crate::support::{
    Server, Setup,
    folder::{tree, write},
    hash,
    random::Random,
    request, rounds,
};

fn start(files: &[(&str, &[u8])]) -> Server {
    start_with(Setup::new(), files)
}

fn start_with(setup: Setup, files: &[(&str, &[u8])]) -> Server {
    for (path, content) in files {
        write(&setup.path("root"), path, content);
    }
    setup.start()
}

fn content(server: &Server, path: &str) -> String {
    fs::read_to_string(server.path("root").join(path)).expect("reads")
}

/// Asserts that a call is refused and changes nothing. Returns the error.
#[track_caller]
fn refused(server: &mut Server, code: &str, arguments: Value) -> Value {
    let before = tree(&server.path("root"));
    let error = server.error("text.substitute", arguments);
    assert_eq!(error["code"], json!(code), "{error}");
    assert_eq!(tree(&server.path("root")), before, "something was changed: {error}");
    error
}

fn with(arguments: &Value, more: Value) -> Value {
    let mut joined = arguments.clone();
    joined.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    joined
}

#[test]
fn every_match_is_replaced_and_a_dry_run_says_so_beforehand() {
    let (one, two) = ("an old hat\nold and old\n", "nothing\r\nold\r\n");
    let mut server = start(&[("a.txt", one.as_bytes()), ("b/c.txt", two.as_bytes()), ("d.txt", b"other\n")]);
    let call = json!({"query": "old", "replacement": "$1 new\n"});
    let before = tree(&server.path("root"));
    let shown = server.result("text.substitute", with(&call, json!({"dry_run": true})));
    assert_eq!(tree(&server.path("root")), before);
    assert_eq!((&shown["dry_run"], &shown["matches"]), (&json!(true), &json!(4)), "{shown}");
    let done = server.result("text.substitute", with(&call, json!({"expect": shown["matches"]})));
    let (one, two) = ("an $1 new\n hat\n$1 new\n and $1 new\n\n", "nothing\r\n$1 new\r\n\r\n");
    assert_eq!((content(&server, "a.txt"), content(&server, "b/c.txt")), (one.into(), two.into()));
    let files = json!([
        {"path": "a.txt", "hash": hash(one), "total_lines": 5, "changes": 3},
        {"path": "b/c.txt", "hash": hash(two), "total_lines": 3, "changes": 1},
    ]);
    assert_eq!(done["files"], files, "{done}");
    assert_eq!((&shown["files"], &shown["diff"]), (&done["files"], &done["diff"]), "{shown}");
    assert!(done.get("dry_run").is_none(), "{done}");
    // The hashes are those of the next edit, and a search sees the new text at once.
    let edit = json!({"path": "a.txt", "hash": done["files"][0]["hash"], "lines": [1, 2], "new": "x"});
    server.result("text.replace", edit);
    let hits = server.result("search", json!({"query": "$1 new"}));
    assert_eq!(hits["hits"].as_array().map(Vec::len), Some(3), "{hits}");
    server.finish();
}

#[test]
fn another_number_of_matches_than_expected_changes_nothing_and_is_told_by_file() {
    let mut server = start(&[("a.txt", b"x x\ny\nx\n"), ("b.txt", b"x\n"), ("c.txt", b"y\n")]);
    let call = json!({"query": "x", "replacement": "z"});
    let details = json!({
        "reason": "unexpected_matches",
        "total": 4,
        "files": [
            {"path": "a.txt", "matches": 3, "lines": 2},
            {"path": "b.txt", "matches": 1, "lines": 1},
        ],
    });
    // Three lines match, but occurrences count; a dry run is held to the number as well.
    for more in [json!({"expect": 3}), json!({"expect": 0}), json!({"expect": 5, "dry_run": true})] {
        let error = refused(&mut server, "CONFLICT", with(&call, more));
        assert_eq!(error["details"], details, "{error}");
    }
    // In one file, which needs no journal, too.
    let one = with(&call, json!({"path": "b.txt", "expect": 2}));
    assert_eq!(refused(&mut server, "CONFLICT", one)["details"]["total"], json!(1));
    let none = json!({"query": "absent", "replacement": "z", "expect": 1});
    assert_eq!(refused(&mut server, "CONFLICT", none)["details"]["total"], json!(0));
    let none = json!({"query": "absent", "replacement": "z", "expect": 0});
    let done = server.result("text.substitute", none);
    assert_eq!(done, json!({"files": [], "matches": 0, "diff": ""}));
    for (arguments, expected) in [
        (call.clone(), "`expect` is missing"),
        (with(&call, json!({"dry_run": false})), "`expect` is missing"),
        (json!({"query": "", "replacement": "z", "dry_run": true}), "`query` is empty"),
        (json!({"query": "x\ny", "replacement": "z", "dry_run": true}), "one line"),
        (json!({"query": "(", "match": "regex", "replacement": "z", "dry_run": true}), "not valid"),
        (with(&call, json!({"match": "words", "dry_run": true})), "literal"),
    ] {
        let error = refused(&mut server, "INVALID_REQUEST", arguments);
        assert!(error.to_string().contains(expected), "{error}");
    }
    server.finish();
}

#[test]
fn a_group_of_an_expression_is_named_in_the_replacement_and_must_exist() {
    let text = "let one_a = two(1);\nlet b_b = three(2);\n";
    let mut server = start(&[("a.rs", text.as_bytes())]);
    let call = json!({"match": "regex", "query": r"let (\w+) = (?P<name>\w+)", "dry_run": true});
    for (replacement, problem, hint) in [
        ("$1_x", "`1_x`", "`${1}_x`"),
        ("$3", "`3`", "`$1` to `$2`"),
        ("${nam}", "`nam`", "`$0` is the whole match"),
    ] {
        let error = refused(&mut server, "INVALID_REQUEST", with(&call, json!({"replacement": replacement})));
        assert!(error["message"].as_str().is_some_and(|message| message.contains(problem)), "{error}");
        assert!(error["hint"].as_str().is_some_and(|shown| shown.contains(hint)), "{error}");
    }
    let call = with(&call, json!({"dry_run": false, "expect": 2}));
    server.result("text.substitute", with(&call, json!({"replacement": "let ${1}_x = $name$$$0"})));
    let expected = "let one_a_x = two$let one_a = two(1);\nlet b_b_x = three$let b_b = three(2);\n";
    assert_eq!(content(&server, "a.rs"), expected);
    // The same text is literal where the query is.
    let literal = json!({"query": "one_a", "replacement": "$1_x", "expect": 2});
    server.result("text.substitute", literal);
    assert!(content(&server, "a.rs").starts_with("let $1_x_x = two$let $1_x = two"));
    server.finish();
}

#[test]
fn what_narrows_a_search_narrows_a_substitution() {
    let files: [(&str, &[u8]); 4] = [
        ("a.rs", b"word Word wordy\n"),
        ("b.py", b"word\n"),
        ("src/c.rs", b"WORD\n"),
        (".ignore", b"ignored\n"),
    ];
    for (more, changed) in [
        (json!({"expect": 3}), &["a.rs", "b.py"][..]),
        (json!({"expect": 2, "word": true}), &["a.rs", "b.py"]),
        (json!({"expect": 5, "case": "insensitive"}), &["a.rs", "b.py", "src/c.rs"]),
        (json!({"expect": 5, "case": "smart"}), &["a.rs", "b.py", "src/c.rs"]),
        (json!({"expect": 2, "lang": "rust"}), &["a.rs"]),
        (json!({"expect": 1, "path": ["!*.rs"]}), &["b.py"]),
        (json!({"expect": 1, "path": "src", "case": "insensitive"}), &["src/c.rs"]),
    ] {
        let mut server = start(&files);
        write(&server.path("root"), "ignored", b"word\n");
        let before = tree(&server.path("root"));
        server.result("text.substitute", with(&json!({"query": "word", "replacement": "-"}), more.clone()));
        let after = tree(&server.path("root"));
        let differ: Vec<&str> =
            before.keys().filter(|path| before[*path] != after[*path]).map(String::as_str).collect();
        assert_eq!(differ, changed, "{more}");
        assert_eq!(before.len(), after.len());
        server.finish();
    }
}

#[test]
fn a_file_that_cannot_be_edited_as_text_is_named_and_nothing_is_changed() {
    let utf16: Vec<u8> =
        [0xff, 0xfe].into_iter().chain("中文".encode_utf16().flat_map(u16::to_le_bytes)).collect();
    let mut server = start(&[("a.txt", b"x\n"), ("latin.txt", b"x caf\xe9\n"), ("utf16.txt", &utf16)]);
    let call = json!({"query": "x|中", "match": "regex", "replacement": "z", "dry_run": true});
    let error = refused(&mut server, "INVALID_REQUEST", call.clone());
    let errors = error["details"]["errors"].as_array().expect("errors");
    let paths: Vec<&Value> = errors.iter().map(|error| &error["path"]).collect();
    assert_eq!(paths, [&json!("latin.txt"), &json!("utf16.txt")], "{error}");
    assert!(errors.iter().all(|error| error["message"].to_string().contains("UTF-8")), "{error}");
    let error = refused(&mut server, "INVALID_REQUEST", with(&call, json!({"path": "latin.txt"})));
    assert!(error["message"].to_string().contains("`latin.txt`"), "{error}");
    // A match that ends within a character would leave what is not text.
    fs::write(server.path("root").join("b.txt"), "é\n").expect("writes");
    let call = json!({"query": r"(?-u)\xc3", "match": "regex", "path": "b.txt", "replacement": "z", "dry_run": true});
    let error = refused(&mut server, "INVALID_REQUEST", call);
    assert!(error["message"].to_string().contains("within a character"), "{error}");
    server.finish();
}

#[test]
fn a_byte_order_mark_and_a_missing_last_newline_stay() {
    let mut server = start(&[("a.txt", b"\xef\xbb\xbfone\r\none")]);
    let call = json!({"query": "^one$|one\r$", "match": "regex", "replacement": "1\n2", "expect": 2});
    server.result("text.substitute", call);
    assert_eq!(content(&server, "a.txt").as_bytes(), b"\xef\xbb\xbf1\r\n2\n1\r\n2");
    server.finish();
}

#[test]
fn files_that_may_not_be_written_are_named_with_the_way_to_leave_them_out() {
    let setup = Setup::new();
    let config = setup.path("pintle.toml");
    fs::write(&config, "[[deny]]\nwrite = [\"vendor/\"]\n[[deny]]\nread = [\"secret\"]\n").expect("writes");
    let mut server = start_with(
        setup.arg("--config").arg(config),
        &[("a.txt", b"x\n"), ("vendor/b [1].txt", b"x\n"), ("secret", b"x\n"), ("pintle.toml", b"# x\n")],
    );
    let call = json!({"query": "x", "replacement": "z", "expect": 3});
    let error = refused(&mut server, "FORBIDDEN", call.clone());
    assert_eq!(error["details"]["files"], json!(["vendor/b [1].txt"]), "{error}");
    let path = &error["details"]["path"];
    assert!(error["hint"].to_string().contains("call again with `path`"), "{error}");
    assert!(!error.to_string().contains("secret"), "{error}");
    // What the server itself is made by is known only when files are opened.
    let call = with(&call, json!({"path": path, "expect": 2}));
    let error = refused(&mut server, "FORBIDDEN", call.clone());
    assert_eq!(error["details"]["files"], json!(["pintle.toml"]), "{error}");
    let path = &error["details"]["path"];
    assert_eq!(path.as_array().map(Vec::len), Some(2), "{error}");
    let done = server.result("text.substitute", with(&call, json!({"path": path, "expect": 1})));
    assert_eq!(done["files"][0]["path"], json!("a.txt"), "{done}");
    server.finish();
}

#[test]
fn scopes_decide_which_matches_are_found_and_which_may_be_replaced_and_the_audit_log_has_the_paths() {
    let setup = Setup::new();
    for path in ["src/a.txt", "docs/b.txt", "top.txt"] {
        write(&setup.path("root"), path, b"x\n");
    }
    let log = setup.path("audit.jsonl");
    let server = setup.arg("--audit-log").arg(&log).with_local_tokens().start();
    let call = |more: Value| {
        request(json!(1), "text.substitute", with(&json!({"query": "x", "replacement": "z"}), more))
    };
    // What a caller may not read is not found, as in a search.
    let mut own = server.connect_with("own", ["write:/src"]);
    let shown = own.post("/rpc", &call(json!({"dry_run": true}))).result();
    assert_eq!(shown["files"][0]["path"], json!("src/a.txt"), "{shown}");
    assert_eq!(shown["matches"], json!(1), "{shown}");
    // A dry run needs the scopes of the real call.
    let mut reader = server.connect_with("reader", ["read:/", "write:/src"]);
    for more in [json!({"dry_run": true}), json!({"expect": 3})] {
        let answer = reader.post("/rpc", &call(more));
        answer.assert_missing_scope("write:/docs/b.txt write:/top.txt");
        let details = &answer.message()["error"]["data"]["details"];
        assert_eq!(details["files"], json!(["docs/b.txt", "top.txt"]), "{details}");
        let rest = call(json!({"path": details["path"], "dry_run": true}));
        assert_eq!(reader.post("/rpc", &rest).result()["files"][0]["path"], json!("src/a.txt"));
    }
    assert_eq!(content(&server, "src/a.txt"), "x\n");
    own.post("/rpc", &call(json!({"expect": 1}))).result();
    assert_eq!(content(&server, "src/a.txt"), "z\n");
    assert_eq!(content(&server, "top.txt"), "x\n");
    // Each call has a line for what is asked of it before it runs, and one for the files that it has found.
    let lines = fs::read_to_string(&log).expect("a log");
    let records: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let found: Vec<_> = records
        .iter()
        .filter(|record| record["paths"] != json!([]))
        .map(|record| (record["caller"].clone(), record["paths"].clone(), record["decision"].clone()))
        .collect();
    let (all, src) = (json!(["/docs/b.txt", "/src/a.txt", "/top.txt"]), json!(["/src/a.txt"]));
    let who = |index: usize| found[index].0.clone();
    let expected = [
        (who(0), src.clone(), json!("allow")),
        (who(1), all.clone(), json!("deny")),
        (who(1), src.clone(), json!("allow")),
        (who(1), all, json!("deny")),
        (who(1), src.clone(), json!("allow")),
        (who(0), src, json!("allow")),
    ];
    assert_eq!(found, expected);
    assert!(records.iter().all(|record| record["tool"] == json!("text.substitute")), "{lines}");
}

#[test]
fn a_bound_file_that_would_not_match_its_schema_stops_the_substitution() {
    let good = b"{\n  \"name\": \"Desk\",\n  \"watts\": 5\n}\n";
    let setup = Setup::assets();
    let config = setup.path("pintle.toml");
    fs::write(&config, "[[bind]]\npath = \"lamps/*.json\"\nschema = \"lamp\"\n").expect("writes");
    let mut server = start_with(
        setup.arg("--config").arg(config),
        &[("lamps/desk.json", good), ("a.txt", b"\"watts\": 5\n")],
    );
    let call = json!({"query": "\"watts\": 5", "replacement": "\"watts\": \"five\"", "expect": 2});
    let error = refused(&mut server, "INVALID_REQUEST", call);
    let problem = &error["details"]["errors"][0];
    assert_eq!(problem["path"], json!("lamps/desk.json"), "{error}");
    assert!(problem["details"]["schema"].is_string() && problem["details"]["errors"].is_array(), "{error}");
    let call = json!({"query": "\"watts\": 5", "replacement": "\"watts\": 6", "expect": 2});
    server.result("text.substitute", call);
    server.finish();
}

#[test]
fn what_is_over_a_limit_is_refused_with_the_numbers() {
    let many_lines = "x\n".repeat(10_001);
    let many_in_a_line = format!("{}\n", "y".repeat(10_001));
    let mut server =
        start(&[("a.txt", many_lines.as_bytes()), ("b.txt", many_in_a_line.as_bytes()), ("c.txt", b"w\n")]);
    for number in 0..501 {
        write(&server.path("root"), &format!("many/{number}"), b"z\n");
    }
    let long = "0123456789".repeat(5_000);
    for (query, replacement, expect, expected) in [
        ("x", "1", 10_001, "10001 lines of 1 file;"),
        ("y", "1", 10_001, "10001 matches"),
        ("z", "1", 501, "501 files"),
    ] {
        let call = json!({"query": query, "replacement": replacement, "expect": expect});
        let error = refused(&mut server, "INVALID_REQUEST", call);
        assert!(error["message"].to_string().contains(expected), "{error}");
        assert_eq!(error["details"]["reason"], json!("too_large"), "{error}");
    }
    // 10,000 matches are not too many, but 50,000 bytes for each of them are.
    fs::write(server.path("root").join("b.txt"), format!("{}\n", "y".repeat(10_000))).expect("writes");
    let call = json!({"query": "y", "replacement": long, "expect": 10_000});
    let error = refused(&mut server, "INVALID_REQUEST", call);
    assert!(error["message"].to_string().contains("500000000 bytes"), "{error}");
    let call = json!({"query": "y", "replacement": "", "expect": 10_000});
    server.result("text.substitute", call);
    assert_eq!(content(&server, "b.txt"), "\n");
    server.finish();
}

#[test]
fn each_line_becomes_what_the_regex_crate_makes_of_it() {
    const LETTERS: &[&str] = &["a", "b", "A", "_", "é", "ß", " ", "\r", "$", "ab", "aa", "x1"];
    const QUERIES: &[&str] = &[
        "a",
        "ab",
        "A",
        "a+",
        "a*",
        "(a)(b)?",
        "(?P<one>a|x)1?",
        "^",
        "$",
        "^a",
        "b$",
        r"\b",
        "[^a]",
        "é",
        "(a|ab)(b|)",
        r"\w+",
        "a|",
        "(?i)a",
        r"\s",
        ".",
        r"(\w)\d",
        r"\$",
    ];
    const REPLACEMENTS: &[&str] = &["", "-", "$0$0", "[$1]", "${1}_", "$$1", "é", "$one!", "$"];
    let mut random = Random::new(21);
    let mut server = start(&[]);
    let root = server.path("root");
    let mut compared = 0;
    for round in 0..rounds(250, 5_000) {
        let text: String = (0..random.below(30))
            .map(|_| if random.below(5) == 0 { "\n" } else { random.pick(LETTERS) })
            .collect();
        let (query, replacement) = (random.pick(QUERIES), random.pick(REPLACEMENTS));
        let (is_regex, is_word) = (random.below(3) > 0, random.below(4) == 0);
        let case = random.pick(&["sensitive", "insensitive"]);
        let name = format!("{round}.txt");
        fs::write(root.join(&name), &text).expect("writes");
        let kind = if is_regex { "regex" } else { "literal" };
        let call = json!({
            "query": query, "match": kind, "word": is_word, "case": case, "replacement": replacement,
            "path": format!("/{name}"), "dry_run": true,
        });
        let expression = if is_regex { query.to_owned() } else { regex::escape(query) };
        let expression =
            if is_word { format!(r"\b{{start-half}}(?:{expression})\b{{end-half}}") } else { expression };
        let expression = RegexBuilder::new(&expression)
            .multi_line(true)
            .case_insensitive(case == "insensitive")
            .build()
            .expect("an expression");
        let mut matches = 0;
        let mut expected = Vec::new();
        for line in text.split_inclusive('\n') {
            let bare = line.strip_suffix('\n').unwrap_or(line).as_bytes();
            matches += expression.find_iter(bare).count();
            expected.extend_from_slice(&if is_regex {
                expression.replace_all(bare, replacement.as_bytes())
            } else {
                expression.replace_all(bare, NoExpand(replacement.as_bytes()))
            });
            expected.extend_from_slice(&line.as_bytes()[bare.len()..]);
        }
        let shown = server.call("text.substitute", call.clone());
        let is_known = |name: &str| expression.capture_names().flatten().any(|known| known == name);
        let group = match replacement {
            "[$1]" | "${1}_" => is_regex && expression.captures_len() < 2,
            "$one!" => is_regex && !is_known("one"),
            _ => false,
        };
        // Only these are refused: a group that is not there, and bytes that would not be text.
        let is_text = String::from_utf8(expected.clone()).is_ok();
        if let Some(error) = shown.get("error") {
            assert!(group || !is_text || query.len() < 3, "{call} in {text:?}: {error}");
            assert_eq!(error["data"]["code"], json!("INVALID_REQUEST"), "{call}: {error}");
            assert!(group || error.to_string().contains("within a character"), "{call} in {text:?}: {error}");
            fs::remove_file(root.join(&name)).expect("removes");
            continue;
        }
        let shown = &shown["result"];
        assert!(!group, "{call}: {shown}");
        assert_eq!(shown["matches"], json!(matches), "{call} in {text:?}");
        let call = with(&call, json!({"dry_run": false, "expect": matches}));
        server.result("text.substitute", call.clone());
        let now = fs::read(root.join(&name)).expect("reads");
        assert_eq!(now, expected, "{call} in {text:?}");
        assert!(matches == 0 || shown["files"][0]["hash"] == json!(hash(&now)), "{shown}");
        compared += usize::from(matches > 0);
        fs::remove_file(root.join(&name)).expect("removes");
    }
    assert!(compared > 60, "only {compared} rounds replaced something");
    server.finish();
}
