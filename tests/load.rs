//! Many clients, slow clients and clients that disconnect: the others are served, and nothing is leaked.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::support::{
    Setup,
    http::{Client, MODERN, initialize, modern},
    request, resident_memory, rounds, wait_until,
};

const LEGACY: &str = "2025-11-25";

fn echo(value: Value) -> Value {
    json!({"name": "test_echo", "arguments": {"value": value}})
}

/// A message of the load test and its expected reply: its id and whether it is an error.
fn load_message(number: usize) -> (String, bool) {
    let id = number;
    match number % 8 {
        0..=2 => {
            let params = echo(json!(number));
            (json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string(), false)
        }
        3 => (json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"}).to_string(), false),
        4 => (json!({"jsonrpc": "2.0", "id": id, "method": "no/such", "params": {}}).to_string(), true),
        5 => (json!({"jsonrpc": "2.0", "id": id, "method": "ping", "extra": 1}).to_string(), true),
        6 => {
            let params = json!({"name": "no_such_tool", "arguments": {}});
            (json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string(), true)
        }
        _ => {
            let params = json!({"name": "test_sleep", "arguments": {"ms": 5}});
            (json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string(), false)
        }
    }
}

#[test]
fn requests_of_64_clients_at_once_get_one_right_reply_each() {
    const CLIENTS: usize = 64;
    let each = rounds(60, 2000);
    let server = Setup::fixtures().http().start();
    let answered = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for client_number in 0..CLIENTS {
            let (address, answered) = (server.address(), &answered);
            scope.spawn(move || {
                let mut client = Client::session(address, LEGACY);
                for number in 0..each {
                    let number = client_number * each + number;
                    let (message, fails) = load_message(number);
                    let answer = client.post_bytes("/mcp", message.as_bytes());
                    let reply = answer.message();
                    assert_eq!(reply["id"], json!(number), "{message}: {answer:?}");
                    assert_eq!(reply.get("error").is_some(), fails, "{message}: {answer:?}");
                    if number % 8 < 3 {
                        assert_eq!(
                            reply["result"]["structuredContent"]["value"],
                            json!(number),
                            "{answer:?}"
                        );
                    }
                    answered.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(answered.into_inner(), CLIENTS * each);
}

#[test]
fn half_of_64_clients_are_served_when_the_others_disconnect_during_a_call() {
    const CLIENTS: usize = 64;
    let rounds = rounds(12, 200);
    let server = Setup::fixtures().http().args(["--waiting", "1000"]).start();
    std::thread::scope(|scope| {
        for number in 0..CLIENTS {
            let address = server.address();
            scope.spawn(move || {
                for round in 0..rounds {
                    let id = number * rounds + round;
                    let mut client = Client::connect(address);
                    if number % 2 == 0 {
                        client.send_modern(
                            json!(id),
                            "tools/call",
                            json!({"name": "test_sleep", "arguments": {"ms": 600_000}}),
                        );
                        client.disconnect();
                        continue;
                    }
                    let answer = client.modern(json!(id), "tools/call", echo(json!(id)));
                    assert_eq!(answer.result()["structuredContent"]["value"], json!(id), "{answer:?}");
                    assert_eq!(answer.message()["id"], json!(id));
                }
            });
        }
    });
    // Calls of disconnected clients leave the queue one by one, so for a moment none runs and some still wait.
    let load = |name: &str| server.metric(&format!("pintle_calls_{name}"));
    wait_until("nothing runs or waits", || load("running") + load("waiting") == 0);
}

#[test]
fn requests_on_a_pipe_with_64_in_flight_get_one_reply_each() {
    let lines = rounds(4000, 200_000);
    const WINDOW: usize = 64;
    let mut server = Setup::fixtures().start();
    server.request(
        json!("init"),
        "initialize",
        json!({
            "protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"},
        }),
    );
    server.frame();
    server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let mut seen = vec![false; lines];
    let (mut sent, mut received) = (0, 0);
    while received < lines {
        while sent < lines && sent - received < WINDOW {
            let (message, _) = load_message(sent);
            server.write(format!("{message}\n").as_bytes());
            sent += 1;
        }
        let frame = server.frame();
        let id = usize::try_from(frame["id"].as_u64().expect("an id")).expect("small");
        let (message, fails) = load_message(id);
        assert!(!std::mem::replace(&mut seen[id], true), "two replies: {frame}");
        assert_eq!(frame.get("error").is_some(), fails, "{message}: {frame}");
        received += 1;
    }
    server.finish();
}

#[test]
fn slow_requests_and_clients_that_never_read_do_not_delay_others() {
    const SLOW: usize = 200;
    const NEVER_READING: usize = 60;
    let server = Setup::fixtures().http().start();
    server.connect().get("/healthz");
    let before = resident_memory(server.pid());
    // Request heads and bodies that never end.
    let mut slow: Vec<Client> = Vec::new();
    for number in 0..SLOW {
        let mut client = server.connect();
        let part: &[u8] = match number % 3 {
            0 => b"",
            1 => b"POST /mcp HTTP/1.1\r\nhost: loc",
            _ => b"POST /rpc HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{",
        };
        client.write(part).expect("the server reads");
        slow.push(client);
    }
    // Replies of a megabyte that the client does not read.
    let large = modern(json!(1), "tools/call", echo(json!("x".repeat(500_000)))).to_string();
    let headers = [("mcp-protocol-version", MODERN), ("mcp-method", "tools/call"), ("mcp-name", "test_echo")];
    let mut never_reading: Vec<Client> = Vec::new();
    for _ in 0..NEVER_READING {
        let mut client = server.connect();
        for _ in 0..4 {
            client.send("POST", "/mcp", &headers, large.as_bytes());
        }
        never_reading.push(client);
    }
    let mut client = server.connect();
    for number in 0..200 {
        let answer = client.modern(json!(number), "tools/call", echo(json!(number)));
        assert_eq!(answer.result()["structuredContent"]["value"], json!(number));
    }
    // The kernel holds what is in the sockets of clients that do not read, and the server holds one reply for each.
    // Memory that it has freed is returned to the system while it works.
    wait_until("the server has grown by less than 256 MiB", || {
        client.modern(json!(1), "tools/call", echo(json!(1))).result();
        resident_memory(server.pid()).saturating_sub(before) < 256
    });
    drop((slow, never_reading));
    wait_until("the connections are closed", || server.metric("pintle_http_connections") <= 2);
}

#[test]
fn a_thousand_idle_streams_take_little_memory_and_leak_nothing() {
    const STREAMS: usize = 1000;
    let server = Setup::fixtures().http().start();
    let client = server.session(LEGACY);
    let (tasks, files) = (server.metric("pintle_tasks"), server.metric("process_open_fds"));
    let before = resident_memory(server.pid());
    let mut streams = Vec::with_capacity(STREAMS);
    for _ in 0..STREAMS {
        let mut stream = server.session(LEGACY);
        stream.send("GET", "/mcp", &[], b"");
        let mut response = stream.response();
        assert_eq!(response.header("content-type"), Some("text/event-stream"));
        assert!(stream.event(&mut response).is_some());
        streams.push((stream, response));
    }
    let mut working = client.another_connection();
    for number in 0..100 {
        let answer = working.call(json!(number), "tools/call", echo(json!(number)));
        assert_eq!(answer.result()["structuredContent"]["value"], json!(number));
    }
    let grown = resident_memory(server.pid()).saturating_sub(before);
    assert!(grown < 128, "it grew by {grown} MiB");
    for (mut stream, mut response) in streams {
        let mut other = stream.another_connection();
        other.send("DELETE", "/mcp", &[], b"");
        assert_eq!(other.answer().status, 204);
        assert!(stream.event(&mut response).is_none(), "a deleted session ends its stream");
    }
    drop(working);
    wait_until("tasks and files are as before", || {
        server.metric("pintle_tasks") <= tasks + 2 && server.metric("process_open_fds") <= files + 2
    });
    drop(client);
}

#[test]
fn a_thousand_clients_that_disconnect_during_a_call_leak_nothing() {
    let rounds = rounds(1000, 10_000);
    let server = Setup::fixtures()
        .http()
        .args(["--running", "64", "--waiting", "1000", "--log-level", "error"])
        .start();
    let session = server.session(LEGACY);
    let (tasks, files) = (server.metric("pintle_tasks"), server.metric("process_open_fds"));
    for round in 0..rounds {
        let slow = json!({"name": "test_sleep", "arguments": {"ms": 600_000}});
        match round % 3 {
            0 => {
                let mut client = server.connect();
                client.send_modern(json!(round), "tools/call", slow);
                client.disconnect();
            }
            1 => {
                let mut client = session.another_connection();
                client.send(
                    "POST",
                    "/mcp",
                    &[],
                    request(json!(round), "tools/call", slow).to_string().as_bytes(),
                );
                client.disconnect();
            }
            _ => {
                let mut client = server.connect();
                let message = request(json!(round), "test_sleep", json!({"ms": 600_000}));
                client.send("POST", "/rpc", &[], message.to_string().as_bytes());
                client.disconnect();
            }
        }
    }
    wait_until("nothing runs and nothing is left", || {
        server.metric("pintle_calls_running") == 0
            && server.metric("pintle_calls_waiting") == 0
            && server.metric("pintle_tasks") <= tasks + 2
            && server.metric("process_open_fds") <= files + 2
    });
    let answer = session.another_connection().call(json!(0), "tools/call", echo(json!(1)));
    assert_eq!(answer.status, 200);
}

#[test]
fn a_server_whose_client_ends_during_a_call_cancels_it_and_ends() {
    let token = json!({"progressToken": 1});
    let params =
        json!({"name": "test_progress", "arguments": {"count": 10_000, "everyMs": 10}, "_meta": token});
    let call = request(json!(1), "tools/call", params);
    for round in 0..rounds(100, 1000) {
        let setup = Setup::fixtures();
        let log = setup.path("calls.jsonl");
        let mut server = setup.arg("--log-file").arg(&log).start_without_reader();
        server.write(format!("{}\n{call}\n", initialize(LEGACY)).as_bytes());
        server.read_past("notifications/progress");
        // Standard input stays open: the closed output alone has to end the server.
        server.drop_stdout();
        server.wait();
        let log = std::fs::read_to_string(&log).expect("a log");
        let calls = log.lines().filter(|line| !line.contains(r#""route":"initialize""#)).count();
        assert_eq!(calls, 1, "round {round}: {log}");
        assert!(log.contains(r#""error":"CANCELLED""#), "round {round}: {log}");
    }
}
