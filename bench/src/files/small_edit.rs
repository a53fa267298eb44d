//! Edits of a 1 KiB file, one after the other, each with the hash of the edit before, against a small C program that makes
//! the same system calls and does nothing else.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use memchr::memmem;
use serde_json::json;

use super::{
    in_turn, shown_rate,
    workspace::{self, Workspace, direct},
};
use crate::{
    drive,
    pipe::Client,
    report::{Bar, Report},
    server::Server,
};

const NAME: &str = "small.txt";
/// Lines of 16 bytes, 64 of them.
const LINES: usize = 64;
/// The line that is replaced.
const EDITED: usize = 34;

pub fn run(report: &mut Report, quick: bool) {
    for (is_synced, what, bar) in
        [(true, "with fsync", Bar::AtLeast(0.7)), (false, "without fsync", Bar::Reported)]
    {
        let name = format!("1 KiB edits, {what}, against the same system calls in C");
        let workspace = Workspace::new();
        match compile(workspace.folder()) {
            Ok(program) => compare(report, &name, &workspace, &program, (is_synced, bar), quick),
            Err(why) => report.leave_out(&name, &why),
        }
    }
}

pub(super) fn compile(folder: &Path) -> Result<PathBuf, String> {
    let program = folder.join("edit");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src/files/edit.c");
    let output = Command::new("cc").args(["-O2", "-Wall", "-o"]).arg(&program).arg(source).output();
    let output = output.map_err(|_| "there is no cc".to_owned())?;
    match output.status.success() {
        true => Ok(program),
        false => Err(format!("cc failed: {}", String::from_utf8_lossy(&output.stderr))),
    }
}

fn compare(
    report: &mut Report,
    name: &str,
    workspace: &Workspace,
    program: &Path,
    (is_synced, bar): (bool, Bar),
    quick: bool,
) {
    fs::write(workspace.root().join(NAME), content()).expect("a file");
    let (server, client) = workspace.serve(if is_synced { &[] } else { &["--no-fsync"] });
    let mut editor = Editor::new(client);
    let (_process, mut bare) = start_bare(workspace, program, is_synced);
    let mut bare = |count: usize| edit_barely(&mut bare, count);
    // Disks differ a hundredfold, so the count depends on the speed of this one.
    let warm_up = 100;
    bare(warm_up);
    editor.edit(warm_up);
    let seconds = if quick { 0.4 } else { 1.0 };
    let count = (bare(warm_up) * seconds).clamp(100.0, 20_000.0) as usize;
    let (mut ours, mut peer, mut processor) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..if quick { 5 } else { 15 } {
        let (of_peer, (of_us, _, spent)) =
            in_turn(round, || bare(count), || server.timed(|| editor.edit(count)));
        peer.push(of_peer);
        ours.push(of_us);
        processor.push(spent.as_secs_f64() * 1e6 / count as f64);
    }
    report.compare(name, &shown_rate, &ours, &peer, bar);
    eprintln!("{count} edits a round; the server's processor time: {:.1} µs each", drive::median(processor));
    editor.check(workspace);
}

fn content() -> String {
    (0..LINES).map(|number| format!("this is line {number:02}\n")).collect()
}

/// Starts the C program on a file of its own. It runs as long as the server, so that both are equally warm.
pub(super) fn start_bare(workspace: &Workspace, program: &Path, is_synced: bool) -> (Server, Client) {
    let folder = workspace.folder().join("theirs");
    fs::create_dir(&folder).expect("a folder");
    fs::write(folder.join(NAME), content()).expect("a file");
    let mut command = Command::new(program);
    command.arg(&folder).arg(NAME).arg(if is_synced { "fsync" } else { "no-fsync" });
    workspace.start(command)
}

/// Runs a number of edits in the C program, and returns the edits a second.
pub(super) fn edit_barely(program: &mut Client, count: usize) -> f64 {
    let seconds = String::from_utf8_lossy(program.ask(format!("{count}\n").as_bytes())).parse::<f64>();
    count as f64 / seconds.expect("seconds")
}

/// A client that keeps track of the file's content.
struct Editor {
    client: Client,
    hash: String,
    edited: String,
    number: usize,
}

impl Editor {
    fn new(mut client: Client) -> Self {
        let read = workspace::call(&mut client, "text.read", &json!({"path": NAME}));
        let edited = read["content"].as_str().and_then(|content| content.lines().nth(EDITED - 1));
        Self { hash: workspace::hash(&read), edited: edited.expect("the line").to_owned(), client, number: 0 }
    }

    /// Edits the line a number of times, and returns the edits a second.
    fn edit(&mut self, count: usize) -> f64 {
        const HASH: &[u8] = br#""hash":""#;
        let started = Instant::now();
        for _ in 0..count {
            self.number += 1;
            let new = format!("edit {:09} ", self.number);
            let params = json!({
                "path": NAME, "hash": self.hash, "lines": [EDITED, EDITED + 1], "old": self.edited, "new": new
            });
            let request = format!("{}\n", direct(self.number as u64, "text.replace", &params));
            let reply = self.client.ask(request.as_bytes());
            let Some(start) = memmem::find(reply, HASH) else {
                panic!("{}", String::from_utf8_lossy(reply));
            };
            let start = start + HASH.len();
            self.hash = String::from_utf8_lossy(&reply[start..start + 64]).into_owned();
            self.edited = new;
        }
        count as f64 / started.elapsed().as_secs_f64()
    }

    /// Checks that the file has the content of the last edit.
    fn check(&self, workspace: &Workspace) {
        let content = fs::read_to_string(workspace.root().join(NAME)).expect("the file");
        assert_eq!(content.lines().nth(EDITED - 1), Some(self.edited.as_str()));
        assert_eq!(content.lines().count(), LINES);
    }
}
