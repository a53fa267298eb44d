//! A pipe with a real engine at its end, in one process: order, refusals, cancels, back-pressure and ends.

mod client;
mod memory;
mod tools;

use std::{io::Write, time::Duration};

use client::Client;
use serde_json::{Value, json};
use tools::HoldEvent;

fn text(text: &str) -> Value {
    json!({"text": text})
}

/// Calls `hold` and waits until it runs.
fn hold(client: &mut Client, id: i64, name: &str) {
    client.call(id, "hold", text(name));
    assert_eq!(client.holds.next(), HoldEvent::Started(name.into()));
}

/// Waits until the server has read what was sent: it reads in order, and refuses this past everything that waits.
fn until_read(client: &mut Client) {
    client.call("read", "tools/call", json!({"name": 5}));
    assert_eq!(client.next_reply(), (json!("read"), Some(-32602)));
}

fn ended(name: &str) -> HoldEvent {
    HoldEvent::Ended(name.into())
}

#[test]
fn direct_calls_are_answered_in_the_order_of_their_requests() {
    let mut client = Client::start();
    hold(&mut client, 1, "first");
    client.call(2, "echo", text("a"));
    client.call(3, "no_such_tool", json!({}));
    client.send_bytes(b"no JSON\n");
    client.call(4, "echo", text("b"));
    until_read(&mut client);
    client.holds.release();
    let replies: Vec<_> = (0..5).map(|_| client.next_reply()).collect();
    let expected =
        [(json!(1), None), (json!(2), None), (json!(3), None), (json!(null), Some(-32700)), (json!(4), None)];
    assert_eq!(replies, expected);
}

#[test]
fn an_mcp_request_is_answered_or_refused_while_a_direct_call_runs() {
    let mut client = Client::start();
    hold(&mut client, 1, "direct");
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    for (id, params, error) in [
        ("good", json!({"name": "echo", "arguments": text("x"), "_meta": meta}), None),
        ("no tool", json!({"name": 5, "_meta": meta}), Some(-32602)),
        ("no arguments", json!({"name": "echo", "arguments": [], "_meta": meta}), Some(-32602)),
    ] {
        client.call(id, "tools/call", params);
        assert_eq!(client.next_reply(), (json!(id), error));
    }
    // Nothing but the direct call is left to be answered.
    client.holds.release();
    assert_eq!(client.next_reply(), (json!(1), None));
}

#[test]
fn a_cancelled_call_that_waits_in_the_lane_is_answered_in_its_turn_and_never_runs() {
    let mut client = Client::start();
    hold(&mut client, 1, "first");
    client.call(2, "hold", text("cancelled"));
    client.call(3, "echo", text("last"));
    client.send(&json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 2}}));
    until_read(&mut client);
    client.holds.release();
    assert_eq!(client.next_reply(), (json!(1), None));
    assert_eq!(client.next_reply(), (json!(2), Some(499)));
    assert_eq!(client.next_reply(), (json!(3), None));
    assert_eq!(client.holds.rest(), [ended("first")]);
}

#[test]
fn a_running_call_that_is_cancelled_makes_way_for_the_next() {
    let mut client = Client::start();
    hold(&mut client, 1, "running");
    client.call(2, "echo", text("next"));
    client.send(&json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 1}}));
    assert_eq!(client.next_reply(), (json!(1), Some(499)));
    assert_eq!(client.next_reply(), (json!(2), None));
    assert_eq!(client.holds.next(), HoldEvent::Dropped("running".into()));
}

#[test]
fn an_id_is_refused_while_its_call_runs_and_free_once_that_is_answered() {
    let mut client = Client::start();
    hold(&mut client, 1, "first");
    client.call(1, "echo", text("same id"));
    until_read(&mut client);
    client.holds.release();
    assert_eq!(client.next_reply(), (json!(1), None));
    assert_eq!(client.next_reply(), (json!(1), Some(-32600)));
    client.call(1, "echo", text("free again"));
    assert_eq!(client.next_reply(), (json!(1), None));
}

/// Back-pressure: what a client sends without reading its replies is left in the pipe.
#[test]
fn a_client_that_never_reads_is_not_read_any_further() {
    const REQUESTS: usize = 1000;
    const LENGTH: usize = 10_000;
    // The lane and the buffers on the way hold about a hundred of them. Without back-pressure all would be taken.
    const MOST_UNANSWERED: usize = REQUESTS / 2;
    let mut client = Client::start_with(1 << 20);
    let mut input = client.take_input();
    let (taken, replies) = (client.input_stream.clone(), client.output_stream.clone());
    let filling = "x".repeat(LENGTH);
    let writer = std::thread::spawn(move || {
        for id in 0..REQUESTS {
            let request = json!({"jsonrpc": "2.0", "id": id, "method": "echo", "params": text(&filling)});
            writeln!(input, "{request}").expect("the server reads");
        }
    });
    // The server is stuck with its replies, and then the client with its requests. A server that went on reading would
    // not stand still before it has read everything.
    replies.until_full_or_ended();
    let mut moved = (0, 0);
    while moved.1 < 200 && !writer.is_finished() {
        std::thread::sleep(Duration::from_millis(1));
        let read = taken.read();
        moved = if taken.writer_waits() && read == moved.0 { (read, moved.1 + 1) } else { (read, 0) };
    }
    let unanswered = taken.read() / LENGTH;
    assert!(unanswered <= MOST_UNANSWERED, "{unanswered} requests were taken and not answered");
    assert!(!writer.is_finished() && replies.writer_waits());
    // Whoever reads again gets every reply, in order.
    client.read();
    for id in 0..REQUESTS {
        assert_eq!(client.next_reply(), (json!(id), None));
    }
    writer.join().expect("all is written");
    client.until_ended();
}

#[test]
fn a_frame_that_ends_with_the_stream_is_answered_and_then_the_pipe_ends() {
    for (last, error) in [
        (r#"{"jsonrpc":"2.0","id":2,"method":"echo","params":{"text":"x"}}"#, None),
        (r#"{"jsonrpc":"2.0","id":2,"method":"ec"#, Some(-32700)),
    ] {
        let mut client = Client::start();
        client.call(1, "echo", text("x"));
        client.send_bytes(last.as_bytes());
        client.close_input();
        assert_eq!(client.next_reply(), (json!(1), None));
        let id = if error.is_none() { json!(2) } else { Value::Null };
        assert_eq!(client.next_reply(), (id, error), "{last}");
        client.until_ended();
    }
}

#[test]
fn a_client_that_closes_its_input_still_gets_the_reply_of_what_runs() {
    let mut client = Client::start();
    hold(&mut client, 1, "running");
    client.call(2, "echo", text("waiting"));
    client.close_input();
    client.holds.release();
    assert_eq!(client.next_reply(), (json!(1), None));
    assert_eq!(client.next_reply(), (json!(2), None));
    client.until_ended();
}

#[test]
fn a_client_that_is_gone_cancels_what_it_asked_for() {
    let mut client = Client::start_with(1 << 20);
    hold(&mut client, 1, "running");
    client.close_output();
    // That nobody reads shows once something is written.
    client.call("refused", "tools/call", json!({"name": 5}));
    client.until_ended();
    assert_eq!(client.holds.next(), HoldEvent::Dropped("running".into()));
}

#[test]
fn a_frame_over_the_limit_is_refused_in_its_turn_and_the_next_is_answered() {
    let mut client = Client::start_with(200).reading();
    client.call(1, "echo", text("short"));
    client.call(2, "echo", text(&"x".repeat(200)));
    client.call(3, "echo", text("short"));
    assert_eq!(client.next_reply(), (json!(1), None));
    let refused = client.next().expect("a reply");
    assert_eq!(refused["id"], Value::Null);
    assert_eq!(refused["result"]["errors"][0]["msg"], json!("payload_too_large"), "{refused}");
    assert_eq!(client.next_reply(), (json!(3), None));
    // A client that speaks MCP gets an error of the protocol, with its id.
    client.call("ping", "ping", json!({}));
    assert_eq!(client.next_reply().0, json!("ping"));
    client.call("long", "tools/call", json!({"name": "x".repeat(200)}));
    assert_eq!(client.next_reply(), (json!("long"), Some(-32600)));
}
