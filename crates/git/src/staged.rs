//! What differs between the head's tree and the index.

use std::{cmp::Ordering, ops::Range};

use crate::{
    cached_trees::Position,
    hash::ObjectId,
    index::{Entry, Index, mode},
    objects::{Objects, TreeEntry},
    problem::{HasEnded, Problem, go_on},
    status::{Admits, LIMIT},
};

/// Folders that lie deeper are damage, or are meant to do some.
const DEEPEST: usize = 512;
/// A small number of trees can stand for any number of folders.
const MOST_TREES: usize = 1_000_000;

/// How the index differs from the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Staged {
    Added,
    Modified,
    Deleted,
    Conflicted,
}

/// What differs, in the order of the paths; one more than the limit says that there is more.
pub(crate) fn changes(
    mut objects: Objects<'_>,
    index: &Index,
    prefix: &[u8],
    commit: Option<&ObjectId>,
    admits: Admits<'_>,
    has_ended: HasEnded<'_>,
) -> Result<Vec<(Vec<u8>, Staged)>, Problem> {
    let mut tree = commit.map(|commit| objects.tree_of(commit)).transpose()?;
    let mut position = index.trees.as_ref().map(|trees| trees.top());
    for folder in prefix.split_inclusive(|byte| *byte == b'/') {
        go_on(has_ended)?;
        let entries = tree.map(|id| objects.tree(&id)).transpose()?.unwrap_or_default();
        tree = entries.into_iter().find(|entry| entry.key == folder).map(|entry| entry.id);
        let name = folder.strip_suffix(b"/").unwrap_or(folder);
        position = position.and_then(|position| index.trees.as_ref()?.find(position, name));
    }
    let mut comparison = Comparison {
        objects,
        index,
        admits,
        has_ended,
        path: prefix.to_vec(),
        changes: Vec::new(),
        trees: 0,
        depth: 0,
    };
    comparison.compare(tree.as_ref(), index.beneath(prefix), position)?;
    Ok(comparison.changes)
}

struct Comparison<'a> {
    objects: Objects<'a>,
    index: &'a Index,
    admits: Admits<'a>,
    has_ended: HasEnded<'a>,
    /// The folder that is compared; empty, or with a slash at its end.
    path: Vec<u8>,
    changes: Vec<(Vec<u8>, Staged)>,
    trees: usize,
    depth: usize,
}

impl<'a> Comparison<'a> {
    /// Compares a tree, if there is one, with the entries that are below the same folder.
    fn compare(
        &mut self,
        tree: Option<&ObjectId>,
        range: Range<usize>,
        position: Option<Position>,
    ) -> Result<(), Problem> {
        if self.is_known(tree, &range, position) || self.is_full() {
            return Ok(());
        }
        let trees = match tree {
            Some(id) => self.read(id)?,
            None => Vec::new(),
        };
        let (mut trees, mut at) = (trees.iter().peekable(), range.start);
        while !self.is_full() {
            let next = self.next_in_index(at, range.end);
            let order = match (trees.peek(), &next) {
                (None, None) => break,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(tree), Some(next)) => tree.key[..].cmp(next.key),
            };
            let tree = if order.is_le() { trees.next() } else { None };
            let next = next.filter(|_| order.is_ge());
            if let Some(next) = &next {
                at = next.range.end;
            }
            self.compare_one(tree, next, position)?;
        }
        Ok(())
    }

    /// Compares what has the same name in the tree and in the index, or is in one of them only.
    fn compare_one(
        &mut self,
        tree: Option<&TreeEntry>,
        next: Option<InIndex<'_>>,
        position: Option<Position>,
    ) -> Result<(), Problem> {
        let Some(key) = next.as_ref().map(|next| next.key).or(tree.map(|tree| &tree.key[..])) else {
            return Ok(());
        };
        let length = self.path.len();
        self.path.extend_from_slice(key);
        if let Some(name) = key.strip_suffix(b"/") {
            let trees = self.index.trees.as_ref();
            let position = position.and_then(|position| trees?.find(position, name));
            if self.depth == DEEPEST {
                return Err(Problem::TooLarge {
                    what: "a path".into(),
                    limit: DEEPEST as u64,
                    unit: "folders",
                });
            }
            self.depth += 1;
            self.compare(tree.map(|tree| &tree.id), next.map_or(0..0, |next| next.range), position)?;
            self.depth -= 1;
        } else {
            let entry = next.map(|next| &self.index.entries[next.range.start]);
            if let Some(change) = compare_entry(tree, entry).filter(|_| (self.admits)(&self.path)) {
                self.changes.push((self.path.clone(), change));
            }
        }
        self.path.truncate(length);
        Ok(())
    }

    /// Whether the index itself says that a folder is as the tree has it.
    fn is_known(&self, tree: Option<&ObjectId>, range: &Range<usize>, position: Option<Position>) -> bool {
        let cached = position.and_then(|position| self.index.trees.as_ref()?.tree(position));
        cached.is_some_and(|cached| cached.count == range.len() && Some(&cached.id) == tree)
    }

    fn is_full(&self) -> bool {
        self.changes.len() > LIMIT
    }

    fn read(&mut self, id: &ObjectId) -> Result<Vec<TreeEntry>, Problem> {
        go_on(self.has_ended)?;
        self.trees += 1;
        if self.trees > MOST_TREES {
            let what = "what differs from the head".into();
            return Err(Problem::TooLarge { what, limit: MOST_TREES as u64, unit: "folders" });
        }
        self.objects.tree(id)
    }

    /// What comes next in a folder, by the entries of the index.
    fn next_in_index(&self, at: usize, end: usize) -> Option<InIndex<'a>> {
        let index = self.index;
        let entry = index.entries[..end].get(at)?;
        let rest = index.path(entry).get(self.path.len()..)?;
        match memchr::memchr(b'/', rest) {
            Some(slash) => {
                let key = &rest[..=slash];
                Some(InIndex { key, range: self.index.range_of(at..end, self.path.len(), key) })
            }
            None => {
                let sides = self.index.entries[at..end].iter();
                let count = sides.take_while(|side| self.index.path(side) == self.index.path(entry)).count();
                Some(InIndex { key: rest, range: at..at + count })
            }
        }
    }
}

/// A name in a folder of the index: a file with all its stages, or a folder, which ends with a slash.
struct InIndex<'a> {
    key: &'a [u8],
    range: Range<usize>,
}

fn compare_entry(tree: Option<&TreeEntry>, entry: Option<&Entry>) -> Option<Staged> {
    match (tree, entry) {
        (_, Some(entry)) if entry.stage > 0 => Some(Staged::Conflicted),
        // As long as it has no content, it is as if it were not there.
        (Some(_), Some(entry)) if entry.is_intended => Some(Staged::Deleted),
        (None, Some(entry)) if entry.is_intended => None,
        (Some(tree), Some(entry)) if (tree.mode, tree.id) == (entry.mode, entry.id) => None,
        (Some(_), Some(_)) => Some(Staged::Modified),
        (Some(tree), None) => (tree.mode != mode::FOLDER).then_some(Staged::Deleted),
        (None, Some(_)) => Some(Staged::Added),
        (None, None) => None,
    }
}
