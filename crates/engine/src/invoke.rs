//! `mcp.tool.invoke`: a call inside a call's params.

use std::sync::Arc;

use pintle_contract::{Fault, Meta, Stage, TOOL_ID_PREFIX};
use serde_json::Value;

use pintle_schema::CompiledSchema;

use crate::catalogue::{Catalogue, Entry};

/// The call that the params describe.
pub(crate) struct Invocation {
    pub(crate) tool: Arc<Entry>,
    pub(crate) arguments: Value,
    pub(crate) meta: Meta,
}

/// Reads the params of `mcp.tool.invoke`.
pub(crate) fn read(
    mut params: Value,
    schema: &CompiledSchema,
    catalogue: &Catalogue,
) -> Result<Invocation, Fault> {
    refuse_reserved(&params["version"])?;
    if !schema.accepts(&params) {
        let subject = "the params of mcp.tool.invoke do not match";
        return Err(schema.fault(&params, Stage::Arguments, subject, "field"));
    }
    let id = params["tool"].as_str().unwrap_or_default();
    let tool = catalogue.require(id.strip_prefix(TOOL_ID_PREFIX).unwrap_or_default())?;
    let served = tool.tool.definition().schema_version;
    let wanted = params.pointer("/version/major").and_then(Value::as_f64);
    if wanted.is_some_and(|wanted| wanted != f64::from(served)) {
        return Err(Fault::invalid(
            Stage::Arguments,
            format!("the call asks for another major version of the tool; this server has {served}"),
        )
        .hint("read the definition again (mcp.discover) and adapt the call to it"));
    }
    Ok(Invocation {
        tool: Arc::clone(tool),
        meta: params.get("metadata").map_or_else(Meta::default, Meta::from_value),
        arguments: params["input"].take(),
    })
}

/// Refuses the parts of a version that have no meaning yet. A caller that sends one relies on something that nobody
/// checks.
fn refuse_reserved(version: &Value) -> Result<(), Fault> {
    let Some(part) = ["minor", "patch"].into_iter().find(|part| version.get(part).is_some()) else {
        return Ok(());
    };
    let message = format!(
        "`version.{part}` is reserved: a tool's schema has one number, which is compared with `version.major`"
    );
    Err(Fault::invalid(Stage::Arguments, message).hint("send `version` with `major` alone, or leave it out"))
}
