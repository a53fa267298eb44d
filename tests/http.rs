//! HTTP: paths, statuses, sessions, streams, and calls whose client disconnects.

use rustix::process::Signal;
use serde_json::{Value, json};

use std::fs;

use crate::support::{
    Server, Setup,
    http::{Client, Event, MODERN, initialize, modern},
    pintle, request, run, wait_until,
};

const LEGACY: &str = "2025-11-25";

fn start() -> Server {
    Setup::fixtures().http().start()
}

fn echo(value: Value) -> Value {
    json!({"name": "test_echo", "arguments": {"value": value}})
}

fn sleep(ms: u64) -> Value {
    json!({"name": "test_sleep", "arguments": {"ms": ms}})
}

/// Waits until this many calls of `test_sleep` are running.
fn wait_until_running(server: &Server, count: u64) {
    wait_until("calls are running", || server.metric("pintle_calls_running") == count);
}

#[test]
fn the_ready_line_names_the_port_and_a_signal_ends_the_server() {
    let mut server = start();
    assert!(server.path("ready").exists());
    assert_ne!(server.address().port(), 0);
    assert!(server.address().ip().is_loopback());
    server.signal(Signal::TERM);
    assert_eq!(server.wait().code(), Some(0));
    assert!(!server.path("ready").exists());
}

#[test]
fn http_is_served_on_this_machine_unless_a_proxy_does_tls_and_never_beyond_it_without_tokens() {
    let state = tempfile::tempdir().expect("a folder");
    for (arguments, expected) in [
        (vec!["--http", "0.0.0.0:0"], "--behind-proxy"),
        (vec!["--http", "0.0.0.0:0", "--auth", "none", "--behind-proxy"], "127.0.0.1:9999"),
        (vec!["--http", "0.0.0.0:0", "--auth", "none"], "127.0.0.1:9999"),
        (vec!["--http", "192.0.2.1:0", "--auth", "none"], "127.0.0.1:9999"),
        (vec!["--http", "nonsense", "--auth", "none"], "127.0.0.1:9999"),
        (vec!["--http", "127.0.0.1:0", "--auth", "jwt"], "none"),
        (vec!["--http", "127.0.0.1:0", "--auth", "jwks"], "--issuer"),
        (vec!["--http", "127.0.0.1:0", "--scope", "read:/"], "pintle token mint"),
        (vec!["--http", "127.0.0.1:0", "--stdio"], "--stdio"),
    ] {
        let mut command = pintle();
        command.arg("serve").args(&arguments).arg("--state-dir").arg(state.path());
        let (code, output, errors) = run(&mut command, b"");
        assert_ne!(code, Some(0), "{arguments:?}");
        assert!(output.is_empty() && errors.contains(expected), "{arguments:?}: {errors}");
    }
}

#[test]
fn a_port_in_use_is_a_clear_error() {
    let server = start();
    let address = server.address().to_string();
    let (code, _, errors) = run(pintle().args(["serve", "--http", &address, "--auth", "none"]), b"");
    assert_ne!(code, Some(0));
    assert!(errors.contains(&address), "{errors}");
}

#[test]
fn health_and_metrics_are_served() {
    let server = start();
    let mut client = server.connect();
    for path in ["/healthz", "/readyz"] {
        let answer = client.get(path);
        assert_eq!((answer.status, answer.body.as_str()), (200, "ok\n"), "{path}");
    }
    client.post("/rpc", &request(json!(1), "test_echo", json!({"value": 1})));
    client.post("/rpc", &request(json!(1), "test_panic", json!({})));
    let metrics = client.get("/metrics").body;
    for line in [
        r#"pintle_calls_total{code="OK",route="tool",tool="test_echo",transport="http"} 1"#,
        r#"pintle_calls_total{code="INTERNAL",route="tool",tool="test_panic",transport="http"} 1"#,
        r#"pintle_http_requests_total{place="/rpc",status="200"} 2"#,
        "pintle_calls_running 0",
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line} in {metrics}");
    }
    assert_eq!(client.get("/nothing").refusal(), (404, 404));
    assert_eq!(client.get("/rpc").refusal(), (405, -32600));
}

#[test]
fn direct_requests_are_answered_with_the_status_of_the_table() {
    let server = Setup::fixtures().http().args(["--timeout", "test_sleep=50ms"]).start();
    let mut client = server.connect();
    for (body, status, number) in [
        (r#"{"jsonrpc":"2.0","id":7,"method":"test_echo","params":{"value":1}}"#, 200, None),
        (r#"{"jsonrpc":"2.0","id":7,"method":"no_such_tool","params":{}}"#, 200, None),
        (r#"{"jsonrpc":"2.0","id":7,"method":"mcp.discover","params":{}}"#, 200, None),
        (r#"{"jsonrpc":"2.0","id":7,"method":"test_panic","params":{}}"#, 200, Some(-32603)),
        (r#"{"jsonrpc":"2.0","id":7,"method":"test_sleep","params":{"ms":60000}}"#, 200, Some(504)),
        (r#"{"jsonrpc":"2.0","id":7,"method":"test_bad_output","params":{}}"#, 200, Some(502)),
        (r#"{"jsonrpc":"2.0","id":7,"method":"test_echo","params":{"x":1}}"#, 400, Some(-32602)),
        (r#"{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{}}"#, 400, Some(-32601)),
        (r#"{"jsonrpc":"2.0","id":7,"method":"test_echo","params":{},"x":1}"#, 400, Some(-32600)),
        (r#"{"jsonrpc":"2.0","id":7"#, 400, Some(-32700)),
        ("[]", 400, Some(-32600)),
        ("", 400, Some(-32700)),
    ] {
        let answer = client.post_bytes("/rpc", body.as_bytes());
        let message = answer.message();
        assert_eq!(
            (answer.status, message["error"]["code"].as_i64()),
            (status, number),
            "{body}: {answer:?}"
        );
        let has_id = !matches!(number, Some(-32700)) && body != "[]";
        assert_eq!(message["id"], if has_id { json!(7) } else { Value::Null }, "{body}");
    }
    // Ids come back as they were written, and no request depends on the ids of earlier ones.
    for id in ["1.0", "12345678901234567890", "\"é\"", "\"\\u00e9\""] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"test_echo","params":{{"value":1}}}}"#);
        let answer = client.post_bytes("/rpc", body.as_bytes());
        assert!(answer.body.contains(&format!(r#""id":{id},"#)), "{}", answer.body);
    }
    // An unknown notification is accepted and ignored.
    let note = json!({"jsonrpc": "2.0", "method": "notifications/x", "params": {}});
    let answer = client.post("/rpc", &note);
    assert_eq!((answer.status, answer.body.as_str()), (202, ""));
}

#[test]
fn a_cancel_request_on_rpc_is_refused_and_says_that_closing_the_connection_cancels() {
    let server = start();
    let mut running = server.connect();
    let slow = request(json!(1), "test_sleep", json!({"ms": 600_000}));
    running.send("POST", "/rpc", &[], slow.to_string().as_bytes());
    wait_until_running(&server, 1);
    let mut client = server.connect();
    let mut cancel = json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 1}});
    for id in [Value::Null, json!(2)] {
        if !id.is_null() {
            cancel["id"] = id.clone();
        }
        let answer = client.post("/rpc", &cancel);
        assert_eq!(answer.refusal(), (400, -32601), "{answer:?}");
        let message = answer.message();
        assert_eq!(message["id"], id, "{message}");
        let hint = message["error"]["data"]["hint"].as_str().unwrap_or_default();
        assert!(hint.contains("close the connection"), "{message}");
    }
    let records = server.records(2);
    assert!(records.iter().all(|record| record["method"] == json!("$/cancelRequest")), "{records:?}");
    assert_eq!(server.metric("pintle_calls_running"), 1, "nothing was cancelled");
    // Closing the connection cancels the call.
    running.disconnect();
    wait_until_running(&server, 0);
}

#[test]
fn a_body_over_the_limit_is_413_and_the_connection_stays_usable() {
    let server = Setup::fixtures().http().args(["--max-request-bytes", "1000"]).start();
    // The direct dialect answers with the same frame as on a pipe.
    let mut pipe = Setup::fixtures().args(["--max-request-bytes", "1000"]).start();
    pipe.write(format!("{}\n", " ".repeat(1001)).as_bytes());
    let too_large = pipe.line();
    assert!(
        too_large.contains(r#""id":null,"result":{"ok":false,"reason":"validation_failed""#),
        "{too_large}"
    );
    for path in ["/rpc", "/mcp"] {
        let mut client = server.connect();
        for size in [1001, 100_000, 5_000_000] {
            let answer = client.post_bytes(path, &vec![b' '; size]);
            if path == "/rpc" {
                assert_eq!((answer.status, &answer.body), (413, &too_large), "{path} {size}");
                continue;
            }
            assert_eq!(answer.refusal(), (413, -32600), "{path} {size}");
            assert_eq!(answer.message()["error"]["data"]["details"]["reason"], json!("payload_too_large"));
        }
        let answer = client.get("/healthz");
        assert_eq!(answer.status, 200);
    }
    // The limit also applies to a chunked body, whose length is not known in advance.
    let mut client = server.connect();
    let head = "POST /rpc HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                transfer-encoding: chunked\r\n\r\n";
    client.write(head.as_bytes()).expect("the server reads");
    for _ in 0..10 {
        client.write(format!("fa\r\n{}\r\n", " ".repeat(250)).as_bytes()).expect("the server reads");
    }
    client.write(b"0\r\n\r\n").expect("the server reads");
    let answer = client.answer();
    assert_eq!((answer.status, &answer.body), (413, &too_large));
    // It also applies when the client sends `expect: 100-continue` before the body.
    let mut client = server.connect();
    let head = "POST /rpc HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                content-length: 1001\r\nexpect: 100-continue\r\n\r\n";
    client.write(head.as_bytes()).expect("the server reads");
    let answer = client.answer();
    assert_eq!((answer.status, &answer.body), (413, &too_large));
}

#[test]
fn foreign_hosts_and_origins_are_refused_and_the_server_s_own_are_accepted() {
    let server = start();
    let own = format!("http://{}", server.address());
    let body = request(json!(1), "test_echo", json!({"value": 1}));
    for path in ["/rpc", "/mcp"] {
        for (name, value, status) in [
            ("origin", "http://evil.test", 403),
            ("origin", "null", 403),
            ("origin", "http://127.0.0.1:1", 403),
            ("host", "evil.test", 403),
            ("host", "evil.test:80", 403),
            ("host", "a b", 400),
        ] {
            let mut client = server.connect();
            client.set(name, value);
            let answer = client.post(path, &body);
            assert_eq!(answer.status, status, "{path} {name}: {value}");
            assert!(answer.message()["error"]["data"]["code"].is_string(), "{answer:?}");
        }
    }
    let mut client = server.connect();
    assert_eq!(client.set("origin", &own).post("/rpc", &body).status, 200);
    let port = server.address().port();
    client.set("host", &format!("localhost:{port}")).set("origin", &format!("http://localhost:{port}"));
    assert_eq!(client.post("/rpc", &body).status, 200);
    let two = "POST /rpc HTTP/1.1\r\nhost: localhost\r\nhost: evil.test\r\n\r\n";
    let mut client = server.connect();
    client.write(two.as_bytes()).expect("the server reads");
    assert_eq!(client.response().status, 400);
}

#[test]
fn the_host_in_a_request_target_is_checked_and_must_equal_the_header() {
    let server = Setup::fixtures().http().args(["--allow-host", "pintle.test"]).start();
    let own = server.address().to_string();
    let body = request(json!(1), "test_echo", json!({"value": 1})).to_string();
    for path in ["/rpc", "/mcp"] {
        for (authority, host, status) in [
            ("evil.test", own.as_str(), 403),
            ("evil.test", "evil.test", 403),
            (&own, "evil.test", 400),
            (&own, "pintle.test", 400),
            (&format!("user@{own}"), &own, 400),
        ] {
            let mut client = server.connect();
            client.set("host", host);
            client.send("POST", &format!("http://{authority}{path}"), &[], body.as_bytes());
            let answer = client.answer();
            assert_eq!(answer.status, status, "{authority} {host} {path}: {answer:?}");
            assert!(answer.message()["error"]["data"]["code"].is_string(), "{answer:?}");
        }
    }
    for host in [own.as_str(), "pintle.test", "pintle.test:80"] {
        let mut client = server.connect();
        client.set("host", host);
        client.send("POST", &format!("http://{host}/rpc"), &[], body.as_bytes());
        assert_eq!(client.answer().result(), json!({"value": 1}), "{host}");
    }
}

#[test]
fn allowed_hosts_and_origins_may_be_added() {
    let setup = Setup::fixtures().http();
    let server = setup.args(["--allow-host", "pintle.test", "--allow-origin", "https://app.test"]).start();
    let mut client = server.connect();
    client.set("host", "pintle.test:80").set("origin", "https://app.test");
    assert_eq!(client.post("/rpc", &request(json!(1), "test_echo", json!({"value": 1}))).status, 200);
}

#[test]
fn refusals_by_the_protocol_have_the_error_codes_of_the_protocol() {
    let server = start();
    let headers = |method: &'static str, name: Option<&'static str>| {
        let mut headers = vec![("mcp-protocol-version", MODERN), ("mcp-method", method)];
        headers.extend(name.map(|name| ("mcp-name", name)));
        headers
    };
    let call = |version: &str| {
        let mut message = modern(json!(5), "tools/call", echo(json!(1)));
        message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(version);
        message
    };
    let bare = json!({"jsonrpc": "2.0", "id": 5, "method": "tools/list", "params": {}});
    let half = json!({"_meta": {"io.modelcontextprotocol/protocolVersion": MODERN}});
    let half = json!({"jsonrpc": "2.0", "id": 5, "method": "tools/list", "params": half});
    let unknown =
        [("mcp-protocol-version", "2099-01-01"), ("mcp-method", "tools/call"), ("mcp-name", "test_echo")];
    let good = headers("tools/call", Some("test_echo"));
    let twice = [&good[..], &[("mcp-name", "test_echo")]].concat();
    for (what, headers, message, expected) in [
        ("header and body differ", good.clone(), call(LEGACY), (400, -32020)),
        ("no version header", vec![("mcp-method", "tools/call")], call(MODERN), (400, -32020)),
        ("another method", headers("tools/list", Some("test_echo")), call(MODERN), (400, -32020)),
        ("another name", headers("tools/call", Some("test_sleep")), call(MODERN), (400, -32020)),
        ("no name", headers("tools/call", None), call(MODERN), (400, -32020)),
        ("a name twice", twice, call(MODERN), (400, -32020)),
        ("no method", vec![("mcp-protocol-version", MODERN)], bare.clone(), (400, -32020)),
        ("no _meta", headers("tools/list", None), bare.clone(), (400, -32602)),
        ("half a _meta", headers("tools/list", None), half, (400, -32602)),
        ("an unknown version", unknown.to_vec(), call("2099-01-01"), (400, -32022)),
        ("an unknown old version", vec![("mcp-protocol-version", "1999-01-01")], bare.clone(), (400, -32022)),
        (
            "an unknown method",
            headers("no/such", None),
            modern(json!(5), "no/such", json!({})),
            (404, -32601),
        ),
        ("no session", vec![("mcp-protocol-version", LEGACY)], bare.clone(), (400, -32600)),
        (
            "an unknown session",
            vec![("mcp-session-id", "11111111-1111-4111-8111-111111111111")],
            bare,
            (404, 404),
        ),
    ] {
        let mut client = server.connect();
        client.send("POST", "/mcp", &headers, message.to_string().as_bytes());
        let answer = client.answer();
        assert_eq!(answer.refusal(), expected, "{what}: {answer:?}");
        assert_eq!(answer.message()["id"], json!(5), "{what}");
        assert!(answer.message()["error"]["data"]["code"].is_string(), "{what}: {answer:?}");
    }
    let mut client = server.connect();
    // Text that a header cannot carry is encoded in Base64.
    let message = modern(json!(5), "tools/call", echo(json!(1)));
    let wrapped = [
        ("mcp-protocol-version", MODERN),
        ("mcp-method", "tools/call"),
        ("mcp-name", "=?base64?dGVzdF9lY2hv?="),
    ];
    client.send("POST", "/mcp", &wrapped, message.to_string().as_bytes());
    assert_eq!(client.answer().status, 200);
    // The methods of the older transport do not exist in the revision without sessions.
    client.set("mcp-protocol-version", MODERN);
    assert_eq!(client.get("/mcp").status, 405);
    client.send("DELETE", "/mcp", &[], b"");
    assert_eq!(client.answer().status, 405);
}

#[test]
fn requests_with_an_unacceptable_accept_or_content_type_are_refused() {
    let server = start();
    let mut client = server.connect();
    let echo = request(json!(1), "test_echo", json!({"value": 1}));
    for accept in ["text/html", "application/json;q=0", "*/*, application/json;q=0, text/event-stream;q=0"] {
        client.set("accept", accept);
        assert_eq!(client.post("/mcp", &initialize(LEGACY)).status, 406, "{accept}");
        assert_eq!(client.post("/rpc", &echo).status, 406, "{accept}");
        assert_eq!(client.get("/mcp").status, 406, "{accept}");
    }
    // A client that refuses only JSON is answered with events.
    client.set("accept", "application/json;q=0, */*");
    let answer = client.post("/rpc", &echo);
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (200, Some("text/event-stream")),
        "{answer:?}"
    );
    client.set("accept", "*/*").set("content-type", "text/plain");
    assert_eq!(client.post("/mcp", &initialize(LEGACY)).status, 415);
    assert_eq!(client.post("/rpc", &request(json!(1), "test_echo", json!({"value": 1}))).status, 415);
}

#[test]
fn every_revision_with_sessions_is_spoken() {
    let server = start();
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", LEGACY] {
        let mut client = server.session(version);
        let answer = client.call(json!(1), "tools/call", echo(json!(version)));
        assert_eq!(answer.result()["structuredContent"], json!({"value": version}));
        assert_eq!(client.call(json!(2), "ping", json!({})).result(), json!({}));
        let tools = client.call(json!(3), "tools/list", json!({})).result();
        for tool in tools["tools"].as_array().expect("tools") {
            assert!(tool["schemaVersion"].is_u64() && tool["toolingVersion"].is_string(), "{tool}");
            assert_eq!(tool["_meta"]["pintle/schemaVersion"], tool["schemaVersion"], "{tool}");
        }
        client.send("DELETE", "/mcp", &[], b"");
        assert_eq!(client.answer().status, 204);
        assert_eq!(client.call(json!(4), "ping", json!({})).refusal(), (404, 404));
    }
    wait_until("the sessions are closed", || server.metric("pintle_mcp_sessions") == 0);
}

#[test]
fn a_session_is_a_uuid_of_version_4_and_a_failed_handshake_opens_none() {
    let server = start();
    let answer = server.connect().post("/mcp", &initialize(LEGACY));
    let id = answer.header("mcp-session-id").expect("a session").as_bytes().to_vec();
    assert_eq!(id.len(), 36);
    assert_eq!((id[14], matches!(id[19], b'8' | b'9' | b'a' | b'b')), (b'4', true));
    let broken = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}});
    let answer = server.connect().post("/mcp", &broken);
    assert!(answer.header("mcp-session-id").is_none(), "{answer:?}");
    assert!(answer.message()["error"].is_object(), "{answer:?}");
}

#[test]
fn the_stateless_revision_needs_no_session() {
    let server = start();
    let mut client = server.connect();
    let discovered = client.modern(json!("a"), "server/discover", json!({})).result();
    assert!(discovered["supportedVersions"].as_array().expect("versions").contains(&json!(MODERN)));
    let answer = client.modern(json!(12345678901234567890_u64), "tools/call", echo(json!([1, null])));
    assert!(answer.body.contains(r#""id":12345678901234567890,"#), "{}", answer.body);
    assert_eq!(answer.result()["structuredContent"], json!({"value": [1, null]}));
    let missing = client.modern(json!(1), "resources/read", json!({"uri": "schema://none"}));
    assert_eq!(missing.refusal(), (200, -32602));
    assert_eq!(missing.message()["error"]["data"]["uri"], json!("schema://none"));
    assert_eq!(client.modern(json!(1), "ping", json!({})).refusal(), (404, -32601));
}

#[test]
fn an_id_in_flight_cannot_be_reused_in_its_session_but_can_in_another() {
    let server = start();
    let mut first = server.session(LEGACY);
    let mut second = first.another_connection();
    let mut foreign = server.session(LEGACY);
    let slow = request(json!(1), "tools/call", sleep(600_000));
    first.send("POST", "/mcp", &[], slow.to_string().as_bytes());
    wait_until_running(&server, 1);
    for id in [json!(1), json!(1.0), json!("1")] {
        assert_eq!(second.call(id, "tools/call", echo(json!(1))).refusal(), (400, -32600));
    }
    assert_eq!(foreign.call(json!(1), "tools/call", echo(json!(1))).status, 200);
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "1"}});
    // A cancel from another session does nothing.
    assert_eq!(foreign.post("/mcp", &cancel).status, 202);
    assert_eq!(server.metric("pintle_calls_running"), 1);
    assert_eq!(second.post("/mcp", &cancel).status, 202);
    wait_until_running(&server, 0);
    assert_eq!(second.call(json!(1), "tools/call", echo(json!(1))).status, 200);
    // The cancelled call's stream ends without a reply.
    let answer = first.answer();
    assert!(!answer.body.contains("\"id\":1"), "{answer:?}");
}

#[test]
fn a_cancel_request_in_a_session_gets_the_call_its_one_reply() {
    let server = start();
    let mut first = server.session(LEGACY);
    let mut second = first.another_connection();
    first.send("POST", "/mcp", &[], request(json!(9), "tools/call", sleep(600_000)).to_string().as_bytes());
    wait_until_running(&server, 1);
    let cancel = json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 9}});
    assert_eq!(second.post("/mcp", &cancel).status, 202);
    let answer = first.answer();
    assert!(
        answer.result()["content"][0]["text"].as_str().expect("text").contains("CANCELLED"),
        "{answer:?}"
    );
}

#[test]
fn a_body_of_json_is_a_frame_without_the_newline_of_a_pipe() {
    let server = start();
    let mut client = server.session(LEGACY);
    let cancel = request(json!(5), "$/cancelRequest", json!({"id": 9}));
    let answer = client.post("/mcp", &cancel);
    assert_eq!((answer.status, answer.body.as_str()), (200, r#"{"jsonrpc":"2.0","id":5,"result":{}}"#));
    let answer = client.call(json!(6), "ping", json!({}));
    assert_eq!((answer.status, answer.body.as_str()), (200, r#"{"jsonrpc":"2.0","id":6,"result":{}}"#));
    for (path, body) in [("/mcp", "[]"), ("/rpc", "[]"), ("/rpc", "{}")] {
        let answer = client.post_bytes(path, body.as_bytes());
        assert!(answer.body.starts_with('{') && answer.body.ends_with('}'), "{path} {body}: {answer:?}");
    }
}

#[test]
fn progress_comes_on_the_requests_own_stream_before_the_reply() {
    let server = start();
    let params = json!({
        "name": "test_progress", "arguments": {"count": 6, "everyMs": 100}, "_meta": {"progressToken": "p"},
    });
    let mut legacy = server.session(LEGACY);
    let mut alone = server.connect();
    legacy.send("POST", "/mcp", &[], request(json!(1), "tools/call", params.clone()).to_string().as_bytes());
    alone.send_modern(json!(1), "tools/call", params);
    for client in [&mut legacy, &mut alone] {
        let mut response = client.response();
        assert_eq!(response.header("content-type"), Some("text/event-stream"));
        let mut last = 0;
        let mut reported = 0;
        while let Some(event) = client.event(&mut response) {
            if event.data.is_empty() {
                continue;
            }
            let message: Value = serde_json::from_str(&event.data).expect("JSON");
            if message.get("result").is_some() {
                last = u64::MAX;
                continue;
            }
            assert_eq!(message["method"], json!("notifications/progress"));
            assert_eq!(message["params"]["_meta"]["pintle/tool"], json!("test_progress"));
            let progress = message["params"]["progress"].as_u64().expect("a number");
            assert!(progress > last, "{progress} after {last}");
            (last, reported) = (progress, reported + 1);
        }
        assert_eq!(last, u64::MAX, "the reply came last");
        assert!(reported >= 2, "only {reported} were reported");
    }
    // The direct dialect reports progress too, to clients that accept events.
    let mut direct = server.connect();
    let mut message = request(json!(1), "test_progress", json!({"count": 6, "everyMs": 100}));
    message["meta"] = json!({"progressToken": 7});
    direct.send("POST", "/rpc", &[], message.to_string().as_bytes());
    let mut response = direct.response();
    let first = direct.event(&mut response).expect("an event");
    assert!(first.data.contains(r#""progressToken":7"#), "{first:?}");
}

#[test]
fn a_lost_stream_can_be_resumed_after_the_last_event() {
    let server = start();
    let mut client = server.session(LEGACY);
    let params = json!({
        "name": "test_progress", "arguments": {"count": 10, "everyMs": 100}, "_meta": {"progressToken": "p"},
    });
    client.send("POST", "/mcp", &[], request(json!("x"), "tools/call", params).to_string().as_bytes());
    let mut response = client.response();
    let priming = client.event(&mut response).expect("a first event");
    assert!(priming.data.is_empty() && priming.id.is_some() && priming.retry.is_some(), "{priming:?}");
    let first = client.event(&mut response).expect("progress");
    let mut resumed = client.another_connection();
    client.disconnect();
    resumed.send("GET", "/mcp", &[("last-event-id", first.id.as_deref().expect("an id"))], b"");
    let mut response = resumed.response();
    assert_eq!(response.status, 200);
    let mut rest: Vec<Event> = Vec::new();
    while let Some(event) = resumed.event(&mut response) {
        rest.push(event);
    }
    let reply = rest.last().expect("events");
    assert!(reply.data.contains(r#""id":"x","result""#), "{rest:?}");
    assert!(rest.iter().all(|event| event.id > first.id && event.id != first.id), "{rest:?}");
    // The events stay available for a while after the end, because the client may have lost the last ones.
    resumed.send("GET", "/mcp", &[("last-event-id", first.id.as_deref().expect("an id"))], b"");
    let mut response = resumed.response();
    let mut replayed = Vec::new();
    while let Some(event) = resumed.event(&mut response) {
        replayed.push(event);
    }
    assert_eq!(replayed, rest);
    resumed.send("GET", "/mcp", &[("last-event-id", "999-1")], b"");
    assert_eq!(resumed.answer().status, 400);
}

#[test]
fn a_client_that_disconnects_during_a_call_cancels_it_in_every_revision() {
    let server = start();
    let slow = request(json!(1), "tools/call", sleep(600_000));
    let mut legacy = server.session(LEGACY);
    legacy.send("POST", "/mcp", &[], slow.to_string().as_bytes());
    let mut older = server.session("2025-03-26");
    older.send("POST", "/mcp", &[], slow.to_string().as_bytes());
    let mut alone = server.connect();
    alone.send_modern(json!(1), "tools/call", sleep(600_000));
    let mut direct = server.connect();
    let message = request(json!(1), "test_sleep", json!({"ms": 600_000}));
    direct.send("POST", "/rpc", &[], message.to_string().as_bytes());
    wait_until_running(&server, 4);
    // The streams are open: their response heads have arrived.
    for client in [&mut legacy, &mut older, &mut alone] {
        assert_eq!(client.response().status, 200);
    }
    for client in [legacy, older, alone, direct] {
        client.disconnect();
    }
    wait_until_running(&server, 0);
    let records = server.records(4);
    assert!(records.iter().all(|record| record["error"] == json!("CANCELLED")), "{records:?}");
}

#[test]
fn a_deleted_session_cancels_its_calls() {
    let server = start();
    let mut client = server.session(LEGACY);
    let mut other = client.another_connection();
    client.send("POST", "/mcp", &[], request(json!(1), "tools/call", sleep(600_000)).to_string().as_bytes());
    wait_until_running(&server, 1);
    other.send("DELETE", "/mcp", &[], b"");
    assert_eq!(other.answer().status, 204);
    wait_until_running(&server, 0);
    client.answer();
}

#[test]
fn a_full_queue_is_an_error_inside_a_200_on_mcp_and_a_503_on_rpc() {
    let server = Setup::fixtures().http().args(["--running", "1", "--waiting", "0"]).start();
    let mut busy = server.connect();
    busy.send(
        "POST",
        "/rpc",
        &[],
        request(json!(1), "test_sleep", json!({"ms": 600_000})).to_string().as_bytes(),
    );
    wait_until_running(&server, 1);
    let mut client = server.connect();
    let answer = client.post("/rpc", &request(json!(1), "test_echo", json!({"value": 1})));
    assert_eq!(answer.refusal(), (503, 503));
    let answer = client.modern(json!(1), "tools/call", echo(json!(1)));
    assert_eq!(answer.status, 200);
    assert_eq!(answer.result()["isError"], json!(true), "{answer:?}");
    assert!(answer.body.contains("QUEUE_OVERLOADED"), "{answer:?}");
}

#[test]
fn a_signal_lets_running_calls_finish_and_closes_what_is_idle() {
    let mut server = start();
    let mut idle = server.connect();
    assert_eq!(idle.get("/healthz").status, 200);
    let mut listening = server.session(LEGACY);
    listening.send("GET", "/mcp", &[], b"");
    assert_eq!(listening.response().status, 200);
    let mut running = server.connect();
    running.send_modern(json!(1), "tools/call", sleep(1500));
    wait_until_running(&server, 1);
    server.signal(Signal::TERM);
    assert!(idle.is_closed());
    assert_eq!(running.answer().result()["structuredContent"], json!({"slept": 1500}));
    assert_eq!(server.wait().code(), Some(0));
}

#[test]
fn a_call_that_outlasts_the_drain_gets_a_cancelled_error() {
    let mut server = Setup::fixtures().http().args(["--drain", "200ms"]).start();
    let mut alone = server.connect();
    alone.send_modern(json!(1), "tools/call", sleep(600_000));
    let mut legacy = server.session(LEGACY);
    legacy.send("POST", "/mcp", &[], request(json!(1), "tools/call", sleep(600_000)).to_string().as_bytes());
    let mut direct = server.connect();
    let message = request(json!(1), "test_sleep", json!({"ms": 600_000}));
    direct.send("POST", "/rpc", &[], message.to_string().as_bytes());
    wait_until_running(&server, 3);
    server.signal(Signal::TERM);
    for client in [&mut alone, &mut legacy, &mut direct] {
        let answer = client.answer();
        assert!(answer.body.contains("CANCELLED"), "{answer:?}");
    }
    assert_eq!(server.wait().code(), Some(0));
}

#[test]
fn a_key_in_a_header_makes_a_call_idempotent() {
    let server = start();
    let mut client = server.connect();
    client.set("idempotency-key", "k");
    let first = client.post("/rpc", &request(json!(1), "test_echo", json!({"value": 1})));
    assert_eq!(first.result(), json!({"value": 1}));
    let other = client.post("/rpc", &request(json!(2), "test_echo", json!({"value": 2})));
    assert_eq!(other.refusal(), (200, 409));
    let same = client.modern(json!(3), "tools/call", echo(json!(1)));
    assert_eq!(same.result()["structuredContent"], json!({"value": 1}));
    let records = server.records(3);
    assert_eq!(records[2]["idempotency"]["cacheHit"], json!(true), "{records:?}");
}

#[test]
fn a_trace_from_a_header_or_from_meta_is_in_the_log() {
    let server = start();
    let mut client = server.connect();
    let trace = |digit: &str| format!("00-{}-{}-01", digit.repeat(32), digit.repeat(16));
    client.set("traceparent", &trace("a"));
    client.post("/rpc", &request(json!(1), "test_echo", json!({"value": 1})));
    let mut params = echo(json!(1));
    params["_meta"]["traceparent"] = json!(trace("b"));
    client.modern(json!(2), "tools/call", params);
    let records = server.records(2);
    assert_eq!(records[0]["traceId"], json!("a".repeat(32)));
    assert_eq!(records[1]["traceId"], json!("b".repeat(32)));
}

#[test]
fn responses_have_a_request_id() {
    let server = start();
    let mut client = server.connect();
    assert_eq!(client.get("/healthz").header("x-request-id").map(str::len), Some(36));
    assert_eq!(client.set("x-request-id", "mine").get("/healthz").header("x-request-id"), Some("mine"));
    // A request id that is not short or has characters other than visible ASCII is not repeated.
    let long = "x".repeat(129);
    for name in ["", "two words", "caf\u{e9}", long.as_str()] {
        let answer = client.set("x-request-id", name).get("/healthz");
        let given = answer.header("x-request-id").expect("a name");
        assert!(given != name && given.len() == 36, "{name}: {given}");
    }
}

#[test]
fn the_request_id_is_in_the_log_record() {
    let server = start();
    let mut session = server.session(LEGACY);
    let mut client = server.connect();
    let echo_call = request(json!(1), "test_echo", json!({"value": 1}));
    let mut expected = Vec::new();
    let mut note = |answer: crate::support::http::Answer| {
        expected.push(answer.header("x-request-id").expect("a name").to_owned());
        server.records(expected.len());
    };
    note(client.set("x-request-id", "called").post("/rpc", &echo_call));
    note(client.set("x-request-id", "stateless").modern(json!(1), "tools/call", echo(json!(1))));
    note(session.set("x-request-id", "in-a-session").call(json!(1), "tools/call", echo(json!(1))));
    note(client.set("x-request-id", "refused").post_bytes("/rpc", b"[]"));
    note(client.set("x-request-id", "by-the-sdk").modern(json!(1), "no/such", json!({})));
    note(client.set("x-request-id", "unreadable").post_bytes("/mcp", &vec![b' '; 2 << 20]));
    // An id that the server generates is logged as well. An id that it does not repeat is not logged.
    note(client.unset("x-request-id").post("/rpc", &echo_call));
    note(client.set("x-request-id", "two words").post("/rpc", &echo_call));
    note(client.unset("x-request-id").set("host", "evil.test").post("/rpc", &echo_call));
    let records = server.records(expected.len());
    let found: Vec<_> = records.iter().filter_map(|record| record["httpRequestId"].as_str()).collect();
    assert_eq!(found, expected);
    assert_eq!(found[..3], ["called", "stateless", "in-a-session"]);
    assert!(!server.stderr().contains("two words"), "{}", server.stderr());
    // On a pipe there is no such id.
    let mut pipe = Setup::fixtures().start();
    pipe.result("test_echo", json!({"value": 1}));
    assert!(pipe.records(1)[0].get("httpRequestId").is_none());
}

#[test]
fn a_generated_request_id_is_constant_in_deterministic_mode() {
    let server = Setup::fixtures().http().arg("--deterministic").start();
    let mut client = server.connect();
    for _ in 0..2 {
        let answer = client.post("/rpc", &request(json!(1), "test_echo", json!({"value": 1})));
        assert_eq!(answer.header("x-request-id"), Some("00000000-0000-0000-0000-000000000000"));
    }
    let answer = client.set("x-request-id", "mine").get("/healthz");
    assert_eq!(answer.header("x-request-id"), Some("mine"));
}

#[test]
fn the_product_has_no_fixtures_and_no_flags_for_measuring() {
    let server = Setup::new().http().start();
    let mut client = server.session(LEGACY);
    for method in ["prompts/list", "logging/setLevel", "resources/subscribe"] {
        let params = json!({"level": "info", "uri": "test://x"});
        assert_eq!(client.call(json!(1), method, params).refusal(), (200, -32601), "{method}");
    }
    let tools = client.call(json!(1), "tools/list", json!({})).result().to_string();
    assert!(!tools.contains("test_"), "{tools}");
    for arguments in [["serve", "--fixtures"], ["serve", "--no-fsync"], ["index", "--phases-json"]] {
        let (code, _, stderr) = run(pintle().args(arguments), b"");
        assert_eq!(code, Some(2), "{arguments:?}");
        assert!(stderr.contains("unexpected argument"), "{stderr}");
    }
    let program = fs::read(env!("CARGO_BIN_EXE_pintle")).expect("the program");
    let holds = |program: &[u8], text: &str| program.windows(text.len()).any(|part| part == text.as_bytes());
    assert!(!holds(&program, "test_reconnection"), "the product holds the fixtures");
    let other = fs::read(env!("CARGO_BIN_EXE_pintle-conformance")).expect("the other program");
    assert!(holds(&other, "test_reconnection"), "the fixtures are missing");
}

#[test]
fn a_client_that_is_answered_by_json_alone_gets_json_however_long_it_takes() {
    let server = start();
    let mut client = server.connect();
    client.set("accept", "application/json");
    let answer = client.modern(json!(1), "tools/call", sleep(600));
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.result()["structuredContent"], json!({"slept": 600}));
}

#[test]
fn half_a_request_and_a_closed_connection_do_no_harm() {
    let server = start();
    let mut client = server.connect();
    client.write(b"POST /rpc HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{\"js").expect("writes");
    client.disconnect();
    let mut client = server.connect();
    client.write(b"\x16\x03\x01 this is not HTTP \r\n\r\n").expect("writes");
    assert!(client.response().status == 400);
    assert_eq!(Client::connect(server.address()).get("/healthz").status, 200);
}

#[test]
fn notifications_come_on_the_listening_stream_with_its_id_and_a_signal_closes_it() {
    let mut server = start();
    let mut listening = server.connect();
    let wanted = json!({"notifications": {"toolsListChanged": true}});
    listening.send_modern(json!("listen:0"), "subscriptions/listen", wanted);
    let mut response = listening.response();
    let mut next = |listening: &mut Client| -> Value {
        let event = listening.event(&mut response).expect("an event");
        serde_json::from_str(&event.data).expect("JSON")
    };
    let key = "io.modelcontextprotocol/subscriptionId";
    assert_eq!(next(&mut listening)["params"]["_meta"][key], json!("listen:0"));
    let trigger = json!({"name": "test_trigger_tool_change", "arguments": {}});
    assert_eq!(server.connect().modern(json!(1), "tools/call", trigger).status, 200);
    let notification = next(&mut listening);
    assert_eq!(notification["method"], json!("notifications/tools/list_changed"));
    assert_eq!(notification["params"]["_meta"][key], json!("listen:0"));
    server.signal(Signal::TERM);
    assert!(listening.event(&mut response).is_none());
    assert_eq!(server.wait().code(), Some(0));
}

#[test]
fn a_client_that_sent_more_than_its_request_cancels_its_call_when_it_disconnects() {
    let server = start();
    let message = request(json!(1), "test_sleep", json!({"ms": 600_000})).to_string();
    let head = format!(
        "POST /rpc HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        message.len()
    );
    for more in ["\r\n", "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"] {
        let mut client = server.connect();
        client.write(format!("{head}{message}{more}").as_bytes()).expect("the server reads");
        wait_until_running(&server, 1);
        client.disconnect();
        wait_until_running(&server, 0);
    }
}

#[test]
fn a_client_that_closes_its_write_side_still_gets_its_reply() {
    let server = start();
    for number in 0..50 {
        let mut client = server.connect();
        let message = request(json!(number), "test_echo", json!({"value": number})).to_string();
        client.send("POST", "/rpc", &[("accept", "application/json")], message.as_bytes());
        client.close_write();
        assert_eq!(client.answer().result(), json!({"value": number}));
    }
}

#[test]
fn half_a_request_does_not_delay_the_shutdown() {
    let mut server = Setup::fixtures().http().args(["--drain", "10m"]).start();
    let mut client = server.connect();
    client.write(b"POST /rpc HTTP/1.1\r\nho").expect("the server reads");
    assert_eq!(server.connect().get("/healthz").status, 200);
    server.signal(Signal::TERM);
    assert_eq!(server.wait().code(), Some(0));
}

#[test]
fn a_client_may_resume_a_stream_more_than_once() {
    let server = start();
    let mut client = server.session(LEGACY);
    let params = json!({
        "name": "test_progress", "arguments": {"count": 14, "everyMs": 300}, "_meta": {"progressToken": "p"},
    });
    client.send("POST", "/mcp", &[], request(json!("x"), "tools/call", params).to_string().as_bytes());
    let mut last = None;
    // Each connection ends before the grace for the first disconnection is over.
    for _ in 0..4 {
        let mut response = client.response();
        for _ in 0..3 {
            last = client.event(&mut response).expect("an event").id;
        }
        let mut resumed = client.another_connection();
        client.disconnect();
        resumed.send("GET", "/mcp", &[("last-event-id", last.as_deref().expect("an id"))], b"");
        client = resumed;
    }
    let answer = client.answer();
    assert!(answer.body.contains(r#""id":"x","result""#), "{answer:?}");
    assert!(last.is_some());
}

#[test]
fn a_head_request_for_a_stream_does_not_disturb_listeners() {
    let server = start();
    let mut listening = server.session(LEGACY);
    let mut other = listening.another_connection();
    listening.send("GET", "/mcp", &[], b"");
    let mut response = listening.response();
    assert!(listening.event(&mut response).is_some());
    other.send("HEAD", "/mcp", &[], b"");
    assert_eq!(other.response().status, 405);
    let mut third = other.another_connection();
    let trigger = json!({"name": "test_trigger_tool_change", "arguments": {}});
    assert_eq!(third.call(json!(1), "tools/call", trigger).status, 200);
    let notification = listening.event(&mut response).expect("a notification");
    assert!(notification.data.contains("list_changed"), "{notification:?}");
    // The next listener does not get the same notification again, unless it asks for it.
    let mut next = third.another_connection();
    next.send("GET", "/mcp", &[], b"");
    let mut response = next.response();
    assert_eq!(next.event(&mut response).expect("a first event").data, "");
    assert_eq!(
        third
            .another_connection()
            .call(json!(2), "tools/call", json!({"name": "test_trigger_prompt_change"}))
            .status,
        200
    );
    let notification = next.event(&mut response).expect("a notification");
    assert!(notification.data.contains("prompts/list_changed"), "{notification:?}");
    third.send("GET", "/mcp", &[("last-event-id", "0-0")], b"");
    let mut response = third.response();
    assert!(third.event(&mut response).expect("an old one").data.contains("tools/list_changed"));
    // A client cannot resume from an event that does not exist yet.
    let mut fourth = third.another_connection();
    fourth.send("GET", "/mcp", &[("last-event-id", "0-99")], b"");
    assert_eq!(fourth.response().status, 400);
}

#[test]
fn an_idempotency_key_in_a_header_obeys_the_rules_of_the_envelope() {
    let server = start();
    let long = "k".repeat(256);
    for key in ["", long.as_str(), "\u{e9}"] {
        let mut client = server.connect();
        client.set("idempotency-key", key);
        let answer = client.post("/rpc", &request(json!(1), "test_echo", json!({"value": 1})));
        assert_eq!(answer.refusal(), (400, -32600), "{key}");
    }
    let mut client = server.connect();
    client.set("idempotency-key", "one");
    let mut message = request(json!(1), "test_echo", json!({"value": 1}));
    message["idempotencyKey"] = json!("two");
    assert_eq!(client.post("/rpc", &message).refusal(), (400, -32600));
}

#[test]
fn bad_params_of_a_method_that_is_offered_are_not_an_unknown_method() {
    let server = start();
    let mut legacy = server.session(LEGACY);
    let mut alone = server.connect();
    for (method, params) in [
        ("resources/read", json!({})),
        ("resources/read", json!({"uri": 5})),
        ("completion/complete", json!({})),
        ("tools/list", json!({"cursor": "x"})),
        ("resources/list", json!({"cursor": "x"})),
    ] {
        assert_eq!(legacy.call(json!(1), method, params.clone()).refusal(), (200, -32602), "{method}");
        assert_eq!(alone.modern(json!(1), method, params).refusal(), (200, -32602), "{method}");
    }
    // The protocol's errors have the same object as all others.
    let answer = legacy.call(json!(1), "no/such", json!({}));
    let error = &answer.message()["error"];
    assert_eq!((&error["code"], &error["data"]["code"]), (&json!(-32601), &json!("INVALID_REQUEST")));
    assert!(error["message"].as_str().is_some_and(|text| text.contains("no/such")), "{error}");
}

#[test]
fn a_web_page_of_an_allowed_origin_can_call() {
    let server = Setup::fixtures().http().args(["--allow-origin", "https://app.test"]).start();
    let mut client = server.connect();
    client.set("origin", "https://app.test");
    client.send("OPTIONS", "/mcp", &[("access-control-request-method", "POST")], b"");
    let answer = client.answer();
    assert_eq!(answer.status, 204);
    assert_eq!(answer.header("access-control-allow-origin"), Some("https://app.test"));
    assert!(
        answer.header("access-control-allow-headers").is_some_and(|names| names.contains("mcp-session-id"))
    );
    let answer = client.post("/mcp", &initialize(LEGACY));
    assert_eq!(answer.header("access-control-allow-origin"), Some("https://app.test"));
    let exposed = answer.header("access-control-expose-headers");
    assert!(exposed.is_some_and(|names| names.contains("mcp-session-id")), "{answer:?}");
    client.set("origin", "https://evil.test");
    client.send("OPTIONS", "/mcp", &[("access-control-request-method", "POST")], b"");
    let answer = client.answer();
    assert_eq!((answer.status, answer.header("access-control-allow-origin")), (403, None));
    for (flag, value) in
        [("--allow-origin", "https://app.test/"), ("--allow-origin", "*"), ("--allow-host", "a b")]
    {
        let (code, _, errors) =
            run(pintle().args(["serve", "--http", "127.0.0.1:0", "--auth", "none", flag, value]), b"");
        assert_ne!(code, Some(0), "{flag} {value}");
        assert!(errors.contains(value), "{errors}");
    }
}

#[test]
fn the_stdio_flag_overrides_the_variable() {
    let mut server = Setup::fixtures().env("PINTLE_HTTP", "127.0.0.1:0").arg("--stdio").start();
    assert_eq!(server.result("test_echo", json!({"value": 1})), json!({"value": 1}));
    server.finish();
}

#[test]
fn every_loopback_address_counts_as_the_server_s_own() {
    let server = Setup::fixtures().args(["--http", "127.0.0.2:0", "--auth", "none"]).start();
    assert_eq!(
        server.connect().post("/rpc", &request(json!(1), "test_echo", json!({"value": 1}))).status,
        200
    );
}

#[test]
fn refusals_of_http_are_logged_once_with_what_is_known() {
    let server = start();
    let mut client = server.connect();
    client.set("mcp-session-id", "nope");
    client.call(json!(4), "tools/list", json!({}));
    client.set("accept", "text/html");
    client.call(json!(5), "tools/list", json!({}));
    client.set("content-type", "text/plain");
    client.call(json!(6), "tools/list", json!({}));
    let records = server.records(3);
    let reported: Vec<_> =
        records.iter().map(|record| (record["requestId"].as_str(), record["error"].as_str())).collect();
    let (refused, missing) = (Some("INVALID_REQUEST"), Some("NOT_FOUND"));
    assert_eq!(reported, [(Some("4"), missing), (Some("5"), refused), (None, refused)]);
}

#[test]
fn refused_requests_without_a_body_are_logged_once_each() {
    let server = start();
    let unknown = "11111111-1111-4111-8111-111111111111";
    let cases = [
        (&[("mcp-protocol-version", MODERN)][..], 405, "INVALID_REQUEST"),
        (&[("mcp-protocol-version", "1999-01-01")], 400, "INVALID_REQUEST"),
        (&[("mcp-protocol-version", LEGACY), ("mcp-protocol-version", LEGACY)], 400, "INVALID_REQUEST"),
        (&[], 400, "INVALID_REQUEST"),
        (&[("mcp-session-id", unknown)], 404, "NOT_FOUND"),
    ];
    let mut count = 0;
    for (headers, status, error) in cases {
        for method in ["GET", "DELETE"] {
            let mut client = server.connect();
            client.send(method, "/mcp", &[headers, &[("x-request-id", method)]].concat(), b"");
            let answer = client.answer();
            assert_eq!(answer.status, status, "{method} {headers:?}: {answer:?}");
            count += 1;
            let records = server.records(count);
            assert_eq!(records.len(), count, "{method} {headers:?}");
            let last = records.last().expect("a record");
            assert_eq!(
                (&last["error"], &last["httpRequestId"], &last["route"]),
                (&json!(error), &json!(method), &json!("envelope")),
                "{method} {headers:?}"
            );
        }
    }
    // A method that a path does not accept is refused and logged in the same way.
    for (method, path) in [("PUT", "/mcp"), ("GET", "/rpc"), ("DELETE", "/rpc")] {
        let mut client = server.connect();
        client.send(method, path, &[], b"");
        assert_eq!(client.answer().status, 405, "{method} {path}");
        count += 1;
        assert_eq!(server.records(count).len(), count, "{method} {path}");
    }
}
