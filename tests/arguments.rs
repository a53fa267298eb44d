//! Arguments as clients and models send them.

use std::fs;

use serde_json::{Value, json};

use crate::support::{Server, Setup, hash, request};

const TEXT: &str = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\n";

fn start(setup: Setup) -> Server {
    fs::write(setup.path("root/a.txt"), TEXT).expect("writes");
    let mut server = setup.start();
    let client = json!({"name": "test", "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
    server.call("initialize", params);
    server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    server
}

fn call(server: &mut Server, name: &str, arguments: Value) -> Value {
    server.call("tools/call", json!({"name": name, "arguments": arguments}))["result"].clone()
}

/// The error object of a failed call.
fn failure(result: &Value) -> Value {
    assert_eq!(result["isError"], json!(true), "{result}");
    serde_json::from_str(result["content"][0]["text"].as_str().expect("a text")).expect("JSON")
}

#[test]
fn json_texts_in_place_of_lists_and_numbers_are_converted_and_noted() {
    let mut server = start(Setup::new());
    for (lines, expected) in [
        (json!("[2, 4]"), "two\nthree\n"),
        (json!(["2", "4"]), "two\nthree\n"),
        (json!("3-4"), "three\nfour\n"),
        (json!(" 3 - 3 "), "three\n"),
        (json!("[-1, 0]"), "eight\n"),
    ] {
        let result = call(&mut server, "text_read", json!({"path": "a.txt", "lines": lines}));
        assert_eq!(result["structuredContent"]["content"], json!(expected), "{lines}: {result}");
        assert_eq!(result["_meta"]["pintle/repaired"], json!(["lines"]), "{lines}: {result}");
    }
    let result = call(&mut server, "show_file", json!({"path": "a.txt", "lines": "2-3"}));
    assert_eq!(result["structuredContent"]["text"], json!("2\ttwo\n3\tthree\n"), "{result}");
    let result =
        call(&mut server, "search", json!({"query": "t", "path": "[\"a.txt\", \"!*.md\"]", "top": "1"}));
    assert_eq!(result["structuredContent"]["hits"][0]["line"], json!(2), "{result}");
    assert_eq!(result["_meta"]["pintle/repaired"], json!(["path", "top"]), "{result}");
    // An argument of the right type is not noted.
    let result = call(&mut server, "text_read", json!({"path": "a.txt", "lines": [1, 2]}));
    assert!(result.get("_meta").is_none(), "{result}");
    let insert = json!({"path": "a.txt", "hash": hash(TEXT), "line": "2", "anchor": "two", "content": "new"});
    let result = call(&mut server, "text_insert", insert);
    assert_eq!(result["_meta"]["pintle/repaired"], json!(["line"]), "{result}");
    assert!(fs::read_to_string(server.path("root/a.txt")).expect("reads").starts_with("one\nnew\ntwo\n"));
    server.finish();
}

#[test]
fn null_for_an_optional_argument_is_absent_and_for_a_required_one_an_error() {
    let mut server = start(Setup::new());
    let result = call(&mut server, "text_read", json!({"path": "a.txt", "lines": null}));
    assert_eq!(result["structuredContent"]["content"], json!(TEXT), "{result}");
    let failed = failure(&call(&mut server, "text_read", json!({"path": null})));
    assert_eq!(failed["code"], json!("INVALID_REQUEST"), "{failed}");
    server.finish();
}

#[test]
fn arguments_that_cannot_be_converted_are_refused_as_they_were_written() {
    let mut server = start(Setup::new());
    for lines in ["7-3", "0-2", "a-b", "2", "[1, 2", "{}", "[1, 2, 3]", "99999999999-99999999999"] {
        let result = call(&mut server, "text_read", json!({"path": "a.txt", "lines": lines}));
        let failed = failure(&result);
        assert_eq!(failed["code"], json!("INVALID_REQUEST"), "{lines}: {failed}");
        assert_eq!(failed["details"]["errors"][0]["path"], json!("/lines"), "{lines}: {failed}");
        assert!(result.get("_meta").is_none(), "{lines}: {result}");
    }
    // The error names what is still wrong, not what was converted.
    let failed = failure(&call(&mut server, "text_read", json!({"paht": "a.txt", "lines": "[1, 2]"})));
    assert!(!failed["message"].as_str().expect("a message").contains("/lines"), "{failed}");
    server.finish();
}

#[test]
fn the_log_names_what_was_converted_and_never_its_value() {
    let mut server = start(Setup::new());
    call(&mut server, "text_read", json!({"path": "a.txt", "lines": "[4, 6]"}));
    let record = server.records(1).pop().expect("a record");
    assert_eq!(record["metadata"]["repaired"], json!(["lines"]), "{record}");
    assert!(!record.to_string().contains("[4, 6]"), "{record}");
    call(&mut server, "text_read", json!({"path": "a.txt"}));
    let record = server.records(2).pop().expect("a record");
    assert!(record["metadata"].get("repaired").is_none(), "{record}");
    server.finish();
}

#[test]
fn a_range_with_a_dash_edits_only_what_old_confirms() {
    let mut server = start(Setup::new());
    let edit = |lines: &str, old: &str| json!({"path": "a.txt", "hash": hash(TEXT), "lines": lines, "old": old, "new": "changed"});
    for (lines, old) in [("3-6", "seven"), ("3-7", "nothing"), ("3-7", "three\nfive")] {
        let failed = failure(&call(&mut server, "text_replace", edit(lines, old)));
        assert_eq!(failed["code"], json!("INVALID_REQUEST"), "{failed}");
        let last = lines.split('-').nth(1).and_then(|last| last.parse::<i64>().ok()).expect("a number");
        let hint = failed["hint"].as_str().expect("a hint");
        for reading in [format!("[3, {}]", last + 1), format!("[3, {last}]")] {
            assert!(hint.contains(&reading), "{lines}: {failed}");
        }
        assert_eq!(fs::read_to_string(server.path("root/a.txt")).expect("reads"), TEXT);
    }
    let result = call(&mut server, "text_replace", edit("3-7", "six\nseven"));
    assert_eq!(result["_meta"]["pintle/repaired"], json!(["lines"]), "{result}");
    let expected = TEXT.replace("six\nseven", "changed");
    assert_eq!(fs::read_to_string(server.path("root/a.txt")).expect("reads"), expected);
    server.finish();
}

#[test]
fn an_idempotency_key_compares_arguments_after_conversion() {
    let mut server = start(Setup::new());
    let mut append = |id: i64, lines: Value| {
        let arguments =
            json!({"path": "a.txt", "hash": hash(TEXT), "lines": lines, "old": "two", "new": "2"});
        let mut message =
            request(json!(id), "tools/call", json!({"name": "text_replace", "arguments": arguments}));
        message["idempotencyKey"] = json!("one edit");
        server.send(&message);
        server.frame()["result"].clone()
    };
    let first = append(1, json!([1, 4]));
    let second = append(2, json!("[1, 4]"));
    assert_eq!(first["structuredContent"], second["structuredContent"]);
    assert!(first["structuredContent"]["hash"].is_string(), "{first}");
    assert_eq!(second["_meta"]["pintle/repaired"], json!(["lines"]), "{second}");
    server.finish();
}

#[test]
fn strict_reading_and_the_direct_dialect_convert_nothing() {
    let mut server = start(Setup::new().args(["--arguments", "strict"]));
    for lines in [json!("[2, 4]"), json!("3-4"), json!(null)] {
        let failed = failure(&call(&mut server, "text_read", json!({"path": "a.txt", "lines": lines})));
        assert_eq!(failed["code"], json!("INVALID_REQUEST"), "{failed}");
    }
    server.finish();
    let mut server = start(Setup::new());
    for lines in [json!("[2, 4]"), json!("3-4"), json!(null)] {
        let error = server.error("text.read", json!({"path": "a.txt", "lines": lines}));
        assert_eq!(error["code"], json!("INVALID_REQUEST"), "{error}");
    }
    server.finish();
}

#[test]
fn an_unknown_tool_is_answered_with_one_of_a_similar_name_in_the_same_spelling() {
    let mut server = start(Setup::new());
    for (name, expected) in [
        ("text_raed", "the nearest known tool is `text_read`"),
        ("text.raed", "the nearest known tool is `text.read`"),
        ("read_file", "the nearest known tool is `file_read`"),
        ("foo", "list the tools to see their names"),
    ] {
        let reply = server.call("tools/call", json!({"name": name, "arguments": {}})).to_string();
        assert!(reply.contains(expected), "{name}: {reply}");
    }
    server.finish();
}

#[test]
fn an_unknown_argument_is_refused_with_the_one_that_was_probably_meant() {
    let mut server = start(Setup::new());
    for (tool, written, meant) in [
        ("text_read", "file_path", "path"),
        ("text_read", "start_line", "lines"),
        ("text_read", "limit", "lines"),
        ("text_read", "offset", "lines"),
        ("search", "pattern", "query"),
        ("search", "regex", "query"),
        ("search", "glob", "path"),
        ("search", "include", "path"),
        ("search", "limit", "top"),
        ("search", "head_limit", "top"),
        ("search", "-i", "case"),
        ("file_list", "directory", "path"),
        ("file_list", "dir", "path"),
        ("text_replace", "old_string", "old"),
        ("text_replace", "new_str", "new"),
        ("file_create", "file_text", "content"),
        ("file_create", "filename", "path"),
    ] {
        let failed = failure(&call(&mut server, tool, json!({ written: "x" })));
        let message = failed["details"]["errors"].to_string();
        let expected = format!("unknown argument `{written}`; the nearest known one is `{meant}`");
        assert!(message.contains(&expected), "{tool} {written}: {failed}");
    }
    server.finish();
}

#[test]
fn a_path_that_begins_with_the_root_s_path_is_refused_with_the_relative_path() {
    let mut server = start(Setup::new());
    fs::create_dir(server.path("root/src")).expect("a folder");
    let root = server.path("root").canonicalize().expect("a root");
    let absolute = |name: &str| root.join(name).to_str().expect("text").to_owned();
    for (tool, arguments, relative) in [
        ("text_read", json!({"path": absolute("a.txt")}), "a.txt"),
        ("file_read", json!({"path": absolute("a.txt")}), "a.txt"),
        ("show_file", json!({"path": absolute("a.txt")}), "a.txt"),
        ("file_list", json!({"path": absolute("src")}), "src"),
        ("file_create", json!({"path": absolute("src/new.txt"), "content": "x"}), "src/new.txt"),
        ("file_move", json!({"path": "a.txt", "hash": hash(TEXT), "to": absolute("b.txt")}), "b.txt"),
        ("text_append", json!({"path": absolute("a.txt"), "hash": hash(TEXT), "content": "x"}), "a.txt"),
        ("file_remove", json!({"path": absolute("a.txt"), "hash": hash(TEXT)}), "a.txt"),
    ] {
        let failed = failure(&call(&mut server, tool, arguments));
        assert_eq!(failed["code"], json!("INVALID_REQUEST"), "{tool}: {failed}");
        assert!(
            failed["hint"].as_str().is_some_and(|hint| hint.contains(&format!("`{relative}`"))),
            "{failed}"
        );
    }
    assert_eq!(fs::read_dir(&root).expect("lists").count(), 2, "nothing was made");
    // The error for any other missing path names the root.
    let globs = json!(["*.md", format!("!{}", absolute("src/**"))]);
    let failed = failure(&call(&mut server, "search", json!({"query": "one", "path": globs})));
    assert!(failed["hint"].as_str().is_some_and(|hint| hint.contains("`!src/**`")), "{failed}");
    let failed = failure(&call(&mut server, "text_read", json!({"path": "/etc/nothing"})));
    assert_eq!(failed["code"], json!("NOT_FOUND"), "{failed}");
    assert!(failed["hint"].as_str().is_some_and(|hint| hint.contains("`root`")), "{failed}");
    // A path that exists inside the root is not refused.
    let inside = root.join(absolute("").trim_start_matches('/'));
    fs::create_dir_all(&inside).expect("folders");
    fs::write(inside.join("c.txt"), "there\n").expect("writes");
    let result = call(&mut server, "text_read", json!({"path": absolute("c.txt")}));
    assert_eq!(result["structuredContent"]["content"], json!("there\n"), "{result}");
    server.finish();
}
