//! The state of a work tree, put together: what differs between the head and the files.

use std::{collections::BTreeMap, path::Path, thread};

use crate::{
    index::Index,
    objects::Objects,
    problem::Problem,
    refs::{self, Head},
    repository::Repository,
    staged::{self, Staged},
    untracked,
    work_tree::{self, Found},
};

/// Which paths count.
pub(crate) type Admits<'a> = &'a (dyn Fn(&[u8]) -> bool + Sync);

/// At most so many changes are reported.
pub const LIMIT: usize = 10_000;

/// The state of a git work tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitStatus {
    /// The commit that is checked out, as hexadecimal digits; none before the first one.
    pub head: Option<String>,
    /// The branch that is checked out; none if there is only a commit.
    pub branch: Option<String>,
    /// What differs between the commit and the files, by path.
    pub dirty: Vec<Dirty>,
    /// Whether there is more than [`LIMIT`], of which only the first are reported.
    pub truncated: bool,
}

/// One path that is not as it was committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dirty {
    /// Where it is, relative to the root. A repository in the work tree, of which git knows nothing, ends with a slash.
    pub path: Vec<u8>,
    /// What it is about.
    pub change: Change,
}

/// How a path differs from what was committed, whether that is staged or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// It was not there, and is or will be in the index.
    Added,
    /// It was something else. That includes what is staged, but has been taken back in the work tree since.
    Modified,
    /// It is no longer there. That includes what was staged as new, but has gone since.
    Deleted,
    /// It is not in the index.
    Untracked,
    /// A merge was not yet resolved.
    Conflicted,
}

impl Change {
    /// Its name.
    ///
    /// ```
    /// assert_eq!(pintle_git::Change::Modified.name(), "modified");
    /// ```
    pub const fn name(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Modified => "modified",
            Self::Deleted => "deleted",
            Self::Untracked => "untracked",
            Self::Conflicted => "conflicted",
        }
    }
}

/// The state of the work tree that `root` is, or is a folder of; `None` if there is no repository in it or above it.
/// Paths are relative to `root`, and nothing outside of it is listed. `has_ended` is asked now and then, from several
/// threads; once it says yes, the answer is [`Problem::Ended`].
///
/// ```
/// let folder = tempfile::tempdir().unwrap();
/// assert!(pintle_git::status(folder.path(), &|| false).unwrap().is_none());
/// ```
pub fn status(root: &Path, has_ended: &(dyn Fn() -> bool + Sync)) -> Result<Option<GitStatus>, Problem> {
    status_of(root, &|_| true, has_ended)
}

/// The same for some paths only: what is not admitted is not counted either.
pub fn status_of(
    root: &Path,
    admits: &(dyn Fn(&[u8]) -> bool + Sync),
    has_ended: &(dyn Fn() -> bool + Sync),
) -> Result<Option<GitStatus>, Problem> {
    let Some(repository) = Repository::open(root)? else { return Ok(None) };
    let Head { commit, branch } = refs::head(&repository, has_ended)?;
    let index = Index::read(&repository, has_ended)?;
    let prefix = repository.work_tree().prefix();
    // Within this crate paths are those of git, from the top of the work tree on; outside of it, those of the root.
    let admits: Admits<'_> = &|path| path.strip_prefix(prefix).is_some_and(admits);
    let objects = Objects::new(&repository);
    let list = || untracked::list(&repository, &index, admits, has_ended);
    let (staged, found, untracked) = thread::scope(|scope| {
        let beside = thread::Builder::new().spawn_scoped(scope, list);
        let staged = staged::changes(objects, &index, prefix, commit.as_ref(), admits, has_ended);
        let found = work_tree::changes(&repository, &index, has_ended);
        let untracked = match beside {
            Ok(beside) => beside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            // Without a thread of its own it comes last.
            Err(_) => list(),
        };
        (staged, found, untracked)
    });
    let mut dirty = combine(&index, staged?, &found?, untracked?, admits);
    let truncated = dirty.len() > LIMIT;
    dirty.truncate(LIMIT);
    dirty.iter_mut().for_each(|dirty| drop(dirty.path.drain(..prefix.len())));
    Ok(Some(GitStatus { head: commit.map(|commit| commit.to_string()), branch, dirty, truncated }))
}

/// One answer for each path. Each of the parts is in order and holds at least one more than the limit or all there is,
/// so the first ones of the whole are the right ones.
fn combine(
    index: &Index,
    staged: Vec<(Vec<u8>, Staged)>,
    found: &[(usize, Found)],
    untracked: Vec<Vec<u8>>,
    admits: Admits<'_>,
) -> Vec<Dirty> {
    let staged = staged.into_iter().map(|(path, staged)| {
        let change = match staged {
            Staged::Added => Change::Added,
            Staged::Modified => Change::Modified,
            Staged::Deleted => Change::Deleted,
            Staged::Conflicted => Change::Conflicted,
        };
        (path, change)
    });
    let mut changes: BTreeMap<Vec<u8>, Change> = staged.collect();
    let found = found.iter().filter(|(number, _)| admits(index.path(&index.entries[*number])));
    for (number, found) in found.take(LIMIT + 1) {
        let path = index.path(&index.entries[*number]).to_vec();
        let change = match (found, changes.get(&path)) {
            (Found::Deleted, _) => Change::Deleted,
            (Found::Modified, Some(Change::Added)) | (Found::Intended, None) => Change::Added,
            (Found::Modified | Found::Intended, _) => Change::Modified,
        };
        changes.insert(path, change);
    }
    for path in untracked {
        // What was taken out of the index, but not away, is still there.
        let change = changes.entry(path).or_insert(Change::Untracked);
        if *change == Change::Deleted {
            *change = Change::Modified;
        }
    }
    changes.into_iter().map(|(path, change)| Dirty { path, change }).collect()
}
