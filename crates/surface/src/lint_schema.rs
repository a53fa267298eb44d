//! What a client does not take in a tool's input schema.

use pintle_contract::pointer_segment;
use serde_json::{Map, Value};

use crate::{
    client::Check,
    lint::{Hit, allows, listed, quoted},
    subschemas::{self, Position},
};

/// The largest integer that a double holds together with its neighbours.
const LARGEST_SAFE: u64 = (1 << 53) - 1;

/// Where an input schema goes against a check, with pointers that begin with `at`.
pub(crate) fn input_schema(check: Check, schema: &Value, at: &str) -> Vec<Hit> {
    match check {
        Check::RootUnion(keywords) => root_keywords(keywords, schema, at),
        Check::InputRoot => root_object(schema, at, "inputSchema").into_iter().collect(),
        Check::InvalidSchema => invalid(schema, at).into_iter().collect(),
        Check::ArgumentName(others, most) => argument_names(others, most, schema, at),
        Check::UnsafeNumber => {
            let mut hits = Vec::new();
            unsafe_numbers(schema, at, &mut hits);
            hits
        }
        Check::EnumSize(most) => {
            in_all(most, count(schema, "enum", Value::as_array, Vec::len), at, |count| {
                format!("the enums of the input schema have {count} values; leave at most {most}")
            })
        }
        Check::PropertyCount(most) => {
            in_all(most, count(schema, "properties", Value::as_object, Map::len), at, |count| {
                format!("the input schema has {count} properties; leave at most {most}")
            })
        }
        Check::Nesting(most) => nesting(most, schema, at).into_iter().collect(),
        _ => {
            let mut hits = Vec::new();
            walk(schema, at, 0, &mut |part, pointer, _| {
                hits.extend(part.as_object().and_then(|part| keyword(check, part, pointer, pointer == at)));
            });
            hits
        }
    }
}

/// A root that is not of type `object`.
pub(crate) fn root_object(schema: &Value, at: &str, name: &str) -> Option<Hit> {
    (schema.get("type").and_then(Value::as_str) != Some("object"))
        .then(|| Hit::at(at, format!(r#"the root of {name} is not of "type": "object"; make it so"#)))
}

/// How one schema, without those inside it, goes against a check.
fn keyword(check: Check, part: &Map<String, Value>, pointer: &str, is_root: bool) -> Option<Hit> {
    let hit = |keyword: &str, problem: &str| {
        part.contains_key(keyword).then(|| Hit::at(&format!("{pointer}/{keyword}"), problem.to_owned()))
    };
    match check {
        Check::DollarSchema => hit("$schema", "`$schema` names a dialect; leave it out"),
        Check::Reference => hit("$ref", "the schema refers to another; write that one in its place"),
        Check::Union(keyword) if !is_root => hit(
            keyword,
            &format!("`{keyword}` is a choice between schemas; write one schema, or use `anyOf`"),
        ),
        Check::ArrayItems if is_array(part) && !part.contains_key("items") => {
            Some(Hit::at(pointer, "the array has no `items`; say what its elements are".to_owned()))
        }
        Check::TypeList if part.get("type").is_some_and(Value::is_array) => hit(
            "type",
            "`type` is a list; name one type, and make the argument optional where it may be null",
        ),
        Check::EnumType => {
            let values = part.get("enum")?.as_array()?;
            let index = values.iter().position(|value| !value.is_string())?;
            Some(Hit::at(
                &format!("{pointer}/enum/{index}"),
                "`enum` has a value that is no text; take texts, or `minimum` and `maximum`".to_owned(),
            ))
        }
        _ => None,
    }
}

fn is_array(part: &Map<String, Value>) -> bool {
    match part.get("type") {
        Some(Value::String(name)) => name == "array",
        Some(Value::Array(names)) => names.iter().any(|name| name == "array"),
        _ => false,
    }
}

fn root_keywords(keywords: &[&str], schema: &Value, at: &str) -> Vec<Hit> {
    let found = keywords.iter().filter(|keyword| schema.get(**keyword).is_some());
    let hit = |keyword: &&str| {
        Hit::at(
            &format!("{at}/{keyword}"),
            format!(
                "`{keyword}` stands at the root of the input schema; take one object with optional arguments, \
                 and check the rest when called"
            ),
        )
    };
    found.map(hit).collect()
}

fn invalid(schema: &Value, at: &str) -> Option<Hit> {
    let problem = jsonschema::draft202012::meta::validate(schema).err()?;
    let pointer = format!("{at}{}", problem.instance_path());
    let text: String = problem.to_string().chars().take(200).collect();
    Some(Hit::at(&pointer, format!("this is not JSON Schema 2020-12: {text}; write it by that draft")))
}

fn argument_names(others: &str, most: usize, schema: &Value, at: &str) -> Vec<Hit> {
    let arguments = schema.get("properties").and_then(Value::as_object);
    let names = arguments.into_iter().flat_map(Map::keys);
    let refused = names.filter(|name| {
        name.is_empty() || name.chars().count() > most || !name.chars().all(|char| allows(others, char))
    });
    let hit = |name: &String| {
        Hit::at(
            &format!("{at}/properties/{}", pointer_segment(name)),
            format!("the argument {} has to have 1 to {most} characters of {}", quoted(name), listed(others)),
        )
    };
    refused.map(hit).collect()
}

fn unsafe_numbers(value: &Value, at: &str, hits: &mut Vec<Hit>) {
    match value {
        Value::Number(number) => {
            let size = number.as_u64().or_else(|| number.as_i64().map(i64::unsigned_abs));
            if size.is_some_and(|size| size > LARGEST_SAFE) {
                let problem = format!("{number} is beyond 2^53 - 1; take a smaller bound, or leave it out");
                hits.push(Hit::at(at, problem));
            }
        }
        Value::Array(values) => {
            for (index, value) in values.iter().enumerate() {
                unsafe_numbers(value, &format!("{at}/{index}"), hits);
            }
        }
        Value::Object(members) => {
            for (name, value) in members {
                unsafe_numbers(value, &format!("{at}/{}", pointer_segment(name)), hits);
            }
        }
        _ => {}
    }
}

/// How many values of this keyword there are in all schemas together.
fn count<'a, T: 'a>(
    schema: &'a Value,
    keyword: &str,
    read: fn(&'a Value) -> Option<&'a T>,
    size: fn(&T) -> usize,
) -> usize {
    let mut sum = 0;
    walk(schema, "", 0, &mut |part, _, _| {
        sum += part.get(keyword).and_then(read).map_or(0, size);
    });
    sum
}

fn in_all(most: usize, count: usize, at: &str, problem: impl Fn(usize) -> String) -> Vec<Hit> {
    if count > most { vec![Hit::at(at, problem(count))] } else { Vec::new() }
}

/// The object that is nested deepest, if that is too deep.
fn nesting(most: usize, schema: &Value, at: &str) -> Option<Hit> {
    let mut deepest = (most, None);
    walk(schema, at, 0, &mut |_, pointer, level| {
        if level > deepest.0 {
            deepest = (level, Some(pointer.to_owned()));
        }
    });
    let (level, pointer) = deepest;
    pointer.map(|pointer| {
        Hit::at(&pointer, format!("objects are nested in {level} levels; flatten them to at most {most}"))
    })
}

/// Visits a schema and all schemas inside it, with the pointer and the number of objects from the root to there.
fn walk<'a>(schema: &'a Value, at: &str, above: usize, visit: &mut dyn FnMut(&'a Value, &str, usize)) {
    let level = above + usize::from(schema.get("properties").is_some());
    visit(schema, at, level);
    subschemas::for_each_placed(schema, &mut |part, position, place| {
        let above = if position == Position::Definition { 0 } else { level };
        walk(part, &place.pointer(at), above, visit);
    });
}
