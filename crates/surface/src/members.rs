//! Undeclared members are not part of a surface.
//!
//! Callers send only members that the schema declares, so what is sent is compared as **closed**: an object with
//! declared members has no others, unless the schema says with `additionalProperties` what others may be. Readers of a
//! result ignore members that they do not know, so what is read is compared as **open**.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::subschemas::{Position, for_each_mut};

/// The schema of what is sent. `schema` is in draft 2020-12.
pub(crate) fn closed(schema: &Value) -> Value {
    let mut closed = schema.clone();
    let root = describes_object(&closed);
    Closing { document: schema }.close(&mut closed, root);
    closed
}

/// The schema by which results are read. `schema` is in draft 2020-12.
pub(crate) fn opened(schema: &Value) -> Value {
    let mut opened = schema.clone();
    open(&mut opened);
    opened
}

fn open(schema: &mut Value) {
    if let Value::Object(keywords) = schema {
        for keyword in ["additionalProperties", "unevaluatedProperties"] {
            if keywords.get(keyword) == Some(&Value::Bool(false)) {
                keywords.remove(keyword);
            }
        }
        // Branches that differ only in their members overlap when they are open.
        if let Some(branches) = keywords.remove("oneOf") {
            match keywords.get_mut("anyOf") {
                None => {
                    keywords.insert("anyOf".to_owned(), branches);
                }
                Some(_) => {
                    let both = keywords.entry("allOf").or_insert_with(|| json!([]));
                    if let Value::Array(both) = both {
                        both.push(json!({ "anyOf": branches }));
                    }
                }
            }
        }
    }
    for_each_mut(schema, &mut |subschema, position| {
        if position != Position::Condition {
            open(subschema);
        }
    });
}

fn describes_object(schema: &Value) -> bool {
    match schema.get("type") {
        Some(Value::String(name)) => name == "object",
        Some(Value::Array(names)) => names.iter().any(|name| name == "object"),
        _ => schema.get("properties").is_some(),
    }
}

/// The members that a schema declares of the value itself.
#[derive(Clone, Default)]
struct Members {
    names: BTreeSet<String>,
    patterns: BTreeSet<String>,
    /// The schema says what other members may be.
    says_others: bool,
    /// The schema has `properties`, perhaps empty.
    declares: bool,
}

impl Members {
    fn absorb(&mut self, other: &Members) {
        self.names.extend(other.names.iter().cloned());
        self.patterns.extend(other.patterns.iter().cloned());
        self.says_others |= other.says_others;
        self.declares |= other.declares;
    }
}

struct Closing<'a> {
    document: &'a Value,
}

impl Closing<'_> {
    /// Closes a schema and what it says of members and elements, which are values of their own. `whole` closes an
    /// object even if it declares nothing.
    fn close(&self, schema: &mut Value, whole: bool) {
        self.close_in_place(schema, &Members::default(), whole);
        self.close_children(schema);
    }

    fn close_children(&self, schema: &mut Value) {
        for_each_mut(schema, &mut |subschema, position| match position {
            Position::Child => self.close(subschema, false),
            Position::InPlace | Position::Definition => self.close_children(subschema),
            Position::Condition => {}
        });
    }

    /// Closes what a schema says of the value itself. `around` are the members that the schemas around it declare of
    /// the same value.
    fn close_in_place(&self, schema: &mut Value, around: &Members, whole: bool) {
        let mut members = self.own(schema, &mut BTreeSet::new());
        members.absorb(around);
        let of_any = self.of_union(schema, "anyOf");
        let of_one = self.of_union(schema, "oneOf");
        let Value::Object(keywords) = schema else { return };
        if !(of_any.declares || of_any.says_others || of_one.declares || of_one.says_others) {
            if !members.says_others && (members.declares || whole) {
                shut(keywords, &members);
            }
            return;
        }
        for (keyword, other) in [("anyOf", &of_one), ("oneOf", &of_any)] {
            let mut outside = members.clone();
            outside.absorb(other);
            if let Some(Value::Array(branches)) = keywords.get_mut(keyword) {
                branches.iter_mut().for_each(|branch| self.close_in_place(branch, &outside, false));
            }
        }
    }

    /// What a schema declares outside of its unions.
    fn own(&self, schema: &Value, followed: &mut BTreeSet<String>) -> Members {
        let mut members = Members::default();
        let Value::Object(keywords) = schema else { return members };
        if let Some(Value::Object(properties)) = keywords.get("properties") {
            members.names.extend(properties.keys().cloned());
            members.declares = true;
        }
        if let Some(Value::Object(patterns)) = keywords.get("patternProperties") {
            members.patterns.extend(patterns.keys().cloned());
            members.declares = true;
        }
        members.says_others =
            keywords.contains_key("additionalProperties") || keywords.contains_key("unevaluatedProperties");
        let reference = keywords.get("$ref").and_then(Value::as_str);
        if let Some(target) = reference.and_then(|reference| self.follow(reference, followed)) {
            members.absorb(&self.all(target, followed));
        }
        let same_value = ["then", "else", "if"].into_iter().filter_map(|keyword| keywords.get(keyword));
        let dependent = keywords.get("dependentSchemas").and_then(Value::as_object);
        let dependent = dependent.into_iter().flat_map(Map::values);
        for part in branches(schema, "allOf").iter().chain(same_value).chain(dependent) {
            members.absorb(&self.all(part, followed));
        }
        members
    }

    /// What a schema declares, its unions included.
    fn all(&self, schema: &Value, followed: &mut BTreeSet<String>) -> Members {
        let mut members = self.own(schema, followed);
        for keyword in ["anyOf", "oneOf"] {
            for branch in branches(schema, keyword) {
                members.absorb(&self.all(branch, followed));
            }
        }
        members
    }

    fn of_union(&self, schema: &Value, keyword: &str) -> Members {
        let mut members = Members::default();
        for branch in branches(schema, keyword) {
            members.absorb(&self.all(branch, &mut BTreeSet::new()));
        }
        members
    }

    fn follow(&self, reference: &str, followed: &mut BTreeSet<String>) -> Option<&Value> {
        if !followed.insert(reference.to_owned()) {
            return None;
        }
        self.document.pointer(reference.strip_prefix('#')?)
    }
}

fn branches<'a>(schema: &'a Value, keyword: &str) -> &'a [Value] {
    schema.get(keyword).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn shut(keywords: &mut Map<String, Value>, members: &Members) {
    let mut declare = |keyword: &str, names: &BTreeSet<String>| {
        if names.is_empty() {
            return;
        }
        if let Value::Object(declared) = keywords.entry(keyword).or_insert_with(|| json!({})) {
            for name in names {
                declared.entry(name.clone()).or_insert(Value::Bool(true));
            }
        }
    };
    declare("properties", &members.names);
    declare("patternProperties", &members.patterns);
    keywords.insert("additionalProperties".to_owned(), Value::Bool(false));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_closed_unless_it_says_what_other_members_may_be() {
        let schema = json!({"type": "object", "properties": {
            "free": {"type": "object"},
            "map": {"type": "object", "properties": {}, "additionalProperties": {"type": "string"}},
            "pair": {"type": "object", "properties": {"a": true}}
        }});
        let closed = closed(&schema);
        assert_eq!(closed["additionalProperties"], false);
        assert_eq!(closed["properties"]["free"], json!({"type": "object"}));
        assert_eq!(closed["properties"]["map"]["additionalProperties"], json!({"type": "string"}));
        assert_eq!(closed["properties"]["pair"]["additionalProperties"], false);
    }

    #[test]
    fn members_of_all_parts_are_declared() {
        let schema = json!({
            "$defs": {"named": {"properties": {"name": {"type": "string"}}}},
            "type": "object",
            "allOf": [{"$ref": "#/$defs/named"}, {"properties": {"age": {"type": "integer"}}}]
        });
        let closed = closed(&schema);
        assert_eq!(closed["properties"], json!({"age": true, "name": true}));
        assert_eq!(closed["additionalProperties"], false);
        assert_eq!(closed["allOf"][1].get("additionalProperties"), None);
    }

    #[test]
    fn each_branch_of_a_union_is_closed_by_itself() {
        let schema = json!({"anyOf": [
            {"type": "object", "properties": {"a": true}},
            {"type": "object", "properties": {"b": true}}
        ]});
        let closed = closed(&schema);
        assert_eq!(closed["anyOf"][0]["properties"], json!({"a": true}));
        assert_eq!(closed["anyOf"][1]["additionalProperties"], false);
    }

    #[test]
    fn what_is_read_is_open_and_its_branches_may_overlap() {
        let schema = json!({"oneOf": [{"type": "object", "additionalProperties": false}]});
        assert_eq!(opened(&schema), json!({"anyOf": [{"type": "object"}]}));
    }
}
