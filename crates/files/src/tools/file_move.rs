//! `file.move`.

use std::sync::Arc;

use pintle_contract::{Annotations, Fault, Permission, Verb};
use pintle_tool::{CallContext, Tool};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{GUARDED_EDIT, Hashed};
use crate::{
    files::{self, Files, Paths},
    store::{Store, Terms},
};

pub(crate) struct FileMove(pub(crate) Arc<Files>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The file, relative to the root of the workspace.
    path: String,
    /// The file's hash, or its first 8 digits or more, from text.read, file.read, search, show_file or the last edit. If the file has changed since, nothing is done.
    hash: String,
    /// The new path.
    to: String,
}

impl Tool for FileMove {
    type Input = Input;
    type Output = Hashed;

    const NAME: &'static str = "file.move";
    const TITLE: &'static str = "Move a file";
    const DESCRIPTION: &'static str = "Use this to rename or move a file that is still as it was read, to a path that does not exist yet. Its parent folders are created.";
    const ANNOTATIONS: Annotations = GUARDED_EDIT;
    const PERMISSIONS: &'static [Permission] =
        &[Permission::Argument(Verb::Write, "/path"), Permission::Argument(Verb::Write, "/to")];

    async fn run(&self, input: Input, call: CallContext) -> Result<Hashed, Fault> {
        let (path, expected) = (files::path(&input.path)?, files::tag(&input.hash)?);
        let to = files::path(&input.to)?;
        let paths = Paths { path, to: Some(to.clone()) };
        let work = move |store: &dyn Store, paths: &Paths, terms: &Terms<'_>| {
            store.rename(&paths.path, &expected, &to, terms)
        };
        let hash = self.0.with_store(&call, paths, work).await?;
        Ok(Hashed { hash: hash.to_string() })
    }
}
