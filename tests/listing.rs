//! The entries of a folder, as `list://` and as `file.list` return them.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
};

use serde_json::{Value, json};

use crate::support::{
    Server, Setup,
    http::{MODERN, initialize, modern},
    request,
};

const LEGACY: &str = "2025-11-25";

fn file(name: &str, size: u64) -> Value {
    json!({"name": name, "type": "file", "size": size})
}

fn folder(name: &str) -> Value {
    json!({"name": name, "type": "folder", "size": 0})
}

/// A workspace with folders whose names are hard to encode. Most have a file `here` whose size is the length of the
/// folder's path.
fn setup() -> Setup {
    let setup = Setup::new();
    let root = setup.path("root");
    for path in [
        "a/b/c",
        "a/z",
        "a/.dots",
        "empty",
        "a b",
        "a%20b",
        "per%cent",
        "ünï",
        "plus+and&",
        "a?b#c",
        "%2e%2e",
    ] {
        fs::create_dir_all(root.join(path)).expect("a folder");
        fs::write(root.join(path).join("here"), path).expect("writes");
    }
    fs::remove_file(root.join("empty/here")).expect("removes");
    for (path, content) in [("a/Z", "1"), ("a/.hidden", "12"), ("a/10", "123"), ("a/9", ""), ("a/é", "1")] {
        fs::write(root.join(path), content).expect("writes");
    }
    fs::create_dir(setup.path("outside")).expect("a folder");
    fs::write(setup.path("outside/secret-name"), "").expect("writes");
    symlink("../outside", root.join("out")).expect("a link");
    symlink("a/b", root.join("in")).expect("a link");
    setup
}

fn open_session(server: &mut Server, version: &str) {
    server.send(&initialize(version));
    server.frame();
    server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
}

/// A server on a pipe, in a revision with a handshake.
fn start() -> Server {
    let mut server = setup().start();
    open_session(&mut server, LEGACY);
    server
}

/// The entries in a result. The frame of the result is checked as well.
fn entries_in(result: &Value, uri: &str) -> Value {
    let content = &result["contents"][0];
    assert_eq!(
        (&content["uri"], &content["mimeType"]),
        (&json!(uri), &json!("application/json")),
        "{result}"
    );
    assert_eq!(result["contents"].as_array().map(Vec::len), Some(1), "{result}");
    let text: Value = serde_json::from_str(content["text"].as_str().expect("a text")).expect("JSON");
    assert_eq!(text.as_object().map(serde_json::Map::len), Some(1), "{text}");
    text["entries"].clone()
}

fn entries(server: &mut Server, uri: &str) -> Value {
    let result = server.result("resources/read", json!({"uri": uri}));
    entries_in(&result, uri)
}

/// The names of entries, in their order.
fn names(entries: &Value) -> Vec<&str> {
    let entries = entries.as_array().expect("entries");
    entries.iter().map(|entry| entry["name"].as_str().expect("a name")).collect()
}

#[test]
fn folders_come_first_then_files_each_sorted_and_dotfiles_are_listed() {
    let mut server = start();
    let expected = json!([
        folder(".dots"),
        folder("b"),
        folder("z"),
        file(".hidden", 2),
        file("10", 3),
        file("9", 0),
        file("Z", 1),
        file("é", 1),
    ]);
    let listed = entries(&mut server, "list://a");
    assert_eq!(listed, expected);
    assert_eq!(server.result("file.list", json!({"path": "a"}))["entries"], expected);
    assert_eq!(entries(&mut server, "list://empty"), json!([]));
    assert_eq!(server.result("file.list", json!({"path": "empty"})), json!({"entries": []}));
    server.finish();
}

#[test]
fn the_root_has_several_addresses_and_a_leading_slash_stands_for_it() {
    let mut server = start();
    let root = server.result("file.list", json!({}))["entries"].clone();
    assert!(names(&root).contains(&"a%20b") && names(&root).contains(&"ünï"), "{root}");
    for uri in ["list://", "list:///", "list:////", "list://.", "list://a/..", "list://%2F", "list://a%2F.."]
    {
        assert_eq!(entries(&mut server, uri), root, "{uri}");
    }
    let a = server.result("file.list", json!({"path": "a"}))["entries"].clone();
    for uri in
        ["list://a", "list:///a", "list://a/", "list:////a", "list://./a", "list://a/b/..", "list://%61"]
    {
        assert_eq!(entries(&mut server, uri), a, "{uri}");
    }
    // A link that stays inside the root is listed as its target; one that leaves it is listed as `other`.
    let entry = |name: &str| {
        let found = root.as_array().expect("entries").iter().find(|entry| entry["name"] == name);
        found.unwrap_or_else(|| panic!("no {name}")).clone()
    };
    assert_eq!(entry("in"), folder("in"));
    assert_eq!(entry("out"), json!({"name": "out", "type": "other", "size": 0}));
    server.finish();
}

#[test]
fn an_address_is_decoded_exactly_once() {
    let mut server = start();
    for (uri, size) in [
        ("list://a%20b", "a b".len()),
        ("list://a b", "a b".len()),
        ("list://a%2520b", "a%20b".len()),
        ("list://per%25cent", "per%cent".len()),
        ("list://%C3%BCn%c3%af", "ünï".len()),
        ("list://ünï", "ünï".len()),
        ("list://plus+and&", "plus+and&".len()),
        ("list://plus%2Band%26", "plus+and&".len()),
        ("list://a%3Fb%23c", "a?b#c".len()),
        ("list://%252e%252e", "%2e%2e".len()),
        ("list://a%2Fb%2fc", "a/b/c".len()),
    ] {
        assert_eq!(entries(&mut server, uri), json!([file("here", size as u64)]), "{uri}");
    }
    server.finish();
}

/// Addresses that are refused, with the number of the error (in older revisions, in the newest) and a part of its
/// message.
const REFUSED: &[(&str, i64, i64, &str)] = &[
    ("list://missing", -32002, -32602, "/missing"),
    ("list://a/missing", -32002, -32602, "/a/missing"),
    ("list://a%252Fb", -32002, -32602, "/a%2Fb"),
    ("list://A", -32002, -32602, "/A"),
    ("list://a/9", -32602, -32602, "not a folder"),
    ("list://a/9/below", -32602, -32602, "not a folder"),
    ("list://..", -32602, -32602, "leaves the root"),
    ("list://../outside", -32602, -32602, "leaves the root"),
    ("list:///../outside", -32602, -32602, "leaves the root"),
    ("list://%2e%2e/outside", -32602, -32602, "leaves the root"),
    ("list://%2E%2E%2Foutside", -32602, -32602, "leaves the root"),
    ("list://a%2F..%2F..", -32602, -32602, "leaves the root"),
    ("list://a/../../outside", -32602, -32602, "leaves the root"),
    ("list://out", -32602, -32602, "leaves the root"),
    ("list://out/", -32602, -32602, "leaves the root"),
    ("list://%00", -32602, -32602, "NUL"),
    ("list://a%5Cb", -32602, -32602, "backslash"),
    ("list://C:/x", -32602, -32602, "drive"),
    ("list://%43%3A", -32602, -32602, "drive"),
    ("list://%ff", -32602, -32602, "UTF-8"),
];

fn assert_refused(frame: &Value, uri: &str, number: i64, piece: &str) {
    let error = &frame["error"];
    assert_eq!(error["code"], json!(number), "{uri}: {frame}");
    assert_eq!(error["data"]["uri"], json!(uri), "{frame}");
    assert!(error["message"].as_str().is_some_and(|message| message.contains(piece)), "{uri}: {frame}");
    let code = if piece.starts_with('/') { "NOT_FOUND" } else { "INVALID_REQUEST" };
    assert_eq!(error["data"]["code"], json!(code), "{uri}: {frame}");
    assert!(!frame.to_string().contains("secret-name"), "{uri}: {frame}");
}

#[test]
fn a_failed_listing_has_the_error_code_of_each_revision() {
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", LEGACY] {
        let mut server = setup().start();
        open_session(&mut server, version);
        for (uri, number, _, piece) in REFUSED {
            let frame = server.call("resources/read", json!({"uri": uri}));
            assert_refused(&frame, uri, *number, piece);
        }
        server.finish();
    }
    let mut server = setup().start();
    for (uri, _, number, piece) in REFUSED {
        server.send(&modern(json!(1), "resources/read", json!({"uri": uri})));
        assert_refused(&server.frame(), uri, *number, piece);
    }
    server.finish();
}

#[test]
fn listings_over_http_are_the_same() {
    let server = setup().http().start();
    let (mut stateless, mut session) = (server.connect(), server.session(LEGACY));
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "file.list", "params": {"path": "a"}});
    let expected = server.connect().post("/rpc", &list).result()["entries"].clone();
    assert_eq!(names(&expected)[0], ".dots");
    for uri in ["list://a", "list:///a", "list://%61/"] {
        let read = stateless.modern(json!(1), "resources/read", json!({"uri": uri})).result();
        assert_eq!(entries_in(&read, uri), expected, "{MODERN} {uri}");
        let read = session.call(json!(2), "resources/read", json!({"uri": uri})).result();
        assert_eq!(entries_in(&read, uri), expected, "{LEGACY} {uri}");
    }
    for (uri, old, new, piece) in REFUSED {
        let answer = stateless.modern(json!(1), "resources/read", json!({"uri": uri}));
        assert_refused(&answer.message(), uri, *new, piece);
        let answer = session.call(json!(2), "resources/read", json!({"uri": uri}));
        assert_refused(&answer.message(), uri, *old, piece);
        assert_eq!(answer.status, 200, "{answer:?}");
    }
}

#[test]
fn the_tool_refuses_what_cannot_be_listed_with_the_reason() {
    let mut server = start();
    for (path, code, piece) in [
        ("missing", "NOT_FOUND", "/missing"),
        ("a/9", "INVALID_REQUEST", "not a folder"),
        ("../outside", "INVALID_REQUEST", "leaves the root"),
        ("out", "INVALID_REQUEST", "leaves the root"),
        // A path is not an address: it is not decoded.
        ("a%20b/..%2f", "NOT_FOUND", "/a%20b/..%2f"),
    ] {
        let error = server.error("file.list", json!({"path": path}));
        assert_eq!(error["code"], json!(code), "{path}: {error}");
        assert!(error["message"].as_str().is_some_and(|text| text.contains(piece)), "{path}: {error}");
    }
    assert_eq!(server.result("file.list", json!({"path": "%2e%2e"}))["entries"], json!([file("here", 6)]));
    server.finish();
}

#[test]
fn the_root_and_the_template_are_offered() {
    let mut server = start();
    let listed = server.result("resources/list", json!({}))["resources"].clone();
    let root = listed.as_array().expect("resources").iter().find(|entry| entry["uri"] == "list:///");
    assert_eq!(root.map(|root| &root["mimeType"]), Some(&json!("application/json")), "{listed}");
    let templates = server.result("resources/templates/list", json!({}))["resourceTemplates"].clone();
    let templates = templates.as_array().expect("templates");
    assert!(templates.iter().any(|entry| entry["uriTemplate"] == "list://{+path}"), "{templates:?}");
    server.finish();
}

#[test]
fn a_path_is_completed_segment_by_segment() {
    let mut server = start();
    let mut complete = |value: &str| {
        let reference = json!({"type": "ref/resource", "uri": "list://{+path}"});
        let params = json!({"ref": reference, "argument": {"name": "path", "value": value}});
        server.result("completion/complete", params)["completion"]["values"].clone()
    };
    assert_eq!(complete("a/"), json!(["a/.dots/", "a/b/", "a/z/"]));
    assert_eq!(complete("a/b"), json!(["a/b/"]));
    assert_eq!(complete("a/b/"), json!(["a/b/c/"]));
    assert_eq!(complete("/a/z"), json!(["/a/z/"]));
    assert_eq!(complete("e"), json!(["empty/"]));
    assert_eq!(complete("in/"), json!(["in/c/"]));
    for nothing in ["x", "a/b/c/", "missing/", "..", "../", "../o", "a/../../", "out/", "a/9/", "C:/", "\0"] {
        assert_eq!(complete(nothing), json!([]), "{nothing:?}");
    }
    let values = complete("");
    let values = values.as_array().expect("values");
    assert!(values.contains(&json!("a/")) && !values.contains(&json!("out/")), "{values:?}");
    let reference = json!({"type": "ref/resource", "uri": "list://{+path}"});
    let params = json!({"ref": reference, "argument": {"name": "pat", "value": ""}});
    assert_eq!(server.call("completion/complete", params)["error"]["code"], json!(-32602));
    server.finish();
}

#[test]
fn a_completed_path_leads_to_its_folder_once_the_template_is_filled_in() {
    let mut server = start();
    let reference = json!({"type": "ref/resource", "uri": "list://{+path}"});
    let params = json!({"ref": reference, "argument": {"name": "path", "value": ""}});
    let values = server.result("completion/complete", params)["completion"]["values"].clone();
    let mut reached = Vec::new();
    for value in values.as_array().expect("values") {
        let uri = format!("list://{}", expand(value.as_str().expect("a text")));
        let found = server.call("resources/read", json!({"uri": uri}));
        let text =
            found["result"]["contents"][0]["text"].as_str().unwrap_or_else(|| panic!("{uri}: {found}"));
        reached.push(text.to_owned());
    }
    let root = server.result("file.list", json!({}))["entries"].clone();
    let folders = root.as_array().expect("entries").iter().filter(|entry| entry["type"] == "folder");
    let mut expected: Vec<String> =
        folders.map(|entry| server.result("file.list", json!({"path": entry["name"]})).to_string()).collect();
    reached.sort();
    expected.sort();
    assert_eq!(reached, expected);
    server.finish();
}

/// Reserved expansion as in RFC 6570 (3.2.3): a text that looks encoded stays unchanged.
fn expand(text: &str) -> String {
    let bytes = text.as_bytes();
    let is_hex = |index: usize| bytes.get(index).is_some_and(u8::is_ascii_hexdigit);
    let mut expanded = String::new();
    for (index, byte) in bytes.iter().enumerate() {
        let is_kept = byte.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&'()*+,;=".contains(byte);
        match byte {
            b'%' if is_hex(index + 1) && is_hex(index + 2) => expanded.push('%'),
            byte if is_kept => expanded.push(char::from(*byte)),
            byte => expanded.push_str(&format!("%{byte:02X}")),
        }
    }
    expanded
}

#[test]
fn a_killed_writers_file_is_not_listed_and_is_removed() {
    let setup = setup();
    let left = setup.path("root/a/.pintle-tmp");
    // A writer leaves this file if it is killed right after it has created it.
    let write_leftover = || {
        fs::write(&left, "").expect("writes");
        fs::set_permissions(&left, fs::Permissions::from_mode(0o1600)).expect("changes the mode");
    };
    write_leftover();
    let mut server = setup.start();
    open_session(&mut server, LEGACY);
    let listed = entries(&mut server, "list://a");
    assert!(!names(&listed).contains(&".pintle-tmp"), "{listed}");
    assert!(!left.exists(), "it is removed");
    write_leftover();
    let listed = server.result("file.list", json!({"path": "a"}));
    assert!(!names(&listed["entries"]).contains(&".pintle-tmp"), "{listed}");
    assert!(!left.exists(), "it is removed");
    let kept = names(&listed["entries"]).iter().any(|name| name.contains("recovered"));
    assert!(!kept, "{listed}");
    // A running writer holds the lock of the folder. Its file is not listed either, and stays.
    fs::write(&left, "half").expect("writes");
    let held = fs::File::open(left.parent().expect("a folder")).expect("opens");
    rustix::fs::flock(&held, rustix::fs::FlockOperation::LockExclusive).expect("locks");
    let listed = server.result("file.list", json!({"path": "a"}));
    assert!(!names(&listed["entries"]).contains(&".pintle-tmp"), "{listed}");
    assert!(left.exists(), "somebody is writing it");
    drop(held);
    server.finish();
}

#[test]
fn a_hundred_thousand_entries_are_listed_while_others_are_answered_and_can_be_cancelled() {
    const ENTRIES: usize = 100_000;
    const OTHERS: usize = 20;
    let setup = setup();
    let large = setup.path("root/large");
    fs::create_dir(&large).expect("a folder");
    // Hard links are quicker to make than files, but the number of links to a file is limited.
    for number in 0..ENTRIES {
        let (name, source) = (large.join(format!("{number:06}")), number - number % 50_000);
        match number == source {
            true => drop(fs::File::create(name).expect("a file")),
            false => fs::hard_link(large.join(format!("{source:06}")), name).expect("a link"),
        }
    }
    let mut server = setup.args(["--log-level", "off"]).start();
    open_session(&mut server, LEGACY);
    let list = |id: &str| request(json!(id), "resources/read", json!({"uri": "list://large"}));
    // All lines are sent in one write, so that all requests have arrived when the long one begins.
    let mut lines = format!("{}\n", list("list"));
    for number in 0..OTHERS {
        let params = json!({"name": "text.read", "arguments": {"path": "a/10"}});
        lines.push_str(&format!("{}\n", request(json!(number), "tools/call", params)));
    }
    server.write(lines.as_bytes());
    let (mut others_before, mut listed) = (0, None);
    for _ in 0..=OTHERS {
        let frame = server.frame();
        match frame["id"] == "list" {
            true => listed = Some(frame),
            false => {
                assert_eq!(frame["result"]["structuredContent"]["content"], json!("123"), "{frame}");
                others_before += usize::from(listed.is_none());
            }
        }
    }
    assert!(others_before > 0, "the others waited for the list");
    let listed = entries_in(&listed.expect("a list")["result"], "list://large");
    let listed = names(&listed);
    assert_eq!(listed.len(), ENTRIES);
    assert!(listed.is_sorted() && listed[0] == "000000" && listed[ENTRIES - 1] == "099999");
    // A cancelled listing gets exactly one reply, and the connection stays usable.
    let cancel = json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "again"}});
    server.write(format!("{}\n{cancel}\n", list("again")).as_bytes());
    let frame = server.frame();
    assert_eq!(frame["id"], json!("again"));
    assert_eq!(frame["error"]["data"]["code"], json!("CANCELLED"), "{:.300}", frame.to_string());
    let frame = server.call("tools/call", json!({"name": "file.list", "arguments": {"path": "empty"}}));
    assert_eq!(frame["result"]["structuredContent"], json!({"entries": []}), "{frame}");
    server.finish();
}

/// A typical workspace.
fn project() -> Setup {
    let setup = Setup::new();
    let root = setup.path("root");
    for (path, content) in [
        (".gitignore", "target/\n*.log\n"),
        (".git/HEAD", "ref: refs/heads/main\n"),
        ("Cargo.toml", ""),
        ("src/main.rs", "fn main() {}\n"),
        ("src/tree/mod.rs", ""),
        ("src/tree/walk.rs", ""),
        ("src.md", ""),
        ("target/debug/out.rs", ""),
        ("notes/build.log", ""),
        ("notes/.hidden", ""),
    ] {
        let file = root.join(path);
        fs::create_dir_all(file.parent().expect("a folder")).expect("folders");
        fs::write(file, content).expect("writes");
    }
    symlink("src", root.join("link")).expect("a link");
    setup
}

/// The names that a call lists, in their order.
fn listed(server: &mut Server, arguments: Value) -> Vec<String> {
    let result = server.result("file.list", arguments.clone());
    assert_eq!(result.as_object().map(serde_json::Map::len), Some(1), "{arguments}: {result}");
    names(&result["entries"]).into_iter().map(str::to_owned).collect()
}

#[test]
fn a_tree_is_one_call_in_the_order_of_paths_without_git_ignored_files_and_link_targets() {
    let mut server = project().start();
    let result = server.result("file.list", json!({"depth": 9}));
    let expected = json!({"entries": [
        file(".gitignore", 14),
        file("Cargo.toml", 0),
        folder("link"),
        folder("notes"),
        file("notes/.hidden", 0),
        folder("src"),
        file("src.md", 0),
        file("src/main.rs", 13),
        folder("src/tree"),
        file("src/tree/mod.rs", 0),
        file("src/tree/walk.rs", 0),
    ]});
    assert_eq!(result, expected);
    assert_eq!(
        listed(&mut server, json!({"depth": 1})),
        [".gitignore", "Cargo.toml", "link", "notes", "src", "src.md"]
    );
    // Paths are relative to the root wherever the tree begins, and ignore rules from above the folder apply.
    assert_eq!(listed(&mut server, json!({"path": "notes", "depth": 2})), ["notes/.hidden"]);
    assert_eq!(listed(&mut server, json!({"path": "/src/", "depth": 1})), ["src/main.rs", "src/tree"]);
    let all = listed(&mut server, json!({"depth": 9, "ignored": true}));
    assert_eq!(all.len(), 15, "{all:?}");
    assert!(all.contains(&"target/debug/out.rs".to_owned()) && all.contains(&"notes/build.log".to_owned()));
    assert!(!all.iter().any(|name| name.starts_with(".git/")), "{all:?}");
    // A list without a tree has all entries of the folder, by their names.
    assert_eq!(listed(&mut server, json!({"path": "notes"})), [".hidden", "build.log"]);
    assert_eq!(listed(&mut server, json!({"type": "folder"})), [".git", "link", "notes", "src", "target"]);
    server.finish();
}

#[test]
fn files_are_found_by_name_in_one_call_as_search_finds_them() {
    let mut server = project().start();
    for (arguments, expected) in [
        (json!({"glob": "*.rs"}), &["src/main.rs", "src/tree/mod.rs", "src/tree/walk.rs"][..]),
        (json!({"glob": "*.rs", "depth": 2}), &["src/main.rs"]),
        (json!({"glob": "**/tree/*.rs"}), &["src/tree/mod.rs", "src/tree/walk.rs"]),
        (json!({"glob": "src/*.rs"}), &["src/main.rs"]),
        (json!({"glob": "*.{toml,md}"}), &["Cargo.toml", "src.md"]),
        (json!({"glob": "src", "type": "file"}), &["src/main.rs", "src/tree/mod.rs", "src/tree/walk.rs"]),
        (json!({"glob": "tree"}), &["src/tree"]),
        (json!({"glob": "*", "type": "folder"}), &["link", "notes", "src", "src/tree"]),
        (json!({"glob": "!src", "type": "file"}), &[".gitignore", "Cargo.toml", "notes/.hidden", "src.md"]),
        (json!({"glob": "*.log"}), &[]),
        (json!({"glob": "*.log", "ignored": true}), &["notes/build.log"]),
        // A glob with a slash is relative to the folder, or to the root if it begins with the folder's path.
        (json!({"path": "src", "glob": "tree/*.rs"}), &["src/tree/mod.rs", "src/tree/walk.rs"]),
        (json!({"path": "src", "glob": "src/tree/w*"}), &["src/tree/walk.rs"]),
        (json!({"path": "src", "glob": "/src/*.rs"}), &["src/main.rs"]),
        (json!({"path": "link", "glob": "*.rs", "depth": 1}), &["link/main.rs"]),
    ] {
        assert_eq!(listed(&mut server, arguments.clone()), expected, "{arguments}");
    }
    for (arguments, piece) in [
        (json!({"glob": "a["}), "the glob cannot be used"),
        (json!({"depth": 0}), "depth"),
        (json!({"type": "link"}), "type"),
    ] {
        let error = server.error("file.list", arguments.clone());
        assert_eq!(error["code"], json!("INVALID_REQUEST"), "{arguments}: {error}");
        assert!(error["message"].as_str().is_some_and(|text| text.contains(piece)), "{arguments}: {error}");
    }
    server.finish();
}

#[test]
fn a_tree_of_more_than_a_thousand_entries_has_the_arguments_of_the_next_call() {
    let setup = Setup::new();
    let root = setup.path("root");
    for number in 0..30 {
        let folder = root.join(format!("d{number:02}/deep"));
        fs::create_dir_all(&folder).expect("folders");
        for number in 0..40 {
            fs::write(folder.join(format!("{number:02}.txt")), "").expect("a file");
        }
    }
    let mut server = setup.start();
    // The list has fewer levels, so that every folder of these levels is in it.
    let result = server.result("file.list", json!({"depth": 5, "ignored": true}));
    assert_eq!(result["truncated"], json!(true), "{result}");
    assert_eq!(names(&result["entries"]).len(), 60, "the two levels that fit");
    assert_eq!(result["next"], json!({"path": "d00/deep", "depth": 3, "ignored": true}));
    let next = server.result("file.list", result["next"].clone());
    assert_eq!(names(&next["entries"]).len(), 40);
    assert_eq!((names(&next["entries"])[0], next.get("truncated")), ("d00/deep/00.txt", None));
    // Matches of a glob come in the order of paths, up to the limit.
    let result = server.result("file.list", json!({"glob": "**/*.txt"}));
    let found = names(&result["entries"]);
    assert_eq!((found.len(), found[0], found[999]), (1000, "d00/deep/00.txt", "d24/deep/39.txt"));
    assert_eq!(result["truncated"], json!(true));
    assert_eq!(result["next"], json!({"path": "d25/deep", "glob": "**/*.txt"}));
    let next = server.result("file.list", result["next"].clone());
    assert_eq!((names(&next["entries"]).len(), names(&next["entries"])[0]), (40, "d25/deep/00.txt"));
    // A list of exactly the maximum is not truncated.
    let exact = server.result("file.list", json!({"glob": "{d[01]*,d2[0-4]}/**", "type": "file"}));
    assert_eq!((names(&exact["entries"]).len(), exact.get("truncated")), (1000, None));
    // A folder with too many entries can still be listed alone, without a limit.
    for number in 0..1001 {
        fs::write(server.path(&format!("root/d00/deep/x{number}")), "").expect("a file");
    }
    for arguments in [json!({"path": "d00/deep", "depth": 1}), json!({"path": "d00/deep", "glob": "x*"})] {
        let result = server.result("file.list", arguments);
        assert_eq!((names(&result["entries"]).len(), &result["truncated"]), (1000, &json!(true)));
        assert_eq!(result["next"], json!({"path": "d00/deep"}));
        let next = server.result("file.list", result["next"].clone());
        assert_eq!(names(&next["entries"]).len(), 1041);
    }
    server.finish();
}

#[test]
fn a_tree_shows_and_counts_only_what_the_caller_may_read() {
    let setup = project().args(["--scope", "read:/src/*,read:/notes/"]);
    let root = setup.path("root");
    symlink("../target", root.join("notes/away")).expect("a link");
    let mut server = setup.start();
    assert_eq!(listed(&mut server, json!({"path": "src", "depth": 5})), ["src/main.rs", "src/tree"]);
    assert_eq!(listed(&mut server, json!({"path": "src", "glob": "*.rs"})), ["src/main.rs"]);
    let result = server.result("file.list", json!({"path": "notes", "depth": 5}));
    let link = json!({"name": "notes/away", "type": "other", "size": 0});
    assert_eq!(result["entries"], json!([file("notes/.hidden", 0), link]));
    assert!(listed(&mut server, json!({"path": "src/tree", "depth": 1})).is_empty());
    for arguments in [json!({"depth": 2}), json!({"glob": "*.rs"}), json!({"path": "target", "depth": 1})] {
        assert_eq!(server.error("file.list", arguments.clone())["code"], json!("FORBIDDEN"), "{arguments}");
    }
    server.finish();
}

#[test]
fn a_tree_has_no_unfinished_files_and_removes_those_of_killed_writers() {
    let setup = project();
    let (left, held) = (setup.path("root/src/.pintle-tmp"), setup.path("root/notes/.pintle-tmp"));
    for file in [&left, &held] {
        fs::write(file, "").expect("writes");
        fs::set_permissions(file, fs::Permissions::from_mode(0o1600)).expect("changes the mode");
    }
    let lock = fs::File::open(held.parent().expect("a folder")).expect("opens");
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).expect("locks");
    let mut server = setup.start();
    let names = listed(&mut server, json!({"depth": 9, "ignored": true}));
    assert!(!names.iter().any(|name| name.contains("pintle-tmp")), "{names:?}");
    assert!(!left.exists() && held.exists(), "one is dead, the other lives");
    server.finish();
}

#[test]
fn the_definition_of_the_tool_is_short() {
    let mut server = setup().start();
    let tools = server.result("mcp.discover", json!({}))["tools"].clone();
    let tool = tools.as_array().expect("tools").iter().find(|tool| tool["name"] == "file.list");
    let tool = tool.expect("file.list");
    let seen = ["name", "description", "inputSchema"].map(|key| (key.to_owned(), tool[key].clone()));
    let seen = Value::Object(seen.into_iter().collect()).to_string();
    assert!(seen.len() <= 900, "{} bytes: {seen}", seen.len());
    server.finish();
}

#[test]
fn a_list_that_is_cut_says_how_many_entries_there_are() {
    let setup = Setup::new();
    for folder in 0..30 {
        let folder = setup.path(&format!("root/w/k{folder:02}"));
        std::fs::create_dir_all(&folder).expect("folders");
        for file in 0..40 {
            std::fs::write(folder.join(format!("{file}.rs")), "").expect("writes");
        }
    }
    let mut server = setup.start();
    let listed = server.result("file.list", json!({"glob": "*.rs"}));
    assert_eq!(listed["entries"].as_array().map(Vec::len), Some(1000));
    assert_eq!((&listed["truncated"], &listed["total"]), (&json!(true), &json!(1200)));
    assert_eq!(listed["next"]["path"], json!("w/k25"));
    let rest = server.result("file.list", json!({"path": "w/k25", "glob": "*.rs"}));
    assert!(rest.get("total").is_none() && rest.get("truncated").is_none(), "{rest}");
    let root = server.path("root").canonicalize().expect("a root");
    let error = server.error("file.list", json!({"glob": format!("{}/w/**", root.display())}));
    assert!(error["hint"].as_str().is_some_and(|hint| hint.contains("`w/**`")), "{error}");
    server.finish();
}
