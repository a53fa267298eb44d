//! Reading a 1 KiB file over pipes, against the reference files server of the MCP project (npm `server-filesystem`).
//!
//! One thread keeps a number of calls in flight, with prepared requests. Its load is printed on standard error, because
//! with a saturated driver the driver would be measured. The servers run for several rounds, so that the peer's JIT has
//! warmed up.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use memchr::memmem::Finder;
use serde_json::{Value, json};

use super::{
    in_turn, shown_rate,
    workspace::{Workspace, direct},
};
use crate::{
    mcp,
    pipe::Client,
    report::{Bar, Report},
    server::Server,
};

const NAME: &str = "small.txt";

/// A server under test with its client.
struct Subject {
    server: Server,
    client: Client,
    request: Box<dyn Fn(u64) -> Value>,
}

/// The figures of one round.
#[derive(Clone, Copy)]
struct Reading {
    calls_a_second: f64,
    /// Processor time of the server for a call, in µs.
    processor: f64,
    /// The fraction of the time that the driver was busy.
    driver: f64,
}

/// The readings of one number of calls in flight.
#[derive(Default)]
struct Readings {
    peer: Vec<Reading>,
    mcp: Vec<Reading>,
    direct: Vec<Reading>,
}

pub fn run(report: &mut Report, quick: bool) {
    let workspace = Workspace::new();
    let content = content();
    fs::write(workspace.root().join(NAME), &content).expect("a file");
    let quoted = json!(content).to_string();
    let check = Check { content: Finder::new(&quoted), failure: Finder::new(br#""isError":true"#) };
    let (starts, rounds) = if quick { (1, 5) } else { (3, 7) };
    for (in_flight, calls) in [(1, 2_000), (64, 6_000)] {
        let calls = if quick { calls / 4 } else { calls };
        let mut readings = Readings::default();
        for _ in 0..starts {
            take(&workspace, &check, (in_flight, calls), rounds, &mut readings);
        }
        add_rows(report, in_flight, &readings);
    }
}

/// 1 KiB of text like source code: lines, quotes and indentation.
fn content() -> String {
    let line = "    let greeting = \"good morning\"; // said once a day, to all\n";
    let mut content = line.repeat(1024 / line.len());
    content.push_str(&"x".repeat(1023 - content.len()));
    content.push('\n');
    content
}

fn take(
    workspace: &Workspace,
    check: &Check<'_>,
    (in_flight, calls): (usize, usize),
    rounds: usize,
    readings: &mut Readings,
) {
    // The peer's JIT needs some thousand calls to warm up.
    const WARM_UP: usize = 3_000;
    let (mut peer, mut mcp, mut direct) = (peer(workspace), pintle_mcp(workspace), pintle_direct(workspace));
    for asked in [&mut peer, &mut mcp, &mut direct] {
        asked.read(WARM_UP, in_flight, check);
    }
    for round in 0..rounds {
        let (of_peer, (of_mcp, of_direct)) = in_turn(
            round,
            || peer.read(calls, in_flight, check),
            || (mcp.read(calls, in_flight, check), direct.read(calls, in_flight, check)),
        );
        readings.peer.push(of_peer);
        readings.mcp.push(of_mcp);
        readings.direct.push(of_direct);
    }
}

fn add_rows(report: &mut Report, in_flight: usize, readings: &Readings) {
    let rates = |readings: &[Reading]| -> Vec<f64> {
        readings.iter().map(|reading| reading.calls_a_second).collect()
    };
    let peer = rates(&readings.peer);
    let (mcp_bar, direct_bar, direct_name) = match in_flight {
        1 => (Bar::AtLeast(2.5), Bar::AtLeast(5.0), "direct"),
        _ => (Bar::AtLeast(1.8), Bar::Reported, "direct, pipelined"),
    };
    let name = |dialect: &str, what: &str| format!("1 KiB read, {dialect}, {in_flight} in flight: {what}");
    let mut add_rows = |dialect: &str, ours: &[Reading], bar| {
        report.compare(
            &name(dialect, "calls, against server-filesystem"),
            &shown_rate,
            &rates(ours),
            &peer,
            bar,
        );
        // The kernel's clock ticks are too coarse for one round.
        let mean = |readings: &[Reading]| {
            readings.iter().map(|reading| reading.processor).sum::<f64>() / readings.len() as f64
        };
        let (ours, peer) = (mean(ours), mean(&readings.peer));
        let shown = |figure: f64| format!("{figure:.1} µs");
        let what = "server's processor time a call";
        report.add(&name(dialect, what), shown(ours), shown(peer), ours / peer, Bar::Reported);
    };
    add_rows("MCP", &readings.mcp, mcp_bar);
    add_rows(direct_name, &readings.direct, direct_bar);
    for (who, readings) in [("peer", &readings.peer), ("MCP", &readings.mcp), ("direct", &readings.direct)] {
        let busy = readings.iter().map(|reading| reading.driver).sum::<f64>() / readings.len() as f64;
        eprintln!(
            "the driver was at work for {:.0} % of the time ({who}, {in_flight} in flight)",
            100.0 * busy
        );
    }
}

impl Subject {
    fn read(&mut self, calls: usize, in_flight: usize, check: &Check<'_>) -> Reading {
        let requests = self.client.prepare(calls, &self.request);
        let (driver, started) = (own_processor_seconds(), Instant::now());
        let (latencies, elapsed, processor) =
            self.server.timed(|| self.client.call(&requests, in_flight, |reply| check.see(reply)));
        let driver = (own_processor_seconds() - driver) / started.elapsed().as_secs_f64();
        assert_eq!(latencies.len(), calls, "replies were lost");
        Reading {
            calls_a_second: calls as f64 / elapsed.as_secs_f64(),
            processor: processor.as_secs_f64() * 1e6 / calls as f64,
            driver,
        }
    }
}

/// What a reply must contain, and what it must not.
struct Check<'a> {
    content: Finder<'a>,
    failure: Finder<'a>,
}

impl Check<'_> {
    fn see(&self, reply: &[u8]) {
        let is_right = self.content.find(reply).is_some() && self.failure.find(reply).is_none();
        assert!(is_right, "{}", String::from_utf8_lossy(reply));
    }
}

fn peer(workspace: &Workspace) -> Subject {
    let installed = std::env::var_os("BENCH_NODE").expect("BENCH_NODE is set by scripts/bench");
    let installed = PathBuf::from(installed);
    let mut command = Command::new(installed.join("bin/node"));
    command.arg(installed.join("node_modules/@modelcontextprotocol/server-filesystem/dist/index.js"));
    command.arg(workspace.root());
    let (server, mut client) = workspace.start(command);
    mcp::shake_hands(&mut client);
    let path = workspace.root().join(NAME);
    Subject { server, client, request: Box::new(move |id| tool_call(id, "read_text_file", &path)) }
}

fn pintle_mcp(workspace: &Workspace) -> Subject {
    let (server, mut client) = workspace.serve(&[]);
    mcp::shake_hands(&mut client);
    Subject { server, client, request: Box::new(|id| tool_call(id, "text.read", Path::new(NAME))) }
}

fn pintle_direct(workspace: &Workspace) -> Subject {
    let (server, client) = workspace.serve(&[]);
    Subject { server, client, request: Box::new(|id| direct(id, "text.read", &json!({"path": NAME}))) }
}

fn tool_call(id: u64, tool: &str, path: &Path) -> Value {
    let params = json!({"name": tool, "arguments": {"path": path}});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
}

/// The processor time of this thread.
fn own_processor_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = stat.split_whitespace().next().and_then(|figure| figure.parse::<f64>().ok());
    nanoseconds.unwrap_or(f64::NAN) / 1e9
}
