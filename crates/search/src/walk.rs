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
use pintle_contract::TEMPORARY_FILE_NAME;
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

/// The paths of the files that a walk found, without looking at any of them.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    /// In order.
    pub(crate) files: Vec<Vec<u8>>,
    /// The folders that were entered, the root first.
    pub(crate) folders: Vec<Vec<u8>>,
    /// What the walk was narrowed to.
    pub(crate) within: Option<Within>,
}

/// Walks the root. `within` narrows it to some files and folders. `enter` is called for each folder before it is read,
/// and `found` with the size of each file.
pub(crate) fn walk(
    root: &Path,
    within: Option<&Within>,
    threads: usize,
    enter: &(dyn Fn(&[u8]) + Sync),
    found: &(dyn Fn(u64) + Sync),
    has_ended: &(dyn Fn() -> bool + Sync),
) -> io::Result<Walk> {
    let threads = if within.is_some() { 1 } else { threads };
    let stamped = |path: &Path, relative: &[u8]| match Stamp::of_path(path) {
        Ok((stamp, FileType::RegularFile)) => {
            found(stamp.size);
            Some(Found { path: relative.to_owned(), stamp })
        }
        _ => None,
    };
    let (files, folders) = visit(root, within, threads, enter, &stamped, has_ended)?;
    Ok(Walk { files, folders })
}

/// Walks the root, or some files and folders in it, for the paths of files alone.
pub(crate) fn list(
    root: &Path,
    within: Option<Within>,
    threads: usize,
    has_ended: &(dyn Fn() -> bool + Sync),
) -> io::Result<Listing> {
    let path = |_: &Path, relative: &[u8]| Some(relative.to_owned());
    let (files, folders) = visit(root, within.as_ref(), threads, &|_| {}, &path, has_ended)?;
    Ok(Listing { files, folders, within })
}

/// Something that a walk gathers of each file, in the order of paths.
trait Gathered: Send {
    fn path(&self) -> &[u8];
}

impl Gathered for Found {
    fn path(&self) -> &[u8] {
        &self.path
    }
}

impl Gathered for Vec<u8> {
    fn path(&self) -> &[u8] {
        self
    }
}

/// Walks, and gathers what `take` makes of each file, and the folders that were entered.
fn visit<T: Gathered>(
    root: &Path,
    within: Option<&Within>,
    threads: usize,
    enter: &(dyn Fn(&[u8]) + Sync),
    take: &(dyn Fn(&Path, &[u8]) -> Option<T> + Sync),
    has_ended: &(dyn Fn() -> bool + Sync),
) -> io::Result<(Vec<T>, Vec<Vec<u8>>)> {
    let length = root.as_os_str().len();
    let mut builder = builder(root)?;
    if let Some(within) = within.cloned() {
        builder
            .filter_entry(move |entry| entry.depth() == 0 || within.admits(relative(entry.path(), length)));
    }
    let all = Mutex::new((Vec::new(), Vec::new()));
    let failure = Mutex::new(None);
    builder.threads(threads).build_parallel().run(|| {
        let mut part = Part { files: Vec::new(), folders: Vec::new(), all: &all };
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
                    part.folders.push(path.to_owned());
                }
                Some(kind) if kind.is_file() => part.files.extend(take(entry.path(), path)),
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
    let (mut files, mut folders) = all.into_inner().unwrap_or_else(PoisonError::into_inner);
    // This sort takes rows that are in order as they are, and each thread has put its own in order.
    files.sort_by(|one, other| one.path().cmp(other.path()));
    folders.sort_unstable();
    Ok((files, folders))
}

/// Whether the system has run out of something that a walk needs.
fn is_exhaustion(error: &ignore::Error) -> bool {
    let error = error.io_error().and_then(Errno::from_io_error);
    matches!(error, Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM))
}

/// One thread's part of a walk; joins the whole when the thread is done.
struct Part<'a, T: Gathered> {
    files: Vec<T>,
    folders: Vec<Vec<u8>>,
    all: &'a Mutex<(Vec<T>, Vec<Vec<u8>>)>,
}

impl<T: Gathered> Drop for Part<'_, T> {
    fn drop(&mut self) {
        self.files.sort_unstable_by(|one, other| one.path().cmp(other.path()));
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.0.append(&mut self.files);
        all.1.append(&mut self.folders);
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
    for name in [".git", TEMPORARY_FILE_NAME] {
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
    let found = walk.files.iter().map(|file| file.path.as_slice()).collect();
    count_passed_over(root, &found, &walk.folders, has_ended)
}

impl Listing {
    /// Counts what the walk did not yield, folder by folder.
    pub(crate) fn passed_over(&self, root: &Path, has_ended: &dyn Fn() -> bool) -> PassedOver {
        let found = self.files.iter().map(Vec::as_slice).collect();
        // On the way to what the walk was narrowed to, other things were passed by.
        let is_covered = |folder: &&Vec<u8>| self.within.as_ref().is_none_or(|within| within.covers(folder));
        let folders = self.folders.iter().filter(is_covered).cloned().collect::<Vec<_>>();
        count_passed_over(root, &found, &folders, has_ended)
    }
}

fn count_passed_over(
    root: &Path,
    found: &HashSet<&[u8]>,
    folders: &[Vec<u8>],
    has_ended: &dyn Fn() -> bool,
) -> PassedOver {
    let entered = folders.iter().map(Vec::as_slice).collect::<HashSet<_>>();
    let mut counts = PassedOver::new();
    // Folders with the reason for which they were not entered, if they were not.
    let mut folders = folders.iter().map(|folder| (folder.clone(), None)).collect::<Vec<_>>();
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
            if name == TEMPORARY_FILE_NAME.as_bytes() {
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
        let walk = walk(root, within, 2, &|_| {}, &|_| {}, &|| false).expect("a walk");
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
        let walk = walk(root.path(), None, 2, &|_| {}, &|_| {}, &|| false).expect("a walk");
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
