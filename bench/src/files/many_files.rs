//! One call that edits a line in each of 100 files, all or none, against as many single edits by the C program that makes
//! the system calls of a single edit and nothing else: no round trips, no hashes, no journal.

use std::{fs, time::Instant};

use serde_json::{Value, json};

use super::{
    in_turn, milliseconds, small_edit,
    workspace::{self, Workspace},
};
use crate::report::{Bar, Report};

const FILES: usize = 100;
const FOLDERS: usize = 5;
const LINES: usize = 64;
const EDITED: usize = 34;

pub fn run(report: &mut Report, quick: bool) {
    for (is_synced, what, bar) in
        [(true, "with fsync", Bar::AtMost(1.3)), (false, "without fsync", Bar::Reported)]
    {
        let name = format!("{FILES} files edited in one call, {what}, against single edits in C");
        let workspace = Workspace::new();
        match small_edit::compile(workspace.folder()) {
            Ok(program) => {
                let (_process, mut bare) = small_edit::start_bare(&workspace, &program, is_synced);
                let mut batch = Batch::new(&workspace, is_synced);
                batch.edit();
                small_edit::edit_barely(&mut bare, FILES);
                let (mut ours, mut peer) = (Vec::new(), Vec::new());
                for round in 0..if quick { 5 } else { 21 } {
                    let (of_peer, of_us) = in_turn(
                        round,
                        || FILES as f64 / small_edit::edit_barely(&mut bare, FILES),
                        || batch.edit(),
                    );
                    peer.push(of_peer * 1000.0);
                    ours.push(of_us);
                }
                let shown = |figure: f64| format!("{figure:.1} ms");
                report.compare(&name, &shown, &ours, &peer, bar);
                batch.check(&workspace);
            }
            Err(why) => report.leave_out(&name, &why),
        }
    }
}

struct Batch {
    _server: crate::server::Server,
    client: crate::pipe::Client,
    /// The paths and hashes.
    files: Vec<(String, String)>,
    number: usize,
}

impl Batch {
    fn new(workspace: &Workspace, is_synced: bool) -> Self {
        let content: String = (0..LINES).map(|number| format!("this is line {number:02}\n")).collect();
        let paths: Vec<_> =
            (0..FILES).map(|file| format!("folder_{}/file_{file}.txt", file % FOLDERS)).collect();
        for path in &paths {
            let file = workspace.root().join(path);
            fs::create_dir_all(file.parent().expect("a parent")).expect("a folder");
            fs::write(file, &content).expect("a file");
        }
        let (server, mut client) = workspace.serve(if is_synced { &[] } else { &["--no-fsync"] });
        let hash_of = |path: &String| {
            let read = workspace::call(&mut client, "text.read", &json!({"path": path, "lines": [1, 2]}));
            (path.clone(), workspace::hash(&read))
        };
        let files = paths.iter().map(hash_of).collect();
        Self { _server: server, client, files, number: 0 }
    }

    /// Edits all files, and returns the milliseconds that it took.
    fn edit(&mut self) -> f64 {
        self.number += 1;
        let new = format!("edit {:09} ", self.number);
        let entry = |(path, hash): &(String, String)| json!({"path": path, "hash": hash[..8], "lines": [EDITED, EDITED + 1], "new": new});
        let params = json!({"edits": self.files.iter().map(entry).collect::<Vec<_>>()});
        let started = Instant::now();
        let edited = workspace::call(&mut self.client, "text.edit", &params);
        let elapsed = milliseconds(started.elapsed());
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        let files = edited["files"].as_array().expect("a list");
        self.files = files.iter().map(|file| (text(&file["path"]), text(&file["hash"]))).collect();
        assert_eq!(self.files.len(), FILES);
        elapsed
    }

    /// Checks that all files have the last edit.
    fn check(&self, workspace: &Workspace) {
        for (path, _) in &self.files {
            let content = fs::read_to_string(workspace.root().join(path)).expect("the file");
            assert_eq!(content.lines().nth(EDITED - 1), Some(format!("edit {:09} ", self.number).as_str()));
        }
    }
}
