//! Edits that cost little to write, and several edits in one call: all are made, or none.

use std::{fs, os::unix::fs::symlink};

use serde_json::{Value, json};

use crate::support::{
    Server, Setup, data,
    folder::{tree, write},
    hash, request,
};

const TEXT: &str = "one\ntwo\nthree\nfour\nfive\n";

/// A server with these files in its root.
fn start(files: &[(&str, &str)]) -> Server {
    start_with(Setup::new(), files)
}

fn start_with(setup: Setup, files: &[(&str, &str)]) -> Server {
    for (path, content) in files {
        write(&setup.path("root"), path, content);
    }
    setup.start()
}

fn content(server: &Server, path: &str) -> String {
    fs::read_to_string(server.path("root").join(path)).expect("reads")
}

/// Asserts that a batch is refused and changes nothing. Returns the error.
#[track_caller]
fn refused(server: &mut Server, arguments: Value) -> Value {
    let before = tree(&server.path("root"));
    let error = server.error("text.edit", arguments);
    assert_eq!(tree(&server.path("root")), before, "something was changed: {error}");
    error
}

/// The numbers of the edits that an error is about, with the codes.
fn entries(error: &Value) -> Vec<(u64, String)> {
    let errors = error["details"]["errors"].as_array().unwrap_or_else(|| panic!("no errors: {error}"));
    let entry = |error: &Value| {
        assert!(error["message"].as_str().is_some_and(|message| !message.is_empty()), "{error}");
        (error["entry"].as_u64().expect("a number"), error["code"].as_str().expect("a code").to_owned())
    };
    errors.iter().map(entry).collect()
}

#[test]
fn a_tag_names_the_version_in_every_tool_that_takes_a_hash() {
    let mut server = start(&[("a.txt", TEXT)]);
    let tag = |text: &str| hash(text)[..8].to_owned();
    let mut now = TEXT.to_owned();
    for (tool, arguments, next) in [
        ("text.replace", json!({"lines": [1, 2], "new": "1"}), "1\ntwo\nthree\nfour\nfive\n"),
        ("text.replace", json!({"old": "two", "new": "2"}), "1\n2\nthree\nfour\nfive\n"),
        ("text.insert", json!({"line": 1, "content": "0"}), "0\n1\n2\nthree\nfour\nfive\n"),
        ("text.append", json!({"content": "6"}), "0\n1\n2\nthree\nfour\nfive\n6\n"),
        (
            "text.replace",
            json!({"old": "e", "new": "E", "all": true, "within": true}),
            "0\n1\n2\nthrEE\nfour\nfivE\n6\n",
        ),
    ] {
        let mut arguments = arguments;
        (arguments["path"], arguments["hash"]) = (json!("a.txt"), json!(tag(&now)));
        let result = server.result(tool, arguments);
        assert_eq!(result["hash"], json!(hash(next)), "{result}");
        assert_eq!(result["total_lines"], json!(next.lines().count()), "{result}");
        assert!(result.get("diff").is_none(), "{result}");
        assert_eq!(content(&server, "a.txt"), next);
        now = next.to_owned();
    }
    let error = server.error("text.append", json!({"path": "a.txt", "hash": tag(&now)[..7], "content": "x"}));
    assert_eq!(error["code"], json!("INVALID_REQUEST"), "{error}");
    let moved = server.result("file.move", json!({"path": "a.txt", "hash": tag(&now), "to": "b.txt"}));
    assert_eq!(moved["hash"], json!(hash(&now)));
    server.result("file.remove", json!({"path": "b.txt", "hash": tag(&now)}));
    server.finish();
}

#[test]
fn an_edit_shows_what_it_has_changed_if_it_is_asked_to() {
    let mut server = start(&[("a.txt", TEXT)]);
    let edit = json!({"path": "a.txt", "hash": hash(TEXT), "lines": [2, 3], "new": "2", "diff": true});
    let diff = "--- a/a.txt\n+++ b/a.txt\n@@ -1,5 +1,5 @@\n one\n-two\n+2\n three\n four\n five\n";
    assert_eq!(server.result("text.replace", edit)["diff"], json!(diff));
    server.finish();
}

#[test]
fn arguments_that_say_nothing_or_exclude_each_other_are_refused_before_anything_is_opened() {
    let mut server = start(&[]);
    for (arguments, pointer, expected) in [
        (json!({"new": "x"}), "", "`lines` or `old` is missing"),
        (json!({"new": "x", "lines": [1, 2], "all": true}), "/all", "`old` is missing"),
        (json!({"new": "x", "old": "", "within": true}), "/old", "must not be empty"),
    ] {
        let mut arguments = arguments;
        (arguments["path"], arguments["hash"]) = (json!("absent.txt"), json!(hash("")));
        let error = server.error("text.replace", arguments);
        assert_eq!(error["details"]["errors"][0]["path"], json!(pointer), "{error}");
        assert!(error["message"].as_str().is_some_and(|message| message.contains(expected)), "{error}");
    }
    let path = "absent.txt";
    let edits = json!([
        {"path": path, "content": "fine"},
        {"path": path, "old": "a", "content": "b"},
        {"path": path, "old": "a"},
        {"path": path, "new": "a"},
        {"path": path, "line": 1},
        {"path": path, "anchor": "a", "content": "b"},
        {"path": path, "hash": hash("")},
        {"path": path, "old_string": "a", "new": "b", "lines": [1, 2]},
        {"content": "a"},
    ]);
    let error = refused(&mut server, json!({"edits": edits, "dryRun": true}));
    let errors = error["details"]["errors"].as_array().expect("errors");
    let pointers: Vec<&str> = errors.iter().map(|error| error["path"].as_str().expect("a pointer")).collect();
    for number in 1..=8 {
        let count =
            pointers.iter().filter(|pointer| pointer.starts_with(&format!("/edits/{number}"))).count();
        assert_eq!(count, 1, "edit {number}: {error}");
    }
    let told = error.to_string();
    assert!(!pointers.contains(&"/edits/0") && pointers.contains(&"/edits/7/old_string"), "{error}");
    for expected in [
        "`/edits/7`: unknown argument `old_string`; the nearest known one is `old`",
        "is `dry_run`",
        "`new` is missing",
    ] {
        assert!(told.contains(expected), "{expected}: {told}");
    }
    for (edits, expected) in [
        (vec![], "`edits` is empty"),
        (vec![json!({"path": path, "content": "x"}); 501], "501 edits are given; a call takes at most 500"),
        (
            (0..201).map(|number| json!({"path": format!("{number}"), "content": ""})).collect(),
            "in 201 files; a call takes at most 200",
        ),
    ] {
        let error = refused(&mut server, json!({ "edits": edits }));
        assert!(error["message"].as_str().is_some_and(|message| message.contains(expected)), "{error}");
    }
    server.finish();
}

#[test]
fn several_edits_of_one_file_all_mean_the_version_that_was_read() {
    let mut server = start(&[("a.txt", TEXT)]);
    let edits = json!([
        {"path": "/a.txt", "content": "six"},
        {"path": "a.txt", "hash": hash(TEXT)[..12], "old": "four", "new": "4\nand a half"},
        {"path": "a.txt", "hash": hash(TEXT), "lines": [1, 3], "new": ""},
        {"path": "./a.txt", "line": 4, "anchor": "four", "content": "before four"},
        {"path": "a.txt", "old": "e", "new": "E", "within": true, "all": true, "lines": [3, 4]},
    ]);
    let result = server.result("text.edit", json!({ "edits": edits }));
    let expected = "thrEE\nbefore four\n4\nand a half\nfive\nsix\n";
    assert_eq!(content(&server, "a.txt"), expected);
    let file = json!({"path": "a.txt", "hash": hash(expected), "total_lines": 6, "changes": 6});
    assert_eq!(result["files"], json!([file]), "{result}");
    assert!(result["diff"].as_str().is_some_and(|diff| diff.contains("-three\n")), "{result}");
    assert!(result.get("dry_run").is_none(), "{result}");
    server.finish();
}

#[test]
fn edits_of_several_files_are_made_together_and_a_dry_run_shows_the_same() {
    let files = [("a.txt", TEXT), ("src/b.txt", "x\r\ny\r\n"), ("unasked.txt", "as it is\n")];
    let mut server = start(&files);
    symlink("../a.txt", server.path("root/src/link.txt")).expect("a link");
    let edits = json!([
        {"path": "src/b.txt", "hash": hash("x\r\ny\r\n")[..8], "old": "x", "new": "1\n2"},
        {"path": "new/c.txt", "content": "created\n"},
        {"path": "a.txt", "hash": hash(TEXT)[..8], "lines": [1, 2], "new": "1"},
        // The same file by another path.
        {"path": "src/link.txt", "content": "six"},
    ]);
    let before = tree(&server.path("root"));
    let mut shown = server.result("text.edit", json!({"edits": edits, "dry_run": true}));
    assert_eq!(tree(&server.path("root")), before, "a dry run changes nothing");
    assert_eq!(shown["dry_run"].take(), json!(true));
    let result = server.result("text.edit", json!({ "edits": edits }));
    shown.as_object_mut().expect("an object").shift_remove("dry_run");
    assert_eq!(shown, result);
    let expected = [
        ("src/b.txt", "1\r\n2\r\ny\r\n", 1),
        ("new/c.txt", "created\n", 1),
        ("a.txt", "1\ntwo\nthree\nfour\nfive\nsix\n", 2),
    ];
    let files: Vec<Value> = expected
        .iter()
        .map(|(path, text, changes)| {
            assert_eq!(content(&server, path), *text);
            json!({"path": path, "hash": hash(text), "total_lines": text.lines().count(), "changes": changes})
        })
        .collect();
    assert_eq!(result["files"], json!(files));
    let diff = result["diff"].as_str().expect("a diff");
    assert!(diff.contains("--- /dev/null\n+++ b/new/c.txt\n@@ -0,0 +1 @@\n+created\n"), "{diff}");
    server.finish();
}

#[test]
fn a_batch_with_twenty_mistakes_reports_each_with_its_edit_and_changes_nothing() {
    let b = "same\nsame\nother\n";
    let files = [
        ("a.txt", TEXT),
        ("b.txt", b),
        ("c.txt", "open\n"),
        ("binary", "\u{1}"),
        ("d/e.txt", "e\n"),
        ("stale.txt", "now\n"),
    ];
    let mut server = start(&files);
    let root = server.path("root");
    fs::write(root.join("binary"), [0xff, 0xfe]).expect("writes");
    symlink("/etc", root.join("outside")).expect("a link");
    symlink("a.txt", root.join("link.txt")).expect("a link");
    let (of_a, of_b) = (&hash(TEXT)[..8], &hash(b)[..8]);
    let edits = json!([
        {"path": "c.txt", "hash": hash("open\n"), "content": "right"},
        {"path": "a.txt", "hash": of_a, "old": "seven", "new": "x"},
        {"path": "a.txt", "lines": [9, 10], "new": "x"},
        {"path": "a.txt", "lines": [3, 3], "new": "x"},
        {"path": "a.txt", "line": 0, "content": "x"},
        {"path": "a.txt", "line": 9, "content": "x"},
        {"path": "a.txt", "line": 1, "anchor": "two", "content": "x"},
        {"path": "a.txt", "lines": [1, 3], "old": "four", "new": "x"},
        {"path": "a.txt", "old": "fourx", "new": "x", "within": true},
        {"path": "a.txt", "lines": [2, 4], "new": "right"},
        {"path": "a.txt", "line": 3, "content": "inside"},
        {"path": "link.txt", "hash": of_b, "lines": [5, 6], "new": "two hashes"},
        {"path": "b.txt", "hash": of_b, "old": "same", "new": "x"},
        {"path": "b.txt", "hash": "123", "old": "other", "new": "x"},
        {"path": "../x.txt", "content": "x"},
        {"path": "outside/x.txt", "content": "x"},
        {"path": "absent.txt", "hash": of_a, "content": "x"},
        {"path": "d", "hash": of_a, "content": "x"},
        {"path": "d/e.txt", "lines": [1, 2], "new": "no hash"},
        {"path": "binary", "hash": hash([0xff, 0xfe]), "content": "x"},
        {"path": "stale.txt", "hash": of_a, "old": "now", "new": "x"},
        {"path": "new.txt", "content": "right"},
        {"path": "new.txt", "content": "twice"},
    ]);
    let error = refused(&mut server, json!({ "edits": edits }));
    assert_eq!(error["code"], json!("INVALID_REQUEST"), "{error}");
    let found = entries(&error);
    let expected: Vec<u64> = (1..=8).chain(10..=20).chain([22]).collect();
    assert_eq!(found.iter().map(|(entry, _)| *entry).collect::<Vec<_>>(), expected, "{error}");
    assert_eq!(expected.len(), 20);
    let of = |entry: u64| {
        let errors = error["details"]["errors"].as_array().expect("errors");
        errors.iter().find(|error| error["entry"] == json!(entry)).expect("an error").clone()
    };
    assert_eq!(of(16)["code"], json!("NOT_FOUND"));
    assert_eq!(
        (of(20)["code"].clone(), of(20)["details"]["currentHash"].clone()),
        (json!("CONFLICT"), json!(hash("now\n")))
    );
    assert!(
        of(12)["message"].as_str().is_some_and(|message| message.contains("2 times, at lines 1 and 2")),
        "{error}"
    );
    server.finish();
}

#[test]
fn what_is_wrong_with_a_file_is_said_of_each_of_its_edits() {
    let mut server = start(&[("a.txt", TEXT), ("b.txt", TEXT)]);
    let tag = &hash(TEXT)[..8];
    let edits = json!([
        {"path": "absent.txt", "hash": tag, "lines": [1, 2], "new": "x"},
        {"path": "absent.txt", "content": "x"},
        {"path": "a.txt", "hash": tag, "lines": "1-1", "new": "x"},
        {"path": "a.txt", "old": "none such", "new": "x"},
        // Appends to a file that exists need its hash.
        {"path": "b.txt", "content": "x"},
        {"path": "b.txt", "content": "y"},
    ]);
    let mut initialize = json!({"protocolVersion": "2025-06-18", "capabilities": {}});
    initialize["clientInfo"] = json!({"name": "test", "version": "1"});
    server.result("initialize", initialize);
    server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let call = json!({"name": "text_edit", "arguments": {"edits": edits}});
    let result = server.result("tools/call", call);
    let error: Value =
        serde_json::from_str(result["content"][0]["text"].as_str().expect("text")).expect("JSON");
    let codes: Vec<_> = entries(&error).into_iter().map(|(entry, code)| format!("{entry} {code}")).collect();
    let expected =
        ["0 NOT_FOUND", "1 NOT_FOUND", "2 INVALID_REQUEST", "3 INVALID_REQUEST", "4 CONFLICT", "5 CONFLICT"];
    assert_eq!(codes, expected, "{error}");
    let hint = error["details"]["errors"][5]["hint"].as_str().expect("a hint");
    assert!(hint.contains("give its hash to append"), "{error}");
    server.finish();
}

#[test]
fn an_edit_whose_result_is_too_large_says_that_it_was_made() {
    let mut server = start_with(Setup::new().arg("--max-result-bytes=2000"), &[]);
    let edits: Vec<Value> =
        (0..60).map(|number| json!({"path": format!("{number}.txt"), "content": "x"})).collect();
    let error = server.error("text.edit", json!({ "edits": edits }));
    let message = error["message"].as_str().expect("a message");
    assert!(message.contains("the call was made") && message.contains("2000"), "{error}");
    assert!(error["hint"].as_str().is_some_and(|hint| hint.contains("do not repeat")), "{error}");
    assert_eq!(content(&server, "39.txt"), "x");
    // What only reads is told to ask for less.
    let error = server.error("file.list", json!({}));
    assert!(error["message"].as_str().is_some_and(|message| !message.contains("was made")), "{error}");
    server.finish();
}

#[test]
fn the_diff_of_a_file_behind_a_link_is_that_of_the_file() {
    let mut server = start(&[("folder/a.txt", "one\n"), ("folder/b.txt", "one\n")]);
    std::os::unix::fs::symlink("folder", server.path("root/link")).expect("linked");
    std::os::unix::fs::symlink("folder/b.txt", server.path("root/b")).expect("linked");
    let edits = json!([
        {"path": "link/a.txt", "hash": hash("one\n"), "lines": [1, 2], "new": "two"},
        {"path": "b", "hash": hash("one\n"), "lines": [1, 2], "new": "two"},
        {"path": "link/c.txt", "content": "new\n"},
    ]);
    let shown = server.result("text.edit", json!({"edits": edits, "dry_run": true}));
    let diff = shown["diff"].as_str().expect("a diff");
    for name in ["+++ b/folder/a.txt\n", "+++ b/folder/b.txt\n", "+++ b/folder/c.txt\n"] {
        assert!(diff.contains(name), "{diff}");
    }
    let one = json!({"path": "b", "hash": hash("one\n"), "lines": [1, 2], "new": "two", "diff": true});
    let edited = server.result("text.replace", one);
    assert!(edited["diff"].as_str().is_some_and(|diff| diff.contains("+++ b/folder/b.txt\n")), "{edited}");
    server.finish();
}

#[test]
fn a_created_file_is_not_a_folder_for_another() {
    let mut server = start(&[]);
    for dry_run in [true, false] {
        let edits = json!([{"path": "p/q", "content": "2"}, {"path": "p", "content": "1"}]);
        let error = refused(&mut server, json!({"edits": edits, "dry_run": dry_run}));
        assert_eq!(entries(&error), [(0, "INVALID_REQUEST".to_owned())], "{error}");
    }
    server.finish();
}

#[test]
fn all_names_of_one_file_can_be_changed_together() {
    let mut server = start(&[("a.txt", TEXT)]);
    let root = server.path("root");
    for name in ["b.txt", "c.txt"] {
        fs::hard_link(root.join("a.txt"), root.join(name)).expect("linked");
    }
    let edit = |path: &str| json!({"path": path, "hash": hash(TEXT), "lines": [1, 2], "new": path});
    server.result("text.edit", json!({"edits": [edit("a.txt"), edit("b.txt")]}));
    for (name, first) in [("a.txt", "a.txt"), ("b.txt", "b.txt"), ("c.txt", "one")] {
        assert!(content(&server, name).starts_with(&format!("{first}\ntwo")), "{name}");
    }
    server.finish();
}

#[test]
fn the_code_is_that_of_the_first_problem_and_an_existing_file_is_not_created() {
    let mut server = start(&[("a.txt", TEXT), ("b.txt", "b\n")]);
    let create = json!({"path": "a.txt", "content": "x"});
    let error = refused(&mut server, json!({"edits": [create]}));
    assert_eq!(entries(&error), [(0, "CONFLICT".to_owned())]);
    assert_eq!(error["code"], json!("CONFLICT"));
    assert!(error["hint"].as_str().is_some_and(|hint| hint.contains("give its hash to append")), "{error}");
    let stale = json!({"path": "b.txt", "hash": hash("c\n"), "lines": [1, 2], "new": "x"});
    let error = refused(&mut server, json!({"edits": [stale]}));
    assert_eq!(entries(&error), [(0, "CONFLICT".to_owned())]);
    assert!(!error.to_string().contains(&hash("b\n")), "{error}");
    server.finish();
}

#[test]
fn a_denied_path_or_a_missing_scope_in_a_batch_is_forbidden_and_named() {
    let files = [("src/a.txt", TEXT), ("docs/b.txt", "b\n"), (".env", "KEY=1\n")];
    let mut server = start(&files);
    let edits = json!([
        {"path": "../unusable", "content": "x"},
        {"path": "src/a.txt", "hash": hash(TEXT), "lines": [1, 2], "new": "x"},
        {"path": ".git/hooks/pre-commit", "content": "x"},
    ]);
    let error = refused(&mut server, json!({ "edits": edits }));
    assert_eq!(error["code"], json!("FORBIDDEN"), "{error}");
    assert_eq!(entries(&error), [(2, "FORBIDDEN".to_owned())]);
    server.finish();
    let setup = Setup::new().args(["--scope", "write:/src/"]);
    let mut server = start_with(setup, &files);
    symlink("../docs/b.txt", server.path("root/src/link.txt")).expect("a link");
    let edits = json!([
        {"path": "src/a.txt", "hash": hash(TEXT), "lines": [1, 2], "new": "x"},
        {"path": "docs/b.txt", "hash": hash("b\n"), "content": "x"},
        {"path": "new.txt", "content": "x"},
    ]);
    let error = refused(&mut server, json!({ "edits": edits }));
    assert_eq!(error["details"]["scopes"], json!(["write:/docs/b.txt", "write:/new.txt"]), "{error}");
    assert_eq!(entries(&error), [(1, "FORBIDDEN".to_owned()), (2, "FORBIDDEN".to_owned())]);
    // Beside a path that no scope opens, the missing scopes are named as well.
    let edits = json!([
        {"path": "docs/b.txt", "hash": hash("b\n"), "content": "x"},
        {"path": "src/.git/hooks/pre-commit", "content": "x"},
    ]);
    let error = refused(&mut server, json!({ "edits": edits }));
    assert_eq!(error["details"]["scopes"], json!(["write:/docs/b.txt"]), "{error}");
    let message = error["message"].as_str().expect("a message");
    for part in
        ["/src/.git/hooks/pre-commit may not be written", "`write:/docs/b.txt`", "(entry 1 and 1 more)"]
    {
        assert!(message.contains(part), "{message}");
    }
    // A link does not lead out of the scope, and its refusal comes with all else that is wrong.
    let edits = json!([
        {"path": "src/a.txt", "hash": hash(TEXT), "lines": [9, 10], "new": "x"},
        {"path": "src/link.txt", "hash": hash("b\n"), "content": "x"},
    ]);
    let error = refused(&mut server, json!({ "edits": edits }));
    assert_eq!(error["code"], json!("FORBIDDEN"), "{error}");
    assert_eq!(entries(&error), [(0, "INVALID_REQUEST".to_owned()), (1, "FORBIDDEN".to_owned())]);
    server.finish();
}

#[test]
fn a_bound_file_is_judged_as_it_stands_after_all_its_edits() {
    let good = "{\n  \"name\": \"Desk\",\n  \"watts\": 5\n}\n";
    let setup = Setup::assets();
    let config = setup.path("pintle.toml");
    fs::write(&config, "[[bind]]\npath = \"lamps/*.json\"\nschema = \"lamp\"\n").expect("writes");
    assert!(data().join("schemas").is_dir());
    let mut server =
        start_with(setup.arg("--config").arg(config), &[("lamps/desk.json", good), ("a.txt", TEXT)]);
    // Neither of the two edits alone leaves a lamp behind; both do.
    let edits = json!([
        {"path": "lamps/desk.json", "hash": hash(good), "old": "  \"watts\": 5", "new": ""},
        {"path": "lamps/desk.json", "line": 2, "content": "  \"watts\": 6,"},
        {"path": "lamps/desk.json", "old": "\"Desk\",", "new": "\"Desk\"", "within": true},
    ]);
    server.result("text.edit", json!({ "edits": edits }));
    let now = content(&server, "lamps/desk.json");
    let edits = json!([
        {"path": "a.txt", "hash": hash(TEXT), "lines": [1, 2], "new": "x"},
        {"path": "lamps/desk.json", "hash": hash(&now), "line": 1, "content": ""},
        {"path": "lamps/desk.json", "old": "6", "new": "\"six\"", "within": true},
    ]);
    let error = refused(&mut server, json!({ "edits": edits }));
    assert_eq!(entries(&error), [(1, "INVALID_REQUEST".to_owned())], "{error}");
    let details = &error["details"]["errors"][0]["details"];
    assert!(details["schema"].is_string() && details["errors"].is_array(), "{error}");
    server.finish();
}

#[test]
fn what_clients_write_as_texts_is_converted_inside_edits_and_named() {
    let mut server = start(&[("a.txt", TEXT)]);
    let client = json!({"name": "test", "version": "1"});
    server.call(
        "initialize",
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}),
    );
    server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let mut call = |arguments: Value| {
        server.send(&request(json!(1), "tools/call", json!({"name": "text_edit", "arguments": arguments})));
        server.frame()["result"].clone()
    };
    let edit = |more: Value| {
        let mut edit = json!({"path": "a.txt", "hash": hash(TEXT)[..8]});
        edit.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        edit
    };
    let edits = json!([
        edit(json!({"lines": "[1, 2]", "new": "1", "content": null})),
        edit(json!({"lines": "2-4", "old": "three\nfour", "new": "34"})),
    ]);
    let result = call(json!({"edits": edits, "dry_run": "true"}));
    assert_eq!(
        result["_meta"]["pintle/repaired"],
        json!(["edits/0/content", "edits/0/lines", "edits/1/lines", "dry_run"]),
        "{result}"
    );
    let result = call(json!({"edits": edits.to_string()}));
    assert_eq!(result["structuredContent"]["files"][0]["changes"], json!(2), "{result}");
    // Without `old` nothing shows which lines are meant.
    let now = "1\ntwo\n34\nfive\n";
    let unconfirmed = json!([{"path": "a.txt", "hash": hash(now), "lines": "2-3", "new": "x"}]);
    let result = call(json!({ "edits": unconfirmed }));
    assert!(result.to_string().contains("send [2, 4] to include line 3, or [2, 3]"), "{result}");
    // Nor does it if every one is replaced.
    let unconfirmed = json!([
        {"path": "a.txt", "hash": hash(now), "lines": "2-3", "old": "two", "new": "x", "all": true},
    ]);
    let result = call(json!({ "edits": unconfirmed }));
    assert!(result.to_string().contains("send [2, 4] to include line 3, or [2, 3]"), "{result}");
    let unconfirmed =
        json!([{"path": "a.txt", "hash": hash(now), "lines": "2-3", "old": "five", "new": "x"}]);
    let result = call(json!({ "edits": unconfirmed }));
    assert!(result.to_string().contains("`old` confirms neither"), "{result}");
    assert_eq!(content(&server, "a.txt"), now);
    server.finish();
}
