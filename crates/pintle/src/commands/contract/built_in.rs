//! The surface of this program: all of its toolsets, whatever its configuration.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    sync::Arc,
};

use pintle_contract::{ERROR_TABLE, Retry, SURFACE_VERSION, ToolDefinition, underscore_name};
use pintle_engine::Timeouts;
use pintle_surface::{Surface, SurfaceTool};
use pintle_tool::{DynTool, ToolTimeout};
use pintle_wire::{ToolNames, listed_definitions};
use serde_json::{Value, json};

use crate::{
    compose::{self, BuiltIn},
    error::{ContractError, StartError},
    settings::{Workspace, all_settings},
};

pub fn built_in_surface() -> Result<Surface, StartError> {
    let BuiltIn { tools, resources } = compose::built_in(&Workspace::built_in())?;
    let templates = resources.iter().filter_map(|family| Some((family.template()?, family.scheme())));
    let names: HashSet<&str> = tools.iter().map(|tool| tool.definition().name.as_str()).collect();
    Ok(Surface {
        version: u64::from(SURFACE_VERSION),
        instructions: Some(pintle_wire::instructions(&names)),
        error_codes: error_codes(),
        defaults: defaults(),
        timeouts: BTreeMap::new(),
        resource_templates: templates
            .map(|(template, scheme)| (template.to_owned(), json!({ "name": scheme })))
            .collect(),
        tools: tools.iter().map(|tool| (tool.definition().name.clone(), surface_tool(tool))).collect(),
    })
}

/// The same tools as a server lists them to clients. For these the list says less than the lock, in words that all of
/// them take: an optional argument is not shown as one that may be null.
pub fn listed_surface() -> Result<Surface, StartError> {
    let built_in = built_in_surface()?;
    let BuiltIn { tools, .. } = compose::built_in(&Workspace::built_in())?;
    let mut definitions: Vec<&ToolDefinition> = tools.iter().map(|tool| tool.definition()).collect();
    definitions.sort_by_key(|definition| definition.name.as_str());
    let list = listed_definitions(&definitions, ToolNames::Underscore, env!("CARGO_PKG_VERSION"));
    let listed = json!({ "instructions": built_in.instructions, "tools": list });
    let from = "the built-in list".to_owned();
    Ok(Surface::from_json(&listed).map_err(|error| ContractError::Surface { from, error })?)
}

fn surface_tool(tool: &Arc<dyn DynTool>) -> SurfaceTool {
    let definition = tool.definition();
    let annotations = match json!(definition.annotations) {
        Value::Object(annotations) => annotations.into_iter().collect(),
        _ => BTreeMap::new(),
    };
    let timeout = match tool.timeout() {
        Some(ToolTimeout::Default(timeout) | ToolTimeout::Set(timeout)) => timeout,
        None => Timeouts::DEFAULT,
    };
    SurfaceTool {
        listed_name: Some(underscore_name(&definition.name)).filter(|listed| *listed != definition.name),
        title: Some(definition.title.clone()),
        description: Some(definition.description.clone()),
        input_schema: definition.input_schema.clone(),
        output_schema: Some(definition.output_schema.clone()),
        annotations,
        schema_version: u64::from(definition.schema_version),
        aliases: definition.aliases.iter().cloned().collect(),
        deprecated: definition.deprecated.clone(),
        timeout_ms: Some(timeout.as_millis() as u64),
        error_codes: BTreeSet::new(),
    }
}

fn error_codes() -> BTreeMap<String, Value> {
    let row = |row: &pintle_contract::ErrorRow| {
        let retry = match row.retry {
            Retry::No => json!(false),
            Retry::Yes => json!(true),
            Retry::After(what) => json!(what),
        };
        (row.name.to_owned(), json!({"http": row.http, "jsonRpc": row.json_rpc, "retry": retry}))
    };
    ERROR_TABLE.iter().map(row).collect()
}

/// The defaults of settings, as help shows them.
fn defaults() -> BTreeMap<String, Value> {
    all_settings()
        .filter_map(|setting| Some((setting.key().to_owned(), json!(setting.default_text()?))))
        .collect()
}
