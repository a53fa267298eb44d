//! Telling how far the work is: seldom, in order, never after the reply.

use std::time::Instant;

use serde_json::{Value, json};

use crate::support::{Setup, request};

#[test]
fn a_thousand_events_become_at_most_four_a_second_and_the_last_is_the_latest() {
    let mut server = Setup::fixtures().start();
    let mut message = request(json!("p"), "test_progress", json!({"count": 1000, "everyMs": 1}));
    message["meta"] = json!({"progressToken": 7});
    let started = Instant::now();
    server.send(&message);
    let mut told: Vec<Value> = Vec::new();
    let reply = loop {
        let frame = server.frame();
        if frame.get("id").is_some() {
            break frame;
        }
        told.push(frame);
    };
    let seconds = started.elapsed().as_secs_f64();
    assert_eq!(reply["result"], json!({"count": 1000}));
    assert!(told.len() as f64 <= 4.0 * seconds + 1.0, "{} in {seconds} s", told.len());
    assert!(told.len() >= 3, "{told:?}");
    let steps: Vec<f64> = told.iter().filter_map(|frame| frame["params"]["progress"].as_f64()).collect();
    assert!(steps.is_sorted_by(|a, b| a < b), "{steps:?}");
    assert_eq!(steps.last(), Some(&1000.0));
    for frame in &told {
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
    // Longer than the pause between two notifications: a late one would come in between.
    server.request(json!(2), "test_sleep", json!({"ms": 600}));
    assert_eq!(server.frame()["id"], json!(2));
    server.finish();
}

#[test]
fn progress_is_told_only_when_asked_for_unless_always() {
    let mut server = Setup::fixtures().start();
    assert_eq!(server.result("test_progress", json!({"count": 3, "everyMs": 1})), json!({"count": 3}));
    server.finish();

    let mut server = Setup::fixtures().arg("--progress=always").start();
    server.request(json!(9), "test_progress", json!({"count": 3, "everyMs": 1}));
    let told = server.frame();
    assert_eq!((&told["params"]["progress"], &told["params"]["id"]), (&json!(3), &json!(9)), "{told}");
    assert_eq!(server.frame()["result"], json!({"count": 3}));
    server.finish();
}
