//! The schemas of a manifest, made fit for clients.

use std::collections::HashMap;

use pintle_contract::pointer_segment;
use pintle_schema::SchemaRegistry;
use serde_json::{Map, Value, json};

use crate::error::{ManifestError, Wrong};

/// What a tool takes.
pub(crate) struct Input {
    pub(crate) schema: Value,
    /// The fields, and whether each of them is always there.
    pub(crate) fields: HashMap<String, bool>,
    /// What fields are that were left out.
    pub(crate) defaults: Map<String, Value>,
}

/// Reads `[input]`; without it the tool takes nothing.
pub(crate) fn input(written: Option<Map<String, Value>>) -> Result<Input, Wrong> {
    let mut schema = object_schema(written.unwrap_or_default(), "input")?;
    if schema.get("additionalProperties").is_some_and(|extra| *extra != json!(false)) {
        return Err(Wrong::at("/input/additionalProperties", ManifestError::AdditionalProperties));
    }
    schema.insert("additionalProperties".into(), json!(false));
    schema.entry("properties").or_insert(json!({}));
    let required = |name: &str| {
        let listed = schema.get("required").and_then(Value::as_array);
        listed.is_some_and(|listed| listed.iter().any(|one| one == name))
    };
    let properties = schema.get("properties").and_then(Value::as_object);
    let properties = properties.ok_or_else(|| Wrong::at("/input/properties", ManifestError::NotATable))?;
    for (index, name) in schema.get("required").and_then(Value::as_array).into_iter().flatten().enumerate() {
        if !name.as_str().is_some_and(|name| properties.contains_key(name)) {
            let shown = name.as_str().map_or_else(|| name.to_string(), str::to_owned);
            let pointer = format!("/input/required/{index}");
            return Err(Wrong::at(pointer, ManifestError::UnknownRequired(shown)));
        }
    }
    let mut defaults = Map::new();
    let mut fields = HashMap::new();
    for (name, property) in properties {
        let default = property.get("default");
        fields.insert(name.clone(), required(name) || default.is_some());
        if let Some(default) = default {
            defaults.insert(name.clone(), default.clone());
        }
    }
    let schema = finish(schema, "input")?;
    check_defaults(&schema, &defaults)?;
    Ok(Input { schema, fields, defaults })
}

/// Refuses a default that the property's own schema refuses: every call that leaves it out would fail.
fn check_defaults(schema: &Value, defaults: &Map<String, Value>) -> Result<(), Wrong> {
    let mut schema = schema.clone();
    if let Some(schema) = schema.as_object_mut() {
        // Each is checked alone.
        ["required", "minProperties", "dependentRequired"].iter().for_each(|key| _ = schema.remove(*key));
    }
    let loaded = SchemaRegistry::default().load(&schema);
    let Ok(compiled) = loaded else { return Ok(()) };
    for (name, default) in defaults {
        let wrong = compiled.mismatches(&json!({ name.as_str(): default }), "argument");
        if let Some(first) = wrong.first() {
            let pointer = format!("/input/properties/{}/default", pointer_segment(name));
            return Err(Wrong::at(pointer, ManifestError::BadDefault(first.message.clone())));
        }
    }
    Ok(())
}

/// Reads `[output]`.
pub(crate) fn output(written: Map<String, Value>) -> Result<Value, Wrong> {
    finish(object_schema(written, "output")?, "output")
}

/// What a tool without `[output]` gives.
pub(crate) fn plain_output() -> Value {
    json!({
        "additionalProperties": false,
        "properties": {
            "exitCode": {"description": "The exit code: 0.", "type": "integer"},
            "stderr": {"description": "What the command wrote to standard error.", "type": "string"},
            "stdout": {"description": "What the command wrote to standard output.", "type": "string"},
            "truncated": {"description": "Whether a part of the output was left out.", "type": "boolean"}
        },
        "required": ["stdout", "stderr", "exitCode", "truncated"],
        "type": "object"
    })
}

/// A schema of an object: results and arguments are objects in every dialect.
fn object_schema(mut schema: Map<String, Value>, key: &'static str) -> Result<Map<String, Value>, Wrong> {
    for union in ["anyOf", "oneOf", "allOf"] {
        if schema.contains_key(union) {
            return Err(Wrong::at(format!("/{key}/{union}"), ManifestError::Union(key)));
        }
    }
    match schema.get("type") {
        None => _ = schema.insert("type".into(), json!("object")),
        Some(kind) if kind == "object" => {}
        Some(_) => return Err(Wrong::at(format!("/{key}/type"), ManifestError::NotAnObject(key))),
    }
    // Clients know the draft, and some refuse what they do not expect.
    schema.remove("$schema");
    Ok(schema)
}

fn finish(mut schema: Map<String, Value>, key: &str) -> Result<Value, Wrong> {
    schema.sort_keys();
    let schema = Value::Object(schema);
    if let Some(pointer) = array_without_items(&schema, format!("/{key}")) {
        return Err(Wrong::at(pointer, ManifestError::ArrayWithoutItems));
    }
    match SchemaRegistry::default().load(&schema) {
        Ok(_) => Ok(schema),
        Err(fault) => Err(Wrong::at(format!("/{key}"), ManifestError::Refused(fault.message.clone()))),
    }
}

fn array_without_items(schema: &Value, pointer: String) -> Option<String> {
    match schema {
        Value::Object(map) => {
            if map.get("type").is_some_and(|kind| kind == "array") && !map.contains_key("items") {
                return Some(pointer);
            }
            map.iter().find_map(|(key, value)| {
                array_without_items(value, format!("{pointer}/{}", pointer_segment(key)))
            })
        }
        Value::Array(items) => items
            .iter()
            .enumerate()
            .find_map(|(index, item)| array_without_items(item, format!("{pointer}/{index}"))),
        _ => None,
    }
}
