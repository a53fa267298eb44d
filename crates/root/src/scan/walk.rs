//! Which files there are: what `rg --hidden --glob '!.git'` looks at, with no rules from above the root.

use std::{io, os::unix::ffi::OsStrExt, path::Path};

use ignore::{WalkBuilder, WalkState, overrides::OverrideBuilder};
use parking_lot::Mutex;
use rustix::io::Errno;

use super::within::Within;
use crate::{root::RESERVED, stamp::Stamp};

/// A regular file that no rule ignores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundFile {
    /// Relative to the root, with `/` between names.
    pub path: Vec<u8>,
    /// Without a device.
    pub stamp: Stamp,
}

/// What a walk found.
#[derive(Debug, Default)]
pub struct Walk {
    /// In the order of their paths.
    pub files: Vec<FoundFile>,
    /// The folders that were entered, the root first.
    pub folders: Vec<Vec<u8>>,
}

/// The paths of the files that a walk found, without looking at any of them.
#[derive(Debug, Default)]
pub struct Listing {
    /// In order.
    pub files: Vec<Vec<u8>>,
    /// The folders that were entered, the root first.
    pub folders: Vec<Vec<u8>>,
    /// What the walk was narrowed to.
    pub within: Option<Within>,
}

/// Whether a path holds rules on what is ignored, or decides whether git's count: a change of it may hide or show
/// anything.
pub fn is_rule(path: &[u8]) -> bool {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    matches!(name, b".gitignore" | b".ignore" | b".rgignore" | b".git" | b".jj")
        || [&b".git/info"[..], b".git/info/exclude"].iter().any(|rule| {
            path.strip_suffix(*rule).is_some_and(|folder| folder.is_empty() || folder.ends_with(b"/"))
        })
}

/// What a walk gathers: each file with what was taken of it, and the folders that were entered, both by path.
type Gathered<T> = (Vec<(Vec<u8>, T)>, Vec<Vec<u8>>);

/// Walks, and gathers what `take` returns of each file, if anything. `within`, `enter` and `has_ended` are those of
/// [`Root::walk`](crate::Root::walk).
pub(super) fn visit<T: Send>(
    root: &Path,
    within: Option<&Within>,
    threads: usize,
    enter: &(dyn Fn(&[u8]) + Sync),
    take: &(dyn Fn(&Path) -> Option<T> + Sync),
    has_ended: &(dyn Fn() -> bool + Sync),
) -> io::Result<Gathered<T>> {
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
                    let mut failure = failure.lock();
                    *failure = error.into_io_error();
                    return WalkState::Quit;
                }
                // Whatever else cannot be read is skipped here and counted as passed over.
                Err(_) => return WalkState::Continue,
            };
            let path = relative(entry.path(), length);
            match entry.file_type() {
                Some(kind) if kind.is_dir() => {
                    enter(path);
                    part.folders.push(path.to_owned());
                }
                Some(kind) if kind.is_file() => {
                    part.files.extend(take(entry.path()).map(|taken| (path.to_owned(), taken)));
                }
                _ => {}
            }
            WalkState::Continue
        })
    });
    if let Some(error) = failure.into_inner() {
        return Err(error);
    }
    if has_ended() {
        return Err(io::ErrorKind::Interrupted.into());
    }
    let (mut files, mut folders) = all.into_inner();
    // This sort takes rows that are in order as they are, and each thread has put its own in order.
    files.sort_by(|(one, _), (other, _)| one.cmp(other));
    folders.sort_unstable();
    Ok((files, folders))
}

/// Whether the system has run out of something that a walk needs.
fn is_exhaustion(error: &ignore::Error) -> bool {
    let error = error.io_error().and_then(Errno::from_io_error);
    matches!(error, Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM))
}

/// One thread's part of a walk; joins the whole when the thread is done.
struct Part<'a, T> {
    files: Vec<(Vec<u8>, T)>,
    folders: Vec<Vec<u8>>,
    all: &'a Mutex<Gathered<T>>,
}

impl<T> Drop for Part<'_, T> {
    fn drop(&mut self) {
        self.files.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        let mut all = self.all.lock();
        all.0.append(&mut self.files);
        all.1.append(&mut self.folders);
    }
}

/// As ripgrep walks: hidden files too, but not git's own, and no rules from above the root. An edit that is under way is
/// no part of the workspace either.
fn builder(root: &Path) -> io::Result<WalkBuilder> {
    let mut left_out = OverrideBuilder::new(root);
    for name in RESERVED.iter().chain([&".git"]) {
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

#[cfg(test)]
pub(super) mod testing {
    /// A folder with these files.
    pub(in crate::scan) fn tree(paths: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a folder");
        for (path, text) in paths {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
            std::fs::write(path, text).expect("a file");
        }
        root
    }
}

#[cfg(test)]
mod tests {
    use super::{testing::tree, *};
    use crate::root::Root;

    fn files(root: &Path, within: Option<&Within>) -> Vec<String> {
        let root = Root::open(root).expect("opens");
        let walk = root.walk(within, 2, &|_| {}, &|_| {}, &|| false).expect("a walk");
        walk.files.into_iter().map(|file| String::from_utf8(file.path).expect("text")).collect()
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
}
