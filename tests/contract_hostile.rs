//! What hostile surfaces and servers do to `pintle contract`: nothing that takes without end or says nothing.

use std::{
    fs,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    process::Command,
    thread::JoinHandle,
    time::Duration,
};

use serde_json::{Map, Value, json};

use crate::support::{
    run,
    surfaces::{Surfaces, findings, refused, tool, tools},
};

/// Runs with 3 GiB of address space and gives up after a minute. Returns the exit code and what was printed.
fn bounded(arguments: &[&str]) -> (i32, String, String) {
    const SCRIPT: &str = r#"ulimit -v 3145728 && exec timeout 60 "$0" contract "$@""#;
    let mut command = Command::new("/bin/sh");
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.args(["-c", SCRIPT, env!("CARGO_BIN_EXE_pintle")]).args(arguments);
    let (code, output, errors) = run(&mut command, b"");
    (code.expect("an exit code"), output, errors)
}

fn text(path: &Path) -> &str {
    path.to_str().expect("text")
}

/// The first lines of a server in shell: it answers `initialize`.
const INITIALIZED: &str = r#"read -r line; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"x","version":"1"}}}'; read -r line; "#;

/// A server that lists these tools.
fn server_of(surfaces: &Surfaces, tools: &Value) -> String {
    let answer = surfaces.path().join("answer");
    fs::write(&answer, format!("{}\n", json!({"jsonrpc": "2.0", "id": 2, "result": tools}))).expect("writes");
    format!("{INITIALIZED} read -r line; cat '{}'", answer.display())
}

#[test]
fn a_server_that_never_answers_is_given_up_after_the_timeout_and_ended() {
    let folder = tempfile::tempdir().expect("a folder");
    let pid = folder.path().join("pid");
    let stubborn =
        format!("echo $$ > '{}'; trap '' TERM HUP PIPE; while :; do sleep 600; done", pid.display());
    for (command, timeout, method) in [
        ("cat > /dev/null", "300ms", "initialize"),
        (&*stubborn, "2s", "initialize"),
        (&*format!("{INITIALIZED} cat > /dev/null"), "3s", "tools/list"),
    ] {
        let (code, errors) = refused(&["print", "--server", command, "--timeout", timeout]);
        assert_eq!(code, 2, "{errors}");
        assert!(
            errors.contains(&format!("did not answer `{method}` within {timeout}; --timeout")),
            "{errors}"
        );
    }
    let pid = fs::read_to_string(pid).expect("the server has started");
    assert!(!Path::new("/proc").join(pid.trim()).exists(), "the server still runs");
    let (code, errors) = refused(&["print", "--server", "cat", "--timeout", "0"]);
    assert_eq!(code, 2);
    assert!(errors.contains("--timeout"), "{errors}");
}

#[test]
fn a_server_that_ends_or_talks_without_end_is_a_clear_error() {
    let endless = r#"while :; do echo '{"jsonrpc":"2.0","method":"notifications/message"}'; done"#;
    let page = |tools: &str, before: &str| {
        format!(
            r#"{INITIALIZED} {before} n=2; while read -r line; do echo '{{"jsonrpc":"2.0","id":'$n',"result":{{"tools":[{tools}],"nextCursor":"'$n'"}}}}'; n=$((n+1)); done"#
        )
    };
    let thousand = vec!["{}"; 1000].join(",");
    let large = "x=$(head -c 1000000 /dev/zero | tr '\\0' a);";
    for (command, message) in [
        ("exit 3", "ended before it answered `initialize`"),
        ("echo oops >&2; exit 1", "it wrote: oops"),
        ("/nowhere/at-all", "ended before it answered"),
        (endless, "other messages instead of an answer"),
        ("tr '\\0' a < /dev/zero", "more than 32 MiB"),
        (&page("", ""), "200 pages"),
        (&page(&thousand, ""), "10,000 tools"),
        (&page(r#"{"x":"'$x'"}"#, large), "more than 64 MiB"),
    ] {
        let (code, output, errors) = bounded(&["print", "--server", command]);
        assert_eq!((code, output.as_str()), (2, ""), "{command}: {errors}");
        assert!(errors.contains(message), "{command}: {errors}");
    }
}

/// Serves one request over HTTP: with this, again and again until the client has gone, or with nothing at all.
fn endless_http(
    kind: &'static str,
    piece: Option<&'static [u8]>,
    pause: Duration,
) -> (String, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
    let serve = move |stream: &mut TcpStream| -> std::io::Result<()> {
        let Some(piece) = piece else { return stream.read_to_end(&mut Vec::new()).map(drop) };
        let _ = stream.read(&mut [0; 4096])?;
        stream.write_all(
            format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n").as_bytes(),
        )?;
        loop {
            stream.write_all(piece)?;
            std::thread::sleep(pause);
        }
    };
    let thread = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        // It ends with an error, because the client goes first.
        let _ = serve(&mut stream);
    });
    (url, thread)
}

#[test]
fn a_server_over_http_that_never_answers_or_never_stops_is_a_clear_error() {
    const EVENTS: &str = "text/event-stream";
    let none = Duration::ZERO;
    let slow = Duration::from_millis(20);
    let notification = b"data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\n";
    for (kind, piece, pause, timeout, message) in [
        (EVENTS, None, none, "300ms", "did not answer `initialize` within 300ms"),
        (EVENTS, Some(&b": still here\n\n"[..]), slow, "1s", "did not answer `initialize` within 1s"),
        (EVENTS, Some(notification), none, "30s", "other messages instead of an answer"),
        (EVENTS, Some(&[b'a'; 65536]), none, "30s", "more than 32 MiB"),
        ("application/json", Some(&[b'['; 65536]), none, "30s", "more than 32 MiB"),
    ] {
        let (url, server) = endless_http(kind, piece, pause);
        let (code, output, errors) = bounded(&["print", "--url", &url, "--timeout", timeout]);
        assert_eq!((code, output.as_str()), (2, ""), "{errors}");
        assert!(errors.contains(message), "{errors}");
        server.join().expect("no panic");
    }
}

#[test]
fn a_server_over_http_that_sends_nonsense_is_a_clear_error() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
    let answers = std::thread::spawn(move || {
        for body in ["not json", "{}", "data: 5\n\n"] {
            let (mut stream, _) = listener.accept().expect("a connection");
            let mut request = [0; 4096];
            let _ = stream.read(&mut request).expect("a request");
            let kind = if body.starts_with("data") { "text/event-stream" } else { "application/json" };
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                body.len()
            );
            stream.write_all(format!("{head}{body}").as_bytes()).expect("writes");
        }
    });
    for _ in 0..3 {
        let (code, errors) = refused(&["print", "--url", &url]);
        assert_eq!(code, 2, "{errors}");
        assert!(errors.contains("is not one of MCP"), "{errors}");
    }
    answers.join().expect("no panic");
}

/// An object in an object, so many times.
fn nested(levels: usize, kind: &str) -> Value {
    let object = |inner, _| json!({"type": "object", "properties": {"a": inner}, "required": ["a"]});
    (0..levels).fold(json!({ "type": kind }), object)
}

#[test]
fn a_schema_of_250_levels_is_read_and_one_that_is_deeper_names_the_limit() {
    let surfaces = Surfaces::new();
    let list =
        |levels, kind: &str| tools(&[tool("deep", nested(levels, kind)), tool("plain", nested(1, kind))]);
    let (code, printed) = surfaces.diff(&list(250, "string"), &list(250, "integer"));
    assert_eq!(code, 1);
    let deep = findings(&printed, "deep");
    assert_eq!(deep[0]["pointer"], format!("/inputSchema{}/type", "/properties/a".repeat(250)));
    assert_eq!(findings(&printed, "plain")[0]["witness"], json!({"a": ""}));
    for levels in [100, 250] {
        let file = surfaces.write("list.json", &list(levels, "string"));
        let server = server_of(&surfaces, &list(levels, "string"));
        let printed = [["print", text(&file)].as_slice(), &["print", "--server", &server]].map(|arguments| {
            let (code, output, errors) = bounded(arguments);
            assert_eq!(code, 0, "{errors}");
            output
        });
        assert_eq!(printed[0], printed[1]);
        let (code, _, errors) = bounded(&["lint", text(&file)]);
        assert_eq!(code, 0, "{errors}");
    }
    let deeper = surfaces.write("deeper.json", &list(260, "string"));
    let server = server_of(&surfaces, &list(260, "string"));
    for arguments in [["print", text(&deeper)].as_slice(), &["print", "--server", &server]] {
        let (code, errors) = refused(arguments);
        assert_eq!(code, 2, "{errors}");
        assert!(errors.contains("more than 512 levels") && errors.contains("$defs"), "{errors}");
    }
}

#[test]
fn schemas_of_5_mib_are_decided_or_unknown_and_the_others_are_still_judged() {
    const LARGE: usize = 5 << 20;
    let of = |members: Value| json!({"type": "object", "properties": members});
    let wide = |limit: usize| -> Value {
        let member = |index: usize| {
            (
                format!("m{index:05}"),
                json!({"type": "string", "description": "a".repeat(60), "maxLength": limit}),
            )
        };
        of(Value::Object((0..50_000).map(member).collect::<Map<_, _>>()))
    };
    let pattern = |end: &str| {
        of(json!({"a": {"type": "string", "pattern": format!("{}{end}", "(a|b)".repeat(LARGE / 5))}}))
    };
    let surface = |limit: usize, end: &str| {
        let plain = of(json!({"a": {"type": "integer", "minimum": 100 - limit}}));
        tools(&[tool("pattern", pattern(end)), tool("plain", plain), tool("wide", wide(limit))])
    };
    let surfaces = Surfaces::new();
    let (old, new) = (surface(100, "x"), surface(99, "y"));
    assert!(
        old["tools"].as_array().expect("tools").iter().filter(|tool| tool.to_string().len() >= LARGE).count()
            == 2
    );
    let files = [surfaces.write("old.json", &old), surfaces.write("new.json", &new)];
    let (code, output, errors) = bounded(&["diff", text(&files[0]), text(&files[1]), "--json"]);
    assert_eq!(code, 1, "{errors}");
    let printed: Value = serde_json::from_str(&output).expect("JSON");
    for name in ["pattern", "wide"] {
        let found = findings(&printed, name);
        assert!(!found.is_empty(), "{name} is silent");
        assert!(
            found.iter().all(|finding| finding["verdict"] != "compatible"),
            "{name}: {}",
            found[0]["verdict"]
        );
    }
    assert_eq!(findings(&printed, "plain")[0]["witness"], json!({"a": 0}));
    let server = server_of(&surfaces, &old);
    let (code, output, errors) = bounded(&["print", "--server", &server]);
    assert_eq!(code, 0, "{errors}");
    assert!(output.contains("m49999"));
    let (code, output, errors) = bounded(&["lint", text(&files[0]), "--json"]);
    assert!(code < 2, "{errors}");
    assert!(serde_json::from_str::<Value>(&output).expect("JSON")["findings"].is_array());
}

#[test]
fn hostile_schemas_are_decided_or_unknown_and_the_others_are_still_judged() {
    let plain = |limit: u64| {
        tool("plain", json!({"type": "object", "properties": {"a": {"type": "integer", "minimum": limit}}}))
    };
    let mut deep = json!({"type": "string"});
    for _ in 0..60 {
        deep = json!({"type": "object", "properties": {"a": deep}, "required": ["a"]});
    }
    let recursive = |kind: &str| {
        json!({"$defs": {"A": {"anyOf": [{"type": kind}, {"$ref": "#/$defs/B"}]},
            "B": {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}, "b": {"$ref": "#/$defs/B"}}}},
            "type": "object", "properties": {"x": {"$ref": "#/$defs/B"}}})
    };
    let wide = |count: usize| {
        let members: serde_json::Map<_, _> = (0..count)
            .map(|index| (format!("member{index}"), json!({"type": ["string", "null"], "minLength": index})))
            .collect();
        json!({"type": "object", "properties": members})
    };
    let exploding = |end: &str| json!({"type": "object", "properties": {"a": {"type": "string", "pattern": format!("^(a+)+(b?){{40}}(c|c|c)*{end}$")}}});
    let unions = |kind: &str| {
        let branch = |index: usize| json!({"type": "object", "properties": {format!("k{index}"): {"type": kind}}, "minProperties": 1});
        let level: Vec<Value> = (0..30).map(branch).collect();
        json!({"type": "object", "properties": {"a": {"oneOf": level, "anyOf": level}}})
    };
    // Written out, it would have 2^40 objects.
    let doubling = |kind: &str| {
        let inner = |index: usize| json!({"$ref": format!("#/$defs/D{}", index + 1)});
        let object = |index| json!({"type": "object", "properties": {"l": inner(index), "r": inner(index)}});
        let mut definitions: Map<String, Value> =
            (0..40).map(|index| (format!("D{index}"), object(index))).collect();
        definitions.insert("D40".to_owned(), json!({ "type": kind }));
        json!({"type": "object", "$defs": definitions, "properties": {"a": {"$ref": "#/$defs/D0"}}})
    };
    let surface = |limit: u64, deep: &Value, kind: &str, count: usize, end: &str| {
        tools(&[
            tool("deep", deep.clone()),
            tool("doubling", doubling(kind)),
            tool("exploding", exploding(end)),
            plain(limit),
            tool("recursive", recursive(kind)),
            tool("unions", unions(kind)),
            tool("wide", wide(count)),
        ])
    };
    let mut deeper = deep.clone();
    deeper["properties"]["a"]["maxProperties"] = json!(5);
    let surfaces = Surfaces::new();
    let old = surfaces.write("old.json", &surface(0, &deep, "string", 400, "x"));
    let new = surfaces.write("new.json", &surface(1, &deeper, "integer", 300, "y"));
    let (code, output, errors) = bounded(&["diff", text(&old), text(&new), "--json"]);
    assert_eq!(code, 1, "{errors}");
    let printed: Value = serde_json::from_str(&output).expect("JSON");
    for name in ["deep", "doubling", "exploding", "recursive", "unions", "wide"] {
        let found = findings(&printed, name);
        assert!(!found.is_empty(), "{name} is silent");
    }
    assert_eq!(findings(&printed, "plain")[0]["witness"], json!({"a": 0}));
}

#[test]
fn a_name_that_a_server_chose_cannot_forge_a_line_of_the_table() {
    let forged = "a\n0 breaking\r\u{1b}[2J::error::x";
    let list = |kind: &str| {
        let member = json!({"type": "object", "properties": {forged: {"type": kind}}});
        tools(&[tool(forged, member)])
    };
    let surfaces = Surfaces::new();
    let files = [surfaces.write("old.json", &list("string")), surfaces.write("new.json", &list("integer"))];
    let commands = [["diff", text(&files[0]), text(&files[1])], ["lint", text(&files[0]), "--client=all"]];
    for arguments in commands {
        let (code, output, errors) = bounded(&arguments);
        assert_eq!(code, 1, "{errors}");
        assert!(output.contains(r"a\x0a0 breaking\x0d\x1b[2J"), "{output}");
        assert!(!output.lines().any(|line| line.starts_with("0 breaking")), "{output}");
        assert!(!output.contains(|character: char| character.is_control() && character != '\n'), "{output}");
    }
}
