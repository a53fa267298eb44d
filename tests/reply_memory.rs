//! The memory that replies may take in the server, whether their clients read them or not.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::Write,
    os::fd::AsFd,
};

use serde_json::{Value, json};

use crate::support::{
    Server, Setup,
    http::{Client, MODERN, modern},
    peak_memory, request, resident_memory, rounds, wait_until,
};

/// In MiB: the most memory that a server may take, whatever its clients do.
const CEILING: u64 = 512;
/// In MiB: how much more memory a server may have than before once its clients have disconnected.
const KEPT: u64 = 64;
const FILE_BYTES: usize = 7_000_000;

/// A server whose root has a file of 7 MB. Its text needs some escapes.
fn with_large_file(setup: Setup) -> Setup {
    let line = "\tlet name = \"a value\"; // with a comment\n";
    let text: String = line.chars().cycle().take(FILE_BYTES).collect();
    fs::write(setup.path("root/large.txt"), text).expect("writes");
    setup
}

fn read_large(id: u64) -> Value {
    request(json!(id), "tools/call", json!({"name": "text.read", "arguments": {"path": "large.txt"}}))
}

fn initialize(server: &mut Server) {
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    server.send(&request(json!("first"), "initialize", params));
}

/// How many of these calls were answered with their result, and how many with `QUEUE_OVERLOADED`. Each is answered
/// once.
fn settle(server: &Server, calls: u64) -> (u64, u64) {
    let mut waiting: BTreeSet<u64> = (0..calls).collect();
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    while !waiting.is_empty() {
        let frame = server.frame();
        let Some(id) = frame["id"].as_u64() else { continue };
        assert!(waiting.remove(&id), "a second reply to {id}");
        let result = &frame["result"];
        let kind = match result["isError"].as_bool() {
            Some(true) => {
                let text = result["content"][0]["text"].as_str().expect("an error object");
                let error: Value = serde_json::from_str(text).expect("JSON");
                assert!(frame.to_string().len() < 1000, "a short error: {frame}");
                error["code"].as_str().expect("a code").to_owned()
            }
            _ => {
                let content = result["structuredContent"]["content"].as_str().expect("the file");
                assert_eq!(content.len(), FILE_BYTES);
                let text = result["content"][0]["text"].as_str().expect("the same as text");
                let same: Value = serde_json::from_str(text).expect("JSON");
                assert_eq!(same, result["structuredContent"]);
                "ok".into()
            }
        };
        *counts.entry(kind).or_default() += 1;
    }
    let count = |kind: &str| counts.get(kind).copied().unwrap_or_default();
    let (read, overloaded) = (count("ok"), count("QUEUE_OVERLOADED"));
    assert_eq!(read + overloaded, calls, "{counts:?}");
    (read, overloaded)
}

fn wait_until_memory_is_released(server: &Server, before: u64) {
    wait_until("the memory is given back", || resident_memory(server.pid()) < before + KEPT);
}

#[test]
fn a_pipe_that_is_never_read_takes_bounded_memory_and_every_call_gets_one_reply() {
    let setup = with_large_file(Setup::new()).args(["--write-timeout", "1s"]);
    let mut server = setup.start_without_reader();
    let before = resident_memory(server.pid());
    initialize(&mut server);
    let calls = rounds(96, 400) as u64;
    for batch in 0..calls / 8 {
        for id in batch * 8..(batch + 1) * 8 {
            server.send(&read_large(id));
        }
        // The next batch is sent when this one has been answered: results were evicted or refused.
        let log = format!("\"requestId\":\"{}\"", (batch + 1) * 8 - 1);
        wait_until("a call is over", || server.stderr().contains(&log));
    }
    assert!(peak_memory(server.pid()) < CEILING, "{} MiB", peak_memory(server.pid()));
    server.start_reading();
    let (_, overloaded) = settle(&server, calls);
    assert!(overloaded > 0, "nothing was evicted");
    wait_until_memory_is_released(&server, before);
    // The pipe works as before.
    server.send(&read_large(0));
    assert_eq!(settle(&server, 1), (1, 0));
    server.finish();
}

#[test]
fn a_client_that_reads_gets_68_large_replies_at_once_in_bounded_memory() {
    let mut server = with_large_file(Setup::new()).start();
    let before = resident_memory(server.pid());
    initialize(&mut server);
    for id in 0..68 {
        server.send(&read_large(id));
    }
    assert_eq!(settle(&server, 68), (68, 0));
    assert!(peak_memory(server.pid()) < CEILING, "{} MiB", peak_memory(server.pid()));
    wait_until_memory_is_released(&server, before);
    server.finish();
}

#[test]
fn requests_are_no_longer_read_if_the_client_reads_no_replies() {
    let mut server = Setup::new().start_without_reader();
    initialize(&mut server);
    let mut stdin = server.take_stdin();
    let input = stdin.as_fd().try_clone_to_owned().expect("a handle to the pipe");
    let writer = std::thread::spawn(move || {
        // Each reply has some hundred bytes. If the server read all requests, the replies would take 200 MiB.
        let mut sent = 0_u64;
        let line = |id: u64| {
            let arguments = json!({"path": "nowhere"});
            format!(
                "{}\n",
                request(json!(id), "tools/call", json!({"name": "text.read", "arguments": arguments}))
            )
        };
        while sent < 400_000 && stdin.write_all(line(sent).as_bytes()).is_ok() {
            sent += 1;
        }
        sent
    });
    // The writer is blocked once the server stops reading.
    let mut seen = (0, 0);
    wait_until("the server stops reading", || {
        let unread = rustix::io::ioctl_fionread(&input).expect("a pipe");
        seen = if unread == seen.0 && unread > 0 { (unread, seen.1 + 1) } else { (unread, 0) };
        seen.1 > 20
    });
    assert!(peak_memory(server.pid()) < 128, "{} MiB", peak_memory(server.pid()));
    server.drop_stdout();
    assert!(writer.join().expect("writes") < 400_000);
}

#[test]
fn http_clients_that_never_read_take_bounded_memory_and_do_not_delay_others() {
    let server = with_large_file(Setup::new()).http().start();
    server.connect().get("/healthz");
    let before = resident_memory(server.pid());
    let arguments = json!({"name": "text.read", "arguments": {"path": "large.txt"}});
    let large = modern(json!(1), "tools/call", arguments).to_string();
    let headers = [("mcp-protocol-version", MODERN), ("mcp-method", "tools/call"), ("mcp-name", "text.read")];
    let mut never_reading: Vec<Client> = Vec::new();
    for _ in 0..rounds(40, 200) {
        let mut client = server.connect();
        client.send("POST", "/mcp", &headers, large.as_bytes());
        never_reading.push(client);
    }
    // Small calls are answered meanwhile, and in the end a large one is, when another client was evicted for it.
    let mut client = server.connect();
    for number in 0..20 {
        let listed =
            client.modern(json!(number), "tools/call", json!({"name": "file.list", "arguments": {}}));
        assert_eq!(listed.result()["structuredContent"]["entries"][0]["name"], "large.txt");
    }
    let arguments = json!({"name": "text.read", "arguments": {"path": "large.txt"}});
    let read = client.modern(json!(1), "tools/call", arguments).result();
    assert_eq!(read["structuredContent"]["content"].as_str().map(str::len), Some(FILE_BYTES));
    assert!(peak_memory(server.pid()) < CEILING, "{} MiB", peak_memory(server.pid()));
    drop(never_reading);
    wait_until_memory_is_released(&server, before);
}
