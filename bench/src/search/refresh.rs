//! Files that change outside the server: how soon a search finds them, and how long an incremental build takes.

use std::{
    fs,
    path::PathBuf,
    time::{Duration, Instant},
};

use serde_json::json;

use super::{Bench, program};
use crate::{
    drive,
    files::{
        milliseconds, shown_milliseconds, timed,
        workspace::{Workspace, call},
    },
    pipe::Client,
    report::Bar,
};

/// How many files change.
const CHANGED: usize = 100;
/// How long the server may take to find them.
const SEEN_TIMEOUT: Duration = Duration::from_secs(10);

/// `full` is how many milliseconds a whole build takes.
pub fn run(bench: &mut Bench<'_>, full: f64) {
    let tree = bench.tree;
    let files = files(bench);
    let (_server, mut client) = tree.workspace.serve(&[]);
    call(&mut client, "index_build", &json!({"mode": "incremental"}));
    let (mut seen, mut refreshed) = (Vec::new(), Vec::new());
    for round in 0..if bench.quick { 3 } else { 7 } {
        let marker = format!("changed_in_round_{round}");
        files.iter().for_each(|file| change(&tree.workspace, file, &marker));
        let Some(after) = wait(&mut client, &marker, files.len()) else {
            let why = format!("{} changed files were not all seen in {SEEN_TIMEOUT:?}", files.len());
            bench.report.fail(&tree.row(&why));
            return;
        };
        seen.push(milliseconds(after));
        refreshed.push(timed(|| call(&mut client, "index_build", &json!({"mode": "incremental"}))).1);
        if found(&mut client, &marker) != files.len() {
            bench.report.fail(&tree.row("changed files are not found after the refresh"));
        }
    }
    let (seen, refreshed) = (drive::median(seen), drive::median(refreshed));
    let name = tree.row(&format!("{} changed files seen after, in ms", files.len()));
    bench.report.add(&name, shown_milliseconds(seen), String::new(), seen, Bar::Reported);
    let name = tree.row(&format!("refresh after {} changed files, in % of a full build", files.len()));
    let (ours, whole) = (shown_milliseconds(refreshed), shown_milliseconds(full));
    bench.report.add(&name, ours, whole, 100.0 * refreshed / full, tree.bar(Bar::AtMost(5.0)));
}

/// Text files of moderate length from all over the tree.
fn files(bench: &Bench<'_>) -> Vec<PathBuf> {
    let listed = program::output(&mut bench.peers.files(bench.tree)).expect("a list of files");
    let listed = String::from_utf8_lossy(&listed);
    let mut paths: Vec<_> = listed.lines().collect();
    paths.sort_unstable();
    let step = (paths.len() / (2 * CHANGED)).max(1);
    let root = bench.tree.root();
    let is_text = |path: &PathBuf| {
        let content = fs::read(path).unwrap_or_default();
        (1..100_000).contains(&content.len()) && !content.contains(&0) && str::from_utf8(&content).is_ok()
    };
    paths.into_iter().step_by(step).map(|path| root.join(path)).filter(is_text).take(CHANGED).collect()
}

/// Adds a line to a file as an editor does: writes a new file and renames it over the old one, which may be a hard link.
fn change(workspace: &Workspace, file: &PathBuf, marker: &str) {
    let mut content = fs::read(file).expect("a file");
    content.extend_from_slice(format!("\n{marker}\n").as_bytes());
    let temporary = workspace.folder().join("changed");
    fs::write(&temporary, content).expect("a file");
    fs::rename(&temporary, file).expect("a file in its place");
}

/// How long it takes until all are found; none after the timeout.
fn wait(client: &mut Client, marker: &str, count: usize) -> Option<Duration> {
    let started = Instant::now();
    while found(client, marker) < count {
        if started.elapsed() > SEEN_TIMEOUT {
            return None;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Some(started.elapsed())
}

fn found(client: &mut Client, marker: &str) -> usize {
    let params = json!({"query": marker, "match": "literal", "case": "sensitive", "top": 2 * CHANGED});
    call(client, "search", &params)["hits"].as_array().map(Vec::len).unwrap_or_default()
}
