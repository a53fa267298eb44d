//! Where a file really is, once all links are followed.

use pintle_contract::WorkspacePath;

/// The real place of a file.
pub(super) struct Place {
    /// Its path, without links.
    pub(super) path: WorkspacePath,
    /// The folder's path, without links.
    pub(super) folder: WorkspacePath,
    /// Its name in that folder.
    pub(super) name: String,
}

impl Place {
    /// None for the root.
    pub(super) fn new(path: WorkspacePath) -> Option<Self> {
        let (folder, name) = path.split_last()?;
        let name = name.to_owned();
        Some(Self { folder, name, path })
    }
}
