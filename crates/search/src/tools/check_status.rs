//! `check_status`.

use std::sync::Arc;

use pintle_contract::{Annotations, Fault};
use pintle_engine::{CallContext, NoArguments, Tool, ToolOutput};
use schemars::JsonSchema;
use serde::Serialize;

use crate::search::Search;

pub(crate) struct CheckStatus(pub(crate) Arc<Search>);

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Output {
    /// Whether everything works.
    ok: bool,
}

impl ToolOutput for Output {}

impl Tool for CheckStatus {
    type Input = NoArguments;
    type Output = Output;

    const NAME: &'static str = "check_status";
    const TITLE: &'static str = "Check health";
    const DESCRIPTION: &'static str =
        "Checks each capability of the server and tells whether it works, and each warning with its remedy.";
    const ANNOTATIONS: Annotations = Annotations::READ_ONLY;

    async fn run(&self, _: NoArguments, call: CallContext) -> Result<Output, Fault> {
        let search = Arc::clone(&self.0);
        call.compute(move |call| Ok(Output { ok: search.snapshot_if_any(call)?.is_some() })).await?
    }
}
