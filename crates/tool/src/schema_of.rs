//! Generates the JSON Schemas that clients see from Rust types.

use schemars::{
    JsonSchema, Schema, SchemaGenerator,
    generate::SchemaSettings,
    transform::{RecursiveTransform, Transform},
};
use serde_json::{Value, json};

/// A self-contained object schema without `$ref`: MCP requires `type: object` at the root, and not all clients resolve
/// references.
pub(crate) fn schema_of<T: JsonSchema>(schema_use: SchemaUse) -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    settings.meta_schema = None;
    let settings = match schema_use {
        SchemaUse::Input => settings,
        SchemaUse::Output => settings.for_serialize(),
    };
    let mut schema = SchemaGenerator::new(settings).into_root_schema_for::<T>();
    RecursiveTransform(|schema: &mut Schema| bounds_for_rust_formats(schema, schema_use))
        .transform(&mut schema);
    let mut schema = schema.to_value();
    if let Value::Object(map) = &mut schema {
        map.remove("title");
        map.remove("description");
        map.entry("type").or_insert(json!("object"));
        if !map.contains_key("anyOf") {
            map.entry("properties").or_insert(json!({}));
        }
        map.sort_keys();
    }
    schema
}

/// Which side of a call a schema describes.
#[derive(Clone, Copy)]
pub(crate) enum SchemaUse {
    /// The arguments: values out of bounds are refused.
    Input,
    /// The result, which needs no bounds.
    Output,
}

/// Replaces formats such as `uint32` by bounds: they are not JSON Schema formats, and some clients refuse unknown ones.
///
/// No bound is beyond 2^53, up to which a JavaScript number is exact: clients would pass on a rounded one, and model
/// APIs refuse a whole request for a bound that is no 64-bit integer.
fn bounds_for_rust_formats(schema: &mut Schema, schema_use: SchemaUse) {
    const LARGEST: i64 = (1 << 53) - 1;
    let wide = |bound: Value| matches!(schema_use, SchemaUse::Input).then_some(bound);
    let (minimum, maximum) = match schema.get("format").and_then(Value::as_str) {
        Some("uint8") => (Some(json!(0)), Some(json!(u8::MAX))),
        Some("uint16") => (Some(json!(0)), Some(json!(u16::MAX))),
        Some("uint32") => (Some(json!(0)), Some(json!(u32::MAX))),
        Some("uint64" | "uint") => (Some(json!(0)), wide(json!(LARGEST))),
        Some("int32") => (Some(json!(i32::MIN)), Some(json!(i32::MAX))),
        Some("int64" | "int") => (wide(json!(-LARGEST)), wide(json!(LARGEST))),
        _ => return,
    };
    schema.remove("format");
    for (name, limit) in [("minimum", minimum), ("maximum", maximum)] {
        if let (Some(limit), None) = (limit, schema.get(name)) {
            schema.insert(name.to_owned(), limit);
        }
    }
}

/// Converts whole floats to integers where the schema says integer: JSON Schema accepts 1.0 as an integer, serde does
/// not.
pub(crate) fn convert_whole_floats(arguments: &mut Value, schema: &Value) {
    match arguments {
        Value::Object(members) => {
            for (name, value) in members {
                convert_whole_floats(value, &schema["properties"][name.as_str()]);
            }
        }
        Value::Array(elements) if matches!(schema["items"]["type"].as_str(), Some("integer" | "object")) => {
            elements.iter_mut().for_each(|element| convert_whole_floats(element, &schema["items"]));
        }
        // The schema has checked that it is a whole number.
        number if number.is_f64() && schema["type"] == "integer" => {
            *number = match number.as_f64().unwrap_or_default() {
                float if float < 0.0 => json!(float as i64),
                float => json!(float as u64),
            };
        }
        _ => {}
    }
}
