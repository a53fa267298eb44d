//! Index builds: time until ready, size on disk and peak memory.

use super::{Bench, groups::Peer, pintle::Pintle, program};
use crate::{drive, files::in_turn, report::Bar};

/// Returns the milliseconds of a whole build.
pub fn run(bench: &mut Bench<'_>, pintle: &Pintle, rounds: usize) -> f64 {
    warm_up(bench);
    let tree = bench.tree;
    let has_peer = bench.peers.has(Peer::Codesearch, tree);
    let (mut builds, mut peer) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let (of_peer, build) = in_turn(
            round,
            || has_peer.then(|| program::cost(&mut bench.peers.cindex(tree))),
            || Build::new(pintle),
        );
        builds.push(build);
        peer.extend(of_peer);
    }
    let readings = |of: Figure| -> Vec<f64> { builds.iter().map(of).collect() };
    let middle = |of: Figure| drive::median(readings(of));
    eprintln!(
        "{}: {} files, {:.0} MB, whole process {:.1} s",
        tree.name,
        middle(|build| build.files),
        middle(|build| build.corpus_bytes) / 1e6,
        middle(|build| build.process) / 1000.0
    );
    let seconds = |figure: f64| format!("{:.2} s", figure / 1000.0);
    let phases: [(_, Figure, _); 2] =
        [("text", |build| build.text, 0.6), ("words and symbols", |build| build.words_and_symbols, 8.0)];
    for (what, of, bar) in phases {
        if has_peer {
            let name = tree.row(&format!("{what} ready, against a whole cindex"));
            let peer: Vec<f64> = peer.iter().map(|cost| cost.milliseconds).collect();
            bench.report.compare(&name, &seconds, &readings(of), &peer, tree.bar(Bar::AtMost(bar)));
        } else {
            let name = tree.row(&format!("{what} ready, in s"));
            bench.report.add(&name, seconds(middle(of)), String::new(), middle(of) / 1000.0, Bar::Reported);
        }
    }
    let sizes: [(_, Figure, _); 2] =
        [("n-grams", |build| build.text_bytes, 13.0), ("everything", |build| build.index_bytes, 30.0)];
    for (what, of, bar) in sizes {
        let name = tree.row(&format!("size of {what}, in % of the tree"));
        let share = 100.0 * middle(of) / middle(|build| build.corpus_bytes);
        let size = format!("{:.1} MB", middle(of) / 1e6);
        bench.report.add(&name, size, peer_size(bench, has_peer), share, tree.bar(Bar::AtMost(bar)));
    }
    let peak = readings(|build| build.peak_mebibytes).into_iter().fold(0.0, f64::max);
    let of_peer = peer.iter().map(|cost| cost.peak_mebibytes).reduce(f64::max);
    let of_peer = of_peer.map(|peak| format!("{peak:.0} MiB")).unwrap_or_default();
    // Not a ratio, so the bar holds for every tree.
    let name = tree.row("peak memory of the build, in MiB");
    bench.report.add(&name, format!("{peak:.0} MiB"), of_peer, peak, Bar::AtMost(450.0));
    middle(|build| build.total)
}

/// Warms up the page cache and syncs what was just written.
pub fn warm_up(bench: &Bench<'_>) {
    rustix::fs::sync();
    program::time(&mut bench.peers.ripgrep(bench.tree, &super::groups::Query::literal("warm"), false));
}

fn peer_size(bench: &Bench<'_>, has_peer: bool) -> String {
    let size = std::fs::metadata(super::peers::index(bench.tree)).ok().filter(|_| has_peer);
    size.map(|size| format!("{:.1} MB", size.len() as f64 / 1e6)).unwrap_or_default()
}

/// One figure of a build.
type Figure = fn(&Build) -> f64;

/// The reported figures and the cost of one build; times are in milliseconds from its start.
struct Build {
    text: f64,
    words_and_symbols: f64,
    total: f64,
    process: f64,
    text_bytes: f64,
    index_bytes: f64,
    corpus_bytes: f64,
    files: f64,
    peak_mebibytes: f64,
}

impl Build {
    fn new(pintle: &Pintle) -> Self {
        let (phases, cost) = pintle.build();
        let figure = |name: &str| {
            phases[name].as_f64().unwrap_or_else(|| panic!("{name} is no number in the phases: {phases}"))
        };
        // The build measures itself; its total must not exceed what this process measured.
        assert!(figure("totalMs") <= cost.milliseconds + 1.0, "{phases} in {} ms", cost.milliseconds);
        Self {
            text: figure("textReadyMs"),
            words_and_symbols: figure("wordsReadyMs").max(figure("symbolsReadyMs")),
            total: figure("totalMs"),
            process: cost.milliseconds,
            text_bytes: figure("textBytes"),
            // The size on disk counts if it is larger than the reported one.
            index_bytes: figure("indexBytes").max(pintle.state_bytes() as f64),
            corpus_bytes: figure("corpusBytes"),
            files: figure("files"),
            peak_mebibytes: cost.peak_mebibytes,
        }
    }
}
