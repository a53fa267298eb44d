//! Progress notifications: at most four a second, in order, never after the reply.

use std::time::Instant;

use serde_json::{Value, json};

use crate::support::{Setup, request};

#[test]
fn a_thousand_events_become_at_most_four_notifications_a_second_and_the_last_has_the_latest_state() {
    let mut server = Setup::fixtures().start();
    let mut message = request(json!("p"), "test_progress", json!({"count": 1000, "everyMs": 1}));
    message["meta"] = json!({"progressToken": 7});
    let started = Instant::now();
    server.send(&message);
    let mut notifications: Vec<Value> = Vec::new();
    let reply = loop {
        let frame = server.frame();
        if frame.get("id").is_some() {
            break frame;
        }
        notifications.push(frame);
    };
    let seconds = started.elapsed().as_secs_f64();
    assert_eq!(reply["result"], json!({"count": 1000}));
    assert!(notifications.len() as f64 <= 4.0 * seconds + 1.0, "{} in {seconds} s", notifications.len());
    assert!(notifications.len() >= 3, "{notifications:?}");
    let steps: Vec<f64> =
        notifications.iter().filter_map(|frame| frame["params"]["progress"].as_f64()).collect();
    assert!(steps.is_sorted_by(|a, b| a < b), "{steps:?}");
    assert_eq!(steps.last(), Some(&1000.0));
    for frame in &notifications {
        let params = &frame["params"];
        assert_eq!(frame["method"], json!("notifications/progress"));
        assert_eq!(params["progressToken"], json!(7));
        assert_eq!(params["total"], json!(1000));
        assert_eq!(params["id"], json!("p"));
        assert_eq!(params["tool"], json!("test_progress"));
        assert_eq!(params["stream"], json!("info"));
        assert_eq!(params["phase"], json!("progress"));
        assert!(params["message"].is_string() && params["ts"].is_string(), "{frame}");
    }
    // The pause is longer than the interval between two notifications, so a late one would arrive in it.
    server.request(json!(2), "test_sleep", json!({"ms": 600}));
    assert_eq!(server.frame()["id"], json!(2));
    server.finish();
}

#[test]
fn progress_is_reported_only_on_request_unless_always_is_set() {
    let mut server = Setup::fixtures().start();
    assert_eq!(server.result("test_progress", json!({"count": 3, "everyMs": 1})), json!({"count": 3}));
    server.finish();

    let mut server = Setup::fixtures().arg("--progress=always").start();
    server.request(json!(9), "test_progress", json!({"count": 3, "everyMs": 1}));
    let notification = server.frame();
    assert_eq!(
        (&notification["params"]["progress"], &notification["params"]["id"]),
        (&json!(3), &json!(9)),
        "{notification}"
    );
    assert_eq!(server.frame()["result"], json!({"count": 3}));
    server.finish();
}
