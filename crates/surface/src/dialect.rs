//! One dialect for all schemas: draft 2020-12, without annotations.
//!
//! Two versions of a server often write different dialects, because a library was updated. Set operations need one, so
//! older drafts are rewritten with the same meaning before they are compared.

use serde_json::{Map, Value};

use crate::subschemas::for_each_mut;

/// The keywords that only describe and never reject a value.
const ANNOTATIONS: &[&str] = &[
    "title",
    "description",
    "default",
    "examples",
    "example",
    "deprecated",
    "readOnly",
    "writeOnly",
    "$comment",
    "$schema",
    "markdownDescription",
    "enumNames",
    "enumDescriptions",
];

/// Whether a keyword only describes. Extensions begin with `x-`.
pub(crate) fn is_annotation(keyword: &str) -> bool {
    ANNOTATIONS.contains(&keyword) || keyword.starts_with("x-")
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Draft {
    Four,
    Six,
    Seven,
    Year2019,
    Year2020,
}

/// In which draft keywords appeared.
const KEYWORDS_SINCE: &[(Draft, &[&str])] = &[
    (Draft::Six, &["const", "contains", "propertyNames"]),
    (Draft::Seven, &["if", "then", "else"]),
    (Draft::Year2019, &["minContains", "maxContains", "unevaluatedProperties", "unevaluatedItems"]),
    (Draft::Year2020, &["prefixItems"]),
];

/// The schema in draft 2020-12, without annotations, or why it has no such form.
pub(crate) fn modernize(schema: &Value) -> Result<Value, &'static str> {
    let draft = draft_of(schema)?;
    let mut modern = schema.clone();
    rewrite(&mut modern, draft)?;
    Ok(name_root(modern))
}

fn draft_of(schema: &Value) -> Result<Draft, &'static str> {
    let Some(uri) = schema.get("$schema").and_then(Value::as_str) else {
        // Without `$schema` MCP means 2020-12, but `items` as a list is only valid before it.
        return Ok(if has_item_list(schema) { Draft::Seven } else { Draft::Year2020 });
    };
    match uri.trim_end_matches('#') {
        "http://json-schema.org/draft-04/schema" => Ok(Draft::Four),
        "http://json-schema.org/draft-06/schema" => Ok(Draft::Six),
        "http://json-schema.org/draft-07/schema" | "https://json-schema.org/draft-07/schema" => {
            Ok(Draft::Seven)
        }
        "https://json-schema.org/draft/2019-09/schema" => Ok(Draft::Year2019),
        "https://json-schema.org/draft/2020-12/schema" => Ok(Draft::Year2020),
        _ => Err("its `$schema` names no known draft"),
    }
}

fn has_item_list(schema: &Value) -> bool {
    let mut found = schema.get("items").is_some_and(Value::is_array);
    crate::subschemas::for_each(schema, &mut |subschema, _| found = found || has_item_list(subschema));
    found
}

fn rewrite(schema: &mut Value, draft: Draft) -> Result<(), &'static str> {
    if let Value::Object(keywords) = schema {
        rewrite_keywords(keywords, draft)?;
    }
    let mut problem = Ok(());
    for_each_mut(schema, &mut |subschema, _| {
        if problem.is_ok() {
            problem = rewrite(subschema, draft);
        }
    });
    problem
}

fn rewrite_keywords(schema: &mut Map<String, Value>, draft: Draft) -> Result<(), &'static str> {
    schema.retain(|keyword, _| !is_annotation(keyword));
    if schema.contains_key("$dynamicRef") || schema.contains_key("$recursiveRef") {
        return Err("dynamic references are not compared");
    }
    if draft <= Draft::Seven {
        // A reference hides its siblings in these drafts.
        if schema.contains_key("$ref") {
            schema.retain(|keyword, _| matches!(keyword.as_str(), "$ref" | "$defs" | "definitions"));
        }
        split_dependencies(schema);
    }
    // A keyword that came later means nothing in an older draft.
    schema.retain(|keyword, _| {
        KEYWORDS_SINCE.iter().all(|(since, later)| *since <= draft || !later.contains(&keyword.as_str()))
    });
    if draft == Draft::Four {
        number_bounds(schema, "minimum", "exclusiveMinimum");
        number_bounds(schema, "maximum", "exclusiveMaximum");
    }
    if draft < Draft::Year2020 {
        match schema.get("items") {
            Some(Value::Array(_)) => {
                let list = schema.remove("items").unwrap_or_default();
                schema.insert("prefixItems".to_owned(), list);
                if let Some(rest) = schema.remove("additionalItems") {
                    schema.insert("items".to_owned(), rest);
                }
            }
            _ => {
                schema.remove("additionalItems");
            }
        }
    }
    Ok(())
}

/// In draft 4 `exclusiveMinimum` is a boolean beside `minimum`.
fn number_bounds(schema: &mut Map<String, Value>, bound: &str, exclusive: &str) {
    if schema.remove(exclusive) == Some(Value::Bool(true))
        && let Some(number) = schema.remove(bound)
    {
        schema.insert(exclusive.to_owned(), number);
    }
}

/// `dependencies` became two keywords.
fn split_dependencies(schema: &mut Map<String, Value>) {
    schema.retain(|keyword, _| !matches!(keyword.as_str(), "dependentRequired" | "dependentSchemas"));
    let Some(Value::Object(dependencies)) = schema.remove("dependencies") else { return };
    let (lists, schemas): (Map<_, _>, Map<_, _>) =
        dependencies.into_iter().partition(|(_, dependency)| dependency.is_array());
    if !lists.is_empty() {
        schema.insert("dependentRequired".to_owned(), Value::Object(lists));
    }
    if !schemas.is_empty() {
        schema.insert("dependentSchemas".to_owned(), Value::Object(schemas));
    }
}

/// The name of the definition that a recursive root becomes.
const ROOT: &str = "(root)";

/// Two documents that both refer to `#` cannot be combined, because it names two things. A recursive root becomes a
/// definition, which can be renamed.
fn name_root(schema: Value) -> Value {
    if !refers_into_root(&schema) {
        return schema;
    }
    let Value::Object(mut root) = schema else { return schema };
    let definitions = root.remove("$defs");
    let older = root.remove("definitions");
    let mut body = Value::Object(root);
    redirect(&mut body);
    let mut named = Map::new();
    let mut with_root = match definitions {
        Some(Value::Object(map)) => map,
        _ => Map::new(),
    };
    with_root.values_mut().for_each(redirect);
    with_root.insert(ROOT.to_owned(), body);
    named.insert("$ref".to_owned(), Value::String(format!("#/$defs/{ROOT}")));
    named.insert("$defs".to_owned(), Value::Object(with_root));
    if let Some(mut older) = older {
        if let Value::Object(map) = &mut older {
            map.values_mut().for_each(redirect);
        }
        named.insert("definitions".to_owned(), older);
    }
    Value::Object(named)
}

fn is_into_root(reference: &str) -> bool {
    let pointer = reference.strip_prefix('#');
    pointer.is_some_and(|pointer| {
        pointer.is_empty()
            || (pointer.starts_with('/')
                && !pointer.starts_with("/$defs/")
                && !pointer.starts_with("/definitions/"))
    })
}

fn refers_into_root(schema: &Value) -> bool {
    let mut found = schema.get("$ref").and_then(Value::as_str).is_some_and(is_into_root);
    crate::subschemas::for_each(schema, &mut |subschema, _| found = found || refers_into_root(subschema));
    found
}

fn redirect(schema: &mut Value) {
    if let Some(Value::String(reference)) = schema.get_mut("$ref")
        && is_into_root(reference)
    {
        *reference = format!("#/$defs/{ROOT}{}", &reference[1..]);
    }
    for_each_mut(schema, &mut |subschema, _| redirect(subschema));
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn older_drafts_are_rewritten_with_the_same_meaning() {
        let seven = json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "array",
            "items": [{"type": "string", "description": "a name"}],
            "additionalItems": false
        });
        let modern = json!({"type": "array", "prefixItems": [{"type": "string"}], "items": false});
        assert_eq!(modernize(&seven), Ok(modern));
        let four = json!({"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 1, "exclusiveMinimum": true});
        assert_eq!(modernize(&four), Ok(json!({"exclusiveMinimum": 1})));
    }

    #[test]
    fn a_recursive_root_becomes_a_definition() {
        let tree = json!({"type": "object", "properties": {"next": {"$ref": "#"}}});
        let named = modernize(&tree).expect("a form");
        assert_eq!(named["$ref"], "#/$defs/(root)");
        assert_eq!(named["$defs"]["(root)"]["properties"]["next"]["$ref"], "#/$defs/(root)");
    }
}
