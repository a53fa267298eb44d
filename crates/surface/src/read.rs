//! Reading a surface: a lock, the result of `tools/list`, or another program's snapshot.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::surface::{LOCK_VERSION, Surface, SurfaceTool};

/// Why a document is no surface.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum SurfaceError {
    /// The document holds no list of tools.
    #[error("no list of tools: give a lock, the result of `tools/list`, or a snapshot that has one")]
    NoTools,
    /// The lock is newer than this program.
    #[error("the lock has format {0}, and this program reads up to {LOCK_VERSION}: use a newer `pintle`")]
    NewerLock(u64),
    /// A tool has no name.
    #[error("tool number {0} has no name")]
    NoName(usize),
    /// The snapshot keeps hashes of schemas and not the schemas.
    #[error(
        "the snapshot has hashes of schemas and not the schemas, so nothing can be compared: write one with `pintle contract accept`"
    )]
    HashesOnly,
    /// Two tools have one name.
    #[error("two tools are named {0:?}")]
    TwoTools(String),
    /// A schema is neither an object nor a boolean.
    #[error("the {1} of the tool {0:?} is not a JSON Schema: it has to be an object")]
    NoSchema(String, &'static str),
}

impl Surface {
    /// Reads a surface from any of the formats that are known.
    pub fn from_json(document: &Value) -> Result<Self, SurfaceError> {
        if let Some(version) = document.get("lockVersion").and_then(Value::as_u64)
            && version > LOCK_VERSION
        {
            return Err(SurfaceError::NewerLock(version));
        }
        let (around, tools) = find_tools(document).ok_or(SurfaceError::NoTools)?;
        let mut surface = Self {
            version: number(around, "surfaceVersion").unwrap_or(0),
            instructions: text(around, "instructions"),
            error_codes: section(around, "errorCodes"),
            defaults: section(around, "defaults"),
            timeouts: section(around, "timeouts"),
            resource_templates: resource_templates(around),
            tools: BTreeMap::new(),
        };
        for (index, (key, tool)) in tools.into_iter().enumerate() {
            let (name, tool) = read_tool(key, tool, index)?;
            if surface.tools.contains_key(&name) {
                return Err(SurfaceError::TwoTools(name));
            }
            surface.tools.insert(name, tool);
        }
        Ok(surface)
    }
}

type Named<'a> = Vec<(Option<&'a str>, &'a Value)>;

/// The list of tools of a document, and the object around it. Known are: a lock and the result of `tools/list`
/// (`tools` is a list), the JSON-RPC answer around it (`result`), a list alone, one tool alone (a snapshot that has a
/// file for each tool), and snapshots that keep tools by name (`tools` is an object) or one level deeper.
fn find_tools(document: &Value) -> Option<(&Value, Named<'_>)> {
    if let Value::Array(tools) = document {
        return tools.iter().all(Value::is_object).then(|| (document, unnamed(tools)));
    }
    if input_schema(document).is_some() && document.get("name").is_some_and(Value::is_string) {
        return Some((document, vec![(None, document)]));
    }
    match document.get("tools") {
        Some(Value::Array(tools)) => return Some((document, unnamed(tools))),
        Some(Value::Object(tools)) if tools.values().all(Value::is_object) => {
            // Some snapshots count their tools beside them.
            if let Some(Value::Array(items)) = tools.get("items").or_else(|| tools.get("tools")) {
                return Some((document, unnamed(items)));
            }
            return Some((document, tools.iter().map(|(name, tool)| (Some(name.as_str()), tool)).collect()));
        }
        Some(tools @ Value::Object(_)) => return find_tools(tools),
        _ => {}
    }
    ["result", "snapshot", "surface", "contract", "capabilities", "server", "data"]
        .iter()
        .filter_map(|key| document.get(key))
        .find_map(find_tools)
}

fn unnamed(tools: &[Value]) -> Named<'_> {
    tools.iter().map(|tool| (None, tool)).collect()
}

fn input_schema(tool: &Value) -> Option<&Value> {
    ["inputSchema", "input_schema", "parameters"].iter().find_map(|key| tool.get(key))
}

fn read_tool(key: Option<&str>, tool: &Value, index: usize) -> Result<(String, SurfaceTool), SurfaceError> {
    // Some snapshots wrap the definition to keep a hash beside it.
    let inner = ["definition", "tool", "schema"]
        .iter()
        .filter_map(|key| tool.get(key))
        .find(|inner| input_schema(inner).is_some());
    let tool = inner.unwrap_or(tool);
    let is_hash = |name: &String| {
        let name = name.to_ascii_lowercase();
        ["hash", "digest", "sha256", "fingerprint"].iter().any(|word| name.contains(word))
    };
    if input_schema(tool).is_none() && tool.as_object().is_some_and(|tool| tool.keys().any(is_hash)) {
        return Err(SurfaceError::HashesOnly);
    }
    let meta = |name: &str| tool.get("_meta").and_then(|meta| meta.get(name));
    let listed = tool.get("name").and_then(Value::as_str).or(key).ok_or(SurfaceError::NoName(index))?;
    let stable = meta("pintle/name").and_then(Value::as_str).unwrap_or(listed).to_owned();
    let schema = |schema: Option<&Value>, which| match schema {
        Some(schema @ (Value::Object(_) | Value::Bool(_))) => Ok(Some(schema.clone())),
        Some(Value::Null) | None => Ok(None),
        Some(_) => Err(SurfaceError::NoSchema(stable.clone(), which)),
    };
    let output = tool.get("outputSchema").or_else(|| tool.get("output_schema"));
    let annotations = tool.get("annotations").and_then(Value::as_object).cloned().unwrap_or_default();
    let version =
        number(tool, "schemaVersion").or_else(|| meta("pintle/schemaVersion").and_then(Value::as_u64));
    let surface_tool = SurfaceTool {
        listed_name: text(tool, "listedName").or_else(|| (stable != listed).then(|| listed.to_owned())),
        title: text(tool, "title"),
        description: text(tool, "description"),
        input_schema: schema(input_schema(tool), "input schema")?
            .unwrap_or_else(|| serde_json::json!({"type": "object"})),
        output_schema: schema(output, "output schema")?,
        annotations: annotations.into_iter().collect(),
        schema_version: version.unwrap_or(0),
        aliases: names(tool.get("aliases").or_else(|| meta("pintle/aliases"))),
        deprecated: text(tool, "deprecated")
            .or_else(|| meta("pintle/deprecated").and_then(Value::as_str).map(str::to_owned)),
        timeout_ms: number(tool, "timeoutMs"),
        error_codes: names(tool.get("errorCodes")),
    };
    Ok((stable, surface_tool))
}

fn text(object: &Value, name: &str) -> Option<String> {
    object.get(name).and_then(Value::as_str).map(str::to_owned)
}

fn number(object: &Value, name: &str) -> Option<u64> {
    object.get(name).and_then(Value::as_u64)
}

fn names(list: Option<&Value>) -> BTreeSet<String> {
    let names = list.and_then(Value::as_array).into_iter().flatten();
    names.filter_map(Value::as_str).map(str::to_owned).collect()
}

fn section(around: &Value, name: &str) -> BTreeMap<String, Value> {
    match around.get(name) {
        Some(Value::Object(entries)) => entries.clone().into_iter().collect(),
        _ => BTreeMap::new(),
    }
}

/// A lock has templates by their URI; the result of `resources/templates/list` is a list.
fn resource_templates(around: &Value) -> BTreeMap<String, Value> {
    let without_uri = |template: &Map<String, Value>| {
        let mut rest = template.clone();
        rest.shift_remove("uriTemplate");
        rest.shift_remove("_meta");
        Value::Object(rest)
    };
    match around.get("resourceTemplates") {
        Some(Value::Array(templates)) => templates
            .iter()
            .filter_map(|template| {
                Some((template.get("uriTemplate")?.as_str()?.to_owned(), without_uri(template.as_object()?)))
            })
            .collect(),
        _ => section(around, "resourceTemplates"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn names_of(document: &Value) -> Vec<String> {
        Surface::from_json(document).expect("a surface").tools.into_keys().collect()
    }

    #[test]
    fn lists_answers_and_snapshots_are_read() {
        let tool = json!({"name": "b", "inputSchema": {"type": "object"}});
        let list = json!([tool, {"name": "a", "inputSchema": {"type": "object"}}]);
        assert_eq!(names_of(&list), ["a", "b"]);
        assert_eq!(names_of(&json!({ "tools": list })), ["a", "b"]);
        assert_eq!(names_of(&json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": list}})), ["a", "b"]);
        assert_eq!(names_of(&tool), ["b"]);
        assert_eq!(names_of(&json!({"version": 1, "tools": {"b": {"inputSchema": {}}}})), ["b"]);
        assert_eq!(names_of(&json!({"tools": {"b": {"hash": "x", "definition": tool}}})), ["b"]);
    }

    #[test]
    fn a_lock_is_read_as_it_was_written() {
        let listed = json!({"instructions": "Read first.", "surfaceVersion": 3, "errorCodes": {"NOT_FOUND": {"http": 404}},
            "resourceTemplates": [{"uriTemplate": "file://{path}", "name": "file"}],
            "tools": [{"name": "text_read", "_meta": {"pintle/name": "text.read", "pintle/schemaVersion": 2},
                "title": "Read", "inputSchema": {"type": "object", "properties": {}}, "annotations": {"readOnlyHint": true}}]});
        let surface = Surface::from_json(&listed).expect("a surface");
        assert_eq!(surface.tools["text.read"].schema_version, 2);
        assert_eq!(Surface::from_json(&surface.to_lock()), Ok(surface));
    }

    #[test]
    fn what_is_no_surface_is_refused_with_a_reason() {
        let refused = |document: &Value| Surface::from_json(document).expect_err("refused");
        assert_eq!(refused(&json!({"a": 1})), SurfaceError::NoTools);
        assert_eq!(refused(&json!({"tools": [{"title": "x"}]})), SurfaceError::NoName(0));
        assert_eq!(refused(&json!([{"name": "a"}, {"name": "a"}])), SurfaceError::TwoTools("a".to_owned()));
        assert_eq!(
            refused(&json!([{"name": "a", "inputSchema": 5}])),
            SurfaceError::NoSchema("a".to_owned(), "input schema")
        );
        assert_eq!(refused(&json!({"lockVersion": 99, "tools": []})), SurfaceError::NewerLock(99));
    }
}
