//! What a walk leaves out, and why.

use std::{
    collections::{BTreeMap, HashSet},
    os::unix::ffi::OsStringExt,
    path::Path,
};

use super::{absolute, joined};
use crate::root::is_reserved_name;

/// Why something under the root is not looked at, apart from what a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Passed {
    /// A rule ignores it.
    Ignored = 0,
    /// It belongs to git.
    Git = 1,
    /// It is a link.
    Link = 2,
    /// It is neither a file nor a folder.
    Special = 3,
    /// A folder that cannot be read.
    Unreadable = 4,
}

impl Passed {
    /// All reasons.
    pub const ALL: [Self; 5] = [Self::Ignored, Self::Git, Self::Link, Self::Special, Self::Unreadable];

    /// The reason with a number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| *reason as u8 == number)
    }
}

/// How many things a walk passed over, by folder and reason.
pub type PassedOver = BTreeMap<Vec<u8>, BTreeMap<Passed, u64>>;

/// Counts what a walk did not yield that found these files and entered these folders.
pub(super) fn count(
    root: &Path,
    found: &HashSet<&[u8]>,
    entered: Vec<Vec<u8>>,
    has_ended: &dyn Fn() -> bool,
) -> PassedOver {
    let mut counts = PassedOver::new();
    // Folders with the reason for which they were not entered, if they were not.
    let mut folders = entered.iter().map(|folder| (folder.clone(), None)).collect::<Vec<_>>();
    let entered = entered.iter().map(Vec::as_slice).collect::<HashSet<_>>();
    while let Some((folder, reason)) = folders.pop() {
        if has_ended() {
            break;
        }
        let mut count = |reason| *counts.entry(folder.clone()).or_default().entry(reason).or_insert(0) += 1;
        let Ok(entries) = std::fs::read_dir(absolute(root, &folder)) else {
            count(Passed::Unreadable);
            continue;
        };
        for entry in entries.flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            let name = entry.file_name().into_vec();
            if is_reserved_name(&name) {
                continue;
            }
            let path = joined(&folder, &name);
            if kind.is_dir() {
                if !entered.contains(path.as_slice()) {
                    let why = if name == b".git" { Passed::Git } else { Passed::Ignored };
                    folders.push((path, Some(reason.unwrap_or(why))));
                }
            } else if let Some(reason) = reason {
                count(reason);
            } else if kind.is_symlink() {
                count(Passed::Link);
            } else if !kind.is_file() {
                count(Passed::Special);
            } else if name == b".git" {
                count(Passed::Git);
            } else if !found.contains(path.as_slice()) {
                count(Passed::Ignored);
            }
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::{super::walk::testing::tree, *};
    use crate::root::Root;

    #[test]
    fn everything_that_is_passed_over_is_counted_where_it_lies_but_unfinished_files_are_not() {
        let root = tree(&[
            (".ignore", "*.log\nout/\n"),
            ("a/one.txt", ""),
            ("a/one.log", ""),
            ("out/two.txt", ""),
            ("out/deep/three.txt", ""),
            (".git/HEAD", ""),
            ("a/.pintle-tmp", ""),
            ("out/.pintle-tmp", ""),
        ]);
        std::os::unix::fs::symlink("one.txt", root.path().join("a/link")).expect("a link");
        let root = Root::open(root.path()).expect("opens");
        let walk = root.walk(None, 2, &|_| {}, &|_| {}, &|| false).expect("a walk");
        let counted = root.passed_over(&walk, &|| false);
        let of = |folder: &str| counted.get(folder.as_bytes()).cloned().unwrap_or_default();
        assert_eq!(of("a"), BTreeMap::from([(Passed::Ignored, 1), (Passed::Link, 1)]));
        assert_eq!(of("out"), BTreeMap::from([(Passed::Ignored, 1)]));
        assert_eq!(of("out/deep"), BTreeMap::from([(Passed::Ignored, 1)]));
        assert_eq!(of(".git"), BTreeMap::from([(Passed::Git, 1)]));
        assert_eq!(counted.len(), 4);
        assert_eq!(walk.files.len(), 2);
        // A walk for paths alone passes over the same.
        let listing = root.list(None, 2, &|| false).expect("a walk");
        assert_eq!(root.passed_over_by(&listing, &|| false), counted);
    }
}
