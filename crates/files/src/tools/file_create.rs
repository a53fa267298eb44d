//! `file.create`.

use std::sync::Arc;

use base64::{Engine, prelude::BASE64_STANDARD};
use pintle_contract::{Annotations, ClientHints, ErrorCode, Fault, Permission, Verb};
use pintle_tool::{CallContext, Tool};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{ADDITION, ALWAYS_LOAD, Hashed};
use crate::{
    files::{self, Files, Paths},
    store::{Store, Terms},
};

pub(crate) struct FileCreate(pub(crate) Arc<Files>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The file, relative to the root of the workspace.
    path: String,
    /// Its content.
    content: String,
    /// How `content` is written: `utf-8` as it is (default), `base64` for bytes.
    #[serde(default)]
    encoding: Encoding,
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
enum Encoding {
    #[default]
    #[serde(rename = "utf-8")]
    Utf8,
    #[serde(rename = "base64")]
    Base64,
}

impl Tool for FileCreate {
    type Input = Input;
    type Output = Hashed;

    const NAME: &'static str = "file.create";
    const TITLE: &'static str = "Create a file";
    const DESCRIPTION: &'static str = "Use this to create a new file, with its parent folders. Returns its hash. If the path already exists, that is a CONFLICT and nothing is done: edit it instead.";
    const ANNOTATIONS: Annotations = ADDITION;
    const PERMISSIONS: &'static [Permission] = &[Permission::Argument(Verb::Write, "/path")];
    const CLIENT_HINTS: ClientHints = ALWAYS_LOAD;

    async fn run(&self, input: Input, call: CallContext) -> Result<Hashed, Fault> {
        let path = files::path(&input.path)?;
        let content = match input.encoding {
            Encoding::Utf8 => input.content.into_bytes(),
            Encoding::Base64 => BASE64_STANDARD.decode(input.content).map_err(|_| {
                Fault::new(ErrorCode::InvalidRequest, "`content` is not Base64")
                    .hint("use the standard alphabet with `+` and `/`, padding `=`, and no white space")
            })?,
        };
        let work = move |store: &dyn Store, paths: &Paths, terms: &Terms<'_>| {
            store.create(&paths.path, &content, terms)
        };
        let hash = self.0.with_store(&call, path.into(), work).await?;
        Ok(Hashed { hash: hash.to_string() })
    }
}
