//! The bars of search: the index against `cindex`, queries against ripgrep and `csearch`, and the server's own calls.
//!
//! The bars are for the sources of Linux 6.1, some 78,000 files and 1.3 GB, where on two cores ripgrep takes some
//! 525 ms for a word that is not there, `csearch` 2 ms, and `cindex` 14 s for its index. The targets go beyond the bars:
//!
//! | what | bar | target |
//! | --- | --- | --- |
//! | text ready, against a whole `cindex` | at most 0.6 | 0.3 |
//! | words and symbols ready, against the same | at most 8 | 6 |
//! | size of the n-grams, and of everything, in % of the tree | at most 13, 30 | 10, 22 |
//! | peak memory of the build, in MiB | at most 450 | 250 |
//! | absent and rare literals, against ripgrep | at least 80 | 150 |
//! | no hit, time against `csearch`'s | at most 3 | 1.5 |
//! | selective, common n-grams, against `csearch` | at least 2, 20 | 3, 60 |
//! | all lines of a very common literal, against ripgrep | at least 1.5 | 2.5 |
//! | patterns of one or two characters, time against ripgrep's | at most 1.05 | 1 |
//! | literals in any case, against ripgrep | at least 8 | 40 |
//! | the first 20 hits of a common literal from the server, in ms | at most 3 | 1 |
//! | refresh after 100 changed files, in % of a full build | at most 5 | 1 |
//! | without an index, time against ripgrep's, also of 64 MiB of crates | at most 1.3 | 1 |
//! | the first search of a server, which has no index, against the same | at most 1.5 | 1 |
//! | the index that it builds by itself, against `pintle index` | at most 2 | 1.2 |
//!
//! The quick form uses crates that Cargo has unpacked for the build, and reports its figures without a bar, because a
//! small tree favours ripgrep. In the long form their figures have a bar where there is no index. Both forms also use a
//! generated tree with very long lines.
//!
//! Times are of whole processes, from start to the end of their output, on two processors and with a warm cache. Before a
//! query is timed, its hits are compared with ripgrep's; a difference fails the run.

mod build;
mod generated;
mod groups;
mod hits;
mod linux;
mod measure;
mod peers;
mod pintle;
mod processors;
mod program;
mod refresh;
mod registry;
mod scan;
mod serve;
mod substitute;
mod tree;

use self::{peers::Peers, pintle::Pintle, processors::Processors, tree::Tree};
use crate::report::Report;

/// The shared state of the measurements.
struct Bench<'a> {
    report: &'a mut Report,
    tree: &'a Tree,
    peers: &'a Peers,
    quick: bool,
}

pub fn run(report: &mut Report, quick: bool) {
    let _processors = Processors::take_two();
    let peers = Peers::find();
    let can_search = pintle::has_search().inspect_err(|why| report.fail(why)).is_ok();
    // Each tree is removed before the next is made, because they are large.
    let linux: &[Maker] = if quick { &[] } else { &[linux::make] };
    let makers: [Maker; 2] = [registry::make, generated::make];
    for make in linux.iter().chain(&makers) {
        match make(quick) {
            Ok(tree) => {
                let mut bench = Bench { report: &mut *report, tree: &tree, peers: &peers, quick };
                if can_search { compare(&mut bench) } else { measure::report_peers(&mut bench) }
            }
            Err(why) => report.leave_out("search in a tree", &why),
        }
    }
}

type Maker = fn(bool) -> Result<Tree, String>;

fn compare(bench: &mut Bench<'_>) {
    // BENCH_CASE selects cases by a part of their name. All need an index.
    let only = std::env::var("BENCH_CASE").unwrap_or_default();
    let wanted = |name: &str| name.contains(&only);
    let pintle = Pintle::new(bench.tree);
    let full = build::run(bench, &pintle, if bench.quick || !wanted("build") { 1 } else { 3 });
    if wanted("queries") {
        measure::run(bench, &pintle);
    }
    if wanted("scan") {
        scan::run(bench, &pintle, full);
    }
    if wanted("serve") {
        serve::run(bench);
    }
    if wanted("substitute") {
        substitute::run(bench);
    }
    if wanted("refresh") {
        refresh::run(bench, full);
    }
}
