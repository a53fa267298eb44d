//! The bars of MCP: `tools/call` of `test_echo` against a bare server on the same SDK.
//!
//! The two take turns, each time with new processes, the same requests and the same driver: one thread
//! that keeps a number of calls in flight. Figures are the medians of the ratios of many short rounds.
//! The machine's processors are shared between driver and server, so the server's processor time a call
//! is reported, too: it depends less on other load. Both servers have the same allocator and
//! the same profile; their standard error, and with it Pintle's log, goes to a file.

mod http;
mod server;

use std::{path::Path, time::Duration};

use memchr::memmem;
use serde_json::{Value, json};

use self::server::Kind;
use crate::{
    pipe,
    report::{Bar, Report},
};

/// The revision that begins with a handshake.
const LEGACY: &str = "2025-11-25";
/// The stateless revision.
const STATELESS: &str = "2026-07-28";
/// What every reply must contain.
const ECHOED: &[u8] = br#""structuredContent":{"value":"hello"}"#;

/// How the calls come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Stdio,
    HttpSession,
    HttpStateless,
}

/// One thing to measure.
struct Case {
    name: &'static str,
    way: Way,
    peer: Kind,
    /// Calls in flight: on HTTP each has a connection of its own.
    clients: usize,
    calls: usize,
    /// Whether it has a bar, or is only reported for comparison.
    has_bar: bool,
}

/// The figures of one round of one server.
struct Reading {
    calls_a_second: f64,
    /// The latency, in ms, that one call in a hundred exceeds.
    p99: f64,
    /// Processor time of the server for a call, in µs.
    processor: f64,
}

pub fn run(report: &mut Report, quick: bool) {
    let case = |name, way, peer, clients, calls| Case { name, way, peer, clients, calls, has_bar: true };
    let pipes = |name, clients, calls| Case {
        has_bar: false,
        ..case(name, Way::Stdio, Kind::BarePipes, clients, calls)
    };
    let cases = [
        case("MCP stdio, 1 in flight", Way::Stdio, Kind::Bare, 1, 8_000),
        case("MCP stdio, 64 in flight", Way::Stdio, Kind::Bare, 64, 20_000),
        pipes("MCP stdio, 1 in flight, against the SDK's fast pipes", 1, 8_000),
        pipes("MCP stdio, 64 in flight, against the SDK's fast pipes", 64, 20_000),
        case("MCP HTTP session, 1 client", Way::HttpSession, Kind::Bare, 1, 4_000),
        case("MCP HTTP session, 64 clients", Way::HttpSession, Kind::Bare, 64, 10_000),
        case("MCP HTTP stateless, 1 client", Way::HttpStateless, Kind::Bare, 1, 4_000),
        case("MCP HTTP stateless, 64 clients", Way::HttpStateless, Kind::Bare, 64, 10_000),
    ];
    // BENCH_CASE selects cases by a part of their name.
    let only = std::env::var("BENCH_CASE").unwrap_or_default();
    for mut case in cases {
        if !case.name.contains(&only) || (quick && !case.has_bar) {
            continue;
        }
        let rounds = if quick { 5 } else { 21 };
        if quick {
            case.calls /= 4;
        }
        measure(report, &case, rounds);
    }
}

fn measure(report: &mut Report, case: &Case, rounds: usize) {
    let (mut ours, mut peer) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        // Each goes first in every other round.
        if round % 2 == 0 {
            peer.push(read(case, case.peer));
            ours.push(read(case, Kind::Pintle));
        } else {
            ours.push(read(case, Kind::Pintle));
            peer.push(read(case, case.peer));
        }
    }
    let mut add = |what: &str, unit: &dyn Fn(f64) -> String, of: fn(&Reading) -> f64, bar| {
        let (ours, peer): (Vec<_>, Vec<_>) = (ours.iter().map(of).collect(), peer.iter().map(of).collect());
        let bar = if case.has_bar { bar } else { Bar::Reported };
        report.compare(&format!("{}: {what}", case.name), unit, &ours, &peer, bar);
    };
    add("calls", &|figure| format!("{figure:.0}/s"), |reading| reading.calls_a_second, Bar::AtLeast(0.8));
    let tail = if case.clients > 1 { Bar::AtMost(1.5) } else { Bar::Reported };
    add("p99", &|figure| format!("{figure:.2} ms"), |reading| reading.p99, tail);
    add(
        "server's processor time a call",
        &|figure| format!("{figure:.1} µs"),
        |reading| reading.processor,
        Bar::Reported,
    );
}

fn read(case: &Case, kind: Kind) -> Reading {
    let folder = tempfile::tempdir().expect("a folder");
    let folder: &Path = folder.path();
    let warm_up = case.calls / 10;
    let (mut latencies, elapsed, processor) = match case.way {
        Way::Stdio => {
            let mut server = server::stdio(kind, folder);
            let mut client = pipe::Client::connect(&mut server);
            shake_hands(&mut client);
            let requests = client.prepare(warm_up, |id| call(id, LEGACY));
            client.call(&requests, case.clients, check);
            let requests = client.prepare(case.calls, |id| call(id, LEGACY));
            server.timed(|| client.call(&requests, case.clients, check))
        }
        Way::HttpSession | Way::HttpStateless => {
            let (server, address) = server::http(kind, folder);
            let revision = if case.way == Way::HttpSession { LEGACY } else { STATELESS };
            let mut clients = http::connect(address, revision, case.clients);
            clients.call(warm_up);
            server.timed(|| clients.call(case.calls))
        }
    };
    assert_eq!(latencies.len(), case.calls, "replies were lost");
    latencies.sort();
    Reading {
        calls_a_second: case.calls as f64 / elapsed.as_secs_f64(),
        p99: milliseconds(latencies[latencies.len() * 99 / 100]),
        processor: processor.as_secs_f64() * 1e6 / case.calls as f64,
    }
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

/// Opens a session on a pipe.
pub fn shake_hands(client: &mut pipe::Client) {
    let reply = client.ask(format!("{}\n", initialize()).as_bytes());
    assert!(memmem::find(reply, b"serverInfo").is_some(), "{}", String::from_utf8_lossy(reply));
    client.send(format!("{}\n", initialized()).as_bytes());
}

fn check(reply: &[u8]) {
    assert!(memmem::find(reply, ECHOED).is_some(), "{}", String::from_utf8_lossy(reply));
}

/// The request that opens a session.
fn initialize() -> Value {
    let params = json!({
        "protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}
    });
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
}

fn initialized() -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/initialized"})
}

/// A call, as a client of the revision writes it.
fn call(id: u64, revision: &str) -> Value {
    let mut params = json!({"name": "test_echo", "arguments": {"value": "hello"}});
    if revision == STATELESS {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": STATELESS,
            "io.modelcontextprotocol/clientCapabilities": {}
        });
    }
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
}
