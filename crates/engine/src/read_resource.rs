//! Reading a resource is a call like any other: with a slot, a deadline, a cancel and a record.

use std::sync::Arc;

use pintle_contract::{Access, Annotations, ErrorCode, Fault, Permission, ToolDefinition, nearest};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use pintle_tool::{CallContext, DynTool, LARGE, Prepared, Resources, Tool, ToolOutput, erase};

/// Finds the family of a resource by its scheme and reads it.
pub(crate) struct ReadResource(Arc<[Arc<dyn Resources>]>);

impl ReadResource {
    /// The tool as the engine holds it.
    pub(crate) fn erased(families: Arc<[Arc<dyn Resources>]>) -> Arc<dyn DynTool> {
        Arc::new(Authorized { read: erase(Self(Arc::clone(&families))), families })
    }
}

/// Reading with what the caller must be allowed to do, which the family of the resource knows.
struct Authorized {
    read: Arc<dyn DynTool>,
    families: Arc<[Arc<dyn Resources>]>,
}

impl DynTool for Authorized {
    fn definition(&self) -> &ToolDefinition {
        self.read.definition()
    }

    fn permissions(&self) -> &[Permission] {
        self.read.permissions()
    }

    fn accesses(&self, arguments: &Value) -> Result<Vec<Access>, Fault> {
        let (scheme, rest) = split(arguments["uri"].as_str().unwrap_or_default());
        // What has no family is refused when it is to be read.
        find(&self.families, scheme).map_or(Ok(Vec::new()), |family| family.accesses(rest))
    }

    fn prepare<'a>(&'a self, arguments: Value) -> Result<Prepared<'a>, Fault> {
        self.read.prepare(arguments)
    }
}

/// The scheme of an address, and what follows it.
fn split(uri: &str) -> (&str, &str) {
    uri.split_once("://").unwrap_or(("", ""))
}

fn find<'a>(families: &'a [Arc<dyn Resources>], scheme: &str) -> Option<&'a Arc<dyn Resources>> {
    families.iter().find(|family| family.scheme() == scheme)
}

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
    const PERMISSIONS: &'static [Permission] = &[Permission::AnyCaller];

    async fn run(&self, input: Input, call: CallContext) -> Result<Output, Fault> {
        let (scheme, rest) = split(&input.uri);
        let Some(family) = find(&self.0, scheme) else {
            let near = nearest(scheme, self.0.iter().map(|family| family.scheme()));
            let fault = Fault::new(ErrorCode::NotFound, "no resource has that kind of address");
            let near = near.map(|near| format!("the nearest kind is `{near}://`; "));
            return Err(fault.hint(format!("{}resources/list shows all", near.unwrap_or_default())));
        };
        let content = family.read(&call, rest).await?;
        Ok(Output { uri: input.uri, mime_type: content.mime_type, text: content.text })
    }
}
