//! Runs Pintle's commands on a tree.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

use super::{
    groups::Query,
    program::{self, Cost},
    tree::Tree,
};
use crate::drive;

pub struct Pintle {
    /// A copy of the binary, as an installed one is: a file that the linker has just written is fragmented in the page
    /// cache and starts more slowly.
    program: PathBuf,
    root: PathBuf,
    state: PathBuf,
}

/// Returns an error if the binary has no search commands.
pub fn has_search() -> Result<(), String> {
    for name in ["index", "search"] {
        let output = Command::new(drive::binary("pintle")).args([name, "--help"]).output();
        if !output.expect("pintle runs").status.success() {
            return Err(format!("pintle has no command `{name}`: the peers are measured alone"));
        }
    }
    Ok(())
}

impl Pintle {
    /// Uses the same state folder as the servers of the tree's workspace.
    pub fn new(tree: &Tree) -> Self {
        let folder = tree.workspace.folder();
        let program = folder.join("pintle");
        fs::copy(drive::binary("pintle"), &program).expect("the program can be copied");
        Self { program, root: tree.root(), state: folder.join("state") }
    }

    /// The command for a query, with or without line numbers.
    pub fn search(&self, query: &Query, numbered: bool) -> Command {
        let mut command = self.command("search");
        command.args(numbered.then_some("-n"));
        command.args(["--match", if query.is_regex { "regex" } else { "literal" }]);
        command.args(["--case", if query.any_case { "insensitive" } else { "sensitive" }]);
        command.arg("--").arg(&query.pattern);
        command
    }

    /// The same without an index.
    pub fn scan(&self, query: &Query, numbered: bool) -> Command {
        let without = Self {
            program: self.program.clone(),
            root: self.root.clone(),
            state: self.state.with_file_name("no-state"),
        };
        without.search(query, numbered)
    }

    /// Removes the index.
    pub fn forget_index(&self) {
        if self.state.exists() {
            fs::remove_dir_all(&self.state).expect("a state folder of ours");
        }
    }

    /// Builds the index from scratch, all parts of it, and returns its reported phases.
    pub fn build(&self) -> (Value, Cost) {
        self.forget_index();
        fs::create_dir(&self.state).expect("a state folder");
        let mut command = Command::new(drive::binary("pintle-conformance"));
        self.describe(&mut command, "index");
        let cost = program::cost(command.arg("--phases-json"));
        let last = cost.printed.trim_ascii_end().rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
        let phases = serde_json::from_slice(last).expect("the phases as JSON in the last line");
        (phases, cost)
    }

    /// The size of the state folder in bytes.
    pub fn state_bytes(&self) -> u64 {
        bytes(&self.state)
    }

    fn command(&self, name: &str) -> Command {
        let mut command = Command::new(&self.program);
        self.describe(&mut command, name);
        command
    }

    fn describe(&self, command: &mut Command, name: &str) {
        command.arg(name).arg("--root").arg(&self.root).arg("--state-dir").arg(&self.state);
    }
}

/// The bytes of all files beneath a folder.
fn bytes(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry"));
    let size = |entry: fs::DirEntry| {
        let about = entry.metadata().expect("an entry that stays");
        if about.is_dir() { bytes(&entry.path()) } else { about.len() }
    };
    entries.map(size).sum()
}
