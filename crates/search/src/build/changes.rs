//! The difference between an index and the files as they are now.

use std::io;

use pintle_root::scan::{FoundFile, Walk, Within};

use crate::{
    index::{FileId, Index},
    segment::{FileState, Torn},
};

/// The difference between an index and the files as they are now.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    /// New or changed files, in the order of their paths.
    pub(crate) changed: Vec<FoundFile>,
    /// The paths of files that are in the index and are gone, or ignored by now.
    pub(crate) removed: Vec<Vec<u8>>,
}

impl Changes {
    pub(crate) fn is_empty(&self) -> bool {
        self.changed.is_empty() && self.removed.is_empty()
    }
}

/// Compares an index with the files that a walk found. `within` is what the walk was restricted to.
pub(crate) fn changes(index: &Index, walk: &Walk, within: Option<&Within>) -> io::Result<Changes> {
    compare(index, walk, within).map_err(Torn::into_error)
}

fn compare(index: &Index, walk: &Walk, within: Option<&Within>) -> Result<Changes, Torn> {
    let ids = match within {
        Some(within) => index.live_files_within(within)?,
        None => index.live_files().collect(),
    };
    let mut known = ids.into_iter().map(|id| Ok((index.path(id)?, id))).collect::<Result<Vec<_>, _>>()?;
    known.sort_unstable();
    let mut known = known.into_iter().peekable();
    let mut changes = Changes::default();
    for found in &walk.files {
        // A restricted walk also returns the files in the folders on the way to its targets.
        if within.is_some_and(|within| !within.covers(&found.path)) {
            continue;
        }
        while let Some((path, _)) = known.next_if(|(path, _)| *path < found.path.as_slice()) {
            changes.removed.push(path.to_vec());
        }
        match known.next_if(|(path, _)| *path == found.path) {
            Some((_, id)) if is_current(index, id, found)? => {}
            _ => changes.changed.push(found.clone()),
        }
    }
    changes.removed.extend(known.map(|(path, _)| path.to_vec()));
    Ok(changes)
}

/// Whether a file's record is up to date. A file that was unreadable may be readable by now, so it counts as changed.
fn is_current(index: &Index, id: FileId, found: &FoundFile) -> Result<bool, Torn> {
    let file = index.file(id)?;
    Ok(file.stamp == found.stamp && file.state != FileState::Unreadable)
}
