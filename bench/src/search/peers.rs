//! The programs that Pintle is compared with.
//!
//! Ripgrep searches the very files that Pintle does. `cindex` knows no `.gitignore` and leaves out hidden files, those
//! with very long lines and those that are not UTF-8, so what `csearch` finds is not compared, only how fast it is.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use super::{
    groups::{Peer, Query},
    tree::Tree,
};

pub struct Peers {
    ripgrep: PathBuf,
    /// The folder of `cindex` and `csearch`, if they are there.
    codesearch: Option<PathBuf>,
}

impl Peers {
    pub fn find() -> Self {
        let ripgrep = env::var_os("BENCH_RIPGREP").expect("BENCH_RIPGREP is set by scripts/bench");
        let codesearch = env::var_os("BENCH_CODESEARCH").filter(|path| !path.is_empty());
        Self { ripgrep: ripgrep.into(), codesearch: codesearch.map(PathBuf::from) }
    }

    /// Whether a peer can be asked about a tree.
    pub fn has(&self, peer: Peer, tree: &Tree) -> bool {
        peer == Peer::Ripgrep || (self.codesearch.is_some() && tree.suits_codesearch)
    }

    /// A query as a peer takes it.
    pub fn search(&self, peer: Peer, tree: &Tree, query: &Query) -> Command {
        match peer {
            Peer::Ripgrep => self.ripgrep(tree, query, false),
            Peer::Codesearch => self.csearch(tree, query),
        }
    }

    /// Ripgrep, with the numbers of lines or without.
    pub fn ripgrep(&self, tree: &Tree, query: &Query, numbered: bool) -> Command {
        let mut command = self.ripgrep_in(&tree.root());
        command.args(numbered.then_some("-n"));
        command.args((!query.is_regex).then_some("-F")).args(query.any_case.then_some("-i"));
        command.arg("--").arg(&query.pattern);
        command
    }

    /// The files that are searched.
    pub fn files(&self, tree: &Tree) -> Command {
        let mut command = self.ripgrep_in(&tree.root());
        command.arg("--files");
        command
    }

    /// As users have it, with hidden files; no rules from above the root.
    fn ripgrep_in(&self, root: &Path) -> Command {
        let mut command = Command::new(&self.ripgrep);
        command.args(["--no-config", "--hidden", "--glob", "!.git", "--no-ignore-parent"]).current_dir(root);
        command
    }

    fn csearch(&self, tree: &Tree, query: &Query) -> Command {
        let mut command = self.codesearch("csearch", tree);
        command.args(query.any_case.then_some("-i"));
        command.arg(if query.is_regex { query.pattern.clone() } else { escaped(&query.pattern) });
        command
    }

    /// Makes the whole index anew.
    pub fn cindex(&self, tree: &Tree) -> Command {
        let mut command = self.codesearch("cindex", tree);
        command.arg("-reset").arg(tree.root());
        command
    }

    fn codesearch(&self, program: &str, tree: &Tree) -> Command {
        let folder = self.codesearch.as_ref().expect("codesearch is there");
        let mut command = Command::new(folder.join(program));
        command.env("CSEARCHINDEX", index(tree));
        // What it puts aside lies where all the other files do.
        command.env("TMPDIR", tree.workspace.folder());
        command
    }
}

/// The index of `cindex`.
pub fn index(tree: &Tree) -> PathBuf {
    tree.workspace.folder().join("csearchindex")
}

/// A regular expression that is a literal.
fn escaped(literal: &str) -> String {
    let escape = |character: char| {
        let is_plain = character.is_alphanumeric() || character == '_' || character == ' ';
        [(!is_plain).then_some('\\'), Some(character)]
    };
    literal.chars().flat_map(escape).flatten().collect()
}
