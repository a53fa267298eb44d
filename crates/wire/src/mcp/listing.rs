//! The list of tools as clients get it.
//!
//! Definitions are written for the contract; clients and the models' APIs behind them refuse some of what JSON Schema
//! and MCP allow. The list says the same in words that all of them take.

use pintle_contract::{ToolDefinition, underscore_name};
use pintle_engine::Catalogue;
use rmcp::model::Tool;
use serde_json::{Map, Value, json};

use super::clients::ResultForm;

/// How the names of tools are spelt in lists. Calls take both spellings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolNames {
    /// `text_read`: most clients refuse a dot.
    #[default]
    Underscore,
    /// `text.read`, as in the contract.
    Dotted,
}

/// One tool of the list, by its canonical name, in both forms.
pub(crate) struct ListedTool {
    pub(crate) name: String,
    with_output: Tool,
    without_output: Tool,
}

impl ListedTool {
    /// The tool for a client that takes results in this form.
    pub(crate) fn in_form(&self, form: ResultForm) -> &Tool {
        match form {
            ResultForm::Json => &self.with_output,
            ResultForm::Text => &self.without_output,
        }
    }
}

/// All tools of a catalogue.
pub(crate) fn listing(catalogue: &Catalogue, spelling: ToolNames) -> Vec<ListedTool> {
    let definitions: Vec<_> = catalogue.names().filter_map(|name| catalogue.definition(name)).collect();
    let listed = listed_definitions(&definitions, spelling, catalogue.tooling_version());
    let tools = definitions.iter().zip(listed).filter_map(|(definition, listed)| {
        // The SDK passes over the members that it does not know; the transport puts them back.
        let with_output: Tool = serde_json::from_value(listed).ok()?;
        let mut without_output = with_output.clone();
        without_output.output_schema = None;
        Some(ListedTool { name: definition.name.clone(), with_output, without_output })
    });
    tools.collect()
}

/// These definitions, which are all that there are, as a list shows them.
pub fn listed_definitions(
    definitions: &[&ToolDefinition],
    spelling: ToolNames,
    tooling_version: &str,
) -> Vec<Value> {
    let names = definitions.iter().map(|definition| definition.name.as_str());
    let dotted: Vec<&str> = names.filter(|name| name.contains('.')).collect();
    let listed = |definition: &&ToolDefinition| {
        let mut listed = listed(definition, tooling_version);
        if spelling == ToolNames::Underscore {
            listed["name"] = json!(underscore_name(&definition.name));
            respell(&mut listed["description"], &dotted);
            respell(&mut listed["inputSchema"], &dotted);
            respell(&mut listed["outputSchema"], &dotted);
        }
        listed
    };
    definitions.iter().map(listed).collect()
}

fn listed(definition: &ToolDefinition, tooling_version: &str) -> Value {
    let mut listed = definition.to_json(tooling_version);
    let meta = &mut listed["_meta"];
    meta["pintle/name"] = json!(definition.name);
    if !definition.aliases.is_empty() {
        meta["pintle/aliases"] = json!(definition.aliases);
    }
    if let Some(since) = &definition.deprecated {
        meta["pintle/deprecated"] = json!(since);
    }
    if definition.client_hints.always_load {
        meta["anthropic/alwaysLoad"] = json!(true);
    }
    if let Some(most) = definition.client_hints.max_result_chars {
        meta["anthropic/maxResultSizeChars"] = json!(most);
    }
    for schema in ["inputSchema", "outputSchema"] {
        join_choices(&mut listed[schema]);
    }
    simplify_input(&mut listed["inputSchema"]);
    for schema in ["inputSchema", "outputSchema"] {
        complete(&mut listed[schema]);
    }
    listed
}

/// Writes the names of tools in descriptions as the list has them.
fn respell(value: &mut Value, names: &[&str]) {
    match value {
        Value::String(text) => {
            for name in names.iter().filter(|name| text.contains(**name)).collect::<Vec<_>>() {
                *text = text.replace(name, &underscore_name(name));
            }
        }
        Value::Object(members) => {
            for (name, member) in members.iter_mut() {
                if name == "description" || !member.is_string() {
                    respell(member, names);
                }
            }
        }
        Value::Array(items) => {
            items.iter_mut().filter(|item| !item.is_string()).for_each(|item| respell(item, names));
        }
        _ => {}
    }
}

/// Makes one object of a choice between objects at the root, which some clients refuse. What matched one of them
/// matches it.
fn join_choices(schema: &mut Value) {
    let Some(root) = schema.as_object_mut() else { return };
    let Some(choices) = root.shift_remove("anyOf").or_else(|| root.shift_remove("oneOf")) else { return };
    let choices = choices.as_array().map(Vec::as_slice).unwrap_or_default();
    let mut properties: Map<String, Value> = Map::new();
    for (name, declared) in choices.iter().filter_map(|choice| choice["properties"].as_object()).flatten() {
        let joined = match properties.shift_remove(name) {
            None => declared.clone(),
            Some(known) => either(known, declared),
        };
        properties.insert(name.clone(), joined);
    }
    let is_required = |name: &&str| {
        let requires =
            |choice: &Value| choice["required"].as_array().is_some_and(|all| all.contains(&json!(name)));
        choices.iter().all(requires)
    };
    let required: Vec<&str> = properties.keys().map(String::as_str).filter(is_required).collect();
    root.insert("required".into(), json!(required));
    if choices.iter().all(|choice| choice["additionalProperties"] == false) {
        root.insert("additionalProperties".into(), json!(false));
    }
    root.insert("properties".into(), Value::Object(properties));
    root.sort_keys();
}

/// What takes a value that one of two schemas takes.
fn either(one: Value, other: &Value) -> Value {
    if one == *other {
        return one;
    }
    // `true` of one and `false` of the other are the whole type.
    let plain = |schema: &Value| match (schema.get("const"), schema.get("type")) {
        (Some(_), Some(plain)) => Some(plain.clone()),
        _ => None,
    };
    match (plain(&one), plain(other)) {
        (Some(one), Some(other)) if one == other => json!({ "type": one }),
        _ => json!({ "anyOf": [one, other] }),
    }
}

/// Leaves out what is of no use to a model: that an optional argument may be `null`, a default that is `null`, and bounds
/// that are those of all exact integers.
fn simplify_input(schema: &mut Value) {
    const LARGEST: i64 = (1 << 53) - 1;
    match schema {
        Value::Object(members) => {
            for (bound, number) in [("minimum", -LARGEST), ("maximum", LARGEST)] {
                if members.get(bound) == Some(&json!(number)) {
                    members.shift_remove(bound);
                }
            }
            if members.get("default") == Some(&Value::Null) {
                members.shift_remove("default");
            }
            drop_null(members);
            members.values_mut().for_each(simplify_input);
        }
        Value::Array(items) => items.iter_mut().for_each(simplify_input),
        _ => {}
    }
}

fn drop_null(schema: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            schema["type"] = only.clone();
        }
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    let Some(Value::Array(choices)) = schema.get_mut("anyOf") else { return };
    choices.retain(|choice| choice["type"] != "null");
    if let [only] = choices.as_slice()
        && let Value::Object(only) = only.clone()
    {
        schema.shift_remove("anyOf");
        for (name, value) in only {
            schema.entry(name).or_insert(value);
        }
        // A choice within the choice, with a null of its own.
        drop_null(schema);
    }
}

/// Every array says what its items are, and no schema names its dialect.
fn complete(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            members.shift_remove("$schema");
            let is_array = members.get("type").is_some_and(|types| match types {
                Value::Array(types) => types.iter().any(|name| name == "array"),
                name => name == "array",
            });
            if is_array && !members.contains_key("items") {
                members.insert("items".into(), json!({}));
            }
            members.values_mut().for_each(complete);
        }
        Value::Array(items) => items.iter_mut().for_each(complete),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_at_the_root_becomes_one_object_that_takes_what_each_took() {
        let mut schema = json!({"type": "object", "anyOf": [
            {"type": "object", "additionalProperties": false, "required": ["ok", "name"], "properties": {
                "ok": {"type": "boolean", "const": true}, "name": {"type": "string"}}},
            {"type": "object", "additionalProperties": false, "required": ["ok", "reason"], "properties": {
                "ok": {"type": "boolean", "const": false}, "reason": {"type": "string"}}},
        ]});
        join_choices(&mut schema);
        let expected = json!({"type": "object", "additionalProperties": false, "required": ["ok"], "properties": {
            "ok": {"type": "boolean"}, "name": {"type": "string"}, "reason": {"type": "string"}}});
        assert_eq!(schema, expected);
    }

    #[test]
    fn an_optional_argument_is_shown_without_null_and_bounds_that_say_nothing() {
        let mut schema = json!({"properties": {
            "case": {"type": ["string", "null"], "enum": ["smart", null], "default": null},
            "line": {"type": "integer", "minimum": -9_007_199_254_740_991_i64, "maximum": 9_007_199_254_740_991_i64},
            "path": {"description": "which", "anyOf": [{"anyOf": [{"type": "string"}, {"type": "array"}]}, {"type": "null"}]},
        }});
        simplify_input(&mut schema);
        complete(&mut schema);
        let expected = json!({"properties": {
            "case": {"type": "string", "enum": ["smart"]},
            "line": {"type": "integer"},
            "path": {"description": "which", "anyOf": [{"type": "string"}, {"type": "array", "items": {}}]},
        }});
        assert_eq!(schema, expected);
    }

    #[test]
    fn names_in_descriptions_are_spelt_as_in_the_list_and_nothing_else_is_touched() {
        let mut schema =
            json!({"description": "as text.read gave it", "enum": ["text.read"], "default": "text.read"});
        respell(&mut schema, &["text.read"]);
        let expected =
            json!({"description": "as text_read gave it", "enum": ["text.read"], "default": "text.read"});
        assert_eq!(schema, expected);
    }
}
