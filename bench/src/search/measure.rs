//! Times queries on the command line against peers.

use std::process::Command;

use super::{
    Bench, build,
    groups::{Group, Peer, Query},
    hits,
    pintle::Pintle,
    program,
};
use crate::{
    drive,
    files::{in_turn, shown_milliseconds},
    report::Bar,
};

pub fn run(bench: &mut Bench<'_>, pintle: &Pintle) {
    let suits = |group: &&Group| group.peer == Peer::Ripgrep || bench.tree.suits_codesearch;
    for group in bench.tree.groups.iter().filter(suits) {
        measure(bench, pintle, group);
    }
}

/// Measures each query of a group, and reports the worst.
fn measure(bench: &mut Bench<'_>, pintle: &Pintle, group: &Group) {
    if !bench.peers.has(group.peer, bench.tree) {
        let name = bench.tree.row(&format!("{}, against {}", group.what, name_of(group.peer)));
        bench.report.leave_out(&name, "there is no csearch");
        return;
    }
    let bar = if group.has_bar { bench.tree.bar(group.bar) } else { Bar::Reported };
    let (mut figures, is_single) = (Vec::new(), group.queries.len() == 1);
    for query in &group.queries {
        figures.extend(compare(bench, pintle, group, query, if is_single { bar } else { Bar::Reported }));
    }
    let worst = if is_time(group) { f64::max } else { f64::min };
    if let (Some(figure), false) = (figures.into_iter().reduce(worst), is_single) {
        let name = bench.tree.row(&format!("{}, against {}: the worst", group.what, name_of(group.peer)));
        bench.report.add(&name, String::new(), String::new(), figure, bar);
    }
}

/// The figure of one query; none if its hits differ.
fn compare(bench: &mut Bench<'_>, pintle: &Pintle, group: &Group, query: &Query, bar: Bar) -> Option<f64> {
    let count = match hits::check(bench, pintle, query) {
        Ok(count) => count,
        Err(why) => {
            bench.report.fail(&bench.tree.row(&format!("the hits of {} differ: {why}", shown(query))));
            return None;
        }
    };
    let name = format!("{}, against {}: {}, {count} hits", group.what, name_of(group.peer), shown(query));
    let mut ours = Timed::new(pintle.search(query, false), bench.quick);
    let mut peer = Timed::new(bench.peers.search(group.peer, bench.tree, query), bench.quick);
    let rounds = match (bench.quick, is_time(group)) {
        (true, _) => 3,
        (false, true) => 11,
        (false, false) => 5,
    };
    let (mut of_us, mut of_peer) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let (peer, ours) = in_turn(round, || peer.read(), || ours.read());
        of_peer.push(peer);
        of_us.push(ours);
    }
    let name = bench.tree.row(&name);
    if is_time(group) {
        return Some(bench.report.compare(&name, &shown_milliseconds, &of_us, &of_peer, bar));
    }
    // Rates instead of times, so that the figure says how many times as fast.
    let rates =
        |readings: Vec<f64>| -> Vec<f64> { readings.iter().map(|reading| 1000.0 / reading).collect() };
    let shown = |rate: f64| shown_milliseconds(1000.0 / rate);
    Some(bench.report.compare(&name, &shown, &rates(of_us), &rates(of_peer), bar))
}

/// Reports the times of the peers alone, if Pintle has no search commands.
pub fn report_peers(bench: &mut Bench<'_>) {
    let tree = bench.tree;
    if bench.peers.has(Peer::Codesearch, tree) {
        build::warm_up(bench);
        let cost = program::cost(&mut bench.peers.cindex(tree));
        let size = std::fs::metadata(super::peers::index(tree)).expect("an index").len() as f64 / 1e6;
        let (seconds, peak) = (cost.milliseconds / 1000.0, cost.peak_mebibytes);
        let text = format!("{seconds:.1} s, {size:.0} MB, peak {peak:.0} MiB");
        bench.report.leave_out(&tree.row("cindex"), &text);
    }
    for group in tree.groups.iter().filter(|group| bench.peers.has(group.peer, tree)) {
        for query in &group.queries {
            let mut peer = Timed::new(bench.peers.search(group.peer, tree, query), bench.quick);
            let reading = drive::median((0..5).map(|_| peer.read()).collect());
            let name = format!("{}, {} alone: {}", group.what, name_of(group.peer), shown(query));
            bench.report.leave_out(&tree.row(&name), &shown_milliseconds(reading));
        }
    }
}

/// A program that is timed repeatedly, more often the faster it is.
struct Timed {
    command: Command,
    repeat: usize,
}

impl Timed {
    fn new(mut command: Command, quick: bool) -> Self {
        let (time, most) = if quick { (60.0, 5.0) } else { (400.0, 8.0) };
        program::time(&mut command);
        let repeat = (time / program::time(&mut command)).clamp(1.0, most) as usize;
        Self { command, repeat }
    }

    /// The median of a few runs, in milliseconds.
    fn read(&mut self) -> f64 {
        drive::median((0..self.repeat).map(|_| program::time(&mut self.command)).collect())
    }
}

/// Whether the figure of a group is a fraction of the peer's time.
fn is_time(group: &Group) -> bool {
    matches!(group.bar, Bar::AtMost(_))
}

fn name_of(peer: Peer) -> &'static str {
    match peer {
        Peer::Ripgrep => "rg",
        Peer::Codesearch => "csearch",
    }
}

/// A query as it is shown in rows.
pub fn shown(query: &Query) -> String {
    format!("`{}`{}", query.pattern, if query.any_case { " -i" } else { "" })
}
