//! `workspace_status`.

use std::sync::Arc;

use pintle_contract::{Annotations, Fault};
use pintle_engine::{CallContext, NoArguments, Tool, ToolOutput};
use schemars::JsonSchema;
use serde::Serialize;

use super::index_status;
use crate::search::Search;

pub(crate) struct WorkspaceStatus(pub(crate) Arc<Search>);

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub(crate) struct Output {
    /// The folder that the tools see as `/`.
    root: String,
    /// The search index, as `index_status` tells it.
    index: index_status::Output,
}

impl ToolOutput for Output {}

impl Tool for WorkspaceStatus {
    type Input = NoArguments;
    type Output = Output;

    const NAME: &'static str = "workspace_status";
    const TITLE: &'static str = "State of the workspace";
    const DESCRIPTION: &'static str = "Tells where the workspace is and what state it is in: git's head, branch and dirty files, the search index, schemas, bound files and limits.";
    const ANNOTATIONS: Annotations = Annotations::READ_ONLY;

    async fn run(&self, _: NoArguments, call: CallContext) -> Result<Output, Fault> {
        let search = Arc::clone(&self.0);
        let work = move |call: &CallContext| {
            let index = index_status::status(&search, call)?;
            Ok(Output { root: search.root_path().display().to_string(), index })
        };
        call.compute(work).await?
    }
}
