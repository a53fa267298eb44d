//! The extension `TREE` of the index (cache tree): the ids of the trees that its folders would be written as. With it,
//! the trees of unchanged folders need not be read.

use std::collections::HashMap;

use crate::hash::{HashKind, ObjectId};

/// More folders than this are left out. Without a limit, an extension of few bytes for each could take much more memory
/// than the index itself.
const MOST_FOLDERS: usize = 1 << 20;

/// The folders of the index.
pub(crate) struct CachedTrees {
    /// None if something below the folder has changed since.
    trees: Vec<Option<CachedTree>>,
    /// The position of each folder in `trees`, by the position of the folder that it is in and by its name.
    positions: HashMap<(usize, Vec<u8>), usize>,
}

/// A folder whose tree is known.
#[derive(Clone, Copy)]
pub(crate) struct CachedTree {
    /// How many entries of the index are below it.
    pub(crate) count: usize,
    pub(crate) id: ObjectId,
}

/// The position of a folder in the extension.
#[derive(Clone, Copy)]
pub(crate) struct Position(usize);

impl CachedTrees {
    /// Reads the extension; `None` if it cannot be understood.
    pub(crate) fn parse(content: &[u8], hash: HashKind) -> Option<Self> {
        let mut own = Self { trees: Vec::new(), positions: HashMap::new() };
        // Folders that are not yet complete, and how many folders are still to come in each.
        let (mut rest, mut open) = (content, Vec::<(usize, usize)>::new());
        loop {
            let node = parse_node(&mut rest, hash)?;
            let at = own.trees.len();
            if at == MOST_FOLDERS {
                return None;
            }
            own.trees.push(node.tree);
            if let Some((parent, missing)) = open.last_mut() {
                own.positions.insert((*parent, node.name), at);
                *missing -= 1;
            }
            open.push((at, node.children));
            while open.pop_if(|(_, missing)| *missing == 0).is_some() {}
            if open.is_empty() {
                return rest.is_empty().then_some(own);
            }
        }
    }

    /// The folder that holds everything.
    pub(crate) fn top(&self) -> Position {
        Position(0)
    }

    pub(crate) fn tree(&self, Position(at): Position) -> Option<CachedTree> {
        self.trees.get(at).copied().flatten()
    }

    /// A folder in a folder.
    pub(crate) fn find(&self, Position(at): Position, name: &[u8]) -> Option<Position> {
        self.positions.get(&(at, name.to_vec())).copied().map(Position)
    }
}

/// A folder as it is written.
struct Node {
    name: Vec<u8>,
    tree: Option<CachedTree>,
    /// How many folders are directly in it; they follow.
    children: usize,
}

fn parse_node(rest: &mut &[u8], hash: HashKind) -> Option<Node> {
    let name = until(rest, 0)?.to_vec();
    let count: i64 = std::str::from_utf8(until(rest, b' ')?).ok()?.parse().ok()?;
    let children = std::str::from_utf8(until(rest, b'\n')?).ok()?.parse().ok()?;
    let tree = match usize::try_from(count) {
        Ok(count) => {
            let id = ObjectId::from_start(rest, hash)?;
            *rest = rest.get(hash.length()..)?;
            Some(CachedTree { count, id })
        }
        Err(_) => None,
    };
    Some(Node { name, tree, children })
}

fn until<'a>(rest: &mut &'a [u8], end: u8) -> Option<&'a [u8]> {
    let at = memchr::memchr(end, rest)?;
    let (found, more) = rest.split_at(at);
    *rest = &more[1..];
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_found_and_what_is_cut_off_is_left_out() {
        let content =
            [&b"\x003 2\n"[..], &[1; 20], b"a\x00-1 1\n", b"b\x001 0\n", &[2; 20], b"c\x001 0\n", &[3; 20]]
                .concat();
        let trees = CachedTrees::parse(&content, HashKind::Sha1).expect("understood");
        let a = trees.find(trees.top(), b"a").expect("there");
        assert!(trees.tree(a).is_none());
        let b = trees.find(a, b"b").and_then(|b| trees.tree(b)).expect("there");
        assert_eq!((b.count, b.id.as_bytes()[0]), (1, 2));
        assert!(trees.find(trees.top(), b"c").is_some());
        assert!(trees.find(trees.top(), b"b").is_none());
        for length in 0..content.len() {
            assert!(CachedTrees::parse(&content[..length], HashKind::Sha1).is_none());
        }
    }

    #[test]
    fn folders_in_folders_take_neither_the_stack_nor_all_memory() {
        let nested = |count: usize| [b"a\x00-1 1\n".repeat(count), b"a\x00-1 0\n".to_vec()].concat();
        let trees = CachedTrees::parse(&nested(200_000), HashKind::Sha1).expect("understood");
        assert_eq!(trees.trees.len(), 200_001);
        assert!(CachedTrees::parse(&nested(MOST_FOLDERS), HashKind::Sha1).is_none());
    }
}
