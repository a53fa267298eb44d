//! The overlay: files that differ from the index.

use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, OnceLock},
};

use super::OverlayRanked;
use pintle_root::{Root, scan::Within};

use crate::{
    build::Changes,
    index::Index,
    read::{FileReader, Inspected},
    segment::{FileRecord, FileState, Torn},
};

/// By path, a file that differs from its record in the index. `None` is a tombstone: the file is gone.
#[derive(Default)]
pub(crate) struct Overlay {
    files: BTreeMap<Vec<u8>, Option<Arc<Inspected>>>,
    /// The words and symbols of the files, built when they are first asked for.
    ranked: OnceLock<OverlayRanked>,
}

/// A clone is made to be changed, so it starts without the words and symbols.
impl Clone for Overlay {
    fn clone(&self) -> Self {
        Self { files: self.files.clone(), ranked: OnceLock::new() }
    }
}

impl Overlay {
    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.files.len()
    }

    /// Whether a path differs from the index. What the index has for it must then be skipped.
    pub(crate) fn contains(&self, path: &[u8]) -> bool {
        self.files.contains_key(path)
    }

    pub(crate) fn paths(&self) -> impl Iterator<Item = &[u8]> {
        self.files.keys().map(Vec::as_slice)
    }

    /// The files that exist.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&[u8], &FileRecord)> {
        self.files.iter().filter_map(|(path, file)| Some((path.as_slice(), &file.as_ref()?.file)))
    }

    /// The overlay's entry for a path: `None` if there is none, `Some(None)` if the file is gone.
    pub(crate) fn get(&self, path: &[u8]) -> Option<Option<&FileRecord>> {
        self.files.get(path).map(|file| file.as_ref().map(|inspected| &inspected.file))
    }

    /// The words and symbols of its files.
    pub(crate) fn ranked(&self, root: &Root, has_ended: &dyn Fn() -> bool) -> io::Result<&OverlayRanked> {
        if let Some(ranked) = self.ranked.get() {
            return Ok(ranked);
        }
        let made = OverlayRanked::new(root, self.files(), has_ended)?;
        Ok(self.ranked.get_or_init(|| made))
    }

    /// The size of its files.
    pub(crate) fn bytes(&self) -> u64 {
        self.files().map(|(_, file)| file.stamp.size).sum()
    }

    /// Replaces the entries that `within` covers by the changes that a walk found there.
    pub(crate) fn replace(
        &mut self,
        changes: Changes,
        within: Option<&Within>,
        root: &Root,
        reader: &mut FileReader,
        has_ended: &dyn Fn() -> bool,
    ) -> io::Result<()> {
        let old: BTreeMap<_, _> = match within {
            Some(within) => {
                let (covered, rest) =
                    std::mem::take(&mut self.files).into_iter().partition(|(path, _)| within.covers(path));
                self.files = rest;
                covered
            }
            None => std::mem::take(&mut self.files),
        };
        for found in changes.changed {
            if has_ended() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            // A file that has not changed since it was last read need not be read again.
            let old = old.get(&found.path).and_then(Option::as_ref);
            let file = match old {
                Some(old) if old.file.stamp == found.stamp && old.file.state != FileState::Unreadable => {
                    Arc::clone(old)
                }
                _ => Arc::new(reader.inspect(root, &found.path, old.and_then(|old| old.seen))),
            };
            self.files.insert(found.path, Some(file));
        }
        self.files.extend(changes.removed.into_iter().map(|path| (path, None)));
        Ok(())
    }

    /// Records a change of one file, which must not be an ignored one.
    pub(crate) fn touch(&mut self, path: &[u8], file: Inspected) {
        self.files.insert(path.to_owned(), Some(Arc::new(file)));
    }

    /// Removes entries that a new generation has caught up with.
    pub(crate) fn prune(&mut self, index: &Index) -> Result<(), Torn> {
        let mut torn = Ok(());
        self.files.retain(|path, file| {
            let known = index.find(path).and_then(|id| id.map(|id| index.file(id)).transpose());
            match known {
                Ok(known) => {
                    known.as_ref().map(|known| known.stamp)
                        != file.as_ref().map(|inspected| inspected.file.stamp)
                }
                Err(error) => {
                    torn = Err(error);
                    true
                }
            }
        });
        torn
    }
}
