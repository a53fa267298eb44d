//! Random edits of random schemas: a verdict never contradicts what random values show.
//!
//! The values come from a generator of its own, which knows nothing of how verdicts are reached.

use fastrand::Rng;
use pintle_surface::{Side, Verdict, decide};
use serde_json::{Map, Value, json};

const NAMES: &[&str] = &["a", "b", "c", "d"];
const WORDS: &[&str] = &["", "x", "red", "green", "ab12", "2020-01-31", "a b", "ZZZZZZ"];
const PATTERNS: &[&str] = &["^[a-z]+$", "^x", "[0-9]", "^(red|green)$", "^.{2,4}$"];

/// How many pairs are tried; `PINTLE_PAIRS` says another number.
fn pairs() -> u64 {
    std::env::var("PINTLE_PAIRS").ok().and_then(|count| count.parse().ok()).unwrap_or(1_000)
}

fn one<T: Copy>(rng: &mut Rng, list: &[T]) -> T {
    list[rng.usize(..list.len())]
}

fn schema(rng: &mut Rng, depth: u32) -> Value {
    let kinds = if depth == 0 { 6 } else { 11 };
    match rng.u32(..kinds) {
        0 => bounded(rng, "string", &["minLength", "maxLength"], 5),
        1 => bounded(rng, "integer", &["minimum", "maximum", "multipleOf"], 6),
        2 => bounded(rng, "number", &["minimum", "exclusiveMaximum"], 6),
        3 => json!({"type": one(rng, &["boolean", "null", "string", "integer"])}),
        4 => {
            let values: Vec<&str> = WORDS.iter().copied().filter(|_| rng.bool()).collect();
            if values.is_empty() { json!({"const": 1}) } else { json!({ "enum": values }) }
        }
        5 => json!({"type": "string", "pattern": one(rng, PATTERNS)}),
        6 => {
            let mut list = json!({"type": "array", "items": schema(rng, depth - 1)});
            if rng.bool() {
                list[one(rng, &["minItems", "maxItems"])] = json!(rng.u32(..4));
            }
            if rng.u32(..4) == 0 {
                list["uniqueItems"] = json!(true);
            }
            list
        }
        7 => json!({one(rng, &["anyOf", "oneOf"]): [schema(rng, depth - 1), schema(rng, depth - 1)]}),
        8 => json!({"type": [one(rng, &["string", "integer"]), one(rng, &["null", "boolean", "object"])]}),
        _ => object(rng, depth),
    }
}

fn bounded(rng: &mut Rng, kind: &str, keywords: &[&str], most: u32) -> Value {
    let mut schema = json!({ "type": kind });
    for keyword in keywords {
        if rng.u32(..3) == 0 {
            schema[keyword] = json!(rng.u32(1..=most));
        }
    }
    schema
}

fn object(rng: &mut Rng, depth: u32) -> Value {
    let mut members = Map::new();
    let mut required = Vec::new();
    for name in NAMES {
        if rng.bool() {
            members.insert((*name).to_owned(), schema(rng, depth.saturating_sub(1)));
            if rng.u32(..3) == 0 {
                required.push(*name);
            }
        }
    }
    let mut schema = json!({"type": "object", "properties": members});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    match rng.u32(..4) {
        0 => schema["additionalProperties"] = json!(false),
        1 => schema["additionalProperties"] = json!({"type": "string"}),
        _ => {}
    }
    schema
}

/// Changes one random part.
fn edit(rng: &mut Rng, original: &Value) -> Value {
    let mut pointers = Vec::new();
    collect(original, String::new(), &mut pointers);
    let pointer = pointers[rng.usize(..pointers.len())].clone();
    let mut edited = original.clone();
    let Some(node) = edited.pointer_mut(&pointer) else { return edited };
    match rng.u32(..5) {
        0 => *node = schema(rng, 1),
        1 => {
            let other = schema(rng, 1);
            if let (Value::Object(node), Value::Object(other)) = (&mut *node, other) {
                node.extend(other);
            }
        }
        2 => {
            if let Value::Object(node) = node {
                let keywords: Vec<String> = node.keys().cloned().collect();
                if let Some(keyword) = (!keywords.is_empty()).then(|| &keywords[rng.usize(..keywords.len())])
                {
                    node.remove(keyword);
                }
            }
        }
        3 => {
            if let Some(Value::Object(members)) = node.get_mut("properties") {
                members.insert(one(rng, NAMES).to_owned(), schema(rng, 1));
            }
        }
        _ => {
            if node.get("properties").is_some() {
                let names: Vec<&str> = NAMES.iter().copied().filter(|_| rng.u32(..3) == 0).collect();
                node["required"] = json!(names);
            } else if node.is_object() {
                node["minLength"] = json!(rng.u32(..4));
            }
        }
    }
    edited
}

fn collect(schema: &Value, at: String, found: &mut Vec<String>) {
    found.push(at.clone());
    if let Some(Value::Object(members)) = schema.get("properties") {
        members.iter().for_each(|(name, member)| collect(member, format!("{at}/properties/{name}"), found));
    }
    if let Some(items) = schema.get("items") {
        collect(items, format!("{at}/items"), found);
    }
    for keyword in ["anyOf", "oneOf"] {
        for (index, branch) in schema.get(keyword).and_then(Value::as_array).into_iter().flatten().enumerate()
        {
            collect(branch, format!("{at}/{keyword}/{index}"), found);
        }
    }
}

/// A value that often matches: guided by the schema, with random choices.
fn value(rng: &mut Rng, schema: &Value, depth: u32) -> Value {
    if depth == 0 || rng.u32(..12) == 0 {
        return any(rng);
    }
    for keyword in ["anyOf", "oneOf"] {
        if let Some(Value::Array(branches)) = schema.get(keyword) {
            let branch = branches[rng.usize(..branches.len())].clone();
            return value(rng, &branch, depth - 1);
        }
    }
    if let Some(Value::Array(values)) = schema.get("enum") {
        return values.get(rng.usize(..values.len().max(1))).cloned().unwrap_or_default();
    }
    if let Some(constant) = schema.get("const") {
        return constant.clone();
    }
    let kind = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds[rng.usize(..kinds.len())].as_str().unwrap_or("null"),
        Some(Value::String(kind)) => kind,
        _ => return any(rng),
    };
    match kind {
        "string" => json!(one(rng, WORDS)),
        "integer" => json!(rng.i64(-2..=13)),
        "number" => json!(rng.i64(-4..=26) as f64 / 2.0),
        "boolean" => json!(rng.bool()),
        "null" => Value::Null,
        "array" => {
            let items = schema.get("items").cloned().unwrap_or(json!(true));
            (0..rng.usize(..5)).map(|_| value(rng, &items, depth - 1)).collect()
        }
        _ => {
            let mut members = Map::new();
            let declared = schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
            let required = schema.get("required").cloned().unwrap_or(json!([]));
            for (name, member) in &declared {
                let is_required = required.as_array().is_some_and(|names| names.contains(&json!(name)));
                if is_required || rng.bool() {
                    members.insert(name.clone(), value(rng, member, depth - 1));
                }
            }
            if schema.get("additionalProperties").is_some() && rng.bool() {
                members.insert(one(rng, NAMES).to_owned(), json!(one(rng, WORDS)));
            }
            Value::Object(members)
        }
    }
}

fn any(rng: &mut Rng) -> Value {
    match rng.u32(..8) {
        0 => Value::Null,
        1 => json!(rng.bool()),
        2 => json!(rng.i64(-2..=8)),
        3 => json!(rng.i64(-4..=12) as f64 / 2.0),
        4 => json!([one(rng, WORDS), rng.i64(..3)]),
        5 => json!({one(rng, NAMES): one(rng, WORDS)}),
        6 => json!({}),
        _ => json!(one(rng, WORDS)),
    }
}

/// The schema with every object closed that does not say what other members may be: what callers send.
fn closed(schema: &Value) -> Value {
    let mut closed = schema.clone();
    let mut pointers = Vec::new();
    collect(schema, String::new(), &mut pointers);
    for pointer in pointers {
        let Some(Value::Object(node)) = closed.pointer_mut(&pointer) else { continue };
        let is_object = match node.get("type") {
            Some(Value::Array(kinds)) => kinds.contains(&json!("object")),
            // Arguments are always an object.
            None => true,
            kind => kind == Some(&json!("object")),
        };
        let declares = node.contains_key("properties") || (pointer.is_empty() && is_object);
        if declares && !node.contains_key("additionalProperties") {
            node.insert("additionalProperties".to_owned(), json!(false));
        }
    }
    closed
}

#[test]
fn no_verdict_contradicts_what_random_values_show() {
    let mut rng = Rng::with_seed(20);
    let mut counts = [0u64; 3];
    for round in 0..pairs() {
        let old = object(&mut rng, 3);
        let mut new = edit(&mut rng, &old);
        if rng.u32(..3) == 0 {
            new = edit(&mut rng, &new);
        }
        if !jsonschema::meta::is_valid(&new) {
            continue;
        }
        let decision = decide(Side::Input, &old, &new);
        let (old_closed, new_closed) = (closed(&old), closed(&new));
        let accepts = |schema: &Value, value: &Value| jsonschema::is_valid(schema, value);
        let (before, after) = (
            jsonschema::validator_for(&old_closed).expect("a schema"),
            jsonschema::validator_for(&new_closed).expect("a schema"),
        );
        match decision.verdict {
            Verdict::Compatible => {
                counts[0] += 1;
                for _ in 0..60 {
                    let value = value(&mut rng, &old_closed, 5);
                    assert!(
                        !before.is_valid(&value) || after.is_valid(&value),
                        "round {round}: a false `compatible`\nold {old}\nnew {new}\nvalue {value}"
                    );
                }
            }
            Verdict::Breaks => {
                counts[1] += 1;
                let witness = decision.witness.expect("a witness");
                assert!(
                    accepts(&old_closed, &witness) && !accepts(&new_closed, &witness),
                    "round {round}: a false `breaks`\nold {old}\nnew {new}\nwitness {witness}"
                );
            }
            Verdict::Unknown => {
                counts[2] += 1;
                if std::env::var_os("PINTLE_SHOW").is_some() {
                    println!("unknown: {}\n  old {old}\n  new {new}", decision.reason.unwrap_or_default());
                }
            }
        }
    }
    println!("compatible {}, breaks {}, unknown {}", counts[0], counts[1], counts[2]);
    let decided = counts[0] + counts[1];
    assert!(decided * 100 >= (decided + counts[2]) * 95, "too few were decided: {counts:?}");
}
