//! Cancelling calls: each call gets exactly one reply, and nothing follows it.

use serde_json::{Value, json};

use crate::support::{Server, Setup, request};

fn cancel(server: &mut Server, id: Value) {
    server.send(&json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": id}}));
}

fn assert_cancelled(frame: &Value, id: &Value) {
    assert_eq!(&frame["id"], id, "{frame}");
    assert_eq!(frame["error"]["code"], json!(499), "{frame}");
    assert_eq!(frame["error"]["data"]["code"], json!("CANCELLED"), "{frame}");
}

#[test]
fn a_running_call_is_cancelled_at_once_by_its_id_as_number_or_string() {
    let mut server = Setup::fixtures().start();
    for (id, named) in
        [(json!(1), json!(1)), (json!(2), json!("2")), (json!("3"), json!(3)), (json!("x"), json!("x"))]
    {
        server.request(id.clone(), "test_sleep", json!({"ms": 600_000}));
        // Without the cancel, the reply would come after the timeout of the test.
        cancel(&mut server, named);
        assert_cancelled(&server.frame(), &id);
    }
    let stderr = server.finish();
    assert_eq!(stderr.matches("CANCELLED").count(), 4, "{stderr}");
}

#[test]
fn a_queued_call_that_is_cancelled_keeps_its_turn_and_never_runs() {
    let mut server = Setup::fixtures().start();
    server.request(json!(1), "test_sleep", json!({"ms": 300}));
    server.request(json!(2), "test_panic", json!({}));
    server.request(json!(3), "test_echo", json!({"value": 3}));
    cancel(&mut server, json!("2"));
    assert_eq!(server.frame()["result"], json!({"slept": 300}));
    assert_cancelled(&server.frame(), &json!(2));
    assert_eq!(server.frame()["result"], json!({"value": 3}));
    let stderr = server.finish();
    assert!(!stderr.contains("panic at"), "it ran: {stderr}");
}

#[test]
fn a_cancelled_call_reports_no_more_progress() {
    let mut server = Setup::fixtures().start();
    let mut message = request(json!(1), "test_progress", json!({"count": 100_000, "everyMs": 1}));
    message["meta"] = json!({"progressToken": "t"});
    server.send(&message);
    assert_eq!(server.frame()["method"], json!("notifications/progress"));
    cancel(&mut server, json!(1));
    let mut frame = server.frame();
    while frame.get("method").is_some() {
        frame = server.frame();
    }
    assert_cancelled(&frame, &json!(1));
    // The pause is longer than the interval between two notifications, so a late one would arrive in it.
    server.request(json!(2), "test_sleep", json!({"ms": 600}));
    assert_eq!(server.frame()["result"], json!({"slept": 600}));
    server.finish();
}

#[test]
fn cancelling_what_is_answered_or_unknown_does_nothing() {
    let mut server = Setup::fixtures().start();
    assert_eq!(server.result("test_echo", json!({"value": 1})), json!({"value": 1}));
    cancel(&mut server, json!(1));
    cancel(&mut server, json!("never"));
    server.send(&json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {}}));
    assert_eq!(server.result("test_echo", json!({"value": 2})), json!({"value": 2}));
    server.finish();
}

#[test]
fn large_and_odd_ids_can_be_cancelled_too() {
    let mut server = Setup::fixtures().start();
    for (id, named) in
        [("123456789012345678901", "123456789012345678901"), ("1e21", r#""1e+21""#), ("1.50", r#""1.5""#)]
    {
        let call = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"test_sleep","params":{{"ms":600000}}}}"#);
        let cancel = format!(r#"{{"jsonrpc":"2.0","method":"$/cancelRequest","params":{{"id":{named}}}}}"#);
        server.write(format!("{call}\n{cancel}\n").as_bytes());
        let line = server.line();
        assert!(line.starts_with(&format!(r#"{{"jsonrpc":"2.0","id":{id},"error""#)), "{line}");
        assert!(line.contains("CANCELLED"), "{line}");
    }
    server.finish();
}

#[test]
fn a_cancel_overtakes_large_requests_that_wait() {
    let mut server = Setup::fixtures().arg("--log-level=off").start();
    server.request(json!("slow"), "test_sleep", json!({"ms": 600_000}));
    let large = "x".repeat(900_000);
    for id in 0..20 {
        server.request(json!(id), "test_echo", json!({"value": large}));
    }
    cancel(&mut server, json!("slow"));
    assert_cancelled(&server.frame(), &json!("slow"));
    for id in 0..20 {
        assert_eq!(server.frame()["id"], json!(id));
    }
    server.finish();
}

#[test]
fn a_cancel_with_the_id_of_a_call_in_flight_is_refused() {
    let mut server = Setup::fixtures().start();
    server.request(json!(1), "test_sleep", json!({"ms": 200}));
    server.request(json!(1), "$/cancelRequest", json!({"id": 1}));
    assert_eq!(server.frame()["result"], json!({"slept": 200}));
    assert_eq!(server.frame()["error"]["code"], json!(-32600));
    server.finish();
}

#[test]
fn many_cancels_at_once_give_each_call_exactly_one_reply() {
    const COUNT: usize = 500;
    let mut server = Setup::fixtures().arg("--log-level=off").start();
    let mut stdin = server.take_stdin();
    let writer = std::thread::spawn(move || {
        use std::io::Write;
        for number in 0..COUNT {
            let ms = number % 3;
            writeln!(stdin, "{}", request(json!(number), "test_sleep", json!({"ms": ms}))).expect("reads");
            let cancel = json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": number}});
            writeln!(stdin, "{cancel}").expect("reads");
        }
    });
    for number in 0..COUNT {
        let frame = server.frame();
        assert_eq!(frame["id"], json!(number), "{frame}");
        assert!(frame.get("result").is_some() || frame["error"]["code"] == json!(499), "{frame}");
    }
    writer.join().expect("writes");
    assert_eq!(server.wait().code(), Some(0));
    assert_eq!(server.remaining_frames(), Vec::<String>::new());
}
