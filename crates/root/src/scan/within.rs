//! A part of a root.

use std::collections::HashSet;

/// Some files and folders, with all that lies below them.
#[derive(Clone, Debug, Default)]
pub struct Within {
    targets: HashSet<Vec<u8>>,
    /// The folders on the way to the targets.
    ways: HashSet<Vec<u8>>,
}

impl Within {
    /// These, and all that lies below them. An empty path is the whole root.
    pub fn new(targets: impl IntoIterator<Item = Vec<u8>>) -> Self {
        let mut within = Self::default();
        for target in targets {
            for (end, _) in target.iter().enumerate().filter(|(_, byte)| **byte == b'/') {
                within.ways.insert(target[..end].to_owned());
            }
            within.targets.insert(target);
        }
        within
    }

    /// The files and folders themselves.
    pub fn targets(&self) -> impl Iterator<Item = &[u8]> {
        self.targets.iter().map(Vec::as_slice)
    }

    /// Whether a path is on the way to a target, one of them, or below one.
    pub(super) fn admits(&self, path: &[u8]) -> bool {
        self.ways.contains(path) || self.covers(path)
    }

    /// Whether a path is a target or below one.
    pub fn covers(&self, path: &[u8]) -> bool {
        let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        self.targets.contains(path)
            || self.targets.contains(&b""[..])
            || slashes.into_iter().any(|(end, _)| self.targets.contains(&path[..end]))
    }
}
