//! Every argument of every tool does something: another value of it changes what the call returns or does.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use serde_json::{Value, json};

use crate::support::{Setup, hash};

const TEXT: &str = "one\ntwo\nthree\n";
const CODE: &str = "fn two() {}\nstruct Two;\n// a word of two\n// twofold\n";

/// A field of a tool with two of its values (`null` leaves it out), and the other arguments of the call.
struct Case {
    tool: &'static str,
    field: &'static str,
    values: [Value; 2],
    others: Value,
    /// Called first in the same server.
    before: Option<(&'static str, Value)>,
}

fn case(tool: &'static str, field: &'static str, values: [Value; 2], others: Value) -> Case {
    Case { tool, field, values, others, before: None }
}

fn cases() -> Vec<Case> {
    let absent = Value::Null;
    let of_text = hash(TEXT);
    let edit = json!({"path": "a.txt", "hash": of_text, "lines": [2, 3], "old": "two", "new": "2"});
    let insert = json!({"path": "a.txt", "hash": of_text, "line": 2, "anchor": "two", "content": "new"});
    let append = json!({"path": "a.txt", "hash": of_text, "content": "four"});
    let moved = json!({"path": "a.txt", "hash": of_text, "to": "b.txt"});
    let wrong_hash = json!(hash("another"));
    let lamp = json!({"name": "a", "watts": 5});
    let publish = json!({"asset": lamp, "schema": "lamp"});
    let query = json!({"query": "two"});
    let substitute = json!({"query": "two", "replacement": "2", "dry_run": true});
    let mut cases = vec![
        case("diff_assets", "base", [json!({}), json!({"a": 1})], json!({"new": {}})),
        case("diff_assets", "new", [json!({}), json!({"a": 1})], json!({"base": {}})),
        case("file.create", "path", [json!("new.txt"), json!("a.txt")], json!({"content": "x"})),
        case("file.create", "content", [json!("x"), json!("y")], json!({"path": "new.txt"})),
        case(
            "file.create",
            "encoding",
            [absent.clone(), json!("base64")],
            json!({"path": "new.txt", "content": "YQ=="}),
        ),
        case("file.list", "path", [absent.clone(), json!("src")], json!({})),
        case("file.list", "depth", [absent.clone(), json!(3)], json!({})),
        case("file.list", "glob", [absent.clone(), json!("*.rs")], json!({})),
        case("file.list", "ignored", [absent.clone(), json!(true)], json!({"depth": 2})),
        case("file.list", "type", [json!("file"), json!("folder")], json!({})),
        case("file.read", "path", [json!("a.txt"), json!("src/main.rs")], json!({})),
        case("file.remove", "path", [json!("a.txt"), json!("src/main.rs")], json!({"hash": of_text})),
        case("file.remove", "hash", [json!(of_text), wrong_hash.clone()], json!({"path": "a.txt"})),
        case("get_example", "path", [json!("lamp/broken.json"), json!("none.json")], json!({})),
        case("get_schema", "name", [json!("lamp"), json!("shade")], json!({})),
        case("index_build", "mode", [json!("incremental"), json!("full")], json!({})),
        case("index_build", "path", [absent.clone(), json!("src")], json!({})),
        case("list_examples", "component", [json!("lamp"), json!("shade")], json!({})),
        case("populate_backend", "asset", [lamp.clone(), json!({})], json!({"schema": "lamp"})),
        case("populate_backend", "schema", [json!("lamp"), json!("none")], json!({"asset": lamp})),
        case("populate_backend", "validate_first", [absent.clone(), json!(false)], publish),
        case("search", "query", [json!("two"), json!("three")], json!({})),
        case("search", "match", [absent.clone(), json!("regex")], json!({"query": "t.o"})),
        case("search", "case", [absent.clone(), json!("insensitive")], query.clone()),
        case("search", "word", [absent.clone(), json!(true)], query.clone()),
        case("search", "path", [absent.clone(), json!("*.rs")], query.clone()),
        case("search", "lang", [absent.clone(), json!("rust")], query.clone()),
        case("search", "kind", [absent.clone(), json!("struct")], json!({"query": "two", "match": "symbol"})),
        case("search", "context", [absent.clone(), json!(1)], query.clone()),
        case("search", "before", [absent.clone(), json!(1)], query.clone()),
        case("search", "after", [absent.clone(), json!(1)], query.clone()),
        case("search", "top", [absent.clone(), json!(1)], query.clone()),
        case("search", "count", [absent.clone(), json!(true)], query.clone()),
        case("search", "cursor", [absent.clone(), json!("nonsense")], query),
        case("show_file", "path", [json!("a.txt"), json!("src/main.rs")], json!({})),
        case("show_file", "lines", [absent.clone(), json!([2, 3])], json!({"path": "a.txt"})),
        case("show_file", "outline", [absent.clone(), json!(true)], json!({"path": "src/main.rs"})),
        case("text.substitute", "query", [json!("two"), json!("three")], substitute.clone()),
        case("text.substitute", "replacement", [json!("2"), json!("zwei")], substitute.clone()),
        case(
            "text.substitute",
            "match",
            [absent.clone(), json!("regex")],
            json!({"query": "t.o", "replacement": "2", "dry_run": true}),
        ),
        case("text.substitute", "case", [absent.clone(), json!("insensitive")], substitute.clone()),
        case("text.substitute", "word", [absent.clone(), json!(true)], substitute.clone()),
        case("text.substitute", "path", [absent.clone(), json!("*.rs")], substitute.clone()),
        case("text.substitute", "lang", [absent.clone(), json!("rust")], substitute.clone()),
        case("text.substitute", "expect", [absent.clone(), json!(7)], substitute.clone()),
        case(
            "text.substitute",
            "dry_run",
            [json!(true), json!(false)],
            json!({"query": "three", "replacement": "3", "expect": 1}),
        ),
        case("text.read", "path", [json!("a.txt"), json!("src/main.rs")], json!({})),
        case("text.read", "lines", [absent, json!([2, 3])], json!({"path": "a.txt"})),
        case("validate_asset", "asset", [lamp.clone(), json!({})], json!({"schema": "lamp"})),
        case("validate_asset", "schema", [json!("lamp"), json!("none")], json!({"asset": lamp})),
    ];
    let edits = [
        (
            "text.replace",
            &edit,
            vec![
                ("lines", json!([1, 2])),
                ("old", json!("one")),
                ("new", json!("zwei")),
                ("all", json!(true)),
                ("within", json!(true)),
                ("diff", json!(true)),
            ],
        ),
        (
            "text.insert",
            &insert,
            vec![
                ("line", json!(3)),
                ("anchor", json!("one")),
                ("content", json!("neu")),
                ("diff", json!(true)),
            ],
        ),
        ("text.append", &append, vec![("content", json!("vier")), ("diff", json!(true))]),
        ("file.move", &moved, vec![("to", json!("c.txt"))]),
    ];
    for (tool, arguments, fields) in edits {
        let fields = fields.into_iter().chain([("hash", wrong_hash.clone()), ("path", json!("src/main.rs"))]);
        cases.extend(
            fields.map(|(field, other)| {
                case(tool, field, [arguments[field].clone(), other], arguments.clone())
            }),
        );
    }
    // `all` and `within` do something where `old` is there twice, and where it is a part of a line.
    let twice = json!({"path": "twice.txt", "hash": hash("two two\ntwo\ntwo\n"), "old": "two", "new": "2"});
    let insert = json!({"path": "a.txt", "hash": of_text, "line": 2, "content": "new"});
    let create = json!({"path": "new.txt", "content": "new"});
    let entry = |entry: &Value| json!({ "edits": [entry] });
    for case in
        cases.iter_mut().filter(|case| matches!(case.field, "all" | "within") && case.tool == "text.replace")
    {
        case.others = twice.clone();
    }
    // Each field of an edit in a batch.
    let mut other = |entry_of: &Value, field: &str, value: Value| {
        let mut changed = entry_of.clone();
        changed[field] = value;
        cases.push(case(
            "text.edit",
            "edits",
            [entry(entry_of), entry(&changed)].map(|edits| edits["edits"].clone()),
            json!({}),
        ));
    };
    other(&edit, "path", json!("src/main.rs"));
    other(&edit, "hash", wrong_hash);
    other(&edit, "lines", json!([1, 2]));
    other(&edit, "old", json!("one"));
    other(&edit, "new", json!("zwei"));
    other(&twice, "all", json!(true));
    other(&twice, "within", json!(true));
    other(&insert, "line", json!(3));
    other(&insert, "anchor", json!("one"));
    other(&create, "content", json!("neu"));
    cases.push(case("text.edit", "dry_run", [Value::Null, json!(true)], entry(&edit)));
    // The same index is built twice, so that there is something that an incremental build need not read.
    for case in cases.iter_mut().filter(|case| case.field == "mode") {
        case.before = Some(("index_build", json!({})));
    }
    cases
}

/// What a call returns, and what the files are afterwards.
fn outcome(case: &Case, value: &Value) -> Value {
    let setup = Setup::assets().env("SYN_BACKEND_URL", "http://127.0.0.1:1");
    let root = setup.path("root");
    fs::create_dir(root.join("src")).expect("a folder");
    for (name, text) in [
        ("a.txt", TEXT),
        ("src/main.rs", CODE),
        (".ignore", "*.log\n"),
        ("x.log", "two\n"),
        ("twice.txt", "two two\ntwo\ntwo\n"),
    ] {
        fs::write(root.join(name), text).expect("writes");
    }
    let mut server = setup.start();
    if let Some((tool, arguments)) = &case.before {
        server.call(tool, arguments.clone());
    }
    let mut arguments = case.others.clone();
    let members = arguments.as_object_mut().expect("an object");
    match value {
        Value::Null => drop(members.shift_remove(case.field)),
        value => drop(members.insert(case.field.to_owned(), value.clone())),
    }
    let mut answer = server.call(case.tool, arguments);
    forget_times(&mut answer);
    let mut files = BTreeMap::new();
    collect(&root, &root, &mut files);
    server.finish();
    json!({"answer": answer, "files": files})
}

/// Removes what differs from run to run.
fn forget_times(answer: &mut Value) {
    match answer {
        Value::Object(members) => {
            members.retain(|name, _| {
                !matches!(name.as_str(), "id" | "modified" | "ms" | "tookMs" | "generation")
            });
            members.values_mut().for_each(forget_times);
        }
        Value::Array(items) => items.iter_mut().for_each(forget_times),
        _ => {}
    }
}

fn collect(root: &Path, folder: &Path, files: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            collect(root, &path, files);
        } else {
            let name = path.strip_prefix(root).expect("inside").display().to_string();
            files.insert(name, fs::read_to_string(&path).expect("reads"));
        }
    }
}

#[test]
fn every_argument_changes_what_a_call_returns_or_does() {
    let mut problems = Vec::new();
    for case in cases() {
        let [first, again, other] =
            [&case.values[0], &case.values[0], &case.values[1]].map(|value| outcome(&case, value));
        if first != again {
            problems.push(format!(
                "{} {}: the same call has two outcomes: {first} {again}",
                case.tool, case.field
            ));
        }
        if first == other {
            problems.push(format!("{} {} does nothing: {first}", case.tool, case.field));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn no_argument_of_the_contract_is_left_out_here() {
    let lock: Value = serde_json::from_str(include_str!("../contract.lock.json")).expect("JSON");
    let tools = lock["tools"].as_array().expect("tools");
    let declared: BTreeSet<(String, String)> = tools
        .iter()
        .flat_map(|tool| {
            let fields =
                tool["inputSchema"]["properties"].as_object().into_iter().flat_map(|fields| fields.keys());
            fields.map(|field| (tool["name"].as_str().expect("a name").to_owned(), field.clone()))
        })
        .collect();
    let tried = cases().iter().map(|case| (case.tool.to_owned(), case.field.to_owned())).collect();
    assert_eq!(declared, tried);
}
