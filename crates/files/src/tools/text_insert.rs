//! `text.insert`.

use std::sync::Arc;

use pintle_auth::Access;
use pintle_contract::{Annotations, Fault};
use pintle_engine::{CallContext, Tool};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Edited, GUARDED_EDIT, writes};
use crate::{
    files::{self, Files},
    store::{Source, Store, StoreError, Terms},
    text,
};

pub(crate) struct TextInsert(pub(crate) Arc<Files>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The file, relative to the root of the workspace.
    path: String,
    /// The file's hash, as the last read or edit gave it. If the file has changed since, nothing is done.
    hash: String,
    /// The line to insert before, counted from 1 or, negative, from the end.
    line: i64,
    /// What that line holds now, without its newline.
    anchor: String,
    /// The lines to insert.
    content: String,
}

impl Tool for TextInsert {
    type Input = Input;
    type Output = Edited;

    const NAME: &'static str = "text.insert";
    const TITLE: &'static str = "Insert lines";
    const DESCRIPTION: &'static str =
        "Inserts whole lines into a text file, before a line that must be exactly `anchor`.";
    const ANNOTATIONS: Annotations = GUARDED_EDIT;

    fn access(input: &Input) -> Result<Vec<Access>, Fault> {
        writes(&input.path)
    }

    async fn run(&self, input: Input, call: CallContext) -> Result<Edited, Fault> {
        let (path, expected) = (files::path(&input.path)?, files::hash(&input.hash)?);
        let edited = path.clone();
        let work = move |store: &dyn Store, terms: &Terms<'_>| {
            let mut total_lines = 0;
            let mut plan = |source: &dyn Source| {
                let edit = text::insert(source, input.line, &input.anchor, &input.content, terms.has_ended)?;
                total_lines = edit.total_lines;
                Ok(edit.plan)
            };
            let hash = store.swap(&edited, expected, &mut plan, terms).map_err(|error| match error {
                // What was given shows that the caller knows the place.
                StoreError::Stale(found) => StoreError::Refused(files::stale(found, true)),
                error => error,
            })?;
            Ok(Edited { hash: hash.to_string(), total_lines })
        };
        self.0.with_store(&call, &path, work).await
    }
}
