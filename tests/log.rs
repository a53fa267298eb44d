//! The call log: one complete record for each call, and nothing of the callers' content.

use std::fs;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{Setup, golden, request};

/// Replaces the build's version, which changes with every commit, and compares everything else.
fn fixed(record: &str) -> String {
    let mut record: Value = serde_json::from_str(record).expect("a record");
    let version = &mut record["metadata"]["toolingVersion"];
    assert!(version.as_str().is_some_and(|version| version.starts_with("0.1.0+")), "{version}");
    *version = json!("VERSION");
    record.to_string()
}

/// Compares with a file, or writes it if `UPDATE_GOLDEN=1` is set.
fn assert_golden(name: &str, found: &str) {
    let path = golden().join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, found).expect("writes");
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(found, expected, "{name} differs; UPDATE_GOLDEN=1 rewrites it");
}

const ENVELOPE_FAILURES: &[&str] = &[
    "nonsense",
    "[]",
    r#"{"id":1,"method":"test_echo","params":{}}"#,
    r#"{"jsonrpc":"2.0","id":"two","method":"test_echo","params":{"value":1},"extra":true}"#,
    r#"{"jsonrpc":"2.0","id":3,"method":"test_echo"}"#,
    r#"{"jsonrpc":"2.0","id":null,"method":"test_echo","params":{"value":1}}"#,
    r#"{"jsonrpc":"2.0","method":"test_echo","params":{"value":1}}"#,
    r#"{"jsonrpc":"2.0","id":4,"method":"test_echo","params":{"value":1},"meta":{"colour":"red"}}"#,
];

fn log_of(arguments: &[&str], lines: &[&str]) -> (Vec<Value>, String) {
    let mut setup = Setup::fixtures().arg("--deterministic");
    for argument in arguments {
        setup = setup.arg(argument);
    }
    let path = setup.path("calls.jsonl");
    let mut server = setup.arg("--log-file").arg(&path).start();
    let mut replies = Vec::new();
    for line in lines {
        server.write(format!("{line}\n").as_bytes());
        replies.push(server.frame());
    }
    server.close_stdin();
    assert_eq!(server.wait().code(), Some(0));
    let log = fs::read_to_string(&path).expect("the log");
    let log: String = log.lines().map(|line| fixed(line) + "\n").collect();
    assert_eq!(log, log_over_http(arguments, lines), "the log over HTTP differs");
    (replies, log)
}

/// The request id that the server generates for every HTTP request in deterministic mode.
const HTTP_REQUEST_ID: &str = r#","httpRequestId":"00000000-0000-0000-0000-000000000000"}"#;

/// The log of the same requests over HTTP. It has to be the same except for the transport and the HTTP request id at
/// the end of each record.
fn log_over_http(arguments: &[&str], lines: &[&str]) -> String {
    let mut setup = Setup::fixtures().http().arg("--deterministic");
    for argument in arguments {
        setup = setup.arg(argument);
    }
    let path = setup.path("calls.jsonl");
    let mut server = setup.arg("--log-file").arg(&path).start();
    let mut client = server.connect();
    for line in lines {
        client.post_bytes("/rpc", line.as_bytes());
    }
    server.signal(Signal::TERM);
    assert_eq!(server.wait().code(), Some(0));
    let log = fs::read_to_string(&path).expect("the log");
    assert!(log.lines().all(|line| line.contains(r#""transport":"http""#)), "{log}");
    let log: String = log.lines().map(|line| fixed(line) + "\n").collect();
    assert!(log.lines().all(|line| line.ends_with(HTTP_REQUEST_ID)), "{log}");
    log.replace(r#""transport":"http""#, r#""transport":"stdio""#).replace(HTTP_REQUEST_ID, "}")
}

#[test]
fn envelope_failures_are_logged_as_in_the_golden_records() {
    let (_, log) = log_of(&[], ENVELOPE_FAILURES);
    assert_golden("envelope_failures.log.jsonl", &log);
}

#[test]
fn shadow_mode_logs_what_enforce_refuses_and_lets_it_through() {
    let (replies, log) = log_of(&["--envelope=shadow"], ENVELOPE_FAILURES);
    assert_golden("envelope_shadow.log.jsonl", &log);
    let shadowed = log.lines().filter(|line| line.contains(r#""status":"shadow""#)).count();
    assert_eq!(shadowed, 6, "{log}");
    assert_eq!(replies[4]["error"]["code"], json!(-32602), "absent params become an empty object");
    assert_eq!(replies[0]["error"]["code"], json!(-32700));
    assert_eq!(replies[1]["error"]["code"], json!(-32600));
    for index in [3, 5, 6, 7] {
        assert_eq!(replies[index]["result"], json!({"value": 1}), "{index}");
    }
}

#[test]
fn shadow_mode_logs_notifications_and_controls_too() {
    let mut server = Setup::fixtures().arg("--envelope=shadow").start();
    server.send(&json!({"jsonrpc": "1.0", "method": "notifications/x", "params": {}}));
    server.send(&json!({"jsonrpc": "1.0", "method": "$/cancelRequest", "params": {"id": 1}}));
    server.send(&json!({"jsonrpc": "1.0", "id": 1, "method": "tools/list", "params": {}}));
    assert_eq!(server.frame()["id"], json!(1));
    let records = server.records(3);
    let shadowed = records.iter().filter(|record| record["status"] == json!("shadow")).count();
    assert_eq!(shadowed, 3, "{records:?}");
    server.finish();
}

#[test]
fn calls_are_logged_as_in_the_golden_records() {
    let traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let meta = json!({"agentId": "agent-7", "runId": "run-9", "traceparent": traceparent});
    let mut traced = request(json!(1), "test_echo", json!({"value": "x"}));
    traced["meta"] = meta;
    let mut keyed = request(json!("2"), "test_echo", json!({"value": "x"}));
    keyed["idempotencyKey"] = json!("k");
    let lines = [
        traced.to_string(),
        keyed.to_string(),
        keyed.to_string(),
        request(json!(3), "test_panic", json!({})).to_string(),
        request(json!(4), "test_echo", json!({"valu": 1})).to_string(),
        request(json!(5), "nothing", json!({})).to_string(),
        request(json!(6), "get_schema", json!({"name": "x"})).to_string(),
        request(json!(7), "mcp.tool.invoke", json!({"tool": "mcp.tool:test_echo", "input": {"value": 1}}))
            .to_string(),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let (_, log) = log_of(&[], &lines);
    assert_golden("calls.log.jsonl", &log);
}

#[test]
fn the_log_never_quotes_what_a_caller_sends() {
    const SECRET: &str = "hunter2-do-not-log";
    let mut server = Setup::assets().arg("--fixtures").arg("--log-level=debug").start();
    let calls = [
        request(json!(1), "test_echo", json!({"value": SECRET})),
        request(json!(2), "test_echo", json!({"value": 1, SECRET: 1})),
        request(
            json!(3),
            "validate_asset",
            json!({"asset": {"name": SECRET, "watts": SECRET}, "schema": "lamp"}),
        ),
        request(json!(4), "get_schema", json!({"name": SECRET})),
        request(json!(5), "get_example", json!({"path": SECRET})),
        json!({"jsonrpc": "2.0", "id": 6, "method": "test_echo", "params": {}, SECRET: SECRET}),
        json!([SECRET]),
    ];
    for call in &calls {
        server.send(call);
        server.frame();
    }
    server.write(format!("{{{SECRET}\n").as_bytes());
    server.frame();
    server.records(calls.len() + 1);
    let stderr = server.finish();
    assert!(!stderr.contains(SECRET), "{stderr}");
}

#[test]
fn each_call_and_each_refusal_has_exactly_one_record() {
    let mut server = Setup::fixtures().start();
    for number in 0..50 {
        server.request(json!(number), "test_echo", json!({"value": number}));
        server.write(b"{}\n");
    }
    for _ in 0..100 {
        server.frame();
    }
    let stderr = server.finish();
    let records: Vec<Value> = stderr.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    assert_eq!(records.len(), 100);
    let ids: Vec<_> = records.iter().filter_map(|record| record["requestId"].as_str()).collect();
    assert_eq!(ids, (0..50).map(|number| number.to_string()).collect::<Vec<_>>());
}

#[test]
fn what_the_protocol_refuses_is_logged_once_on_every_transport() {
    let stdio = {
        let mut server = Setup::fixtures().start();
        server.call("initialize", crate::support::http::initialize("2025-11-25")["params"].clone());
        server.call("no/such", json!({}));
        server.records(1);
        server.call("completion/complete", json!({"ref": {"type": "ref/resource", "uri": "x"}}));
        server.records(2)
    };
    let server = Setup::fixtures().http().start();
    let mut client = server.session("2025-11-25");
    client.call(json!(1), "no/such", json!({}));
    server.records(1);
    client.call(json!(1), "completion/complete", json!({"ref": {"type": "ref/resource", "uri": "x"}}));
    let session = server.records(2);
    let mut client = server.connect();
    client.modern(json!(1), "no/such", json!({}));
    server.records(3);
    client.modern(json!(1), "tools/list", json!({}));
    let alone = server.records(4).split_off(2);
    for records in [&stdio, &session] {
        assert_eq!(records.len(), 2, "{records:?}");
        assert_eq!(records[0]["method"], json!("no/such"));
        assert_eq!(records[1]["method"], json!("completion/complete"));
        assert!(records.iter().all(|record| record["error"] == json!("INVALID_REQUEST")), "{records:?}");
    }
    assert_eq!((&alone[0]["method"], &alone[0]["status"]), (&json!("no/such"), &json!("error")));
    assert_eq!((&alone[1]["route"], &alone[1]["status"]), (&json!("discover"), &json!("ok")));
}

/// The route, method and status of each record.
fn shown(records: &[Value]) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let shown = |record: &Value| {
        format!("{} {} {}", text(&record["route"]), text(&record["method"]), text(&record["status"]))
    };
    let mut shown: Vec<_> = records.iter().map(shown).collect();
    // Calls end in any order.
    shown.sort();
    shown
}

#[test]
fn every_request_of_a_client_is_logged_exactly_once() {
    let completion = json!({
        "ref": {"type": "ref/resource", "uri": "list://{+path}"},
        "argument": {"name": "path", "value": ""}
    });
    let questions = [
        ("ping", json!({})),
        ("tools/list", json!({})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("completion/complete", completion),
        ("resources/read", json!({"uri": "list:///"})),
        ("tools/call", json!({"name": "test_echo", "arguments": {"value": 1}})),
        ("tools/call", json!({"name": 7})),
        ("tools/list", json!({"cursor": "x"})),
        ("no/such", json!({})),
    ];
    let mut expected = vec![
        "completion completion/complete ok",
        "discover tools/list ok",
        "envelope no/such error",
        "envelope tools/call error",
        "envelope tools/list error",
        "initialize initialize ok",
        "list resources/list ok",
        "list resources/templates/list ok",
        "notification notifications/initialized ok",
        "ping ping ok",
        "resource resources/read ok",
        "tool test_echo ok",
    ];
    let mut stdio = Setup::fixtures().start();
    stdio.call("initialize", crate::support::http::initialize("2025-11-25")["params"].clone());
    stdio.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    for (method, params) in &questions {
        stdio.call(method, params.clone());
    }
    let server = Setup::fixtures().http().start();
    let mut client = server.session("2025-11-25");
    for (id, (method, params)) in questions.iter().enumerate() {
        client.call(json!(id), method, params.clone());
    }
    for server in [&stdio, &server] {
        assert_eq!(shown(&server.records_of(expected.len(), |_| true)), expected);
    }
    // Without sessions, a discovery replaces the handshake, and there is no ping.
    let server = Setup::fixtures().http().start();
    let mut client = server.connect();
    client.modern(json!("d"), "server/discover", json!({}));
    for (id, (method, params)) in questions.iter().enumerate() {
        client.modern(json!(id), method, params.clone());
    }
    expected.retain(|line| !line.contains("initialize") && !line.contains("ping"));
    expected.extend(["discover server/discover ok", "envelope ping error"]);
    expected.sort_unstable();
    assert_eq!(shown(&server.records_of(expected.len(), |_| true)), expected);
}

#[test]
fn a_request_that_is_refused_by_its_head_is_logged_once_whatever_its_method() {
    let server = Setup::fixtures().http().start();
    for method in ["GET", "DELETE", "POST"] {
        let mut client = server.connect();
        let headers = [
            ("accept", "application/json, text/event-stream"),
            ("content-type", "application/json"),
            ("mcp-protocol-version", "1999-01-01"),
        ];
        let message = request(json!(1), "tools/list", json!({})).to_string();
        let body = if method == "POST" { message.as_bytes() } else { b"" };
        client.send(method, "/mcp", &headers, body);
        assert_eq!(client.response().status, 400, "{method}");
    }
    let records = server.records(3);
    assert_eq!(records.len(), 3, "{records:?}");
    assert!(records.iter().all(|record| record["error"] == "INVALID_REQUEST"), "{records:?}");
}
