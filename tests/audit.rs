//! The audit log: what it has of each decision, and that nobody can change it unseen.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{
    Server, Setup,
    http::Client,
    pintle, request, rounds, run,
    tokens::{claims_of, mint, token_command},
    wait_until,
};

/// A folder with a state folder and an audit log that several servers use, one after the other.
struct Audited(tempfile::TempDir);

impl Audited {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn log(&self) -> PathBuf {
        self.0.path().join("audit.jsonl")
    }

    fn head(&self) -> PathBuf {
        self.0.path().join("audit.jsonl.head")
    }

    fn state(&self) -> PathBuf {
        self.0.path().join("state")
    }

    fn setup(&self) -> Setup {
        let setup = Setup::fixtures();
        let root = setup.path("root");
        for path in ["a.txt", "docs/b.txt"] {
            fs::create_dir_all(root.join("docs")).expect("a folder");
            fs::write(root.join(path), "content\n").expect("writes");
        }
        setup.env("PINTLE_STATE_DIR", self.state()).arg("--audit-log").arg(self.log())
    }

    fn start(&self) -> Server {
        self.setup().with_local_tokens().start()
    }

    fn client<const N: usize>(&self, server: &Server, subject: &str, scopes: [&str; N]) -> Client {
        server.connect().bearing(&mint(&self.state(), subject, &scopes))
    }

    fn lines(&self) -> Vec<String> {
        let text = fs::read_to_string(self.log()).expect("a log");
        assert!(text.is_empty() || text.ends_with('\n'), "{text}");
        text.lines().map(str::to_owned).collect()
    }

    fn verify(&self) -> (Option<i32>, String, String) {
        verify(&self.log(), &self.state())
    }

    /// A log with this many lines, of a server that has ended.
    fn with_lines(count: usize) -> Self {
        let audited = Self::new();
        let mut server = audited.start();
        let mut client = audited.client(&server, "me", ["read:/"]);
        for _ in 0..count {
            assert_eq!(read(&mut client, "a.txt").status, 200);
        }
        end(&mut server);
        assert_eq!(audited.lines().len(), count);
        audited
    }
}

fn verify(log: &Path, state: &Path) -> (Option<i32>, String, String) {
    run(pintle().args(["audit", "verify"]).arg(log).env("PINTLE_STATE_DIR", state).current_dir("/"), b"")
}

fn end(server: &mut Server) {
    server.signal(Signal::TERM);
    assert_eq!(server.wait().code(), Some(0), "{}", server.stderr());
}

fn read(client: &mut Client, path: &str) -> crate::support::http::Answer {
    client.post("/rpc", &request(json!(1), "text.read", json!({"path": path})))
}

#[test]
fn each_decision_is_one_line_with_its_paths_and_no_other_argument() {
    let audited = Audited::new();
    let server = audited.start();
    let mut reader = audited.client(&server, "reader", ["read:/docs/"]);
    let mut writer = audited.client(&server, "writer", ["write:/"]);
    let secret = "an argument that is nobody's business";
    let hash = "0".repeat(64);
    let call = |tool: &str, arguments: Value| request(json!(1), tool, arguments);
    read(&mut reader, "//docs/./x/../b.txt");
    read(&mut reader, "a.txt").assert_missing_scope("read:/a.txt");
    writer.post("/rpc", &call("file.create", json!({"path": "new.txt", "content": secret})));
    let moved = json!({"path": "a.txt", "to": "docs/c.txt", "hash": hash});
    writer.post("/rpc", &call("file.move", moved.clone()));
    reader.post("/rpc", &call("file.move", moved)).assert_missing_scope("write:/a.txt write:/docs/c.txt");
    writer.post("/rpc", &call("search", json!({"query": secret})));
    reader.post("/rpc", &call("index_build", json!({}))).assert_missing_scope("write:/");
    reader.post("/rpc", &call("populate_backend", json!({"asset": {"name": secret}})));
    reader.modern(json!(1), "tools/call", json!({"name": "test_echo", "arguments": {"value": secret}}));
    reader.modern(json!(1), "resources/read", json!({"uri": "list://docs"}));
    reader.modern(json!(1), "resources/read", json!({"uri": "list:///"})).assert_missing_scope("read:/");
    // What never comes to a decision has no line: no token, no such tool, wrong arguments, a path that leaves the root.
    server.connect().post("/rpc", &call("text.read", json!({"path": "a.txt"})));
    reader.post("/rpc", &call("text.reed", json!({"path": "a.txt"})));
    reader.post("/rpc", &call("text.read", json!({"file": "a.txt"})));
    read(&mut reader, "../a.txt");
    let expected = [
        ("reader", "text.read", json!(["/docs/b.txt"]), None),
        ("reader", "text.read", json!(["/a.txt"]), Some("read:/a.txt")),
        ("writer", "file.create", json!(["/new.txt"]), None),
        ("writer", "file.move", json!(["/a.txt", "/docs/c.txt"]), None),
        ("reader", "file.move", json!(["/a.txt", "/docs/c.txt"]), Some("write:/a.txt write:/docs/c.txt")),
        ("writer", "search", json!([]), None),
        ("reader", "index_build", json!(["/"]), Some("write:/")),
        ("reader", "populate_backend", json!([]), Some("assets:publish")),
        ("reader", "test_echo", json!([]), None),
        ("reader", "resources/read", json!(["/docs"]), None),
        ("reader", "resources/read", json!(["/"]), Some("read:/")),
    ];
    let lines = audited.lines();
    assert_eq!(lines.len(), expected.len(), "{lines:#?}");
    let issuer = claims_of(&mint(&audited.state(), "me", &[]))["iss"].as_str().expect("an issuer").to_owned();
    for (number, (line, (subject, tool, paths, missing))) in lines.iter().zip(expected).enumerate() {
        assert!(!line.contains(secret) && !line.contains(&hash), "{line}");
        let record: Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(record["caller"], json!(format!("{issuer}#{subject}")), "{line}");
        assert_eq!((&record["tool"], &record["paths"]), (&json!(tool), &paths), "{line}");
        assert_eq!(record["decision"], json!(if missing.is_none() { "allow" } else { "deny" }), "{line}");
        assert_eq!((&record["missing"], &record["n"]), (&json!(missing), &json!(number + 1)), "{line}");
        let time = record["time"].as_str().expect("a time");
        assert!(time.starts_with("20") && time.ends_with('Z'), "{line}");
        let mut members: Vec<_> = record.as_object().expect("an object").keys().map(String::as_str).collect();
        members.sort_unstable();
        assert_eq!(members, ["caller", "decision", "missing", "n", "paths", "seal", "time", "tool"]);
    }
    // Also while the server runs.
    let (code, output, errors) = audited.verify();
    assert_eq!(code, Some(0), "{output} {errors}");
    assert!(output.contains("11 lines"), "{output}");
    for file in [audited.log(), audited.head(), audited.state().join("audit-key")] {
        let mode = fs::metadata(&file).expect("a file").permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{}", file.display());
    }
}

#[test]
fn a_refusal_behind_a_link_is_a_second_line_that_says_what_is_missing() {
    let audited = Audited::new();
    let setup = audited.setup();
    std::os::unix::fs::symlink("../a.txt", setup.path("root/docs/link")).expect("linked");
    let mut server = setup.with_local_tokens().start();
    let mut client = audited.client(&server, "bob", ["read:/docs"]);
    assert_eq!(read(&mut client, "docs/b.txt").status, 200);
    assert!(read(&mut client, "docs/link").body.contains("read:/a.txt"));
    end(&mut server);
    let lines: Vec<Value> =
        audited.lines().iter().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let told = lines
        .iter()
        .map(|line| (line["paths"][0].as_str(), line["decision"].as_str(), line["missing"].as_str()));
    let expected = [
        (Some("/docs/b.txt"), Some("allow"), None),
        (Some("/docs/link"), Some("allow"), None),
        (Some("/docs/link"), Some("deny"), Some("read:/a.txt")),
    ];
    assert_eq!(told.collect::<Vec<_>>(), expected);
}

#[test]
fn decisions_on_standard_input_are_audited_too() {
    let audited = Audited::new();
    let mut server = audited.setup().args(["--scope", "read:/docs/"]).start();
    server.result("text.read", json!({"path": "docs/b.txt"}));
    server.error("text.read", json!({"path": "a.txt"}));
    server.finish();
    let lines: Vec<Value> =
        audited.lines().iter().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines.len(), 2);
    assert_eq!((&lines[0]["decision"], &lines[1]["missing"]), (&json!("allow"), &json!("read:/a.txt")));
    assert!(lines[0]["caller"].as_str().is_some_and(|caller| caller.starts_with("local")), "{lines:?}");
    assert_eq!(audited.verify().0, Some(0));
}

/// What somebody did to a log of five lines, and what is said about it.
#[test]
fn whatever_is_changed_in_a_log_is_found() {
    let audited = Audited::with_lines(5);
    let (log, head) = (fs::read(audited.log()).expect("a log"), fs::read(audited.head()).expect("a head"));
    assert_eq!(audited.verify().0, Some(0));
    let lines: Vec<&[u8]> = log.split_inclusive(|byte| *byte == b'\n').collect();
    let mut changes: Vec<(String, Vec<u8>, Option<Vec<u8>>)> = Vec::new();
    let mut change = |what: &str, log: Vec<u8>| changes.push((what.to_owned(), log, Some(head.clone())));
    // Some bytes of each line, its first and its last among them; the unit tests have each byte.
    let mut begin = 0;
    for line in &lines {
        for position in [0, 1, line.len() / 3, line.len() / 2, line.len() - 3, line.len() - 1] {
            let mut changed = log.clone();
            changed[begin + position] ^= 1;
            change(&format!("byte {position} of the line at {begin} is flipped"), changed);
        }
        begin += line.len();
    }
    let without = |index: usize| [&lines[..index], &lines[index + 1..]].concat().concat();
    for index in 0..5 {
        change(&format!("line {index} is missing"), without(index));
        change(
            &format!("line {index} is there twice"),
            [&lines[..=index], &lines[index..]].concat().concat(),
        );
    }
    for index in 0..4 {
        let mut swapped = lines.clone();
        swapped.swap(index, index + 1);
        change(&format!("line {index} is swapped with the next"), swapped.concat());
    }
    for kept in [log.len() - 1, log.len() - 20, lines[..4].concat().len(), lines[0].len(), 1, 0] {
        change(&format!("only {kept} bytes are left"), log[..kept].to_vec());
    }
    change("an empty line is added", [&log[..], b"\n"].concat());
    change("the beginning of a line is added", [&log[..], b"{\"caller\""].concat());
    change("a line is added", [&log[..], lines[4]].concat());
    change("spaces are added", String::from_utf8_lossy(&log).replace("\":", "\": ").into_bytes());
    changes.push(("the head is deleted".into(), log.clone(), None));
    changes.push(("the head is empty".into(), log.clone(), Some(Vec::new())));
    changes.push(("the head is garbage".into(), log.clone(), Some(b"5 x y\n".to_vec())));
    let mut other_head = head.clone();
    other_head[0] = b'4';
    changes.push(("the head has another number".into(), lines[..4].concat(), Some(other_head)));
    for (what, changed, head) in changes {
        fs::write(audited.log(), &changed).expect("writes");
        match head {
            Some(head) => fs::write(audited.head(), head).expect("writes"),
            None => fs::remove_file(audited.head()).expect("removes"),
        }
        let (code, output, errors) = audited.verify();
        assert_eq!((code, output.as_str()), (Some(1), ""), "{what}: {errors}");
        assert!(errors.contains("audit.jsonl"), "{what}: {errors}");
    }
    fs::write(audited.log(), &log).expect("writes");
    fs::write(audited.head(), &head).expect("writes");
    assert_eq!(audited.verify().0, Some(0));
}

#[test]
fn a_character_that_is_replaced_by_bytes_that_are_none_is_found() {
    let audited = Audited::new();
    let mut server = audited.start();
    let mut client = audited.client(&server, "me \u{fffd}", ["read:/"]);
    read(&mut client, "a.txt");
    end(&mut server);
    assert_eq!(audited.verify().0, Some(0));
    let text = fs::read(audited.log()).expect("a log");
    let at = text.windows(3).position(|bytes| bytes == "\u{fffd}".as_bytes()).expect("the character");
    fs::write(audited.log(), [&text[..at], b"\xff", &text[at + 3..]].concat()).expect("writes");
    assert_eq!(audited.verify().0, Some(1));
}

#[test]
fn a_log_of_another_state_folder_or_none_is_not_verified() {
    let audited = Audited::with_lines(2);
    let other = Audited::with_lines(1);
    assert_eq!(verify(&audited.log(), &other.state()).0, Some(1), "another key");
    for (log, state, what) in [
        (audited.0.path().join("nothing"), audited.state(), "no log"),
        (audited.log(), audited.0.path().join("empty"), "no key"),
    ] {
        let (code, output, errors) = verify(&log, &state);
        assert_eq!((code, output.as_str()), (Some(2), ""), "{what}: {errors}");
    }
    // The key outlives the secret of the tokens, or else no older line could be verified.
    assert_eq!(token_command(&audited.state(), &["rotate"], "").0, Some(0));
    assert_eq!(audited.verify().0, Some(0));
}

#[test]
fn a_restart_continues_the_chain() {
    let audited = Audited::with_lines(3);
    let before = audited.lines();
    for _ in 0..2 {
        let mut server = audited.start();
        read(&mut audited.client(&server, "me", []), "a.txt").assert_missing_scope("read:/a.txt");
        end(&mut server);
    }
    let lines = audited.lines();
    assert_eq!(lines[..3], before);
    assert_eq!(lines.len(), 5);
    let (code, output, errors) = audited.verify();
    assert_eq!(code, Some(0), "{errors}");
    assert!(output.contains("5 lines"), "{output}");
    // Also one on standard input and output.
    let mut server = audited.setup().start();
    server.result("text.read", json!({"path": "a.txt"}));
    server.finish();
    assert_eq!((audited.lines().len(), audited.verify().0), (6, Some(0)));
}

#[test]
fn nothing_is_added_to_a_log_that_was_changed() {
    let audited = Audited::with_lines(3);
    let log = fs::read(audited.log()).expect("a log");
    let refused = |what: &str| {
        let before = fs::read(audited.log()).expect("a log");
        let folder = tempfile::tempdir().expect("a folder");
        let mut command = pintle();
        command.args(["serve", "--audit-log"]).arg(audited.log()).current_dir(folder.path());
        command.env("PINTLE_STATE_DIR", audited.state()).env("MCP_READY_FILE", folder.path().join("ready"));
        let (code, _, errors) = run(&mut command, b"");
        assert!(code.is_some_and(|code| code != 0), "{what}: {errors}");
        assert!(errors.contains("audit.jsonl"), "{what}: {errors}");
        assert_eq!(fs::read(audited.log()).expect("a log"), before, "{what}");
    };
    let mut flipped = log.clone();
    flipped[20] ^= 1;
    fs::write(audited.log(), flipped).expect("writes");
    refused("a flipped byte");
    fs::write(audited.log(), &log[..log.len() - 10]).expect("writes");
    refused("a cut tail");
    fs::write(audited.log(), b"").expect("writes");
    refused("an empty log with a head of more");
    fs::write(audited.log(), &log).expect("writes");
    let head = fs::read(audited.head()).expect("a head");
    fs::remove_file(audited.head()).expect("removes");
    refused("no head");
    fs::write(audited.head(), head).expect("writes");
    assert_eq!(audited.verify().0, Some(0));
}

#[test]
fn a_second_server_does_not_write_the_same_log() {
    let audited = Audited::new();
    let mut first = audited.start();
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = pintle();
    command.args(["serve", "--audit-log"]).arg(audited.log()).current_dir(folder.path());
    command.env("PINTLE_STATE_DIR", audited.state()).env("MCP_READY_FILE", folder.path().join("ready"));
    let (code, _, errors) = run(&mut command, b"");
    assert!(code.is_some_and(|code| code != 0), "{errors}");
    assert!(errors.contains("another server writes"), "{errors}");
    read(&mut audited.client(&first, "me", []), "a.txt").assert_missing_scope("read:/a.txt");
    assert_eq!((audited.lines().len(), audited.verify().0), (1, Some(0)));
    end(&mut first);
    let mut second = audited.start();
    end(&mut second);
    assert_eq!(audited.verify().0, Some(0));
}

#[test]
fn a_killed_server_leaves_a_log_that_verifies_and_goes_on() {
    let audited = Audited::new();
    for round in 0..rounds(3, 40) {
        let mut server = audited.start();
        let token = mint(&audited.state(), "me", &["read:/"]);
        let answered = AtomicUsize::new(0);
        let before = audited.lines().len();
        std::thread::scope(|scope| {
            for _ in 0..3 {
                let mut client = server.connect().bearing(&token);
                let answered = &answered;
                scope.spawn(move || {
                    let body = request(json!(1), "text.read", json!({"path": "a.txt"})).to_string();
                    // Until the server is gone.
                    while client.try_post("/rpc", body.as_bytes()) {
                        answered.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            wait_until("calls are answered", || answered.load(Ordering::Relaxed) > 20 * (round + 1));
            server.signal(Signal::KILL);
        });
        server.wait();
        let (code, output, errors) = audited.verify();
        assert_eq!(code, Some(0), "{output} {errors}");
        // No answer without its line.
        assert!(audited.lines().len() - before >= answered.load(Ordering::Relaxed));
    }
    let mut server = audited.start();
    read(&mut audited.client(&server, "me", []), "a.txt").assert_missing_scope("read:/a.txt");
    end(&mut server);
    assert_eq!(audited.verify().0, Some(0));
}

#[test]
fn a_line_that_a_killed_server_did_not_finish_is_dropped() {
    let audited = Audited::with_lines(3);
    let (log, head) = (audited.lines(), fs::read(audited.head()).expect("a head"));
    let mut server = audited.start();
    read(&mut audited.client(&server, "me", []), "a.txt");
    end(&mut server);
    // The fourth line was half written, and its head not at all.
    let whole = fs::read(audited.log()).expect("a log");
    fs::write(audited.log(), &whole[..whole.len() - 30]).expect("writes");
    fs::write(audited.head(), &head).expect("writes");
    assert_eq!(audited.verify().0, Some(1), "until a server has opened it");
    let mut server = audited.start();
    assert_eq!(audited.lines(), log);
    read(&mut audited.client(&server, "me", []), "a.txt");
    end(&mut server);
    assert_eq!((audited.lines().len(), audited.verify().0), (4, Some(0)));
    // The fourth line is there, and its head is not: it was written before the server was killed.
    fs::write(audited.head(), &head).expect("writes");
    assert_eq!(audited.verify().0, Some(0));
    let mut server = audited.start();
    read(&mut audited.client(&server, "me", []), "a.txt");
    end(&mut server);
    assert_eq!((audited.lines().len(), audited.verify().0), (5, Some(0)));
}

#[test]
fn a_call_whose_decision_cannot_be_recorded_is_not_made() {
    // Whatever is written to it fails, as on a full disk.
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("audit.jsonl");
    let setup = Setup::new().env("PINTLE_STATE_DIR", folder.path().join("state")).with_local_tokens();
    let mut server = setup.arg("--audit-log").arg(&log).wrapped(|command| {
        // Files of this server can have a few hundred bytes: some lines, and then no more.
        let mut limited = std::process::Command::new("sh");
        limited.args(["-c", "trap '' XFSZ; ulimit -f 1; exec \"$0\" \"$@\""]);
        limited.arg(command.get_program()).args(command.get_args());
        limited
    });
    server = server.args(["--log-level", "off"]);
    let server = server.start();
    let mut client = server.connect().bearing(&mint(&folder.path().join("state"), "me", &["write:/"]));
    let mut create = |number: usize| {
        let arguments = json!({"path": format!("{number}.txt"), "content": "x"});
        client.post("/rpc", &request(json!(1), "file.create", arguments))
    };
    let refused = (0..20).find_map(|number| {
        let answer = create(number);
        let is_made = server.path(&format!("root/{number}.txt")).exists();
        assert_eq!(is_made, answer.status == 200, "{number}: {answer:?}");
        (!is_made).then_some(answer)
    });
    let answer = refused.expect("the log is full");
    assert_eq!(answer.refusal(), (502, 502), "{answer:?}");
    let error = &answer.message()["error"]["data"];
    assert_eq!(
        (&error["code"], &error["details"]["reason"]),
        (&json!("UPSTREAM_FAILED"), &json!("io")),
        "{error}"
    );
    drop(server);
    assert_eq!(verify(&log, &folder.path().join("state")).0, Some(0));
}

#[test]
fn no_tool_changes_a_log_that_lies_in_the_root() {
    let setup = Setup::new();
    let log = setup.path("root/audit.jsonl");
    let mut server = setup.arg("--audit-log").arg(&log).start();
    let state = server.path("state");
    for name in ["audit.jsonl", "audit.jsonl.head"] {
        let hash = "0".repeat(64);
        for (tool, arguments) in [
            ("file.create", json!({"path": name, "content": "x"})),
            ("file.remove", json!({"path": name, "hash": hash})),
            ("file.move", json!({"path": name, "to": "elsewhere", "hash": hash})),
            ("text.append", json!({"path": name, "hash": hash, "content": "x"})),
        ] {
            let error = server.error(tool, arguments);
            assert_eq!(error["code"], json!("FORBIDDEN"), "{tool} {name}: {error}");
        }
    }
    assert_eq!(verify(&log, &state).0, Some(0));
    server.finish();
}
