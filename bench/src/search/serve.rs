//! Latency of the first hits of a common literal from a running server.

use serde_json::{Value, json};

use super::{
    Bench,
    groups::Query,
    hits::{self, Binary, Hit},
    program,
};
use crate::{
    drive,
    files::{
        shown_milliseconds, timed,
        workspace::{call, direct},
    },
    pipe::Client,
    report::Bar,
};

/// How many hits are requested.
const TOP: usize = 20;

pub fn run(bench: &mut Bench<'_>) {
    let (_server, mut client) = bench.tree.workspace.serve(&[]);
    call(&mut client, "index_build", &json!({"mode": "incremental"}));
    let common = bench.tree.common;
    for literal in common {
        if let Err(why) = check(bench, &mut client, literal) {
            bench.report.fail(&bench.tree.row(&format!("the first hits of `{literal}` differ: {why}")));
            return;
        }
    }
    // In turn, so that no query profits from the one before.
    let requests: Vec<_> =
        common.iter().map(|literal| format!("{}\n", direct(1, "search", &params(literal)))).collect();
    let ask = |client: &mut Client, request: &String| {
        timed(|| {
            client.ask(request.as_bytes());
        })
        .1
    };
    let mut rounds = requests.iter().cycle();
    let warm_up = rounds.by_ref().take(4 * common.len()).map(|request| ask(&mut client, request)).collect();
    let time = if bench.quick { 500.0 } else { 5000.0 };
    let count = (time / drive::median(warm_up)).clamp(20.0, 1000.0) as usize;
    let mut readings: Vec<f64> = rounds.take(count).map(|request| ask(&mut client, request)).collect();
    readings.sort_by(f64::total_cmp);
    eprintln!("one in a hundred took more than {}", shown_milliseconds(readings[count * 99 / 100]));
    let middle = drive::median(readings);
    let name = bench.tree.row("the first 20 hits of common literals from the server, in ms");
    let bar = bench.tree.bar(Bar::AtMost(3.0));
    bench.report.add(&name, format!("{middle:.2} ms"), String::new(), middle, bar);
}

fn params(literal: &str) -> Value {
    json!({"query": literal, "match": "literal", "case": "sensitive", "top": TOP})
}

/// Checks that the hits are the first of ripgrep's, in order.
fn check(bench: &Bench<'_>, client: &mut Client, literal: &str) -> Result<(), String> {
    let result = call(client, "search", &params(literal));
    let printed = program::output(&mut bench.peers.ripgrep(bench.tree, &Query::literal(literal), true))?;
    let theirs = hits::hits(&printed);
    let mut binary = Binary::in_root(bench.tree.root());
    let expected: Vec<Value> = theirs.iter().filter(|hit| !binary.has(hit)).take(TOP).map(location).collect();
    let found = result["hits"].as_array().ok_or_else(|| format!("no hits in {result}"))?;
    let found: Vec<Value> =
        found.iter().map(|hit| json!({"path": hit["path"], "line": hit["line"]})).collect();
    if expected == found { Ok(()) } else { Err(format!("{} against {}", json!(expected), json!(found))) }
}

fn location(hit: &Hit<'_>) -> Value {
    json!({"path": String::from_utf8_lossy(hit.path), "line": hit.line})
}
