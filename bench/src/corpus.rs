//! Test data: schemas with references between them, and a valid asset of some 10 KiB.

use std::{fs, path::Path};

use serde_json::{Value, json};

const BASE: &str = "https://schemas.example.org/1.0.0";

/// Writes `count` schema files (at least the four that belong together).
pub fn write_schemas(folder: &Path, count: usize) {
    let object = |name: &str, properties: Value, required: Value| {
        json!({
            "$id": format!("{BASE}/{name}.schema.json"),
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false
        })
    };
    let reference = |name: &str| json!({"$ref": format!("{BASE}/{name}.schema.json")});
    let colour = object(
        "colour",
        json!({
            "hex": {"type": "string", "pattern": "^#[0-9a-f]{6}$"},
            "alpha": {"type": "number", "minimum": 0, "maximum": 1}
        }),
        json!(["hex"]),
    );
    let curve = object(
        "curve",
        json!({
            "kind": {"enum": ["linear", "ease", "step"]},
            "points": {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 16}
        }),
        json!(["kind", "points"]),
    );
    let lamp = object(
        "lamp",
        json!({
            "name": {"type": "string", "minLength": 1, "maxLength": 80},
            "made": {"type": "string", "format": "date-time"},
            "colour": {"anyOf": [reference("colour"), {"type": "null"}]},
            "fade": reference("curve"),
            "tags": {"type": "array", "items": {"type": "string"}, "uniqueItems": true}
        }),
        json!(["name", "fade"]),
    );
    let scene = object(
        "scene",
        json!({"title": {"type": "string"}, "lamps": {"type": "array", "items": reference("lamp")}}),
        json!(["title", "lamps"]),
    );
    for (name, schema) in [("colour", colour), ("curve", curve), ("lamp", lamp.clone()), ("scene", scene)] {
        write(folder, name, &schema);
    }
    for number in 4..count {
        let mut copy = lamp.clone();
        copy["$id"] = json!(format!("{BASE}/lamp-{number}.schema.json"));
        write(folder, &format!("lamp-{number}"), &copy);
    }
}

fn write(folder: &Path, name: &str, schema: &Value) {
    let path = folder.join(format!("{name}.schema.json"));
    fs::write(path, format!("{schema:#}")).expect("the schema can be written");
}

/// An asset that is valid against `scene`.
pub fn asset() -> Value {
    let lamp = |number: usize| {
        json!({
            "name": format!("Lamp number {number} of the evening scene"),
            "made": "2026-03-01T12:30:00Z",
            "colour": if number.is_multiple_of(3) { Value::Null } else { json!({"hex": "#ffeecc", "alpha": 0.5}) },
            "fade": {"kind": "ease", "points": [0.0, 0.25, 0.5, 0.75, 1.0, number as f64 / 7.0]},
            "tags": ["warm", "indoor", format!("room-{number}")]
        })
    };
    json!({"title": "Evening", "lamps": (0..44).map(lamp).collect::<Vec<_>>()})
}
