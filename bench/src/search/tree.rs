//! A tree of files to search, in its own workspace, with its queries.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::groups::Group;
use crate::{files::workspace::Workspace, report::Bar};

pub struct Tree {
    /// Its name in rows.
    pub name: &'static str,
    pub workspace: Workspace,
    /// Whether the bars apply to this tree.
    pub has_bar: bool,
    /// Whether `cindex` can index the files: it skips files with very long lines.
    pub suits_codesearch: bool,
    pub groups: Vec<Group>,
    /// Literals with many hits, of which the first are requested.
    pub common: &'static [&'static str],
    /// A word with about 1,000 matches in at most 300 files, which is replaced.
    pub renamed: Option<&'static str>,
}

impl Tree {
    pub fn root(&self) -> PathBuf {
        self.workspace.root()
    }

    /// The bar, or `Reported` if bars do not apply to this tree.
    pub fn bar(&self, bar: Bar) -> Bar {
        if self.has_bar { bar } else { Bar::Reported }
    }

    /// A row's name.
    pub fn row(&self, what: &str) -> String {
        format!("{}: {what}", self.name)
    }
}

/// A workspace whose root is a repository, as a tree of sources is: there, and only there, ripgrep applies `.gitignore`.
pub fn workspace() -> Workspace {
    let workspace = Workspace::new();
    fs::create_dir(workspace.root().join(".git")).expect("a folder");
    workspace
}

/// Creates the folders of a copy and calls `take` with each file and its path in the copy.
pub fn copy(from: &Path, to: &Path, take: &mut dyn FnMut(&Path, &Path)) {
    fs::create_dir_all(to).expect("a folder");
    let mut entries: Vec<_> =
        fs::read_dir(from).expect("a folder").map(|entry| entry.expect("an entry")).collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().expect("a kind");
        if kind.is_dir() && entry.file_name() != ".git" {
            copy(&path, &target, take);
        } else if kind.is_file() {
            take(&path, &target);
        }
    }
}
