//! Where the subschemas of a JSON Schema are.

use pintle_contract::pointer_segment;
use serde_json::Value;

/// What a subschema says about the value that its parent describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Position {
    /// It describes a member or an element.
    Child,
    /// It describes the same value.
    InPlace,
    /// It decides something without being required of the value: `not`, `if`, `contains`, `propertyNames`.
    Condition,
    /// It describes nothing until a reference names it.
    Definition,
}

#[derive(Clone, Copy)]
enum Shape {
    One,
    OneOrList,
    Map,
}

/// Every keyword that has subschemas, of all drafts.
const KEYWORDS: &[(&str, Shape, Position)] = &[
    ("properties", Shape::Map, Position::Child),
    ("patternProperties", Shape::Map, Position::Child),
    ("additionalProperties", Shape::One, Position::Child),
    ("unevaluatedProperties", Shape::One, Position::Child),
    ("items", Shape::OneOrList, Position::Child),
    ("prefixItems", Shape::OneOrList, Position::Child),
    ("additionalItems", Shape::One, Position::Child),
    ("unevaluatedItems", Shape::One, Position::Child),
    ("allOf", Shape::OneOrList, Position::InPlace),
    ("anyOf", Shape::OneOrList, Position::InPlace),
    ("oneOf", Shape::OneOrList, Position::InPlace),
    ("then", Shape::One, Position::InPlace),
    ("else", Shape::One, Position::InPlace),
    ("dependentSchemas", Shape::Map, Position::InPlace),
    ("dependencies", Shape::Map, Position::InPlace),
    ("not", Shape::One, Position::Condition),
    ("if", Shape::One, Position::Condition),
    ("contains", Shape::One, Position::Condition),
    ("propertyNames", Shape::One, Position::Condition),
    ("contentSchema", Shape::One, Position::Condition),
    ("$defs", Shape::Map, Position::Definition),
    ("definitions", Shape::Map, Position::Definition),
];

/// Where a direct subschema stands: the keyword, and within that a member or an element.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    keyword: &'static str,
    inside: Inside<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Inside<'a> {
    Nothing,
    Member(&'a str),
    Element(usize),
}

impl Place<'_> {
    /// The JSON pointer of the subschema, given that of the schema.
    pub(crate) fn pointer(self, schema: &str) -> String {
        let keyword = self.keyword;
        match self.inside {
            Inside::Nothing => format!("{schema}/{keyword}"),
            Inside::Member(name) => format!("{schema}/{keyword}/{}", pointer_segment(name)),
            Inside::Element(index) => format!("{schema}/{keyword}/{index}"),
        }
    }
}

/// Visits the direct subschemas of a schema.
pub(crate) fn for_each<'a>(schema: &'a Value, visit: &mut dyn FnMut(&'a Value, Position)) {
    for_each_placed(schema, &mut |subschema, position, _| visit(subschema, position));
}

/// Visits the direct subschemas of a schema, and says where they stand.
pub(crate) fn for_each_placed<'a>(schema: &'a Value, visit: &mut dyn FnMut(&'a Value, Position, Place<'a>)) {
    let Value::Object(schema) = schema else { return };
    for (keyword, shape, position) in KEYWORDS {
        let mut visit = |value, inside| visit(value, *position, Place { keyword, inside });
        match (shape, schema.get(*keyword)) {
            (Shape::Map, Some(Value::Object(map))) => {
                map.iter().for_each(|(name, value)| visit(value, Inside::Member(name)));
            }
            (Shape::OneOrList, Some(Value::Array(list))) => {
                list.iter().enumerate().for_each(|(index, value)| visit(value, Inside::Element(index)));
            }
            (Shape::One | Shape::OneOrList, Some(one)) => visit(one, Inside::Nothing),
            _ => {}
        }
    }
}

/// Visits the direct subschemas of a schema, to change them.
pub(crate) fn for_each_mut(schema: &mut Value, visit: &mut dyn FnMut(&mut Value, Position)) {
    let Value::Object(schema) = schema else { return };
    for (keyword, shape, position) in KEYWORDS {
        match (shape, schema.get_mut(*keyword)) {
            (Shape::Map, Some(Value::Object(map))) => {
                map.values_mut().for_each(|value| visit(value, *position));
            }
            (Shape::OneOrList, Some(Value::Array(list))) => {
                list.iter_mut().for_each(|value| visit(value, *position));
            }
            (Shape::One | Shape::OneOrList, Some(one)) => visit(one, *position),
            _ => {}
        }
    }
}
