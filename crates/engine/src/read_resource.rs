//! Reading a resource is a call like any other: with a slot, a deadline, a cancel and a record.

use std::sync::Arc;

use pintle_contract::{Annotations, ErrorCode, Fault, nearest};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    aside::LARGE,
    context::CallContext,
    resource::Resources,
    tool::{Tool, ToolOutput},
};

/// Finds the family of a resource by its scheme and reads it.
pub(crate) struct ReadResource(pub(crate) Arc<[Arc<dyn Resources>]>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The address of the resource.
    uri: String,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub(crate) struct Output {
    /// The address that was asked for.
    uri: String,
    /// The type of the text.
    mime_type: &'static str,
    /// The content.
    text: String,
}

impl ToolOutput for Output {
    fn is_large(&self) -> bool {
        self.text.len() > LARGE
    }
}

impl Tool for ReadResource {
    type Input = Input;
    type Output = Output;

    const NAME: &'static str = "resources/read";
    const TITLE: &'static str = "Read a resource";
    const DESCRIPTION: &'static str = "Reads one resource by its address.";
    const ANNOTATIONS: Annotations = Annotations::READ_ONLY;

    async fn run(&self, input: Input, call: CallContext) -> Result<Output, Fault> {
        let (scheme, rest) = input.uri.split_once("://").unwrap_or(("", ""));
        let Some(family) = self.0.iter().find(|family| family.scheme() == scheme) else {
            let near = nearest(scheme, self.0.iter().map(|family| family.scheme()));
            let fault = Fault::new(ErrorCode::NotFound, "no resource has that kind of address");
            return Err(match near {
                Some(near) => {
                    fault.hint(format!("the nearest kind is `{near}://`; resources/list shows all"))
                }
                None => fault,
            });
        };
        let content = family.read(&call, rest).await?;
        Ok(Output { uri: input.uri, mime_type: content.mime_type, text: content.text })
    }
}
