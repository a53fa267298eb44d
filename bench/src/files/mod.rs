//! The bars of the files tools: small files against a peer, a large one against digests, edits against bare system
//! calls, and a folder of many entries.
//!
//! All files are next to the built binaries, on a real disk: the system's temporary folder may be in memory, where fsync
//! costs nothing. The compared programs take turns in each round, each going first in every other one, and figures are
//! the medians of the ratios of the rounds.

mod large_edit;
mod large_file;
mod large_read;
mod listing;
mod many_files;
mod small_edit;
mod small_read;
pub mod workspace;

use std::time::{Duration, Instant};

use crate::report::Report;

pub fn run(report: &mut Report, quick: bool) {
    // BENCH_CASE selects cases by a part of their name.
    let only = std::env::var("BENCH_CASE").unwrap_or_default();
    let wanted = |name: &str| name.contains(&only);
    if wanted("small read") {
        small_read::run(report, quick);
    }
    if wanted("small edit") {
        small_edit::run(report, quick);
    }
    if wanted("many files") {
        many_files::run(report, quick);
    }
    if wanted("large read and edit") {
        // One file for both, because writing it takes long.
        let (workspace, file) = large_file::make(if quick { 32 } else { 256 });
        large_read::run(report, &workspace, &file, quick);
        large_edit::run(report, &workspace, &file, quick);
    }
    if wanted("listing") {
        listing::run(report, quick);
    }
}

/// Takes two readings, in an order that changes from round to round.
pub fn in_turn<P, O>(round: usize, peer: impl FnOnce() -> P, ours: impl FnOnce() -> O) -> (P, O) {
    if round.is_multiple_of(2) {
        let peer = peer();
        (peer, ours())
    } else {
        let ours = ours();
        (peer(), ours)
    }
}

/// The result of `work`, and how many milliseconds it took.
pub fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let started = Instant::now();
    let result = work();
    (result, milliseconds(started.elapsed()))
}

pub fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

/// Formats milliseconds for a row.
pub fn shown_milliseconds(figure: f64) -> String {
    format!("{figure:.1} ms")
}

/// Formats a rate a second for a row.
pub fn shown_rate(figure: f64) -> String {
    format!("{figure:.0}/s")
}
