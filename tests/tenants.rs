//! Tenants: each caller has a root of its own, and learns nothing of the others.

use std::{collections::BTreeSet, fs, path::PathBuf};

use serde_json::{Value, json};

use crate::support::{
    Server, Setup,
    http::{Answer, Client},
    pintle, run,
    tokens::Forge,
    wait_until,
};

/// A server whose callers have their roots in one folder, with a file in each.
fn setup(names: &[&str]) -> Setup {
    let setup = Setup::new();
    for name in names {
        let root = setup.path(&format!("srv/{name}"));
        fs::create_dir_all(&root).expect("a root");
        fs::write(root.join("own.txt"), format!("only {name} has this\n")).expect("writes");
    }
    let template = setup.path("srv/{sub}");
    setup.arg("--root").arg(template).args(["--http", "127.0.0.1:0"])
}

/// A connection of a subject who may do everything.
fn client(server: &Server, subject: &str) -> Client {
    server.connect_with(subject, ["write:/", "assets:read", "metrics:read"])
}

fn call(client: &mut Client, tool: &str, arguments: &Value) -> Answer {
    client.post("/rpc", &json!({"jsonrpc": "2.0", "id": 1, "method": tool, "params": arguments}))
}

#[test]
fn tenants_do_not_see_each_others_files_hits_or_results() {
    let server = setup(&["ann", "bob"]).start();
    let (mut ann, mut bob) = (client(&server, "ann"), client(&server, "bob"));
    for (client, name, other) in [(&mut ann, "ann", "bob"), (&mut bob, "bob", "ann")] {
        let read = call(client, "text.read", &json!({"path": "own.txt"}));
        assert!(read.body.contains(&format!("only {name}")), "{read:?}");
        for (tool, arguments) in [
            ("search", json!({"query": "only"})),
            ("file.list", json!({"path": "/", "depth": 5})),
            ("index_status", json!({})),
            ("index_build", json!({})),
            ("search", json!({"query": "only", "match": "words"})),
            ("search", json!({"query": format!("only {other}")})),
            ("workspace_status", json!({})),
            ("text.read", json!({"path": format!("../{other}/own.txt")})),
            ("text.read", json!({"path": "absent.txt"})),
        ] {
            let answer = call(client, tool, &arguments);
            let shown =
                answer.body.replace(&format!("../{other}"), "").replace(&format!("only {other}\"}}"), "");
            assert!(!shown.contains(&format!("/{other}")), "{tool} {arguments}: {answer:?}");
            assert!(!shown.contains(&format!("only {other} has")), "{tool} {arguments}: {answer:?}");
        }
        let found = call(client, "search", &json!({"query": "only"})).result();
        assert_eq!(found["total"], 1, "{found}");
    }
    // The same key of two callers is two keys.
    for (client, name) in [(&mut ann, "ann"), (&mut bob, "bob")] {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "file.create", "idempotencyKey": "k",
            "params": {"path": "made.txt", "content": name}});
        assert_eq!(client.post("/rpc", &message).status, 200);
        let made = fs::read_to_string(server.path(&format!("srv/{name}/made.txt")));
        assert_eq!(made.expect("reads"), name);
    }
    assert!(!server.path("root/made.txt").exists());
}

#[test]
fn a_session_and_a_task_of_another_caller_do_not_exist() {
    let server = setup(&["ann", "bob"]).start();
    let (mut ann, mut bob) = (client(&server, "ann"), client(&server, "bob"));
    let opened = ann.post("/mcp", &crate::support::http::initialize("2025-11-25"));
    let session = opened.header("mcp-session-id").expect("a session").to_owned();
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}});
    for client in [&mut ann, &mut bob] {
        client.set("mcp-session-id", &session).set("mcp-protocol-version", "2025-11-25");
    }
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(ann.post("/mcp", &initialized).status, 202);
    assert_eq!(ann.post("/mcp", &list).status, 200);
    assert_eq!(bob.post("/mcp", &list).status, 404);
    bob.send("DELETE", "/mcp", &[], b"");
    assert_eq!(bob.answer().status, 404);
    assert_eq!(ann.post("/mcp", &list).status, 200);
}

#[test]
fn a_subject_that_is_no_name_or_has_no_root_is_forbidden_and_nothing_is_created() {
    let setup = setup(&["ann"]);
    fs::create_dir_all(setup.path("srv/.hidden")).expect("a folder");
    fs::write(setup.path("srv/file"), "x").expect("writes");
    let server = setup.start();
    let long = "x".repeat(200);
    for subject in
        ["../ann", "ann/..", "a/b", "..", ".", ".hidden", "absent", "file", "ann\\x", long.as_str()]
    {
        let mut client = client(&server, subject);
        let answer = call(&mut client, "text.read", &json!({"path": "own.txt"}));
        assert_eq!(answer.refusal(), (403, 403), "{subject}: {answer:?}");
        let answer =
            client.modern(json!(1), "tools/call", json!({"name": "file_list", "arguments": {"path": "/"}}));
        assert!(!answer.body.contains("own.txt"), "{subject}: {answer:?}");
    }
    let entries = fs::read_dir(server.path("srv")).expect("reads").count();
    assert_eq!(entries, 3);
}

#[test]
fn tenants_need_tokens_and_get_no_commands() {
    for (arguments, expected) in [
        (vec!["--root", "/srv/{sub}"], "--auth local"),
        (vec!["--root", "/srv/{sub}", "--http", "127.0.0.1:0", "--auth", "none"], "--auth local"),
        (vec!["--root", "/srv/{sub}", "--http", "127.0.0.1:0", "--tools", "/x"], "commands are not offered"),
        (vec!["--root", "srv/{sub}", "--http", "127.0.0.1:0"], "absolute path"),
        (vec!["--root", "/srv/x{sub}", "--http", "127.0.0.1:0"], "in the place of a name"),
        (vec!["--root", "/{sub}/{sub}", "--http", "127.0.0.1:0"], "once"),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let mut command = pintle();
        command.arg("serve").args(&arguments).current_dir(folder.path());
        command.arg("--state-dir").arg(folder.path().join("state"));
        let (code, _, errors) = run(&mut command, b"");
        assert!(code != Some(0) && errors.contains(expected), "{arguments:?}: {errors}");
    }
}

/// The tenants whose roots the server has open.
fn open_roots(server: &Server) -> BTreeSet<PathBuf> {
    let descriptors = fs::read_dir(format!("/proc/{}/fd", server.pid())).expect("a process");
    let targets = descriptors.filter_map(|descriptor| fs::read_link(descriptor.ok()?.path()).ok());
    let below = server.path("srv").canonicalize().expect("a folder");
    targets.filter(|target| target.parent() == Some(&below)).collect()
}

#[test]
fn so_many_workspaces_are_loaded_however_many_tenants_there_are() {
    const MOST: usize = 64;
    let names: Vec<String> = (0..150).map(|number| format!("tenant-{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let server = setup(&names).start();
    let forge = Forge::new(&server.state(), "any");
    let use_workspace = |name: &str| {
        let mut client = server.connect().bearing(&forge.with(&json!({"sub": name})));
        for (tool, arguments) in
            [("text.read", json!({"path": "own.txt"})), ("search", json!({"query": "only"}))]
        {
            let answer = call(&mut client, tool, &arguments);
            assert!(answer.body.contains(&format!("only {name} has")), "{tool}: {answer:?}");
        }
    };
    names[..MOST].iter().copied().for_each(use_workspace);
    assert_eq!(open_roots(&server).len(), MOST);
    names[MOST..].iter().copied().for_each(use_workspace);
    // A workspace that is unloaded is closed once nothing works on it any more.
    wait_until("the others are closed", || open_roots(&server).len() == MOST);
    let newest: BTreeSet<_> =
        names[names.len() - MOST..].iter().map(|name| server.path("srv").join(name)).collect();
    assert_eq!(open_roots(&server), newest);
    // Who was unloaded is loaded again.
    use_workspace(names[0]);
}

#[test]
fn long_calls_of_one_caller_leave_a_slot_to_others() {
    let setup = Setup::fixtures().args(["--http", "127.0.0.1:0", "--running", "3"]);
    let server = setup.start();
    let echo = json!({"jsonrpc": "2.0", "id": 1, "method": "test_echo", "params": {"value": 1}}).to_string();
    let mut calm = client(&server, "calm");
    assert!(calm.post_bytes("/rpc", echo.as_bytes()).body.contains("\"result\""));
    let mut flood: Vec<Client> = (0..5).map(|_| client(&server, "flood")).collect();
    let sleep =
        json!({"jsonrpc": "2.0", "id": 1, "method": "test_sleep", "params": {"ms": 600_000}}).to_string();
    for client in &mut flood {
        client.send("POST", "/rpc", &[], sleep.as_bytes());
    }
    let metric = |name: &str, calm: &mut Client| {
        let text = calm.get("/metrics").body;
        text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok())
    };
    wait_until("two of the calls run, three wait", || {
        metric("pintle_calls_waiting", &mut calm) == Some(3)
            && metric("pintle_calls_running", &mut calm) == Some(2)
    });
    for _ in 0..20 {
        assert!(calm.post_bytes("/rpc", echo.as_bytes()).body.contains("\"result\""));
    }
}

#[test]
fn a_caller_who_sends_a_flood_does_not_keep_another_from_being_served() {
    let setup = Setup::fixtures().args(["--http", "127.0.0.1:0", "--running", "2", "--waiting", "8"]);
    let server = setup.start();
    let mut flood: Vec<Client> = (0..40).map(|_| client(&server, "flood")).collect();
    let sleep = json!({"jsonrpc": "2.0", "id": 1, "method": "test_sleep", "params": {"ms": 50}}).to_string();
    for client in &mut flood {
        client.send("POST", "/rpc", &[], sleep.as_bytes());
    }
    let mut calm = client(&server, "calm");
    let metric = |calm: &mut Client, name: &str| {
        let text = calm.get("/metrics").body;
        let line = text.lines().find(|line| line.starts_with(name)).expect("a metric").to_owned();
        line.split(' ').next_back().and_then(|value| value.parse::<u64>().ok()).expect("a number")
    };
    wait_until("the queue is full", || metric(&mut calm, "pintle_calls_waiting") == 8);
    for round in 0..20 {
        let answer = calm.post_bytes("/rpc", sleep.as_bytes());
        assert!(answer.body.contains("\"result\""), "round {round}: {answer:?}");
        // The flood goes on: whoever has an answer asks again.
        for client in &mut flood {
            if client.answer().status == 503 || round < 19 {
                client.send("POST", "/rpc", &[], sleep.as_bytes());
            }
        }
    }
}
