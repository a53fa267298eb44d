//! The same call with the same key runs once.

use serde_json::{Value, json};

use crate::support::{Server, Setup, request, resident_memory};

fn send_keyed(server: &mut Server, id: u32, key: &str, method: &str, params: Value) {
    let mut message = request(json!(id), method, params);
    message["idempotencyKey"] = json!(key);
    server.send(&message);
}

#[test]
fn a_repeated_key_is_answered_from_the_store_during_and_after_the_first_call() {
    let mut server = Setup::fixtures().start();
    // The first call runs while the second waits. The third comes when both have ended.
    send_keyed(&mut server, 1, "k", "test_sleep", json!({"ms": 200}));
    send_keyed(&mut server, 2, "k", "test_sleep", json!({"ms": 200}));
    for id in [1, 2] {
        let frame = server.line();
        assert_eq!(frame, format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"slept":200}}}}"#));
    }
    send_keyed(&mut server, 3, "k", "test_sleep", json!({"ms": 200}));
    assert_eq!(server.frame()["result"], json!({"slept": 200}));
    let records = server.records(3);
    let hits: Vec<_> = records.iter().map(|record| &record["idempotency"]["cacheHit"]).collect();
    assert_eq!(hits, [&json!(false), &json!(true), &json!(true)]);
    let attempts: Vec<_> = records.iter().map(|record| &record["attempt"]).collect();
    assert_eq!(attempts, [&json!(1), &json!(2), &json!(3)]);
    server.finish();
}

#[test]
fn the_order_of_argument_members_does_not_matter() {
    let mut server = Setup::fixtures().start();
    for (id, params) in [(1, r#"{"count":1,"everyMs":0}"#), (2, r#"{"everyMs":0,"count":1}"#)] {
        let line = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"test_progress","params":{params},"idempotencyKey":"k"}}"#
        );
        server.write(format!("{line}\n").as_bytes());
        assert_eq!(server.frame()["result"], json!({"count": 1}));
    }
    assert_eq!(server.records(2)[1]["idempotency"]["cacheHit"], json!(true));
    server.finish();
}

#[test]
fn a_key_with_other_arguments_or_another_tool_is_a_conflict() {
    let mut server = Setup::fixtures().start();
    send_keyed(&mut server, 1, "k", "test_echo", json!({"value": 1}));
    assert_eq!(server.frame()["result"], json!({"value": 1}));
    for (method, params) in [("test_echo", json!({"value": 2})), ("test_sleep", json!({"ms": 1}))] {
        send_keyed(&mut server, 2, "k", method, params);
        let frame = server.frame();
        assert_eq!(frame["error"]["code"], json!(409), "{frame}");
        assert_eq!(frame["error"]["data"]["code"], json!("CONFLICT"), "{frame}");
    }
    server.finish();
}

#[test]
fn an_outcome_that_may_change_is_not_stored() {
    let mut server = Setup::fixtures().arg("--timeout=test_sleep=30ms").start();
    for id in [1, 2] {
        send_keyed(&mut server, id, "k", "test_sleep", json!({"ms": 60_000}));
        assert_eq!(server.frame()["error"]["data"]["code"], json!("TOOL_TIMEOUT"));
    }
    for id in [3, 4] {
        send_keyed(&mut server, id, "p", "test_panic", json!({}));
        assert_eq!(server.frame()["error"]["data"]["code"], json!("INTERNAL"));
    }
    let stderr = server.finish();
    assert_eq!(stderr.matches("panic at").count(), 2, "it ran twice: {stderr}");
}

#[test]
fn stored_outcomes_take_little_memory() {
    let mut server = Setup::fixtures().arg("--log-level=off").start();
    // A parsed list of zeros takes many times the memory of its text.
    let value = vec![0; 250_000];
    for id in 0..60 {
        send_keyed(&mut server, id, &format!("key {id}"), "test_echo", json!({"value": value}));
        assert!(server.frame().get("result").is_some());
    }
    let resident = resident_memory(server.pid());
    assert!(resident < 300, "{resident} MiB");
    server.finish();
}
