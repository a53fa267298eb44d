//! What has changed since an index was built.

use std::io;

use pintle_root::scan::{FoundFile, Walk, Within};

use crate::{
    index::{FileId, Index},
    segment::{FileState, Torn},
};

/// What differs between an index and the files as they are.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    /// New or changed, in the order of their paths.
    pub(crate) changed: Vec<FoundFile>,
    /// CandidateBlocks to the index and gone or ignored by now.
    pub(crate) removed: Vec<Vec<u8>>,
}

impl Changes {
    pub(crate) fn is_empty(&self) -> bool {
        self.changed.is_empty() && self.removed.is_empty()
    }
}

/// Compares an index with what a walk found; `within` is what the walk was narrowed to.
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
        // The walk also finds the files on the way to a folder that it was narrowed to.
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

/// Whether what the index knows of a file still holds. One that could not be read may be readable by now.
fn is_current(index: &Index, id: FileId, found: &FoundFile) -> Result<bool, Torn> {
    let file = index.file(id)?;
    Ok(file.stamp == found.stamp && file.state != FileState::Unreadable)
}
