//! `file.remove`.

use std::sync::Arc;

use pintle_contract::{Annotations, Fault, Permission, Verb};
use pintle_tool::{CallContext, Tool, ToolOutput};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::GUARDED_EDIT;
use crate::{
    files::{self, Files, Paths},
    store::{Store, Terms},
};

pub(crate) struct FileRemove(pub(crate) Arc<Files>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The file, relative to the root of the workspace.
    path: String,
    /// The file's hash, or its first 8 digits or more, from text.read, file.read, search, show_file or the last edit. If the file has changed since, nothing is done.
    hash: String,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Output {}

impl ToolOutput for Output {}

impl Tool for FileRemove {
    type Input = Input;
    type Output = Output;

    const NAME: &'static str = "file.remove";
    const TITLE: &'static str = "Remove a file";
    const DESCRIPTION: &'static str = "Use this to delete a file that is still as it was read.";
    const ANNOTATIONS: Annotations = GUARDED_EDIT;
    const PERMISSIONS: &'static [Permission] = &[Permission::Argument(Verb::Write, "/path")];

    async fn run(&self, input: Input, call: CallContext) -> Result<Output, Fault> {
        let (path, expected) = (files::path(&input.path)?, files::tag(&input.hash)?);
        let work = move |store: &dyn Store, paths: &Paths, terms: &Terms<'_>| {
            store.remove(&paths.path, &expected, terms)
        };
        self.0.with_store(&call, path.into(), work).await.map(|()| Output {})
    }
}
