//! `file.list`.

use std::sync::Arc;

use pintle_auth::{Access, Need, Verb};
use pintle_contract::{Annotations, ClientHints, Fault};
use pintle_engine::{CallContext, Tool};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{ALWAYS_LOAD, reads};
use crate::{
    files::{self, Files},
    listing::{self, Listing},
};

pub(crate) struct FileList(pub(crate) Arc<Files>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The folder, relative to the root of the workspace; the root itself if it is left out.
    #[serde(default)]
    path: String,
}

impl Tool for FileList {
    type Input = Input;
    type Output = Listing;

    const NAME: &'static str = "file.list";
    const TITLE: &'static str = "List a folder";
    const DESCRIPTION: &'static str =
        "Lists what lies directly in a folder: folders first, then files, each sorted by name.";
    const ANNOTATIONS: Annotations = Annotations::READ_ONLY;
    const CLIENT_HINTS: ClientHints = ALWAYS_LOAD;

    fn need() -> Need {
        Need::SomePath(Verb::Read)
    }

    fn access(input: &Input) -> Result<Vec<Access>, Fault> {
        reads(&input.path)
    }

    async fn run(&self, input: Input, call: CallContext) -> Result<Listing, Fault> {
        listing::list(&self.0, &call, files::path(&input.path)?).await
    }
}
