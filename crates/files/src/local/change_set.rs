//! Change sets: several files change, or none of them.

use pintle_contract::WorkspacePath;

use super::LocalFolder;
use crate::{
    hash::Hash,
    store::{ChangeSetError, FileChange, StoreError, Terms},
};

impl LocalFolder {
    pub(super) fn resolve_change(
        &self,
        _path: &WorkspacePath,
        _terms: &Terms<'_>,
    ) -> Result<WorkspacePath, StoreError> {
        Err(StoreError::NotFound)
    }

    pub(super) fn change_files(
        &self,
        _changes: &mut [FileChange<'_>],
        _dry_run: bool,
        _terms: &Terms<'_>,
    ) -> Result<Vec<Hash>, ChangeSetError> {
        Err(ChangeSetError::Whole(StoreError::NotFound))
    }
}
