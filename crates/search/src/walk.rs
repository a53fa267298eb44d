//! Which files there are: what `rg --hidden --glob '!.git'` looks at, with no rules from above the root, and where
//! everything else is.

use std::{
    collections::{BTreeMap, HashSet},
    ffi::OsStr,
    io,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use ignore::{WalkBuilder, WalkState, overrides::OverrideBuilder};
use pintle_files::UNFINISHED_FILE;
use rustix::{fs::FileType, io::Errno};

use crate::stamp::Stamp;

/// A regular file that no rule ignores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// Relative to the root, with `/` between names.
    pub(crate) path: Vec<u8>,
    pub(crate) stamp: Stamp,
}

/// What a walk found.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    /// In the order of their paths.
    pub(crate) files: Vec<Found>,
    /// The folders that were entered, the root first.
    pub(crate) folders: Vec<Vec<u8>>,
}

/// Why something under the root is not looked at, apart from what a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub(crate) enum Passed {
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
    pub(crate) const ALL: [Self; 5] = [Self::Ignored, Self::Git, Self::Link, Self::Special, Self::Unreadable];

    pub(crate) fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| *reason as u8 == number)
    }
}

/// How many things a walk passed over, by folder and reason.
pub(crate) type PassedOver = BTreeMap<Vec<u8>, BTreeMap<Passed, u64>>;

/// Walks the root. `within` narrows it to some files and folders. `enter` is called for each folder before it is read.
pub(crate) fn walk(
    root: &Path,
    within: Option<&Within>,
    threads: usize,
    enter: &(dyn Fn(&[u8]) + Sync),
    has_ended: &(dyn Fn() -> bool + Sync),
) -> io::Result<Walk> {
    let walker = match within {
        None => builder(root)?.threads(threads).build_parallel(),
        Some(within) => {
            let (within, length) = (within.clone(), root.as_os_str().len());
            let mut builder = builder(root)?;
            builder.filter_entry(move |entry| {
                entry.depth() == 0 || within.admits(relative(entry.path(), length))
            });
            builder.threads(1).build_parallel()
        }
    };
    let all = Mutex::new(Walk::default());
    let failure = Mutex::new(None);
    let length = root.as_os_str().len();
    walker.run(|| {
        let mut part = Part { walk: Walk::default(), all: &all };
        let failure = &failure;
        Box::new(move |entry| {
            if has_ended() {
                return WalkState::Quit;
            }
            let entry = match entry {
                Ok(entry) => entry,
                // A walk without descriptors or memory would take what it cannot read for gone.
                Err(error) if is_exhaustion(&error) => {
                    let mut failure = failure.lock().unwrap_or_else(PoisonError::into_inner);
                    *failure = error.into_io_error();
                    return WalkState::Quit;
                }
                // What cannot be read is counted where everything that was passed over is.
                Err(_) => return WalkState::Continue,
            };
            let path = relative(entry.path(), length);
            match entry.file_type() {
                Some(kind) if kind.is_dir() => {
                    enter(path);
                    part.walk.folders.push(path.to_owned());
                }
                Some(kind) if kind.is_file() => {
                    if let Ok((stamp, FileType::RegularFile)) = Stamp::of_path(entry.path()) {
                        part.walk.files.push(Found { path: path.to_owned(), stamp });
                    }
                }
                _ => {}
            }
            WalkState::Continue
        })
    });
    if let Some(error) = failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error);
    }
    if has_ended() {
        return Err(io::ErrorKind::Interrupted.into());
    }
    let mut walk = all.into_inner().unwrap_or_else(PoisonError::into_inner);
    walk.files.sort_unstable_by(|one, other| one.path.cmp(&other.path));
    walk.folders.sort_unstable();
    Ok(walk)
}

/// Whether the system has run out of something that a walk needs.
fn is_exhaustion(error: &ignore::Error) -> bool {
    let error = error.io_error().and_then(Errno::from_io_error);
    matches!(error, Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM))
}

/// One thread's part of a walk; joins the whole when the thread is done.
struct Part<'a> {
    walk: Walk,
    all: &'a Mutex<Walk>,
}

impl Drop for Part<'_> {
    fn drop(&mut self) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.files.append(&mut self.walk.files);
        all.folders.append(&mut self.walk.folders);
    }
}

/// Some files and folders, with all that lies below them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Within {
    targets: HashSet<Vec<u8>>,
    /// The folders on the way to the targets.
    ways: HashSet<Vec<u8>>,
}

impl Within {
    pub(crate) fn new(targets: impl IntoIterator<Item = Vec<u8>>) -> Self {
        let mut within = Self::default();
        for target in targets {
            for (place, _) in target.iter().enumerate().filter(|(_, byte)| **byte == b'/') {
                within.ways.insert(target[..place].to_owned());
            }
            within.targets.insert(target);
        }
        within
    }

    pub(crate) fn targets(&self) -> impl Iterator<Item = &[u8]> {
        self.targets.iter().map(Vec::as_slice)
    }

    /// Whether a path is on the way to a target, one of them, or below one.
    fn admits(&self, path: &[u8]) -> bool {
        self.ways.contains(path) || self.covers(path)
    }

    /// Whether a path is a target or below one.
    pub(crate) fn covers(&self, path: &[u8]) -> bool {
        let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        self.targets.contains(path)
            || self.targets.contains(&b""[..])
            || slashes.into_iter().any(|(place, _)| self.targets.contains(&path[..place]))
    }
}

/// As ripgrep walks: hidden files too, but not git's own, and no rules from above the root. An edit that is under way is
/// no part of the workspace either.
fn builder(root: &Path) -> io::Result<WalkBuilder> {
    let mut left_out = OverrideBuilder::new(root);
    for name in [".git", UNFINISHED_FILE] {
        left_out.add(&format!("!{name}")).map_err(io::Error::other)?;
    }
    let mut builder = WalkBuilder::new(root);
    builder
        .hidden(false)
        .parents(false)
        .overrides(left_out.build().map_err(io::Error::other)?)
        .current_dir(root)
        .add_custom_ignore_filename(".rgignore");
    Ok(builder)
}

/// The part of a path below the root, whose path has the given length.
fn relative(path: &Path, root_length: usize) -> &[u8] {
    let rest = path.as_os_str().as_bytes().get(root_length..).unwrap_or_default();
    rest.strip_prefix(b"/").unwrap_or(rest)
}

/// Counts what a walk did not yield, folder by folder.
pub(crate) fn passed_over(root: &Path, walk: &Walk, has_ended: &dyn Fn() -> bool) -> PassedOver {
    let found = walk.files.iter().map(|file| file.path.as_slice()).collect::<HashSet<_>>();
    let entered = walk.folders.iter().map(Vec::as_slice).collect::<HashSet<_>>();
    let mut counts = PassedOver::new();
    // Folders with the reason for which they were not entered, if they were not.
    let mut folders = walk.folders.iter().map(|folder| (folder.clone(), None)).collect::<Vec<_>>();
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
            if name == UNFINISHED_FILE.as_bytes() {
                continue;
            }
            let mut path = folder.clone();
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend(&name);
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

/// A path below the root as the system takes it.
pub(crate) fn absolute(root: &Path, path: &[u8]) -> PathBuf {
    if path.is_empty() { root.to_owned() } else { root.join(OsStr::from_bytes(path)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(root: &Path, within: Option<&Within>) -> Vec<String> {
        let walk = walk(root, within, 2, &|_| {}, &|| false).expect("a walk");
        walk.files.into_iter().map(|file| String::from_utf8(file.path).expect("text")).collect()
    }

    fn tree(paths: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a folder");
        for (path, text) in paths {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
            std::fs::write(path, text).expect("a file");
        }
        root
    }

    #[test]
    fn a_narrowed_walk_obeys_the_same_rules_and_finds_what_lies_below_its_targets() {
        let root = tree(&[
            (".ignore", "*.log\n/b/c/secret\n"),
            ("a/one.txt", ""),
            ("a/one.log", ""),
            ("b/two.txt", ""),
            ("b/c/three.txt", ""),
            ("b/c/secret/four.txt", ""),
        ]);
        let within = |targets: &[&str]| Within::new(targets.iter().map(|target| target.as_bytes().to_vec()));
        let all = [".ignore", "a/one.txt", "b/c/three.txt", "b/two.txt"];
        assert_eq!(files(root.path(), None), all);
        assert_eq!(files(root.path(), Some(&within(&["b/c"]))), ["b/c/three.txt"]);
        assert_eq!(files(root.path(), Some(&within(&["b"]))), ["b/c/three.txt", "b/two.txt"]);
        assert_eq!(files(root.path(), Some(&within(&["a/one.log", "a/one.txt"]))), ["a/one.txt"]);
        assert_eq!(files(root.path(), Some(&within(&["b/c/secret/four.txt"]))), Vec::<String>::new());
        assert_eq!(files(root.path(), Some(&within(&[""]))), all);
        assert_eq!(files(root.path(), Some(&within(&[]))), Vec::<String>::new());
    }

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
        let walk = walk(root.path(), None, 2, &|_| {}, &|| false).expect("a walk");
        let counted = passed_over(root.path(), &walk, &|| false);
        let of = |folder: &str| counted.get(folder.as_bytes()).cloned().unwrap_or_default();
        assert_eq!(of("a"), BTreeMap::from([(Passed::Ignored, 1), (Passed::Link, 1)]));
        assert_eq!(of("out"), BTreeMap::from([(Passed::Ignored, 1)]));
        assert_eq!(of("out/deep"), BTreeMap::from([(Passed::Ignored, 1)]));
        assert_eq!(of(".git"), BTreeMap::from([(Passed::Git, 1)]));
        assert_eq!(counted.len(), 4);
        assert_eq!(walk.files.len(), 2);
    }
}
