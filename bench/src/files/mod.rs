//! The bars of the files tools: small files against a peer, a large one against digests, edits against bare system
//! calls, and a folder of many entries.
//!
//! All files lie beside the built binaries, on one file system that is a disk's: a temporary folder of the system may
//! be held in memory, where making a write durable costs nothing. What is compared takes turns in each round, each
//! going first in every other one, and figures are the middle of the ratios of the rounds.

mod large_edit;
mod large_file;
mod large_read;
mod listing;
mod small_edit;
mod small_read;
pub mod workspace;

use std::time::{Duration, Instant};

use crate::report::Report;

pub fn run(report: &mut Report, quick: bool) {
    // A part of a subject's name, for a closer look at one.
    let only = std::env::var("BENCH_CASE").unwrap_or_default();
    let wanted = |name: &str| name.contains(&only);
    if wanted("small read") {
        small_read::run(report, quick);
    }
    if wanted("small edit") {
        small_edit::run(report, quick);
    }
    if wanted("large read and edit") {
        // One file for both of them, since it takes its time to be written.
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

/// What work gives, and how many milliseconds it takes.
pub fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let started = Instant::now();
    let result = work();
    (result, milliseconds(started.elapsed()))
}

pub fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

/// How a row shows milliseconds.
pub fn shown_milliseconds(figure: f64) -> String {
    format!("{figure:.1} ms")
}

/// How a row shows what happens in a second.
fn shown_rate(figure: f64) -> String {
    format!("{figure:.0}/s")
}
