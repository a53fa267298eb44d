//! Every tool and every resource with tokens of every kind: allowed, or 403 with the scope that is missing.

use std::{collections::BTreeSet, fs};

use serde_json::{Value, json};

use crate::{
    commands::shell,
    support::{
        Server, Setup, data,
        http::{Answer, Client},
        request,
        tokens::Forge,
    },
};

const LEGACY: &str = "2025-11-25";
/// The hash of no file here: a call that is allowed fails afterwards, so that nothing changes.
const WRONG_HASH: &str = "0000000000000000000000000000000000000000000000000000000000000000";

fn start() -> Server {
    let setup = Setup::new();
    let root = setup.path("root");
    for path in ["docs/a.txt", "docs/sub/b.txt", "docsets/c.txt", "Docs/d.txt", "top.txt"] {
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, "needle\n").expect("writes");
    }
    let tools = setup.path("tools");
    fs::create_dir(&tools).expect("a folder");
    let manifest = format!("name = \"greet\"\ndescription = \"A test.\"\n{}", shell("echo hello"));
    fs::write(tools.join("greet.tool.toml"), manifest).expect("writes");
    setup
        .env("SYN_SCHEMAS_DIR", data().join("schemas"))
        .env("SYN_EXAMPLES_DIR", data().join("examples"))
        // Nothing listens there: a call that is allowed fails afterwards.
        .env("SYN_BACKEND_URL", "http://127.0.0.1:9")
        .arg("--tools")
        .arg(tools)
        .with_local_tokens()
        .start()
}

/// What a call needs.
#[derive(Clone, Copy)]
enum Needs {
    /// Any valid token.
    Nothing,
    /// To read or write these paths.
    Paths(&'static str, &'static [&'static str]),
    /// To write everything.
    WriteAll,
    /// To write this path, if the caller may read it: otherwise it is not found.
    WriteWhatIsFound(&'static str),
    /// A scope of its own.
    Named(&'static str),
}

/// A call of each tool. What is needed is about `/docs/a.txt` where it is about a path.
fn calls() -> Vec<(&'static str, Value, Needs)> {
    const READ: Needs = Needs::Paths("read", &["/docs/a.txt"]);
    const WRITE: Needs = Needs::Paths("write", &["/docs/a.txt"]);
    let path = "docs/a.txt";
    vec![
        ("check_status", json!({}), Needs::Nothing),
        ("diff_assets", json!({"base": {}, "new": {"a": 1}}), Needs::Nothing),
        ("file.create", json!({"path": path, "content": "x"}), WRITE),
        ("file.list", json!({"path": "docs"}), Needs::Paths("read", &["/docs"])),
        (
            "file.move",
            json!({"path": path, "to": "docs/z.txt", "hash": WRONG_HASH}),
            Needs::Paths("write", &["/docs/a.txt", "/docs/z.txt"]),
        ),
        ("file.read", json!({"path": path}), READ),
        ("file.remove", json!({"path": path, "hash": WRONG_HASH}), WRITE),
        ("get_example", json!({"path": "lamp/broken.json"}), Needs::Nothing),
        ("get_schema", json!({"name": "lamp"}), Needs::Nothing),
        ("greet", json!({}), Needs::Named("run:greet")),
        ("index_build", json!({}), Needs::WriteAll),
        ("index_status", json!({}), Needs::Nothing),
        ("list_examples", json!({}), Needs::Nothing),
        ("list_schemas", json!({}), Needs::Nothing),
        ("populate_backend", json!({"asset": {"name": "Evening"}}), Needs::Named("assets:publish")),
        ("search", json!({"query": "needle"}), Needs::Nothing),
        ("show_file", json!({"path": path}), READ),
        ("text.append", json!({"path": path, "hash": WRONG_HASH, "content": "x"}), WRITE),
        (
            "text.edit",
            json!({"edits": [{"path": path, "hash": WRONG_HASH, "lines": [1, 2], "new": "x"}]}),
            WRITE,
        ),
        (
            "text.insert",
            json!({"path": path, "hash": WRONG_HASH, "line": 1, "anchor": "needle", "content": "x"}),
            WRITE,
        ),
        ("text.read", json!({"path": path}), READ),
        (
            "text.replace",
            json!({"path": path, "hash": WRONG_HASH, "lines": [1, 0], "old": "needle", "new": "x"}),
            WRITE,
        ),
        (
            "text.substitute",
            json!({"query": "needle", "replacement": "x", "path": "/docs/a.txt", "dry_run": true}),
            Needs::WriteWhatIsFound("/docs/a.txt"),
        ),
        ("validate_asset", json!({"asset": {}, "schema": "lamp"}), Needs::Nothing),
        ("workspace_status", json!({}), Needs::Nothing),
    ]
}

/// An address of each family of resources.
fn resources() -> Vec<(&'static str, Needs)> {
    vec![
        ("list://docs", Needs::Paths("read", &["/docs"])),
        ("list:///docs//./sub/..", Needs::Paths("read", &["/docs"])),
        ("list://d%6Fcs", Needs::Paths("read", &["/docs"])),
        ("schema://lamp", Needs::Nothing),
        ("example://lamp/broken.json", Needs::Nothing),
        ("asset://", Needs::Named("assets:read")),
        ("asset://a-1", Needs::Named("assets:read")),
    ]
}

/// Tokens of every kind: their scopes, whether they cover reading below `/docs`, writing there, and all of it with its
/// deeper folders.
struct Kind {
    scope: &'static str,
    may_read: bool,
    may_write: bool,
}

const KINDS: &[Kind] = &[
    // They cover it.
    Kind { scope: "read:/", may_read: true, may_write: false },
    Kind { scope: "write:/", may_read: true, may_write: true },
    Kind { scope: "read:/docs/", may_read: true, may_write: false },
    Kind { scope: "read:/docs", may_read: true, may_write: false },
    Kind { scope: "read:/docs/*", may_read: true, may_write: false },
    Kind { scope: "write:/docs/", may_read: true, may_write: true },
    Kind { scope: "write:/docs", may_read: true, may_write: true },
    Kind { scope: "write:/docs/*", may_read: true, may_write: true },
    Kind { scope: "assets:read write:/docs run:other", may_read: true, may_write: true },
    // They do not.
    Kind { scope: "read:/docsets", may_read: false, may_write: false },
    Kind { scope: "write:/docsets/", may_read: false, may_write: false },
    Kind { scope: "write:/Docs/", may_read: false, may_write: false },
    Kind { scope: "write:/doc", may_read: false, may_write: false },
    Kind { scope: "write:/docs/sub", may_read: false, may_write: false },
    Kind { scope: "write:/*", may_read: false, may_write: false },
    // They are about something else.
    Kind { scope: "assets:read", may_read: false, may_write: false },
    Kind { scope: "assets:publish", may_read: false, may_write: false },
    Kind { scope: "run:greet", may_read: false, may_write: false },
    Kind { scope: "run:other metrics:read", may_read: false, may_write: false },
    Kind { scope: "openid profile email", may_read: false, may_write: false },
    // There are none, or none that make sense.
    Kind { scope: "", may_read: false, may_write: false },
    Kind { scope: " ", may_read: false, may_write: false },
    Kind { scope: "write:docs", may_read: false, may_write: false },
    Kind { scope: "WRITE:/", may_read: false, may_write: false },
    Kind { scope: "write:/docs/../", may_read: false, may_write: false },
    Kind { scope: "write:/docs/**", may_read: false, may_write: false },
    Kind { scope: "write:", may_read: false, may_write: false },
    Kind { scope: "*", may_read: false, may_write: false },
    Kind { scope: "write:/docs,write:/", may_read: false, may_write: false },
];

impl Kind {
    /// The scopes that are missing for a call, in the order in which they are named.
    fn missing(&self, needs: Needs) -> Option<String> {
        match needs {
            Needs::Nothing => None,
            Needs::WriteAll => (self.scope != "write:/").then(|| "write:/".to_owned()),
            Needs::WriteWhatIsFound(path) => {
                (self.may_read && !self.may_write).then(|| format!("write:{path}"))
            }
            Needs::Named(name) => {
                (!self.scope.split(' ').any(|scope| scope == name)).then(|| name.to_owned())
            }
            // A folder is its own: `/*` covers what is in the root, and the folder is.
            Needs::Paths("read", ["/docs"]) if self.scope == "write:/*" => None,
            Needs::Paths(verb, paths) => {
                let may = if verb == "read" { self.may_read } else { self.may_write };
                let scopes: Vec<String> = paths.iter().map(|path| format!("{verb}:{path}")).collect();
                (!may).then(|| scopes.join(" "))
            }
        }
    }
}

/// Asserts that an answer is about the call itself, whatever became of it.
#[track_caller]
fn assert_allowed(answer: &Answer, what: &str) {
    assert!(!matches!(answer.status, 401 | 403), "{what}: {answer:?}");
    assert!(!answer.body.contains("FORBIDDEN"), "{what}: {answer:?}");
}

#[track_caller]
fn assert_decided(answer: &Answer, missing: Option<&str>, what: &str) {
    match missing {
        None => assert_allowed(answer, what),
        Some(scope) => {
            assert_eq!(answer.status, 403, "{what} wants {scope}: {answer:?}");
            answer.assert_missing_scope(scope);
            // There is no authorization server to ask for more.
            assert_eq!(answer.header("www-authenticate"), None, "{what}");
        }
    }
}

fn with_scope(server: &Server, forge: &Forge, scope: &str) -> Client {
    server.connect().bearing(&forge.with(&json!({"scope": scope})))
}

#[test]
fn every_tool_with_every_kind_of_token_is_allowed_or_names_the_missing_scope() {
    let server = start();
    let forge = Forge::new(&server.state(), "me");
    let mut all = with_scope(&server, &forge, "write:/ assets:read assets:publish run:greet");
    let listed = all.post("/rpc", &request(json!(1), "mcp.discover", json!({}))).result();
    let listed: BTreeSet<_> = listed["tools"]
        .as_array()
        .expect("tools")
        .iter()
        .map(|tool| tool["name"].as_str().expect("a name").to_owned())
        .collect();
    let known: BTreeSet<_> = calls().iter().map(|(tool, ..)| (*tool).to_owned()).collect();
    assert_eq!(known, listed, "the matrix has every tool");
    let shown = all.modern(json!(1), "tools/list", json!({})).result();
    assert_eq!(
        shown["tools"].as_array().expect("tools").len(),
        listed.len(),
        "with every scope all tools are offered"
    );
    for kind in KINDS {
        let mut client = with_scope(&server, &forge, kind.scope);
        let mut session = with_scope(&server, &forge, kind.scope);
        session.open_session(LEGACY);
        for (tool, arguments, needs) in calls() {
            let missing = kind.missing(needs);
            let what = format!("{tool} with `{}`", kind.scope);
            let answer = client.post("/rpc", &request(json!(1), tool, arguments.clone()));
            assert_decided(&answer, missing.as_deref(), &what);
            let answer = client.post(
                "/rpc",
                &request(
                    json!(1),
                    "mcp.tool.invoke",
                    json!({"tool": format!("mcp.tool:{tool}"), "input": arguments}),
                ),
            );
            assert_decided(&answer, missing.as_deref(), &what);
            let call = json!({"name": tool, "arguments": arguments});
            let answer = client.modern(json!(1), "tools/call", call.clone());
            assert_decided(&answer, missing.as_deref(), &what);
            let answer = session.call(json!(1), "tools/call", call);
            assert_decided(&answer, missing.as_deref(), &what);
        }
    }
    assert_eq!(fs::read(server.path("root/docs/a.txt")).expect("reads"), b"needle\n");
}

#[test]
fn every_resource_with_every_kind_of_token_is_allowed_or_names_the_missing_scope() {
    let server = start();
    let forge = Forge::new(&server.state(), "me");
    let mut all = with_scope(&server, &forge, "write:/ assets:read");
    let templates = all.modern(json!(1), "resources/templates/list", json!({})).result();
    let listed = all.modern(json!(1), "resources/list", json!({})).result();
    let scheme =
        |uri: &Value| uri.as_str().and_then(|uri| uri.split_once("://")).expect("an address").0.to_owned();
    let mut families: BTreeSet<String> = templates["resourceTemplates"]
        .as_array()
        .expect("templates")
        .iter()
        .map(|t| scheme(&t["uriTemplate"]))
        .collect();
    families.extend(listed["resources"].as_array().expect("resources").iter().map(|r| scheme(&r["uri"])));
    let known: BTreeSet<String> = resources().iter().map(|(uri, _)| scheme(&json!(uri))).collect();
    assert_eq!(known, families, "the matrix has every family");
    for kind in KINDS {
        let mut client = with_scope(&server, &forge, kind.scope);
        let mut session = with_scope(&server, &forge, kind.scope);
        session.open_session(LEGACY);
        for (uri, needs) in resources() {
            let missing = kind.missing(needs);
            let what = format!("{uri} with `{}`", kind.scope);
            let answer = client.modern(json!(1), "resources/read", json!({"uri": uri}));
            assert_decided(&answer, missing.as_deref(), &what);
            let answer = session.call(json!(1), "resources/read", json!({"uri": uri}));
            assert_decided(&answer, missing.as_deref(), &what);
        }
    }
}

#[test]
fn half_of_what_a_move_needs_is_not_enough_and_only_the_rest_is_named() {
    let server = start();
    let mv = json!({"path": "docs/a.txt", "to": "docsets/a.txt", "hash": WRONG_HASH});
    for (scopes, missing) in [
        (vec!["write:/docs/"], Some("write:/docsets/a.txt")),
        (vec!["write:/docsets/"], Some("write:/docs/a.txt")),
        (vec!["write:/docs/", "read:/docsets/"], Some("write:/docsets/a.txt")),
        (vec!["read:/"], Some("write:/docs/a.txt write:/docsets/a.txt")),
        (vec![], Some("write:/docs/a.txt write:/docsets/a.txt")),
        (vec!["write:/docs/*", "write:/docsets/*"], None),
        (vec!["write:/docs/a.txt", "write:/docsets/a.txt"], None),
    ] {
        let token = crate::support::tokens::mint(&server.state(), "me", &scopes);
        let answer =
            server.connect().bearing(&token).post("/rpc", &request(json!(1), "file.move", mv.clone()));
        assert_decided(&answer, missing, &format!("{scopes:?}"));
    }
}

#[test]
fn a_path_is_normalized_before_it_is_compared_with_the_scopes() {
    let server = start();
    for (scope, path, missing) in [
        ("read:/docs/", "/docs/a.txt", None),
        ("read:/docs/", "//docs///a.txt", None),
        ("read:/docs/", "docs/./sub/./b.txt", None),
        ("read:/docs/", "docsets/../docs/a.txt", None),
        ("read:/docs/", "docs/../docsets/c.txt", Some("read:/docsets/c.txt")),
        ("read:/docs/", "docs/../docs/../top.txt", Some("read:/top.txt")),
        ("read:/docs/", "Docs/d.txt", Some("read:/Docs/d.txt")),
        ("read:/docs/", "docsets/c.txt", Some("read:/docsets/c.txt")),
        ("read:/docs/", "docs/..", Some("read:/")),
        ("read:/docs/*", "docs/sub/b.txt", Some("read:/docs/sub/b.txt")),
        ("read:/docs/*", "docs/sub/../a.txt", None),
        ("read:/docs/*", "docs", None),
        ("write:/docs/*", "docs/sub/b.txt", Some("read:/docs/sub/b.txt")),
        ("read:/*", "top.txt", None),
        ("read:/*", "docs/a.txt", Some("read:/docs/a.txt")),
        ("read:/docs/a.txt", "docs/a.txt", None),
        ("read:/docs/a.txt", "docs/a.txt.more", Some("read:/docs/a.txt.more")),
        ("write:/docs/", "docs/a.txt", None),
        // It says nothing about whether a file is there.
        ("read:/docs/", "docsets/missing", Some("read:/docsets/missing")),
    ] {
        let mut client = server.connect_with("me", [scope]);
        for tool in ["text.read", "file.read", "show_file"] {
            let answer = client.post("/rpc", &request(json!(1), tool, json!({"path": path})));
            assert_decided(&answer, missing, &format!("{tool} {path} with {scope}"));
        }
    }
}

#[test]
fn listing_the_root_needs_to_read_it() {
    let server = start();
    let list = |scope: &str, arguments: Value| {
        server.connect_with("me", [scope]).post("/rpc", &request(json!(1), "file.list", arguments))
    };
    for arguments in [json!({}), json!({"path": ""}), json!({"path": "/"}), json!({"path": "docs/.."})] {
        list("read:/docs", arguments.clone()).assert_missing_scope("read:/");
        assert_allowed(&list("read:/*", arguments.clone()), "one level");
        assert_allowed(&list("write:/", arguments), "all");
    }
}

#[test]
fn what_is_filtered_is_filtered_by_the_token_also_when_it_is_replayed() {
    let server = start();
    let search = request(json!(1), "search", json!({"query": "needle"}));
    let paths = |client: &mut Client| -> Vec<String> {
        let result = client.post("/rpc", &search).result();
        let hits = result["hits"].as_array().expect("hits").clone();
        hits.iter().map(|hit| hit["path"].as_str().expect("a path").to_owned()).collect()
    };
    let of_docs = ["docs/a.txt", "docs/sub/b.txt"];
    for (scope, expected) in [
        ("read:/docs", &of_docs[..]),
        ("read:/docs/*", &["docs/a.txt"]),
        ("read:/docsets", &["docsets/c.txt"]),
        ("read:/*", &["top.txt"]),
        ("assets:read", &[]),
    ] {
        // The same person, with the same idempotency key, first with a token for everything.
        let key = format!("key of {scope}");
        let mut everything = server.connect_with("me", ["read:/"]);
        assert_eq!(paths(everything.set("idempotency-key", &key)).len(), 5);
        let mut client = server.connect_with("me", [scope]);
        assert_eq!(paths(client.set("idempotency-key", &key)), expected, "{scope}");
    }
}

#[test]
fn metrics_need_their_scope_and_probes_need_nothing() {
    let server = start();
    for scopes in [vec!["metrics:read"], vec!["metrics:read", "read:/"]] {
        let token = crate::support::tokens::mint(&server.state(), "me", &scopes);
        let answer = server.connect().bearing(&token).get("/metrics");
        assert_eq!(answer.status, 200, "{answer:?}");
        assert!(answer.body.contains("pintle_calls_running"), "{answer:?}");
    }
    for scope in ["write:/", "assets:read", "run:metrics"] {
        let answer = server.connect_with("me", [scope]).get("/metrics");
        answer.assert_missing_scope("metrics:read");
        assert_eq!(answer.header("www-authenticate"), None);
    }
    for path in ["/healthz", "/readyz"] {
        for header in [None, Some("Bearer nonsense"), Some("Basic eDp5")] {
            let mut client = server.connect();
            if let Some(header) = header {
                client.set("authorization", header);
            }
            let answer = client.get(path);
            assert_eq!((answer.status, answer.body.as_str()), (200, "ok\n"), "{path} {header:?}");
        }
    }
}

#[test]
fn only_tools_that_a_token_could_call_are_offered() {
    let server = start();
    let offered = |scopes: &[&str]| -> BTreeSet<String> {
        let token = crate::support::tokens::mint(&server.state(), "me", scopes);
        let listed = server.connect().bearing(&token).modern(json!(1), "tools/list", json!({})).result();
        let tools = listed["tools"].as_array().expect("tools").clone();
        tools.iter().map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect()
    };
    let (nothing, reads, writes) = (offered(&[]), offered(&["read:/docs"]), offered(&["write:/docs"]));
    for (tool, needs) in [("greet", "run:greet"), ("populate_backend", "assets:publish")] {
        assert!(![&nothing, &reads, &writes].iter().any(|offered| offered.contains(tool)), "{tool}");
        assert!(offered(&[needs]).contains(tool), "{tool}");
    }
    assert!(!nothing.contains("text_read") && reads.contains("text_read") && writes.contains("text_read"));
    assert!(!reads.contains("text_replace") && writes.contains("text_replace"));
    assert!(!writes.contains("index_build") && offered(&["write:/"]).contains("index_build"));
    assert!(nothing.contains("list_schemas") && nothing.contains("workspace_status"), "{nothing:?}");
}

#[test]
fn another_callers_session_is_not_there() {
    let server = start();
    let mut owner = server.connect_with("owner", ["read:/"]);
    owner.open_session(LEGACY);
    let session = owner.sent("mcp-session-id").expect("a session").to_owned();
    let ask = |client: &mut Client, id: &str| {
        client.set("mcp-session-id", id).set("mcp-protocol-version", LEGACY);
        let posted = client.call(json!(1), "tools/list", json!({}));
        let notified = client.post("/mcp", &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        let responded = client.post("/mcp", &json!({"jsonrpc": "2.0", "id": 9, "result": {}}));
        let listened = client.get("/mcp");
        client.send("DELETE", "/mcp", &[], b"");
        let ended = client.answer();
        [posted, notified, responded, listened, ended].map(|answer| (answer.status, answer.body))
    };
    let mut other = server.connect_with("other", ["write:/"]);
    let answers = ask(&mut other, &session);
    assert!(answers.iter().all(|(status, _)| *status == 404), "{answers:?}");
    assert_eq!(answers, ask(&mut other, "00000000-0000-4000-8000-000000000000"), "as one that there is not");
    // The owner has it still, also with a newer token, which may have other scopes.
    assert_eq!(owner.call(json!(1), "tools/list", json!({})).status, 200);
    let mut renewed = server.connect_with("owner", ["write:/"]);
    renewed.set("mcp-session-id", &session).set("mcp-protocol-version", LEGACY);
    let write = json!({"name": "file.create", "arguments": {"path": "new.txt", "content": "x"}});
    let answer = owner.call(json!(2), "tools/call", write.clone());
    answer.assert_missing_scope("write:/new.txt");
    assert_eq!(renewed.call(json!(3), "tools/call", write).status, 200);
    assert!(server.path("root/new.txt").exists());
}

#[test]
fn another_callers_task_is_like_an_unknown_one() {
    let setup = Setup::new();
    let tools = setup.path("tools");
    fs::create_dir(&tools).expect("a folder");
    let wait = shell("while [ ! -e go ]; do sleep 0.02; done; echo done");
    fs::write(tools.join("gate.tool.toml"), format!("name = \"gate\"\ndescription = \"A test.\"\n{wait}"))
        .expect("writes");
    let server = setup.arg("--tools").arg(tools).with_local_tokens().start();
    let declaring = |mut params: Value| {
        let extensions = json!({"io.modelcontextprotocol/tasks": {}});
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({"extensions": extensions});
        params
    };
    let mut owner = server.connect_with("owner", ["run:gate"]);
    let created =
        owner.modern(json!(1), "tools/call", declaring(json!({"name": "gate", "arguments": {}}))).result();
    let task = created["taskId"].as_str().unwrap_or_else(|| panic!("no task: {created}")).to_owned();
    let unknown = "00000000-0000-4000-8000-000000000000";
    let mut other = server.connect_with("other", ["run:gate", "write:/"]);
    for method in ["tasks/get", "tasks/cancel", "tasks/update"] {
        let ask = |client: &mut Client, id: &str| {
            let params = if method == "tasks/update" {
                json!({"taskId": id, "inputResponses": {}})
            } else {
                json!({"taskId": id})
            };
            let message = client.modern(json!(1), method, declaring(params)).message();
            let error = message["error"].clone();
            (error["code"].clone(), error.to_string().replace(id, "ID"))
        };
        let answer = ask(&mut other, &task);
        assert_eq!(answer.0, json!(-32602), "{method}: {answer:?}");
        assert_eq!(answer, ask(&mut other, unknown), "{method}");
    }
    // It still runs, and its owner sees its end.
    fs::write(server.path("root/go"), "").expect("writes");
    crate::support::wait_until("the task ends", || {
        let got = owner.modern(json!(1), "tasks/get", declaring(json!({"taskId": task}))).result();
        assert_ne!(got["status"], json!("cancelled"), "{got}");
        got["status"] == json!("completed")
    });
}

#[test]
fn an_idempotency_key_belongs_to_one_caller() {
    let server = start();
    let create = |subject: &str, path: &str| {
        let mut client = server.connect_with(subject, ["write:/"]);
        let arguments = json!({"path": path, "content": "x"});
        client.set("idempotency-key", "the same").post("/rpc", &request(json!(1), "file.create", arguments))
    };
    assert!(create("one", "one.txt").result()["hash"].is_string());
    assert!(create("two", "two.txt").result()["hash"].is_string());
    let reused = create("one", "three.txt").message();
    assert_eq!(reused["error"]["data"]["code"], json!("CONFLICT"), "{reused}");
    // A newer token of the same caller with the same scopes is the same caller.
    assert!(create("one", "one.txt").result()["hash"].is_string());
}
