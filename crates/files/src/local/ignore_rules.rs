//! Ignore rules for listing a tree, the same as in ripgrep and `search`: those of `.rgignore`, `.ignore`,
//! `.gitignore` and `.git/info/exclude`, in this order, the deepest folder first, and last the user's global git excludes.
//!
//! Ignore files are opened beneath the root like any other file. In that it differs from a search, which follows a link
//! to an ignore file, and the `.git` file of a linked worktree, even out of the root.

use std::{ffi::OsStr, os::fd::OwnedFd, os::unix::ffi::OsStrExt, path::Path};

use ignore::{
    Match,
    gitignore::{Gitignore, GitignoreBuilder},
};
use pintle_contract::WorkspacePath;
use pintle_root::Root;
use rustix::fs::AtFlags;

use super::source::OpenFile;
use crate::store::Source;

/// The rules of a folder and of all above it, up to the root.
pub(super) struct IgnoreRules<'a> {
    root: &'a Root,
    /// The root comes first.
    folders: Vec<FolderRules>,
    is_below_repository: bool,
    of_user: Gitignore,
}

/// The rules of one folder.
struct FolderRules {
    /// By descending precedence.
    by_kind: [Option<Gitignore>; KINDS],
    is_repository: bool,
}

const KINDS: usize = 4;
/// From this index on the files are git's, and apply only in a repository.
const FIRST_OF_GIT: usize = 2;
const FILES: [&str; KINDS] = [".rgignore", ".ignore", ".gitignore", ".git/info/exclude"];

impl<'a> IgnoreRules<'a> {
    pub(super) fn new(root: &'a Root) -> Self {
        let (of_user, _) = GitignoreBuilder::new("/").build_global();
        Self { root, folders: Vec::new(), is_below_repository: is_below_repository(root), of_user }
    }

    /// Adds the rules of the next folder while descending.
    pub(super) fn enter(&mut self, folder: &OwnedFd, path: &WorkspacePath) {
        let is_there = |name: &str| rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).is_ok();
        let is_repository = is_there(".git") || is_there(".jj");
        let by_kind = FILES.map(|name| match name.split('/').next().is_some_and(is_there) {
            true => self.read(path, name),
            false => None,
        });
        self.folders.push(FolderRules { by_kind, is_repository });
    }

    /// Removes the rules of the last folder.
    pub(super) fn leave(&mut self) {
        self.folders.pop();
    }

    /// Whether an entry of the last folder is ignored.
    pub(super) fn ignores(&self, folder: &WorkspacePath, name: &[u8], is_folder: bool) -> bool {
        let mut path = format!("{folder}/").into_bytes();
        path.extend_from_slice(name);
        let path = Path::new(OsStr::from_bytes(&path));
        let is_in_repository =
            self.is_below_repository || self.folders.iter().any(|rules| rules.is_repository);
        let mut matched = [const { Match::None }; KINDS];
        let mut has_left_repository = !is_in_repository;
        for rules in self.folders.iter().rev() {
            let kinds = if has_left_repository { FIRST_OF_GIT } else { KINDS };
            for (matched, rules) in matched.iter_mut().zip(&rules.by_kind).take(kinds) {
                if let (true, Some(rules)) = (matched.is_none(), rules) {
                    *matched = rules.matched(path, is_folder).map(|_| ());
                }
            }
            has_left_repository |= rules.is_repository;
        }
        let of_user = match is_in_repository {
            true => self.of_user.matched(path, is_folder).map(|_| ()),
            false => Match::None,
        };
        matched.into_iter().chain([of_user]).find(|matched| !matched.is_none()).is_some_and(|m| m.is_ignore())
    }

    fn read(&self, folder: &WorkspacePath, name: &str) -> Option<Gitignore> {
        /// How many bytes of an ignore file are read.
        const MOST: usize = 1 << 20;
        let path = WorkspacePath::parse(&format!("{folder}/{name}")).ok()?;
        let file = OpenFile::new(self.root.open_any(&path).ok()?.0).ok()?;
        let mut bytes = vec![0; usize::try_from(file.size()).unwrap_or(MOST).min(MOST)];
        let count = file.read_at(0, &mut bytes).ok()?;
        let mut builder = GitignoreBuilder::new(folder.to_string());
        for line in
            bytes[..count].strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes[..count]).split(|b| *b == b'\n')
        {
            // As in ripgrep, everything after a line that is not UTF-8 is ignored, and a line that is not a valid
            // rule is skipped.
            let Ok(line) = std::str::from_utf8(line) else { break };
            let _ = builder.add_line(None, line.strip_suffix('\r').unwrap_or(line));
        }
        builder.build().ok().filter(|rules| !rules.is_empty())
    }
}

/// Whether the root is inside a repository. No rules are read from above the root.
fn is_below_repository(root: &Root) -> bool {
    let is_repository = |folder: &Path| [".git", ".jj"].iter().any(|name| folder.join(name).exists());
    root.real_path().is_ok_and(|root| root.ancestors().skip(1).any(is_repository))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_rules_leaves_nothing_out() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Root::open(folder.path()).expect("a root");
        let mut rules = IgnoreRules::new(&root);
        let path = WorkspacePath::root();
        rules.enter(&root.open_folder(&path).expect("opens").0, &path);
        assert!(!rules.ignores(&path, b"any", false));
    }
}
