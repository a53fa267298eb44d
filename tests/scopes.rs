//! Scopes: what a client may do on which paths, and what no client may change.

use std::{fs, os::unix::fs::symlink};

use serde_json::{Value, json};

use crate::support::{Server, Setup, data, http::initialize, pintle, run, wait_until};

/// A workspace with a file in each of several folders.
fn setup() -> Setup {
    let setup = Setup::new();
    let root = setup.path("root");
    for path in [
        "top.txt",
        "p/in.txt",
        "p/sub/deep.txt",
        "p/sub/er/deeper.txt",
        "q/out.txt",
        "pq/near.txt",
        "P/case.txt",
    ] {
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, "text\n").expect("writes");
    }
    setup
}

fn scoped<const N: usize>(setup: Setup, scopes: [&str; N]) -> Server {
    scopes.into_iter().fold(setup, |setup, scope| setup.args(["--scope", scope])).start()
}

/// The hash of `text\n`.
const HASH: &str = "b9e68e1bea3e5b19ca6b2f98b73a54b73daafaa250484902e09982e07a12e733";

/// Every way to change a file at a path.
fn mutations(path: &str) -> Vec<(&'static str, Value)> {
    let guarded = |more: Value| {
        let mut arguments = json!({"path": path, "hash": HASH});
        arguments.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        arguments
    };
    vec![
        ("file.create", json!({"path": path, "content": "x"})),
        ("text.append", guarded(json!({"content": "x"}))),
        ("text.replace", guarded(json!({"lines": [1, 0], "old": "text", "new": "x"}))),
        ("text.insert", guarded(json!({"line": 1, "anchor": "text", "content": "x"}))),
        ("file.remove", guarded(json!({}))),
        ("file.move", guarded(json!({"to": format!("{path}.moved")}))),
    ]
}

fn reads(path: &str) -> Vec<(&'static str, Value)> {
    vec![("text.read", json!({"path": path})), ("file.read", json!({"path": path}))]
}

/// Asserts that a call is refused because this scope is missing, and that the error names it.
fn assert_forbidden(server: &mut Server, (tool, arguments): (&str, Value), scope: &str) {
    let frame = server.call(tool, arguments.clone());
    let error = &frame["error"]["data"];
    assert_eq!(error["code"], json!("FORBIDDEN"), "{tool} {arguments}: {frame}");
    assert_eq!(frame["error"]["code"], json!(403), "{frame}");
    let message = error["message"].as_str().expect("a message");
    assert!(message.contains(&format!("`{scope}`")), "{tool} {arguments} wants {scope}: {frame}");
    assert_eq!(error["details"]["scope"], json!(scope), "{frame}");
}

fn is_allowed(server: &mut Server, tool: &str, arguments: Value) -> bool {
    let frame = server.call(tool, arguments);
    frame["error"]["data"]["code"] != json!("FORBIDDEN")
}

#[test]
fn a_scope_covers_its_paths_and_nothing_more() {
    for (scope, path, may_read, may_write) in [
        ("read:/", "top.txt", true, false),
        ("read:/", "p/sub/er/deeper.txt", true, false),
        ("write:/", "p/sub/er/deeper.txt", true, true),
        ("read:/p/", "p/in.txt", true, false),
        ("read:/p", "p/in.txt", true, false),
        ("read:/p/", "/p//sub/./deep.txt", true, false),
        ("read:/p/", "q/../p/in.txt", true, false),
        ("read:/p/", "p/../q/out.txt", false, false),
        ("read:/p/", "top.txt", false, false),
        ("read:/p/", "pq/near.txt", false, false),
        ("read:/p/", "P/case.txt", false, false),
        ("write:/P/", "p/in.txt", false, false),
        ("write:/p/", "p/sub/deep.txt", true, true),
        ("write:/p", "p/in.txt", true, true),
        ("write:/p/", "q/out.txt", false, false),
        ("read:/p/*", "p/in.txt", true, false),
        ("read:/p/*", "p/sub/deep.txt", false, false),
        ("write:/p/*", "p/in.txt", true, true),
        ("write:/p/*", "p/sub/deep.txt", false, false),
        ("write:/*", "top.txt", true, true),
        ("write:/*", "p/in.txt", false, false),
        ("read:/p/in.txt", "p/in.txt", true, false),
        ("read:/p/in.txt", "p/sub/deep.txt", false, false),
        ("assets:read", "top.txt", false, false),
        ("run:anything", "top.txt", false, false),
    ] {
        let mut server = scoped(setup(), [scope]);
        for (tool, arguments) in reads(path) {
            assert_eq!(is_allowed(&mut server, tool, arguments), may_read, "{scope}: {tool} {path}");
        }
        for (tool, arguments) in mutations(path) {
            // The other end of a move needs the scope as well. It is in the same folder.
            if tool == "file.move" && scope == "read:/p/in.txt" {
                continue;
            }
            assert_eq!(is_allowed(&mut server, tool, arguments), may_write, "{scope}: {tool} {path}");
        }
        server.finish();
    }
}

#[test]
fn a_refusal_names_the_scope_and_changes_nothing() {
    let mut server = scoped(setup(), ["read:/p/"]);
    for call in reads("q/out.txt") {
        assert_forbidden(&mut server, call, "read:/q/out.txt");
    }
    for call in mutations("p/in.txt") {
        assert_forbidden(&mut server, call, "write:/p/in.txt");
    }
    // The error does not reveal whether the file exists.
    for call in reads("q/missing") {
        assert_forbidden(&mut server, call, "read:/q/missing");
    }
    assert_forbidden(&mut server, ("file.list", json!({})), "read:/");
    assert_forbidden(&mut server, ("file.list", json!({"path": "q"})), "read:/q");
    assert_eq!(fs::read(server.path("root/p/in.txt")).expect("reads"), b"text\n");
    assert!(!server.path("root/p/in.txt.moved").exists());
    server.finish();
}

#[test]
fn several_scopes_add_up_and_a_move_needs_both_ends() {
    let mut server = scoped(setup(), ["read:/q/", "write:/p/"]);
    assert!(is_allowed(&mut server, "text.read", json!({"path": "q/out.txt"})));
    let moved = |path: &str, to: &str| ("file.move", json!({"path": path, "hash": HASH, "to": to}));
    assert_forbidden(&mut server, moved("p/in.txt", "q/in.txt"), "write:/q/in.txt");
    assert_forbidden(&mut server, moved("q/out.txt", "p/out.txt"), "write:/q/out.txt");
    let (tool, arguments) = moved("p/in.txt", "p/new/in.txt");
    server.result(tool, arguments);
    assert_forbidden(&mut server, ("file.list", json!({"path": "pq"})), "read:/pq");
    server.finish();
}

#[test]
fn scopes_come_from_flags_or_the_environment_or_the_file_in_that_order() {
    let may = |server: &mut Server| {
        ["top.txt", "p/in.txt", "q/out.txt"]
            .map(|path| is_allowed(server, "text.read", json!({"path": path})))
    };
    let in_file = || {
        let setup = setup();
        fs::write(setup.path("root/pintle.toml"), "scope = [\"read:/p/\", \"read:/q/\"]\n").expect("writes");
        setup
    };
    let starts = [
        (setup(), [true, true, true]),
        (setup().args(["--scope", "read:/p/"]), [false, true, false]),
        (setup().args(["--scope", "read:/p/", "--scope", "read:/q"]), [false, true, true]),
        (setup().args(["--scope=read:/p/,read:/q"]), [false, true, true]),
        (setup().env("PINTLE_SCOPE", "read:/q/"), [false, false, true]),
        (setup().env("PINTLE_SCOPE", "read:/q/,read:/p/*"), [false, true, true]),
        (setup().env("PINTLE_SCOPE", "read:/q/").args(["--scope", "read:/p/"]), [false, true, false]),
        (in_file(), [false, true, true]),
        (in_file().env("PINTLE_SCOPE", "read:/q/"), [false, false, true]),
        (in_file().args(["--scope", "read:/p/"]), [false, true, false]),
    ];
    for (number, (setup, expected)) in starts.into_iter().enumerate() {
        let mut server = setup.start();
        assert_eq!(may(&mut server), expected, "start {number}");
        server.finish();
    }
}

#[test]
fn an_invalid_scope_stops_the_start_and_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let started = |prepare: &dyn Fn(&mut std::process::Command)| {
        let mut command = pintle();
        command.arg("serve").current_dir(folder.path());
        command.env("PINTLE_STATE_DIR", "/nonexistent/pintle-state");
        command.env("MCP_READY_FILE", folder.path().join("ready"));
        prepare(&mut command);
        run(&mut command, b"")
    };
    for scope in [
        "read",
        "read:",
        "read:p",
        "look:/p",
        "READ:/",
        "read:/p/*/q",
        "read:/../p",
        "write:/./p",
        "assets:",
        "read:/p\\q",
    ] {
        let (code, output, errors) = started(&|command| {
            command.args(["--scope", "read:/", "--scope", scope]);
        });
        assert!(code.is_some_and(|code| code != 0), "{scope}: {errors}");
        assert!(errors.contains(&format!("`{scope}` is not a scope")), "{scope}: {errors}");
        assert!(output.is_empty() && !errors.contains("mcp:ready"), "{errors}");
    }
    let (code, _, errors) = started(&|command| {
        command.env("PINTLE_SCOPE", "read:/,wrong");
    });
    assert!(code != Some(0) && errors.contains("PINTLE_SCOPE: `wrong` is not a scope"), "{errors}");
    fs::write(folder.path().join("pintle.toml"), "scope = [\"wrong\"]\n").expect("writes");
    let (code, _, errors) = started(&|_| {});
    assert!(code != Some(0) && errors.contains("`wrong` is not a scope"), "{errors}");
}

#[test]
fn an_empty_scope_on_the_command_line_or_in_its_variable_does_not_open_everything() {
    for (flags, variable, expected) in [
        (&["--scope", ""][..], None, "--scope is empty"),
        (&[], Some(""), "PINTLE_SCOPE is empty"),
        (&[], Some("read:/,"), "PINTLE_SCOPE is empty"),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let mut command = pintle();
        command.arg("serve").args(flags).current_dir(folder.path());
        if let Some(variable) = variable {
            command.env("PINTLE_SCOPE", variable);
        }
        command.env("PINTLE_STATE_DIR", "/nonexistent/pintle-state");
        command.env("MCP_READY_FILE", folder.path().join("ready"));
        let call = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"file.list\",\"params\":{}}\n";
        let (code, output, errors) = run(&mut command, call.as_bytes());
        assert_eq!((code, output.as_str()), (Some(2), ""), "{errors}");
        assert!(errors.contains(expected), "{errors}");
    }
}

/// A workspace with links from a folder in scope, `p`, to one that is not, `q`.
fn linked() -> Setup {
    let setup = setup();
    let root = setup.path("root");
    fs::create_dir(root.join("q/folder")).expect("a folder");
    for (link, target) in [
        ("p/file", "../q/out.txt"),
        ("p/folder", "../q"),
        ("p/twice", "folder/out.txt"),
        ("p/root", ".."),
        ("p/near", "in.txt"),
        ("p/nowhere", "missing"),
        ("p/to_folder", "../q/folder"),
        ("q/back", "../p/in.txt"),
        ("q/back_folder", "../p"),
    ] {
        symlink(target, root.join(link)).expect("a link");
    }
    setup
}

#[test]
fn a_link_does_not_lead_out_of_scope() {
    let mut server = scoped(linked(), ["write:/p/"]);
    for path in ["p/file", "p/folder/out.txt", "p/twice", "p/root/q/out.txt"] {
        for call in reads(path) {
            assert_forbidden(&mut server, call, "read:/q/out.txt");
        }
        for (tool, arguments) in mutations(path) {
            let frame = server.call(tool, arguments);
            let code =
                frame["error"]["data"]["code"].as_str().unwrap_or_else(|| panic!("{tool} {path}: {frame}"));
            let taken = tool == "file.create" && code == "CONFLICT";
            assert!(code == "FORBIDDEN" || taken, "{tool} {path}: {frame}");
        }
    }
    assert_forbidden(&mut server, ("file.list", json!({"path": "p/folder"})), "read:/q");
    assert_forbidden(&mut server, ("file.list", json!({"path": "p/root"})), "read:/");
    let create = |path: &str| ("file.create", json!({"path": path, "content": "x"}));
    assert_forbidden(&mut server, create("p/folder/new"), "write:/q/new");
    assert_forbidden(&mut server, create("p/root/new/deep"), "write:/new/deep");
    let into = ("file.move", json!({"path": "p/in.txt", "hash": HASH, "to": "p/folder/in.txt"}));
    assert_forbidden(&mut server, into, "write:/q/in.txt");
    // The path as given needs the scope, too.
    for path in ["q/back", "q/back_folder/in.txt"] {
        for call in reads(path) {
            assert_forbidden(&mut server, call, &format!("read:/{path}"));
        }
    }
    // A link from outside the scope back into it is allowed.
    assert!(is_allowed(&mut server, "text.read", json!({"path": "p/root/p/in.txt"})));
    assert!(is_allowed(&mut server, "text.read", json!({"path": "p/near"})));
    let root = server.path("root");
    assert_eq!(fs::read(root.join("q/out.txt")).expect("reads"), b"text\n");
    assert_eq!(fs::read_dir(root.join("q")).expect("lists").count(), 4);
    assert!(!root.join("new").exists() && root.join("p/file").is_symlink());
    server.finish();
}

#[test]
fn a_list_does_not_reveal_the_target_of_a_link_out_of_scope() {
    let mut server = scoped(linked(), ["read:/p/"]);
    let listed = server.result("file.list", json!({"path": "p"}));
    let expected = json!([
        {"name": "sub", "type": "folder", "size": 0},
        {"name": "file", "type": "other", "size": 0},
        {"name": "folder", "type": "other", "size": 0},
        {"name": "in.txt", "type": "file", "size": 5},
        {"name": "near", "type": "file", "size": 5},
        {"name": "nowhere", "type": "other", "size": 0},
        {"name": "root", "type": "other", "size": 0},
        {"name": "to_folder", "type": "other", "size": 0},
        {"name": "twice", "type": "other", "size": 0},
    ]);
    assert_eq!(listed["entries"], expected);
    server.finish();
    // For a caller that may read both, a link is listed as its target.
    let mut server = scoped(linked(), ["read:/"]);
    let listed = server.result("file.list", json!({"path": "p"}));
    let folder = json!({"name": "folder", "type": "folder", "size": 0});
    assert!(listed["entries"].as_array().expect("entries").contains(&folder), "{listed}");
    server.finish();
}

#[test]
fn a_link_out_of_scope_does_not_reveal_whether_it_leads_to_a_folder_or_a_file() {
    let mut server = scoped(linked(), ["write:/p/"]);
    for (tool, arguments) in [
        ("text.read", json!({"path": "p/folder/folder"})),
        ("text.read", json!({"path": "p/to_folder"})),
        ("text.append", json!({"path": "p/to_folder", "hash": HASH, "content": "x"})),
        ("file.list", json!({"path": "p/folder/out.txt"})),
    ] {
        let frame = server.call(tool, arguments.clone());
        assert_eq!(frame["error"]["data"]["code"], json!("FORBIDDEN"), "{tool} {arguments}: {frame}");
    }
    server.finish();
}

#[test]
fn a_link_out_of_scope_does_not_reveal_whether_a_file_exists() {
    let mut server = scoped(linked(), ["read:/p/"]);
    let mut answers = ["p/folder/out.txt", "p/folder/missing"].map(|path| {
        let frame = server.call("text.read", json!({"path": path}));
        frame["error"]["data"]["code"].clone()
    });
    answers.sort_by_key(Value::to_string);
    assert_eq!(answers[0], answers[1], "the answers reveal whether a file exists");
    server.finish();
}

#[test]
fn resources_and_completions_are_limited_to_the_scope() {
    let mut server = scoped(linked(), ["read:/p/"]);
    server.send(&initialize("2025-11-25"));
    server.frame();
    server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let listed = server.result("resources/list", json!({}));
    assert!(!listed.to_string().contains("list:///"), "{listed}");
    for (uri, scope) in [
        ("list:///", "read:/"),
        ("list://q", "read:/q"),
        ("list://p/folder", "read:/q"),
        ("list://%71", "read:/q"),
    ] {
        let frame = server.call("resources/read", json!({"uri": uri}));
        assert_eq!(frame["error"]["code"], json!(403), "{uri}: {frame}");
        assert_eq!(frame["error"]["data"]["details"]["scope"], json!(scope), "{uri}: {frame}");
        assert_eq!(frame["error"]["data"]["uri"], json!(uri), "{uri}: {frame}");
    }
    let read = server.result("resources/read", json!({"uri": "list://p/sub"}));
    assert!(read.to_string().contains("deep.txt"), "{read}");
    let mut complete = |value: &str| {
        let reference = json!({"type": "ref/resource", "uri": "list://{+path}"});
        let params = json!({"ref": reference, "argument": {"name": "path", "value": value}});
        server.result("completion/complete", params)["completion"]["values"].clone()
    };
    assert_eq!(complete("p/"), json!(["p/sub/"]));
    assert_eq!(complete("q/"), json!([]));
    assert_eq!(complete("p/folder/"), json!([]));
    assert_eq!(complete("p/root/"), json!([]));
    server.finish();
}

#[test]
fn scopes_hold_over_http_as_well() {
    let server = setup().http().args(["--scope", "read:/p/"]).start();
    let call = |path: &str| {
        let params = json!({"path": path});
        json!({"jsonrpc": "2.0", "id": 1, "method": "text.read", "params": params})
    };
    let mut client = server.connect();
    assert_eq!(client.post("/rpc", &call("p/in.txt")).status, 200);
    let answer = client.post("/rpc", &call("q/out.txt"));
    assert_eq!(answer.refusal(), (403, 403), "{answer:?}");
    assert_eq!(answer.message()["error"]["data"]["code"], json!("FORBIDDEN"));
}

/// Calls over MCP whose scope is missing: tools and resources, and the scope that each needs.
fn forbidden_requests() -> Vec<(&'static str, Value, &'static str)> {
    let call = |tool: &str, arguments: Value| json!({"name": tool, "arguments": arguments});
    vec![
        ("tools/call", call("text.read", json!({"path": "q/out.txt"})), "read:/q/out.txt"),
        ("tools/call", call("file.create", json!({"path": "p/new", "content": ""})), "write:/p/new"),
        ("tools/call", call("populate_backend", json!({"asset": {}})), "assets:publish"),
        // Only the link's target is out of scope, which is known only after the link was resolved.
        ("tools/call", call("text.read", json!({"path": "p/file"})), "read:/q/out.txt"),
        ("resources/read", json!({"uri": "list://q"}), "read:/q"),
        ("resources/read", json!({"uri": "list://%71"}), "read:/q"),
        ("resources/read", json!({"uri": "asset://x"}), "assets:read"),
    ]
}

#[test]
fn a_missing_scope_is_403_on_every_http_path_and_the_session_stays_open() {
    let server = linked().http().args(["--scope", "read:/p/", "--backend-url", "http://127.0.0.1:9"]).start();
    let mut alone = server.connect();
    let mut sessions = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
        .map(|version| (version, server.session(version)));
    for (method, params, scope) in forbidden_requests() {
        let answers = sessions
            .each_mut()
            .map(|(version, client)| (*version, client.call(json!("x"), method, params.clone())));
        let stateless = alone.modern(json!("x"), method, params.clone());
        for (version, answer) in answers.into_iter().chain([("2026-07-28", stateless)]) {
            let what = format!("{version} {method} {params}: {answer:?}");
            assert_eq!(answer.refusal(), (403, 403), "{what}");
            assert_eq!(answer.header("content-type"), Some("application/json"), "{what}");
            assert_eq!(answer.header("www-authenticate"), None, "{what}");
            let message = answer.message();
            let error = &message["error"];
            assert_eq!(
                (&message["id"], &error["data"]["code"]),
                (&json!("x"), &json!("FORBIDDEN")),
                "{what}"
            );
            assert_eq!(error["data"]["details"]["scope"], json!(scope), "{what}");
            assert_eq!(error["message"], error["data"]["message"], "{what}");
            assert!(error["message"].as_str().is_some_and(|text| text.contains(scope)), "{what}");
        }
    }
    let allowed = json!({"name": "text.read", "arguments": {"path": "p/in.txt"}});
    for (version, client) in &mut sessions {
        let answer = client.call(json!("x"), "tools/call", allowed.clone());
        assert_eq!(answer.status, 200, "{version}: {answer:?}");
        assert_eq!(answer.result()["structuredContent"]["content"], json!("text\n"), "{version}: {answer:?}");
    }
    // A path that no client may change does not depend on scopes: the tool refuses it.
    let server = setup().http().start();
    let create = json!({"name": "file.create", "arguments": {"path": "pintle.toml", "content": ""}});
    let answer = server.connect().modern(json!(1), "tools/call", create);
    assert_eq!((answer.status, &answer.result()["isError"]), (200, &json!(true)), "{answer:?}");
}

#[test]
fn a_missing_scope_is_403_also_while_all_slots_and_the_queue_are_full() {
    let setup = linked().arg("--fixtures").http().args(["--running", "1", "--waiting", "0"]);
    let server = setup.args(["--scope", "read:/p/", "--scope", "metrics:read"]).start();
    let mut busy = server.connect();
    let sleep = json!({"jsonrpc": "2.0", "id": 1, "method": "test_sleep", "params": {"ms": 600_000}});
    busy.send("POST", "/rpc", &[], sleep.to_string().as_bytes());
    wait_until("the slot is taken", || server.metric("pintle_calls_running") == 1);
    let mut session = server.session("2025-11-25");
    let mut alone = server.connect();
    // Only a running call resolves a link, so it needs a slot.
    let requests =
        forbidden_requests().into_iter().filter(|(_, params, _)| !params.to_string().contains("p/file"));
    for (method, params, _) in requests {
        let answer = session.call(json!(2), method, params.clone());
        assert_eq!(answer.refusal(), (403, 403), "{method} {params}: {answer:?}");
        let answer = alone.modern(json!(2), method, params.clone());
        assert_eq!(answer.refusal(), (403, 403), "{method} {params}: {answer:?}");
    }
    let read = json!({"jsonrpc": "2.0", "id": 2, "method": "text.read", "params": {"path": "q/out.txt"}});
    assert_eq!(alone.post("/rpc", &read).refusal(), (403, 403));
}

#[test]
fn on_a_pipe_a_missing_scope_is_a_failure_of_the_tool() {
    let mut server = scoped(linked(), ["read:/p/"]);
    server.send(&initialize("2025-11-25"));
    server.frame();
    server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    for (method, params, scope) in forbidden_requests() {
        let frame = server.call(method, params.clone());
        let object: Value = match method {
            "tools/call" => {
                assert_eq!(frame["result"]["isError"], json!(true), "{params}: {frame}");
                let text = frame["result"]["content"][0]["text"].as_str().expect("a text");
                serde_json::from_str(text).expect("JSON")
            }
            _ => frame["error"]["data"].clone(),
        };
        assert_eq!(object["code"], json!("FORBIDDEN"), "{params}: {frame}");
        assert_eq!(object["details"]["scope"], json!(scope), "{params}: {frame}");
    }
    server.finish();
}

#[test]
fn assets_have_scopes_of_their_own() {
    let publish = || ("populate_backend", json!({"asset": {}, "schema": "lamp"}));
    let start = |scope: &str| {
        let mut server =
            Setup::assets().args(["--scope", scope, "--backend-url", "http://127.0.0.1:9"]).start();
        server.send(&initialize("2025-11-25"));
        server.frame();
        server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        server
    };
    for scope in ["write:/", "assets:read"] {
        let mut server = start(scope);
        assert_forbidden(&mut server, publish(), "assets:publish");
        // Listing and validating need no scope.
        assert_eq!(server.result("list_schemas", json!({}))["ok"], json!(true));
        let verdict = server.result("validate_asset", json!({"asset": {}, "schema": "lamp"}));
        assert_eq!(verdict["ok"], json!(false));
        server.finish();
    }
    let mut server = start("assets:publish");
    let (tool, arguments) = publish();
    assert_eq!(server.result(tool, arguments)["reason"], json!("validation_failed"));
    for uri in ["asset://", "asset://x"] {
        let frame = server.call("resources/read", json!({"uri": uri}));
        assert_eq!(frame["error"]["code"], json!(403), "{uri}: {frame}");
        assert_eq!(frame["error"]["data"]["details"]["scope"], json!("assets:read"), "{frame}");
    }
    server.finish();
    // With the scope, the backend is called and does not answer.
    let mut server = start("assets:read");
    let frame = server.call("resources/read", json!({"uri": "asset://x"}));
    assert!(frame.get("error").is_some() && frame["error"]["code"] != json!(403), "{frame}");
    server.finish();
}

/// Asserts that a caller with all scopes cannot change these paths in any way.
fn assert_read_only(server: &mut Server, paths: &[&str]) {
    for path in paths {
        let is_there = server.call("text.read", json!({"path": path})).get("result").is_some();
        let mut calls = mutations(path);
        calls.push(("file.move", json!({"path": "spare.txt", "hash": HASH, "to": path})));
        for (tool, arguments) in calls {
            let frame = server.call(tool, arguments.clone());
            let error = &frame["error"]["data"];
            let puts = tool == "file.create" || arguments["to"] == json!(path);
            // A missing file can also be refused as missing.
            if !is_there && !puts && error["code"] == json!("NOT_FOUND") {
                continue;
            }
            assert_eq!(error["code"], json!("FORBIDDEN"), "{tool} {arguments}: {frame}");
            let message = error["message"].as_str().expect("a message");
            assert!(message.contains("cannot be changed"), "{tool} {arguments}: {frame}");
        }
    }
}

#[test]
fn the_configuration_is_read_only_also_through_links_and_before_it_exists() {
    for is_there in [true, false] {
        let setup = setup();
        let root = setup.path("root");
        if is_there {
            fs::write(root.join("pintle.toml"), "running = 4\n").expect("writes");
        }
        fs::write(root.join("spare.txt"), "text\n").expect("writes");
        symlink("..", root.join("p/up")).expect("a link");
        symlink(".", root.join("here")).expect("a link");
        let mut server = setup.start();
        let paths =
            ["pintle.toml", "/pintle.toml", "p/../pintle.toml", "p/up/pintle.toml", "here/pintle.toml"];
        assert_read_only(&mut server, &paths);
        let found = server.call("text.read", json!({"path": "pintle.toml"}));
        assert_eq!(found.get("result").is_some(), is_there, "it may be read: {found}");
        // A file with the same name elsewhere is an ordinary file.
        server.result("file.create", json!({"path": "p/pintle.toml", "content": ""}));
        let there = fs::read_to_string(root.join("pintle.toml"));
        assert_eq!(there.ok().as_deref(), is_there.then_some("running = 4\n"));
        assert!(root.join("spare.txt").exists());
        server.finish();
    }
}

#[test]
fn a_link_to_the_configuration_changes_nothing() {
    let setup = setup();
    let root = setup.path("root");
    fs::write(root.join("pintle.toml"), "running = 4\n").expect("writes");
    symlink("../pintle.toml", root.join("p/config")).expect("a link");
    fs::hard_link(root.join("pintle.toml"), root.join("p/other_name")).expect("a link");
    let mut server = setup.start();
    let read = server.result("text.read", json!({"path": "p/config"}));
    let arguments = json!({"path": "p/config", "hash": read["hash"], "content": "x"});
    assert_eq!(server.error("text.append", arguments)["code"], json!("FORBIDDEN"));
    // An edit of a hard link to the same file changes only that name.
    let arguments = json!({"path": "p/other_name", "hash": read["hash"], "content": "x"});
    server.result("text.append", arguments);
    assert_eq!(fs::read_to_string(root.join("pintle.toml")).expect("reads"), "running = 4\n");
    server.finish();
}

#[test]
fn the_configuration_that_was_named_and_its_target_are_read_only() {
    let setup = setup();
    let root = setup.path("root");
    fs::create_dir(root.join("conf")).expect("a folder");
    fs::write(root.join("conf/real.toml"), "running = 4\n").expect("writes");
    fs::write(root.join("spare.txt"), "text\n").expect("writes");
    symlink("conf/real.toml", root.join("named.toml")).expect("a link");
    let mut server = setup.args(["--config", "named.toml"]).start();
    assert_read_only(&mut server, &["conf/real.toml"]);
    let hash = server.result("text.read", json!({"path": "named.toml"}))["hash"].clone();
    for (tool, arguments) in [
        ("text.append", json!({"path": "named.toml", "hash": hash, "content": "x"})),
        ("file.remove", json!({"path": "named.toml", "hash": hash})),
        ("file.move", json!({"path": "named.toml", "hash": hash, "to": "other.toml"})),
    ] {
        assert_eq!(server.error(tool, arguments)["code"], json!("FORBIDDEN"), "{tool}");
    }
    assert!(root.join("named.toml").is_symlink());
    server.finish();
}

#[test]
fn the_configuration_cannot_be_created_through_a_dangling_link() {
    let setup = setup();
    symlink("p/real.toml", setup.path("root/pintle.toml")).expect("a link");
    let mut server = setup.start();
    let error = server.call("file.create", json!({"path": "p/real.toml", "content": "running = 1\n"}));
    assert_eq!(error["error"]["data"]["code"], json!("FORBIDDEN"), "{error}");
    server.finish();
}

#[test]
fn the_schemas_in_use_are_read_only_also_through_links() {
    let copied = |setup: &Setup, to: &str| {
        let to = setup.path("root").join(to);
        fs::create_dir_all(&to).expect("a folder");
        fs::copy(data().join("schemas/lamp.schema.json"), to.join("lamp.schema.json")).expect("copies");
        to
    };
    let named = setup();
    let folder = copied(&named, "schemas");
    let named = named.env("SYN_SCHEMAS_DIR", folder);
    let default = setup();
    copied(&default, "libs/synesthetic-schemas/jsonschema");
    for (setup, folder) in [(named, "schemas"), (default, "libs/synesthetic-schemas/jsonschema")] {
        let root = setup.path("root");
        fs::write(root.join("spare.txt"), "text\n").expect("writes");
        symlink(root.join(folder).strip_prefix(&root).expect("inside"), root.join("link")).expect("a link");
        let mut server = setup.start();
        let schemas = server.result("list_schemas", json!({}));
        assert!(schemas.to_string().contains("lamp"), "they are in use: {schemas}");
        let inside = |rest: &str| format!("{folder}/{rest}");
        let paths = [
            inside("lamp.schema.json"),
            inside("new.schema.json"),
            inside("deep/er/x"),
            "link/new".to_owned(),
        ];
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        assert_read_only(&mut server, &paths);
        let read = server.result("text.read", json!({"path": "link/lamp.schema.json"}));
        let arguments = json!({"path": "link/lamp.schema.json", "hash": read["hash"]});
        assert_eq!(server.error("file.remove", arguments)["code"], json!("FORBIDDEN"));
        assert_eq!(fs::read_dir(root.join(folder)).expect("lists").count(), 1);
        // Files next to them can still be changed.
        server.result("file.create", json!({"path": format!("{folder}-not"), "content": ""}));
        server.finish();
    }
}
