//! Searches without an index: the command, which scans every file, and the first search of a server, which builds the
//! index in the background.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{
    Bench,
    groups::{PLANTED, Query},
    hits, measure,
    pintle::Pintle,
    program,
};
use crate::{
    drive,
    files::{in_turn, milliseconds, shown_milliseconds, timed, workspace::call},
    report::Bar,
};

/// How long the background build may take.
const INDEX_TIMEOUT: Duration = Duration::from_secs(600);

/// `full` is how many milliseconds a whole build takes.
pub fn run(bench: &mut Bench<'_>, pintle: &Pintle, full: f64) {
    let planted = format!("{PLANTED}2");
    let rare = if bench.tree.name == "Linux 6.1" { "ntfs_attr_make_non_resident" } else { &planted };
    for query in [Query::literal("ZZZ_notthere"), Query::literal(rare), Query::any_case(rare)] {
        commands(bench, pintle, &query);
    }
    first_search(bench, pintle, &Query::literal(rare), full);
}

/// The bar holds for trees of sources of any size.
fn bar(bench: &Bench<'_>, most: f64) -> Bar {
    if bench.quick || !bench.tree.suits_codesearch { Bar::Reported } else { Bar::AtMost(most) }
}

/// Whole processes.
fn commands(bench: &mut Bench<'_>, pintle: &Pintle, query: &Query) {
    let shown = measure::shown(query);
    if let Err(why) = hits::check_command(bench, &mut pintle.scan(query, true), query) {
        let why = format!("the hits of {shown} without an index differ: {why}");
        bench.report.fail(&bench.tree.row(&why));
        return;
    }
    let (mut ours, mut peer) = (Vec::new(), Vec::new());
    for round in 0..if bench.quick { 3 } else { 11 } {
        let (of_peer, of_us) = in_turn(
            round,
            || program::time(&mut bench.peers.ripgrep(bench.tree, query, false)),
            || program::time(&mut pintle.scan(query, false)),
        );
        peer.push(of_peer);
        ours.push(of_us);
    }
    let name = bench.tree.row(&format!("without an index, time, against rg: {shown}"));
    let bar = bar(bench, 1.3);
    bench.report.compare(&name, &shown_milliseconds, &ours, &peer, bar);
}

/// The first search of a server without an index, and when the index that it started is ready.
fn first_search(bench: &mut Bench<'_>, pintle: &Pintle, query: &Query, full: f64) {
    let (mut ours, mut peer, mut ready) = (Vec::new(), Vec::new(), Vec::new());
    let expected = match program::output(&mut bench.peers.ripgrep(bench.tree, query, true)) {
        Ok(printed) => hits::hits(&printed).len(),
        Err(why) => return bench.report.fail(&bench.tree.row(&why)),
    };
    let params = json!({"query": query.pattern, "top": 1000});
    for _ in 0..if bench.quick { 1 } else { 3 } {
        peer.push(program::time(&mut bench.peers.ripgrep(bench.tree, query, false)));
        pintle.forget_index();
        let (_server, mut client) = bench.tree.workspace.serve(&[]);
        let started = Instant::now();
        let (answer, took) = timed(|| call(&mut client, "search", &params));
        ours.push(took);
        if answer["total"] != json!(expected) || answer["indexed"] != json!(false) {
            let why = format!("the first search has not {expected} hits of a scan: {}", answer["total"]);
            return bench.report.fail(&bench.tree.row(&why));
        }
        let is_ready = |client: &mut _| {
            let status = call(client, "index_status", &json!({}));
            status["ready"]["symbols"] == json!(true) && status["building"].is_null()
        };
        // Each status call walks the tree, so it is not called all the time.
        let pause = Duration::from_secs_f64((full / 1000.0 / 50.0).clamp(0.01, 0.5));
        while !is_ready(&mut client) {
            if started.elapsed() > INDEX_TIMEOUT {
                return bench.report.fail(&bench.tree.row("no index came by itself"));
            }
            std::thread::sleep(pause);
        }
        ready.push(milliseconds(started.elapsed()));
    }
    let name = bench.tree.row("the first search of a server, time, against rg");
    let most = bar(bench, 1.5);
    bench.report.compare(&name, &shown_milliseconds, &ours, &peer, most);
    let ready = drive::median(ready);
    let name = bench.tree.row("the index is ready by itself, against `pintle index`");
    let (came, asked) = (shown_milliseconds(ready), shown_milliseconds(full));
    let most = bar(bench, 2.0);
    bench.report.add(&name, came, asked, ready / full, most);
}
