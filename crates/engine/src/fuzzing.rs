//! What must hold of arguments whatever a client sends: the properties that the fuzz target asserts.

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};

use pintle_contract::{Annotations, Fault, Permission, pointer_segment};
use pintle_schema::{CompiledSchema, SchemaRegistry};
use pintle_tool::{CallContext, DynTool, Tool, ToolOutput, erase};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::repair::repair;

/// A tool with arguments of all types.
struct AllTypes;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is needed")]
struct Input {
    query: String,
    lines: Option<[u32; 2]>,
    #[schemars(range(min = 1, max = 100))]
    top: Option<u32>,
    word: Option<bool>,
    path: Option<TextOrList>,
    inner: Option<Inner>,
    edits: Option<Vec<Edit>>,
    asset: Option<Value>,
    by_name: Option<BTreeMap<String, f64>>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is needed")]
enum TextOrList {
    Text(String),
    List(Vec<String>),
}

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its schema is needed")]
struct Inner {
    depth: u8,
    name: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is needed")]
struct Edit {
    path: String,
    lines: Option<[u32; 2]>,
    all: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
struct Output {}

impl ToolOutput for Output {}

impl Tool for AllTypes {
    type Input = Input;
    type Output = Output;

    const NAME: &'static str = "all_types";
    const TITLE: &'static str = "All types";
    const DESCRIPTION: &'static str = "Takes arguments of all types.";
    const ANNOTATIONS: Annotations = Annotations::READ_ONLY;
    const PERMISSIONS: &'static [Permission] = &[Permission::AnyCaller];

    fn reread(argument: &str, text: &str) -> Option<Value> {
        let (start, end) = text.split_once('-').filter(|_| argument == "lines")?;
        Some(json!([start.parse::<u32>().ok()?, end.parse::<u32>().ok()?]))
    }

    async fn run(&self, _: Input, _: CallContext) -> Result<Output, Fault> {
        Ok(Output {})
    }
}

static TOOL: LazyLock<(Arc<dyn DynTool>, Arc<CompiledSchema>)> = LazyLock::new(|| {
    let tool = erase(AllTypes);
    let schema = SchemaRegistry::default().load(&tool.definition().input_schema);
    (tool, schema.expect("it compiles"))
});

/// The tool with arguments of all types.
#[cfg(test)]
pub(crate) fn tool() -> Arc<dyn DynTool> {
    Arc::clone(&TOOL.0)
}

/// Converts arguments. What matched the schema still does; what was converted matches it, and what is not reported as
/// converted is as it was, unless the call is refused. Converting again changes nothing.
pub fn repair_arguments(bytes: &[u8]) {
    let (tool, schema) = &*TOOL;
    let Ok(sent) = serde_json::from_slice::<Value>(bytes) else { return };
    let mut arguments = sent.clone();
    let was_accepted = schema.accepts(&sent);
    let repairs = repair(&mut arguments, tool.as_ref(), schema, was_accepted);
    let is_accepted = schema.accepts(&arguments);
    assert!(is_accepted || !was_accepted, "{sent} became {arguments}");
    let mismatches = schema.mismatches(&arguments, "argument");
    for name in &repairs.names {
        // A member of an argument is named by its path.
        let is_argument = arguments.get(name).is_some();
        let pointer = if is_argument { format!("/{}", pointer_segment(name)) } else { format!("/{name}") };
        let is_about = |path: &str| path == pointer || path.starts_with(&format!("{pointer}/"));
        assert!(!mismatches.iter().any(|mismatch| is_about(&mismatch.path)), "{sent} became {arguments}");
    }
    assert!(repairs.reread.iter().all(|(name, _)| repairs.names.contains(name)));
    let (Some(before), Some(after)) = (sent.as_object(), arguments.as_object()) else {
        assert_eq!(sent, arguments);
        return;
    };
    for (name, value) in before {
        let is_same = after.get(name) == Some(value);
        let is_in = |path: &String| path == name || path.starts_with(&format!("{name}/"));
        assert!(is_same || !is_accepted || repairs.names.iter().any(is_in), "{name} of {sent}");
    }
    assert!(after.keys().all(|name| before.contains_key(name)), "{sent} became {arguments}");
    if is_accepted {
        let mut again = arguments.clone();
        let repairs = repair(&mut again, tool.as_ref(), schema, true);
        assert!(again == arguments && repairs.names.is_empty(), "{arguments} became {again}");
    }
}

#[cfg(test)]
#[path = "../../../fuzz/seeds.rs"]
mod seeds;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_properties_hold_for_the_seeds() {
        seeds::each_seed("repair", repair_arguments);
    }
}
