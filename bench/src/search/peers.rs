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
    /// The folder of `cindex` and `csearch`, if they are installed.
    codesearch: Option<PathBuf>,
}

impl Peers {
    pub fn find() -> Self {
        let ripgrep = env::var_os("BENCH_RIPGREP").expect("BENCH_RIPGREP is set by scripts/bench");
        let codesearch = env::var_os("BENCH_CODESEARCH").filter(|path| !path.is_empty());
        Self { ripgrep: ripgrep.into(), codesearch: codesearch.map(PathBuf::from) }
    }

    /// Whether a peer can search a tree.
    pub fn has(&self, peer: Peer, tree: &Tree) -> bool {
        peer == Peer::Ripgrep || (self.codesearch.is_some() && tree.suits_codesearch)
    }

    /// The command of a peer for a query.
    pub fn search(&self, peer: Peer, tree: &Tree, query: &Query) -> Command {
        match peer {
            Peer::Ripgrep => self.ripgrep(tree, query, false),
            Peer::Codesearch => self.csearch(tree, query),
        }
    }

    /// Ripgrep, with or without line numbers.
    pub fn ripgrep(&self, tree: &Tree, query: &Query, numbered: bool) -> Command {
        let mut command = self.ripgrep_in(&tree.root());
        command.args(numbered.then_some("-n"));
        command.args((!query.is_regex).then_some("-F")).args(query.any_case.then_some("-i"));
        command.arg("--").arg(&query.pattern);
        command
    }

    /// Replaces a word wherever it stands, in another copy of the tree.
    pub fn substitute(&self, root: &Path, word: &str, new: &str, is_synced: bool) -> Command {
        let ripgrep = self.ripgrep_in(root);
        let quoted = |text: &std::ffi::OsStr| format!("'{}'", text.to_string_lossy());
        let arguments = ripgrep.get_args().map(quoted).collect::<Vec<_>>().join(" ");
        let sync = if is_synced { " && sync" } else { "" };
        let mut command = Command::new("sh");
        command.current_dir(root).arg("-c").arg(format!(
            "{} {arguments} --files-with-matches --word-regexp --null -- {word} | xargs -0 sed -i 's/\\b{word}\\b/{new}/g'{sync}",
            quoted(ripgrep.get_program()),
        ));
        command
    }

    /// The files that are searched.
    pub fn files(&self, tree: &Tree) -> Command {
        let mut command = self.ripgrep_in(&tree.root());
        command.arg("--files");
        command
    }

    /// Ripgrep with hidden files and without ignore rules from above the root.
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

    /// Rebuilds the whole index.
    pub fn cindex(&self, tree: &Tree) -> Command {
        let mut command = self.codesearch("cindex", tree);
        command.arg("-reset").arg(tree.root());
        command
    }

    fn codesearch(&self, program: &str, tree: &Tree) -> Command {
        let folder = self.codesearch.as_ref().expect("codesearch is there");
        let mut command = Command::new(folder.join(program));
        command.env("CSEARCHINDEX", index(tree));
        // Its temporary files go to the same disk as all other files.
        command.env("TMPDIR", tree.workspace.folder());
        command
    }
}

/// The index of `cindex`.
pub fn index(tree: &Tree) -> PathBuf {
    tree.workspace.folder().join("csearchindex")
}

/// Escapes a literal for a regular expression.
fn escaped(literal: &str) -> String {
    let escape = |character: char| {
        let is_plain = character.is_alphanumeric() || character == '_' || character == ' ';
        [(!is_plain).then_some('\\'), Some(character)]
    };
    literal.chars().flat_map(escape).flatten().collect()
}
