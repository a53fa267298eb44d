//! A tree of files to search in, in a workspace of its own, with what is searched for in it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::groups::Group;
use crate::{files::workspace::Workspace, report::Bar};

pub struct Tree {
    /// How rows call it.
    pub name: &'static str,
    pub workspace: Workspace,
    /// Whether the bars are for this tree.
    pub is_judged: bool,
    /// Whether `cindex` takes the files: it leaves out what has very long lines.
    pub suits_codesearch: bool,
    pub groups: Vec<Group>,
    /// Literals with many hits, of which some are asked for.
    pub common: &'static [&'static str],
}

impl Tree {
    pub fn root(&self) -> PathBuf {
        self.workspace.root()
    }

    /// A bar that holds for the tree; elsewhere the figure is told.
    pub fn bar(&self, bar: Bar) -> Bar {
        if self.is_judged { bar } else { Bar::Reported }
    }

    /// A row's name.
    pub fn row(&self, what: &str) -> String {
        format!("{}: {what}", self.name)
    }
}

/// A workspace whose root is a repository, as a tree of sources is: there, and only there, ripgrep heeds `.gitignore`.
pub fn workspace() -> Workspace {
    let workspace = Workspace::new();
    fs::create_dir(workspace.root().join(".git")).expect("a folder");
    workspace
}

/// Lets `take` have the files beneath a folder, each with its place in the copy whose folders are made here.
pub fn copy(from: &Path, to: &Path, take: &mut dyn FnMut(&Path, &Path)) {
    fs::create_dir_all(to).expect("a folder");
    let mut entries: Vec<_> =
        fs::read_dir(from).expect("a folder").map(|entry| entry.expect("an entry")).collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (path, place) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().expect("a kind");
        if kind.is_dir() && entry.file_name() != ".git" {
            copy(&path, &place, take);
        } else if kind.is_file() {
            take(&path, &place);
        }
    }
}
