//! Values worth trying against a schema. A value proves nothing by itself: validators decide.

use std::cell::Cell;

use serde_json::{Map, Number, Value, json};

use crate::subschemas::for_each;

/// How many levels of a schema are followed.
const DEPTH: u32 = 8;
/// How many values one call proposes at most, all levels together.
const PROPOSALS: u32 = 6_000;
/// How many values a single subschema proposes.
const PROPOSALS_PER_SUBSCHEMA: usize = 24;
/// The longest text that is built.
const LONGEST_TEXT: u64 = 20_000;
/// The longest list, and the most members, that are built.
const LONGEST: u64 = 2_000;

/// Values that may match `schema`, the simplest first. `clues` are schemas whose limits and constants are worth trying.
pub(crate) fn instances(schema: &Value, clues: &[&Value]) -> Vec<Value> {
    let mut found = Clues::default();
    clues.iter().for_each(|clue| found.collect(clue, DEPTH * 4));
    let proposals = Proposals { document: schema, clues: found, budget: Cell::new(PROPOSALS) };
    proposals.of(schema, DEPTH)
}

/// Constants and limits that two schemas name: a difference between them is often next to one of these.
#[derive(Default)]
struct Clues {
    numbers: Vec<f64>,
    lengths: Vec<u64>,
    strings: Vec<String>,
    constants: Vec<Value>,
}

impl Clues {
    const MOST: usize = 40;

    fn collect(&mut self, schema: &Value, depth: u32) {
        if depth == 0 {
            return;
        }
        for keyword in ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"] {
            if let Some(number) = schema.get(keyword).and_then(Value::as_f64) {
                add(&mut self.numbers, number);
            }
        }
        for keyword in ["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"] {
            if let Some(length) = schema.get(keyword).and_then(Value::as_u64) {
                add(&mut self.lengths, length);
            }
        }
        if let Some(text) =
            schema.get("pattern").and_then(Value::as_str).and_then(jsonschema_regex::pattern_witness)
        {
            add(&mut self.strings, text);
        }
        let values = schema.get("enum").and_then(Value::as_array).into_iter().flatten();
        values.chain(schema.get("const")).for_each(|value| add(&mut self.constants, value.clone()));
        for_each(schema, &mut |subschema, _| self.collect(subschema, depth - 1));
    }
}

fn add<T: PartialEq>(list: &mut Vec<T>, item: T) {
    if list.len() < Clues::MOST && !list.contains(&item) {
        list.push(item);
    }
}

struct Proposals<'a> {
    document: &'a Value,
    clues: Clues,
    budget: Cell<u32>,
}

impl Proposals<'_> {
    fn of(&self, schema: &Value, depth: u32) -> Vec<Value> {
        if depth == 0 || self.budget.get() == 0 {
            return Vec::new();
        }
        self.budget.set(self.budget.get() - 1);
        let mut found = match schema {
            Value::Object(keywords) => self.of_keywords(keywords, depth),
            Value::Bool(true) => self.of_type("any", &Map::new(), depth),
            _ => Vec::new(),
        };
        let mut distinct: Vec<Value> = Vec::new();
        for value in found.drain(..) {
            if distinct.len() < PROPOSALS_PER_SUBSCHEMA * 8 && !distinct.contains(&value) {
                distinct.push(value);
            }
        }
        distinct
    }

    fn of_keywords(&self, schema: &Map<String, Value>, depth: u32) -> Vec<Value> {
        if let Some(constant) = schema.get("const") {
            return vec![constant.clone()];
        }
        if let Some(Value::Array(values)) = schema.get("enum") {
            return values.clone();
        }
        let mut found = Vec::new();
        let reference = schema.get("$ref").and_then(Value::as_str).and_then(|r| r.strip_prefix('#'));
        if let Some(target) = reference.and_then(|pointer| self.document.pointer(pointer)) {
            found.extend(self.of(target, depth - 1));
        }
        for keyword in ["anyOf", "oneOf", "allOf"] {
            for branch in schema.get(keyword).and_then(Value::as_array).into_iter().flatten() {
                found.extend(self.of(branch, depth - 1).into_iter().take(PROPOSALS_PER_SUBSCHEMA));
            }
        }
        for keyword in ["then", "else", "if"] {
            found.extend(schema.get(keyword).map(|branch| self.of(branch, depth - 1)).unwrap_or_default());
        }
        let own: Vec<Value> =
            types(schema).iter().flat_map(|kind| self.of_type(kind, schema, depth)).collect();
        // A branch often says only a part of what the value needs, and the schema around it says the rest.
        let base = own.iter().find(|value| value.is_object()).cloned();
        if let Some(Value::Object(base)) = base {
            let merged: Vec<Value> = found
                .iter()
                .filter_map(Value::as_object)
                .map(|part| {
                    let mut whole = base.clone();
                    whole.extend(part.clone());
                    Value::Object(whole)
                })
                .collect();
            found.extend(merged);
        }
        let parts: Vec<&Map<String, Value>> = found.iter().filter_map(Value::as_object).collect();
        if schema.contains_key("allOf") && parts.len() > 1 {
            let whole: Map<String, Value> =
                parts.iter().flat_map(|part| part.iter().map(|(k, v)| (k.clone(), v.clone()))).collect();
            found.push(Value::Object(whole));
        }
        if found.is_empty() || says_type(schema) {
            let mut all = own;
            all.append(&mut found);
            return all;
        }
        found.extend(own);
        found
    }

    fn of_type(&self, kind: &str, schema: &Map<String, Value>, depth: u32) -> Vec<Value> {
        match kind {
            "null" => vec![Value::Null],
            "boolean" => vec![json!(false), json!(true)],
            "string" => self.strings(schema),
            "integer" => self.numbers(schema, true),
            "number" => self.numbers(schema, false),
            "array" => self.arrays(schema, depth),
            "object" => self.objects(schema, depth),
            _ => {
                let mut any = vec![Value::Null, json!(0), json!(""), json!(false), json!({}), json!([])];
                any.extend([json!("a"), json!(1), json!(0.5), json!(true), json!(["a"]), json!({"a": 0})]);
                any.extend(self.clues.constants.iter().cloned());
                any
            }
        }
    }

    fn strings(&self, schema: &Map<String, Value>) -> Vec<Value> {
        let limit = |keyword: &str| schema.get(keyword).and_then(Value::as_u64);
        let (shortest, longest) = (limit("minLength").unwrap_or(0), limit("maxLength"));
        let mut texts: Vec<String> = Vec::new();
        if let Some(pattern) = schema.get("pattern").and_then(Value::as_str) {
            texts.extend(jsonschema_regex::pattern_witness(pattern));
        }
        if let Some(format) = schema.get("format").and_then(Value::as_str) {
            texts.extend(format_example(format).map(str::to_owned));
        }
        texts.extend(["", "a", "A", "0", "-", " ", "a b", "é", "A1", "abc", "ABC", "123"].map(str::to_owned));
        texts.extend(self.clues.strings.iter().cloned());
        texts.extend(self.clues.constants.iter().filter_map(Value::as_str).map(str::to_owned));
        for length in
            self.clues.lengths.iter().flat_map(|length| [length.saturating_sub(1), *length, length + 1])
        {
            if length <= LONGEST_TEXT {
                texts.push("a".repeat(length as usize));
            }
        }
        let fit = |text: String| {
            let length = text.chars().count() as u64;
            if longest.is_some_and(|longest| length > longest) || shortest > LONGEST_TEXT {
                return None;
            }
            Some(Value::String(text + &"a".repeat(shortest.saturating_sub(length) as usize)))
        };
        texts.into_iter().filter_map(fit).collect()
    }

    fn numbers(&self, schema: &Map<String, Value>, whole: bool) -> Vec<Value> {
        let limit = |keyword: &str| schema.get(keyword).and_then(Value::as_f64);
        let mut numbers: Vec<f64> = Vec::new();
        let step = limit("multipleOf");
        for (keyword, steps) in [
            ("minimum", [0.0, 1.0, 0.5]),
            ("exclusiveMinimum", [1.0, 0.5, 2.0]),
            ("maximum", [0.0, -1.0, -0.5]),
            ("exclusiveMaximum", [-1.0, -0.5, -2.0]),
        ] {
            if let Some(limit) = limit(keyword) {
                numbers.extend(steps.map(|step| limit + step));
            }
        }
        numbers.extend([0.0, 1.0, -1.0, 0.5, 2.0, 3.0, 5.0, 7.0, 10.0, 100.0]);
        for clue in &self.clues.numbers {
            numbers.extend([
                *clue,
                clue + 1.0,
                clue - 1.0,
                clue + 0.5,
                clue - 0.5,
                -clue,
                clue * 2.0,
                clue * 3.0,
            ]);
        }
        numbers.extend(self.clues.constants.iter().filter_map(Value::as_f64));
        if let Some(step) = step.filter(|step| *step > 0.0) {
            let multiples: Vec<f64> = numbers.iter().map(|number| (number / step).ceil() * step).collect();
            numbers.splice(0..0, multiples);
        }
        let fits = |number: &f64| {
            limit("minimum").is_none_or(|limit| *number >= limit)
                && limit("maximum").is_none_or(|limit| *number <= limit)
        };
        numbers.into_iter().filter(fits).filter_map(|number| as_json(number, whole)).collect()
    }

    fn arrays(&self, schema: &Map<String, Value>, depth: u32) -> Vec<Value> {
        let limit = |keyword: &str| schema.get(keyword).and_then(Value::as_u64);
        let (shortest, longest) = (limit("minItems").unwrap_or(0), limit("maxItems").unwrap_or(u64::MAX));
        if shortest > LONGEST {
            return Vec::new();
        }
        let prefix = schema.get("prefixItems").and_then(Value::as_array);
        let prefix: Vec<Vec<Value>> =
            prefix.into_iter().flatten().map(|item| self.of(item, depth - 1)).collect();
        let rest = match schema.get("items") {
            None => self.of(&Value::Bool(true), depth - 1),
            Some(items) => self.of(items, depth - 1),
        };
        let contained =
            schema.get("contains").map(|contains| self.of(contains, depth - 1)).unwrap_or_default();
        // The element at an index, varied by `turn`.
        let element = |index: usize, turn: usize| {
            let values = prefix.get(index).unwrap_or(&rest);
            values.get(turn % values.len().max(1)).cloned()
        };
        let build = |length: u64, turn: usize, distinct: bool| -> Option<Value> {
            let length = usize::try_from(length).ok()?;
            let turn_of = |index: usize| if distinct { turn + index } else { turn };
            (0..length)
                .map(|index| element(index, turn_of(index)))
                .collect::<Option<Vec<_>>>()
                .map(Value::Array)
        };
        let mut lengths = vec![shortest, shortest + 1, prefix.len() as u64, prefix.len() as u64 + 1, 2];
        lengths.extend(
            self.clues.lengths.iter().flat_map(|length| [length.saturating_sub(1), *length, length + 1]),
        );
        lengths.retain(|length| (shortest..=longest.min(LONGEST)).contains(length));
        let mut distinct_lengths = Vec::new();
        lengths.into_iter().for_each(|length| add(&mut distinct_lengths, length));
        let mut found = Vec::new();
        for length in &distinct_lengths {
            found.extend(build(*length, 0, false));
            found.extend(build(*length, 0, true));
        }
        let one = shortest.max(1).max(prefix.len() as u64);
        for turn in 1..PROPOSALS_PER_SUBSCHEMA {
            found.extend(build(one, turn, false));
        }
        for (index, values) in prefix.iter().enumerate() {
            for turn in 1..values.len().min(PROPOSALS_PER_SUBSCHEMA) {
                let list: Option<Vec<Value>> =
                    (0..one as usize).map(|at| element(at, if at == index { turn } else { 0 })).collect();
                found.extend(list.map(Value::Array));
            }
        }
        for value in contained.into_iter().take(PROPOSALS_PER_SUBSCHEMA) {
            let mut list = match build(shortest.max(prefix.len() as u64), 0, true) {
                Some(Value::Array(list)) => list,
                _ => Vec::new(),
            };
            found.push(Value::Array(vec![value.clone()]));
            list.push(value);
            found.push(Value::Array(list));
        }
        found
    }

    fn objects(&self, schema: &Map<String, Value>, depth: u32) -> Vec<Value> {
        let properties = schema.get("properties").and_then(Value::as_object);
        let required: Vec<&str> = schema
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let others = schema.get("additionalProperties").cloned().unwrap_or(Value::Bool(true));
        let member = |name: &str| match properties.and_then(|properties| properties.get(name)) {
            Some(schema) => self.of(schema, depth - 1),
            None => self.of(&others, depth - 1),
        };
        let mut base = Map::new();
        for name in &required {
            let Some(value) = member(name).into_iter().next() else { continue };
            base.insert((*name).to_owned(), value);
        }
        let mut found = vec![Value::Object(base.clone())];
        let names = required
            .iter()
            .copied()
            .chain(properties.into_iter().flat_map(|map| map.keys().map(String::as_str)));
        let mut seen: Vec<&str> = Vec::new();
        let mut full = base.clone();
        for name in names {
            if seen.contains(&name) {
                continue;
            }
            seen.push(name);
            for (index, value) in member(name).into_iter().take(PROPOSALS_PER_SUBSCHEMA * 4).enumerate() {
                if index == 0 {
                    full.entry(name.to_owned()).or_insert_with(|| value.clone());
                }
                let mut object = base.clone();
                object.insert(name.to_owned(), value);
                found.push(Value::Object(object));
            }
        }
        found.push(Value::Object(full));
        let mut free: Vec<(String, Vec<Value>)> = Vec::new();
        if let Some(Value::Object(patterns)) = schema.get("patternProperties") {
            for (pattern, schema) in patterns {
                let Some(name) = jsonschema_regex::pattern_witness(pattern) else { continue };
                free.push((name, self.of(schema, depth - 1)));
            }
        }
        if others != Value::Bool(false) {
            let values = self.of(&others, depth - 1);
            let named =
                schema.get("propertyNames").map(|names| self.of(names, depth - 1)).unwrap_or_default();
            let named = named.iter().filter_map(Value::as_str).map(str::to_owned);
            free.extend(
                named.chain(["a", "b", "undeclared"].map(str::to_owned)).map(|name| (name, values.clone())),
            );
        }
        for (name, values) in &free {
            for value in values.iter().take(PROPOSALS_PER_SUBSCHEMA) {
                let mut object = base.clone();
                object.insert(name.clone(), value.clone());
                found.push(Value::Object(object));
            }
        }
        let fewest = schema.get("minProperties").and_then(Value::as_u64).unwrap_or(0).min(LONGEST);
        let clues =
            self.clues.lengths.iter().flat_map(|length| [length.saturating_sub(1), *length, length + 1]);
        for size in std::iter::once(fewest).chain(clues.take(12)).filter(|size| *size > 0 && *size <= LONGEST)
        {
            found.extend(self.sized(&base, size as usize, properties, &others, depth));
        }
        if let Some(Value::Object(dependent)) = schema.get("dependentRequired") {
            for (name, needed) in dependent {
                let mut object = base.clone();
                object.insert(name.clone(), member(name).into_iter().next().unwrap_or_default());
                found.push(Value::Object(object.clone()));
                for needed in needed.as_array().into_iter().flatten().filter_map(Value::as_str) {
                    object.insert(needed.to_owned(), member(needed).into_iter().next().unwrap_or_default());
                }
                found.push(Value::Object(object));
            }
        }
        found
    }

    /// An object with this many members: what is required, what is declared, then others.
    fn sized(
        &self,
        base: &Map<String, Value>,
        size: usize,
        properties: Option<&Map<String, Value>>,
        others: &Value,
        depth: u32,
    ) -> Option<Value> {
        let mut object = base.clone();
        for (name, schema) in properties.into_iter().flatten() {
            if object.len() >= size {
                break;
            }
            if let Some(value) = self.of(schema, depth - 1).into_iter().next() {
                object.entry(name.clone()).or_insert(value);
            }
        }
        let value = self.of(others, depth - 1).into_iter().next();
        let mut index = 0;
        while object.len() < size {
            object.insert(format!("a{index}"), value.clone()?);
            index += 1;
        }
        Some(Value::Object(object))
    }
}

fn says_type(schema: &Map<String, Value>) -> bool {
    schema.contains_key("type") || schema.contains_key("properties")
}

/// The types that a schema names, or that its keywords are about.
fn types(schema: &Map<String, Value>) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(name)) => return vec![name],
        Some(Value::Array(names)) => return names.iter().filter_map(Value::as_str).collect(),
        _ => {}
    }
    let about: &[(&str, &[&str])] = &[
        (
            "object",
            &[
                "properties",
                "required",
                "additionalProperties",
                "patternProperties",
                "minProperties",
                "maxProperties",
                "propertyNames",
                "dependentRequired",
            ],
        ),
        ("array", &["items", "prefixItems", "minItems", "maxItems", "contains", "uniqueItems"]),
        ("string", &["pattern", "minLength", "maxLength", "format"]),
        ("number", &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]),
    ];
    let mut found: Vec<&str> = about
        .iter()
        .filter(|(_, keywords)| keywords.iter().any(|keyword| schema.contains_key(*keyword)))
        .map(|(kind, _)| *kind)
        .collect();
    found.push("any");
    found
}

fn as_json(number: f64, whole: bool) -> Option<Value> {
    if number.fract() == 0.0 && number.abs() < 9.0e18 {
        return Some(json!(number as i64));
    }
    if whole {
        return None;
    }
    Number::from_f64(number).map(Value::Number)
}

fn format_example(format: &str) -> Option<&'static str> {
    Some(match format {
        "date" => "2020-01-31",
        "date-time" => "2020-01-31T00:00:00Z",
        "time" => "00:00:00Z",
        "email" | "idn-email" => "a@example.com",
        "uri" | "iri" | "uri-reference" | "iri-reference" => "https://example.com/",
        "hostname" | "idn-hostname" => "example.com",
        "ipv4" => "192.0.2.1",
        "ipv6" => "2001:db8::1",
        "uuid" => "00000000-0000-4000-8000-000000000000",
        "duration" => "P1D",
        "regex" => "a",
        "json-pointer" => "/a",
        _ => return None,
    })
}
