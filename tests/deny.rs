//! Deny rules: what the user marked as secret is never shown, and what is executed later is never written, on any
//! transport and whatever the scopes.

use std::{fs, os::unix::fs::symlink, path::Path};

use serde_json::{Value, json};

use crate::support::{Server, Setup, hash, http::initialize, pintle, run};

/// A word that stands in denied files only.
const SECRET: &str = "swordfish";

/// A workspace with a secret in several places, open files beside them, and links that lead to secrets.
fn setup() -> Setup {
    let setup = Setup::new();
    let root = setup.path("root");
    for (path, text) in [
        (".env", "KEY=swordfish\n"),
        ("app/.env.local", "KEY=swordfish\n"),
        ("app/.ENV", "KEY=swordfish\n"),
        ("vault/deep/key.rs", "fn swordfish() {}\n"),
        ("app/main.rs", "fn main() {}\n"),
        ("app/environment.rs", "fn environment() {}\n"),
        ("notes.txt", "plain\n"),
    ] {
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("writes");
    }
    symlink(".env", root.join("link-to-file")).expect("a link");
    symlink("vault", root.join("link-to-folder")).expect("a link");
    symlink("vault/deep/absent.rs", root.join("link-to-nothing")).expect("a link");
    let config = "[[deny]]\nread = [\".env*\", \"/vault/\"]\n[[deny]]\nwrite = [\"app/main.rs\"]\n";
    fs::write(setup.path("pintle.toml"), config).expect("writes");
    let config = setup.path("pintle.toml");
    setup.arg("--config").arg(config)
}

/// The denied paths that exist, with one beside each that does not.
const DENIED: [(&str, &str); 7] = [
    (".env", ".env.absent"),
    (".ENV", ".Env.absent"),
    ("app/.env.local", "app/.env.absent"),
    ("vault", "vault/absent"),
    ("vault/deep/key.rs", "vault/deep/absent.rs"),
    ("/./app/../.env", "/./app/../.env.absent"),
    ("link-to-folder/deep/key.rs", "link-to-folder/deep/absent.rs"),
];

fn forbidden(server: &mut Server, tool: &str, arguments: &Value) -> String {
    let frame = server.call(tool, arguments.clone());
    let error = &frame["error"]["data"];
    assert_eq!(error["code"], "FORBIDDEN", "{tool} {arguments}: {frame}");
    let text = frame.to_string();
    assert!(!text.contains(SECRET), "{text}");
    error["message"].as_str().expect("a message").to_owned()
}

fn every_way(path: &str) -> Vec<(&'static str, Value)> {
    let hash = hash("KEY=swordfish\n");
    vec![
        ("text.read", json!({"path": path})),
        ("file.read", json!({"path": path})),
        ("show_file", json!({"path": path})),
        ("file.list", json!({"path": path})),
        ("file.create", json!({"path": path, "content": "x"})),
        ("text.append", json!({"path": path, "hash": hash, "content": "x"})),
        ("text.replace", json!({"path": path, "hash": hash, "lines": [1, 0], "old": "KEY", "new": "x"})),
        ("text.insert", json!({"path": path, "hash": hash, "line": 1, "anchor": "KEY", "content": "x"})),
        ("file.remove", json!({"path": path, "hash": hash})),
        ("file.move", json!({"path": path, "hash": hash, "to": "app/stolen"})),
        ("file.move", json!({"path": "notes.txt", "hash": crate::support::hash("plain\n"), "to": path})),
        ("index_build", json!({"path": path})),
    ]
}

#[test]
fn a_denied_path_is_forbidden_with_the_same_text_whether_or_not_it_exists() {
    let mut server = setup().start();
    for (exists, absent) in DENIED {
        // What a link leads to can only be checked once it is opened; listing and building begin with the name.
        let is_link = exists.starts_with("link");
        for ((tool, arguments), (_, other)) in every_way(exists).into_iter().zip(every_way(absent)) {
            if is_link && tool == "index_build" {
                continue;
            }
            let shown = |message: String, path: &str| {
                let path = path.trim_start_matches("/./app/../");
                message.replace(&path.replace("link-to-folder", "vault"), "PATH")
            };
            let found = shown(forbidden(&mut server, tool, &arguments), exists);
            let missing = shown(forbidden(&mut server, tool, &other), absent);
            assert_eq!(found, missing, "{tool} {exists} {absent}");
        }
    }
    for path in ["link-to-file", "link-to-nothing"] {
        for (tool, arguments) in [("text.read", json!({"path": path})), ("file.read", json!({"path": path}))]
        {
            forbidden(&mut server, tool, &arguments);
        }
    }
    let root = server.path("root");
    assert_eq!(fs::read_to_string(root.join(".env")).expect("reads"), "KEY=swordfish\n");
    assert!(!root.join(".env.absent").exists() && !root.join("app/stolen").exists());
    assert!(root.join("notes.txt").exists());
}

/// What a folder can have that is denied, or out of scope, behind a link: each is a name, and what it is.
fn hide_things(vault: &Path) -> [&'static str; 9] {
    fs::create_dir_all(vault.join("is_folder")).expect("a folder");
    fs::write(vault.join("is_file"), "KEY=swordfish\n").expect("writes");
    for (link, target) in [
        ("is_link", "is_file"),
        ("is_dangling", "is_absent"),
        ("is_round", "is_round"),
        ("is_ring", "is_ring_too"),
        ("is_ring_too", "is_ring"),
        ("is_outside", "../../outside"),
        ("is_absolute", "/etc/hostname"),
        ("is_not_text", "a\\b"),
    ] {
        symlink(target, vault.join(link)).expect("a link");
    }
    fs::write(vault.join("a\\b"), "KEY=swordfish\n").expect("writes");
    [
        "is_folder",
        "is_file",
        "is_link",
        "is_dangling",
        "is_round",
        "is_ring",
        "is_outside",
        "is_absolute",
        "is_not_text",
    ]
}

/// What a server answers to every call with a path, each with `NAME` where the name of the path is.
fn answers(server: &mut Server, path: &str, name: &str) -> Vec<(String, String)> {
    let mut calls = every_way(path);
    calls.retain(|(tool, _)| *tool != "index_build");
    calls.push(("resources/read", json!({"uri": format!("list:///{path}")})));
    let mut answer = |(tool, arguments): (&str, Value)| {
        let frame = server.call(tool, arguments);
        let error = &frame["error"]["data"];
        (tool.to_owned(), format!("{} {error}", error["code"]).replace(name, "NAME"))
    };
    calls.into_iter().map(&mut answer).collect()
}

#[test]
fn an_error_does_not_show_what_is_behind_a_link_to_where_the_caller_may_not_go() {
    let rules = || setup();
    let scopes = || {
        let setup = Setup::new();
        fs::create_dir_all(setup.path("root/p")).expect("a folder");
        fs::create_dir_all(setup.path("root/vault")).expect("a folder");
        fs::write(setup.path("root/notes.txt"), "plain\n").expect("writes");
        setup.args(["--scope", "write:/p/", "--scope", "write:/notes.txt"])
    };
    for setup in [rules(), scopes()] {
        let root = setup.path("root");
        fs::create_dir_all(root.join("p")).expect("a folder");
        symlink("../vault", root.join("p/l")).expect("a link");
        symlink("../vault/some/thing", root.join("p/n")).expect("a link");
        let names = hide_things(&root.join("vault"));
        let mut server = setup.start();
        server.send(&initialize("2025-11-25"));
        server.frame();
        server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        for below in ["", "/x", "/x/y"] {
            let absent = answers(&mut server, &format!("p/l/absent{below}"), "absent");
            for (tool, answer) in &absent {
                assert!(answer.starts_with("\"FORBIDDEN\""), "{tool}: {answer}");
            }
            for name in names {
                assert_eq!(
                    answers(&mut server, &format!("p/l/{name}{below}"), name),
                    absent,
                    "{name}{below}"
                );
            }
        }
        // A link to nothing, and to what comes to be there.
        let seen = |server: &mut Server| ["p/n/x", "p/n/x/y"].map(|path| answers(server, path, "absent"));
        let absent = seen(&mut server);
        assert!(absent.iter().flatten().all(|(_, answer)| answer.starts_with("\"FORBIDDEN\"")), "{absent:?}");
        fs::write(root.join("vault/some"), "").expect("writes");
        assert_eq!(seen(&mut server), absent);
        fs::remove_file(root.join("vault/some")).expect("removes");
        fs::create_dir_all(root.join("vault/some/thing")).expect("a folder");
        assert_eq!(seen(&mut server), absent);
        fs::write(root.join("vault/some/thing/x"), "KEY=swordfish\n").expect("writes");
        assert_eq!(seen(&mut server), absent);
        // Where the caller may go, the reason is there.
        symlink("nothing", root.join("p/dangling")).expect("a link");
        fs::write(root.join("p/file"), "plain\n").expect("writes");
        for (path, code) in [("p/dangling", "NOT_FOUND"), ("p/file/x", "INVALID_REQUEST")] {
            let frame = server.call("text.read", json!({"path": path}));
            assert_eq!(frame["error"]["data"]["code"], code, "{frame}");
        }
    }
}

#[test]
fn what_is_denied_is_not_listed_found_counted_or_completed() {
    let mut server = setup().start();
    let seen = |server: &mut Server, tool: &str, arguments: Value| -> String {
        let frame = server.call(tool, arguments.clone());
        assert!(frame.get("error").is_none(), "{tool} {arguments}: {frame}");
        let text = frame["result"].to_string();
        for hidden in [SECRET, ".env", ".ENV", "vault", "key.rs"] {
            assert!(!text.contains(hidden), "{tool} {arguments} shows {hidden}: {text}");
        }
        text
    };
    for with_index in [false, true] {
        if with_index {
            server.result("index_build", json!({}));
        }
        for query in [
            json!({"query": "swordfish"}),
            json!({"query": "swordfish", "match": "words"}),
            json!({"query": "swordfish", "match": "symbol"}),
            json!({"query": "sword.*", "match": "regex", "count": true}),
            json!({"query": "KEY", "case": "insensitive", "context": 5}),
        ] {
            if with_index || query.get("match").is_none_or(|how| how == "regex") {
                let text = seen(&mut server, "search", query.clone());
                let found: Value = serde_json::from_str(&text).expect("JSON");
                assert!(found["total"].as_u64().is_none_or(|total| total == 0), "{query}: {text}");
            }
        }
        // Where nothing is found, the reasons name nothing that is denied.
        for path in [".env", "vault/**", "app/.env*"] {
            let frame = server.call("search", json!({"query": "swordfish", "path": path}));
            assert!(!frame.to_string().replace(&format!("`{path}`"), "").contains(SECRET), "{frame}");
        }
    }
    for depth in [1, 9] {
        seen(&mut server, "file.list", json!({"path": "/", "depth": depth, "ignored": true}));
    }
    let state: Value = serde_json::from_str(&seen(&mut server, "index_status", json!({}))).expect("JSON");
    // The links are not searched; the denied files are not counted.
    assert_eq!(state["files"], 3, "{state}");
    seen(&mut server, "workspace_status", json!({}));
    seen(&mut server, "check_status", json!({}));
    seen(&mut server, "show_file", json!({"path": "app/environment.rs"}));
    // An open file that is next to a denied one is found as ever.
    let found = server.result("search", json!({"query": "environment"}));
    assert_eq!(found["total"], 1, "{found}");
}

#[test]
fn a_problem_with_git_names_no_file_to_whom_some_are_denied() {
    let problem = |setup: Setup| {
        let root = setup.path("root");
        fs::create_dir_all(root.join(".git/objects")).expect("a folder");
        fs::create_dir_all(root.join(".git/refs/heads")).expect("a folder");
        fs::write(root.join(".git/HEAD"), "ref: refs/heads/main\n").expect("writes");
        fs::create_dir_all(root.join("vault")).expect("a folder");
        let ignored = fs::File::create(root.join("vault/.gitignore")).expect("a file");
        ignored.set_len(64 << 20).expect("a size");
        let mut server = setup.start();
        server.result("workspace_status", json!({}))["gitProblem"].clone()
    };
    let named = problem(Setup::new());
    assert!(named.as_str().is_some_and(|text| text.contains("vault/.gitignore")), "{named}");
    for setup in [setup(), Setup::new().args(["--scope", "read:/.git/", "--scope", "read:/vault/x"])] {
        let hidden = problem(setup);
        assert!(hidden.as_str().is_some_and(|text| !text.contains("vault")), "{hidden}");
    }
}

#[test]
fn what_is_executed_later_is_not_written_unless_it_is_allowed() {
    let targets = [
        ".git/hooks/pre-commit",
        ".git/config",
        "sub/.git/x",
        ".GIT/hooks/x",
        ".vscode/tasks.json",
        "a/.idea/x.xml",
        ".devcontainer/devcontainer.json",
        ".envrc",
        ".mcp.json",
        ".cursor/mcp.json",
        ".claude/settings.json",
    ];
    let mut server = Setup::new().start();
    for path in targets {
        forbidden(&mut server, "file.create", &json!({"path": path, "content": "x"}));
        assert!(!server.path("root").join(path).exists(), "{path}");
    }
    // Reading is another matter: by default nothing is denied.
    fs::create_dir(server.path("root/.git")).expect("a folder");
    fs::write(server.path("root/.git/config"), "[core]\n").expect("writes");
    fs::write(server.path("root/.env"), "KEY=1\n").expect("writes");
    for path in [".git/config", ".env"] {
        server.result("text.read", json!({ "path": path }));
    }
    forbidden(
        &mut server,
        "file.move",
        &json!({"path": ".git/config", "hash": hash("[core]\n"), "to": "config"}),
    );
    forbidden(&mut server, "file.move", &json!({"path": ".env", "hash": hash("KEY=1\n"), "to": ".git/x"}));
    let folder = server.path("root");
    symlink(".git", folder.join("door")).expect("a link");
    forbidden(&mut server, "file.create", &json!({"path": "door/hooks/x", "content": "x"}));

    let setup = Setup::new();
    fs::write(setup.path("p.toml"), "[allow]\nwrite = [\".vscode/\", \".envrc\"]\n").expect("writes");
    let config = setup.path("p.toml");
    let mut server = setup.arg("--config").arg(config).start();
    for path in [".vscode/tasks.json", ".envrc"] {
        server.result("file.create", json!({"path": path, "content": "x"}));
    }
    forbidden(&mut server, "file.create", &json!({"path": ".git/config", "content": "x"}));
}

#[test]
fn a_denied_path_is_forbidden_over_http_too() {
    let server = setup().http().start();
    let mut session = server.session("2025-11-25");
    for (path, tool) in [(".env", "text_read"), ("vault/absent", "text_read")] {
        let params = json!({"name": tool, "arguments": {"path": path}});
        let answer = session.call(json!(1), "tools/call", params.clone());
        assert_eq!(answer.refusal(), (403, 403), "{answer:?}");
        let answer = server.connect().modern(json!(1), "tools/call", params);
        assert_eq!(answer.refusal(), (403, 403), "{answer:?}");
        assert_eq!(answer.header("www-authenticate"), None);
    }
    let answer = session.call(json!(2), "resources/read", json!({"uri": "list:///vault"}));
    assert_eq!(answer.refusal(), (403, 403), "{answer:?}");
    let reference = json!({"type": "ref/resource", "uri": "list://{+path}"});
    for prefix in ["/", "/v", "/link"] {
        let params = json!({"ref": reference, "argument": {"name": "path", "value": prefix}});
        let answer = session.call(json!(3), "completion/complete", params);
        assert!(!answer.body.contains("vault/") && answer.status == 200, "{answer:?}");
    }
}

#[test]
fn a_replay_under_an_idempotency_key_is_not_shown_to_whom_it_is_denied() {
    // The rules are read at the start, so a server with other rules has no earlier results to replay; within one
    // server a denied path has no result at all.
    let mut server = setup().start();
    for _ in 0..2 {
        let mut frame = json!({"jsonrpc": "2.0", "id": 1, "method": "text.read", "params": {"path": ".env"}});
        frame["idempotencyKey"] = json!("k");
        server.send(&frame);
        let answer = server.frame();
        assert_eq!(answer["error"]["data"]["code"], "FORBIDDEN", "{answer}");
    }
}

#[test]
fn a_denied_folder_is_no_working_folder_of_a_command() {
    let setup = setup();
    let tools = setup.path("tools");
    fs::create_dir(&tools).expect("a folder");
    let manifest = |name: &str, cwd: &str| {
        let text = format!(
            "name = \"{name}\"\ndescription = \"Prints the folder.\"\ncommand = [\"/bin/pwd\"]\ncwd = \"{cwd}\"\n"
        );
        fs::write(tools.join(format!("{name}.tool.toml")), text).expect("writes");
    };
    manifest("in_vault", "vault/deep");
    manifest("by_link", "link-to-folder");
    manifest("in_app", "app");
    // What stands in the way there is not shown, either.
    let names = hide_things(&setup.path("root/vault"));
    names.iter().for_each(|name| manifest(name, &format!("link-to-folder/{name}")));
    manifest("is_none", "link-to-folder/is_none");
    let mut server = setup.arg("--tools").arg(&tools).start();
    let none = forbidden(&mut server, "is_none", &json!({}));
    for name in names {
        assert_eq!(forbidden(&mut server, name, &json!({})).replace(name, "is_none"), none);
    }
    for tool in ["in_vault", "by_link"] {
        forbidden(&mut server, tool, &json!({}));
    }
    server.result("in_app", json!({}));
}

#[test]
fn a_glob_that_cannot_be_used_is_reported_where_it_stands() {
    let folder = tempfile::tempdir().expect("a folder");
    for (text, expected) in [
        ("[[deny]]\nread = [\".env\", \"[\"]\n", "line 2, column 17"),
        ("[[deny]]\nread = [\"!.env\"]\n", "line 2, column 9"),
        ("[allow]\nwrite = [\"\"]\n", "line 2, column 10"),
        ("[[deny]]\nreads = []\n", "line 2, column 1: unknown key `reads`"),
    ] {
        fs::write(folder.path().join("pintle.toml"), text).expect("writes");
        let mut command = pintle();
        command.arg("serve").current_dir(folder.path()).env("PINTLE_STATE_DIR", Path::new("/nowhere"));
        let (code, _, errors) = run(&mut command, b"");
        assert!(code != Some(0) && errors.contains(expected), "{text}: {errors}");
    }
}
