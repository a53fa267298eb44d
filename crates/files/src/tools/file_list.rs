//! `file.list`.

use std::sync::Arc;

use pintle_contract::{Annotations, ClientHints, Fault, Permission, Verb};
use pintle_tool::{CallContext, Tool};
use schemars::JsonSchema;
use serde::Deserialize;

use super::ALWAYS_LOAD;
use crate::{
    files::{self, Files},
    listing::{self, ListOptions, Listing, OnlyType},
};

pub(crate) struct FileList(pub(crate) Arc<Files>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The folder (default: the root).
    #[serde(default)]
    path: String,
    /// Levels of a tree; 1 is the folder's own entries (default: all with `glob`, else no tree).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u32", range(min = 1))]
    depth: Option<u32>,
    /// Only paths that match, as in search: `*.rs`, `src/**/*.toml`, `!*.md`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    glob: Option<String>,
    /// Only these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "OnlyType")]
    r#type: Option<OnlyType>,
    /// Also what .gitignore excludes (default: false).
    #[serde(default)]
    ignored: bool,
}

impl Tool for FileList {
    type Input = Input;
    type Output = Listing;

    const NAME: &'static str = "file.list";
    const TITLE: &'static str = "List or find files";
    const DESCRIPTION: &'static str = "Lists a folder. With `depth` or `glob`: a tree, or files by name, in one call; names are paths from the root, without .git, ignored files and targets of links. Over 1,000: `truncated`, `total`, and `next`, the first folder left out.";
    const ANNOTATIONS: Annotations = Annotations::READ_ONLY;
    const PERMISSIONS: &'static [Permission] = &[Permission::Argument(Verb::Read, "/path")];
    const CLIENT_HINTS: ClientHints = ALWAYS_LOAD;

    async fn run(&self, input: Input, call: CallContext) -> Result<Listing, Fault> {
        let Input { path, depth, glob, r#type: only, ignored } = input;
        listing::list(&self.0, &call, files::path(&path)?, ListOptions { depth, glob, only, ignored }).await
    }
}
