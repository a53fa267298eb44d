//! Arguments as clients send them, read as they were meant.
//!
//! Some clients send arrays, numbers and booleans as JSON texts, and `null` for what they leave out. Such an argument
//! is converted where its schema leaves no doubt, inside lists of objects, too. A call that does not match after that is
//! refused.

use pintle_contract::{inexact_number, pointer_segment};
use serde_json::{Map, Value};

use pintle_schema::CompiledSchema;
use pintle_tool::DynTool;

/// What was converted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Repairs {
    /// The names of the arguments, in the order of the call. A member of one is named by its path, such as
    /// `edits/3/lines`.
    pub(crate) names: Vec<String>,
    /// The arguments that were not JSON, with what the caller wrote: the tool knew what they mean.
    pub(crate) reread: Vec<(String, String)>,
}

impl Repairs {
    fn note(&mut self, path: &str) {
        if self.names.last().is_none_or(|last| last != path) {
            self.names.push(path.to_owned());
        }
    }

    /// Forgets everything after so many names and texts.
    fn truncate(&mut self, (names, reread): (usize, usize)) {
        self.names.truncate(names);
        self.reread.truncate(reread);
    }
}

/// Converts what can be converted. `is_accepted` says whether the arguments match the schema already.
pub(crate) fn repair(
    arguments: &mut Value,
    tool: &dyn DynTool,
    schema: &CompiledSchema,
    is_accepted: bool,
) -> Repairs {
    let mut repairs = Repairs::default();
    let declared = &tool.definition().input_schema;
    let Some(members) = arguments.as_object_mut() else { return repairs };
    if !is_accepted {
        repairs.names = remove_nulls(members, declared);
    }
    let is_suspect =
        |(name, value): &(&String, &Value)| !is_accepted || hides_array(value, property(declared, name));
    let suspects: Vec<String> = members.iter().filter(is_suspect).map(|(name, _)| name.clone()).collect();
    for name in suspects {
        let before = (repairs.names.len(), repairs.reread.len());
        let mut converter = Converter { tool, repairs: &mut repairs };
        let declared = property(declared, &name);
        let Some(meant) =
            converter.convert(&arguments[&name], declared, Location { path: &name, member: &name })
        else {
            continue;
        };
        let is_reread = repairs.reread[before.1..].iter().any(|(path, _)| *path == name);
        let written = std::mem::replace(&mut arguments[&name], meant);
        if !is_matching(arguments, &name, schema) {
            // A number that is out of bounds is reported as that, not as a text.
            if is_accepted || is_reread {
                arguments[&name] = written;
            }
            repairs.truncate(before);
        }
    }
    repairs
}

/// Whether nothing is wrong with one of the arguments, whatever is wrong with the others.
fn is_matching(arguments: &Value, name: &str, schema: &CompiledSchema) -> bool {
    let is_about = |path: &str| {
        let first = path.strip_prefix('/').and_then(|path| path.split('/').next()).unwrap_or_default();
        first.replace("~1", "/").replace("~0", "~") == name
    };
    !schema.mismatches(arguments, "argument").iter().any(|mismatch| is_about(&mismatch.path))
}

/// Leaves out members that are `null` where that is not a value and nothing is required, and gives their names.
fn remove_nulls(members: &mut Map<String, Value>, declared: &Value) -> Vec<String> {
    let is_required = |name: &str| {
        declared["required"].as_array().is_some_and(|names| names.iter().any(|required| required == name))
    };
    let is_left_out = |name: &str| {
        let known = declared["properties"].get(name);
        known.is_some_and(|known| !Types::of(known).null) && !is_required(name)
    };
    let names = members.iter().filter(|(name, value)| value.is_null() && is_left_out(name));
    let names: Vec<String> = names.map(|(name, _)| name.clone()).collect();
    for name in &names {
        members.shift_remove(name);
    }
    names
}

/// Whether a text is a list of texts where the schema takes a text or a list.
fn hides_array(value: &Value, declared: &Value) -> bool {
    let is_list = value.as_str().is_some_and(|text| text.trim_start().starts_with('['));
    is_list && Types::of(declared).array
}

fn property<'a>(declared: &'a Value, name: &str) -> &'a Value {
    &declared["properties"][name]
}

/// Where a value stands in the arguments.
#[derive(Clone, Copy)]
struct Location<'a> {
    path: &'a str,
    /// The name of the member that it is, or is in as an element of a list.
    member: &'a str,
}

/// Converts values, and notes which.
struct Converter<'a> {
    tool: &'a dyn DynTool,
    repairs: &'a mut Repairs,
}

impl Converter<'_> {
    /// What was meant by a value that the schema does not take as it stands.
    fn convert(&mut self, value: &Value, declared: &Value, at: Location<'_>) -> Option<Value> {
        match value {
            Value::String(text) => self.convert_text(text, declared, at),
            Value::Array(items) => {
                let mut is_changed = false;
                let meant = items.iter().enumerate().map(|(index, item)| {
                    // An element that is an object has members to be named; any other belongs to the list.
                    let path = format!("{}/{index}", at.path);
                    let path = if item.is_object() { &path } else { at.path };
                    let meant = self.convert(item, &declared["items"], Location { path, member: "" });
                    is_changed |= meant.is_some();
                    meant.unwrap_or_else(|| item.clone())
                });
                let meant = meant.collect();
                is_changed.then_some(meant)
            }
            Value::Object(members) => {
                let mut meant = members.clone();
                let removed = remove_nulls(&mut meant, declared);
                let mut is_changed = !removed.is_empty();
                for name in removed {
                    self.repairs.note(&format!("{}/{}", at.path, pointer_segment(&name)));
                }
                for (name, value) in &mut meant {
                    let path = format!("{}/{}", at.path, pointer_segment(name));
                    let at = Location { path: &path, member: name };
                    if let Some(converted) = self.convert(value, property(declared, name), at) {
                        *value = converted;
                        is_changed = true;
                    }
                }
                is_changed.then_some(Value::Object(meant))
            }
            _ => None,
        }
    }

    fn convert_text(&mut self, text: &str, declared: &Value, at: Location<'_>) -> Option<Value> {
        let types = Types::of(declared);
        let is_meant = |parsed: &Value| match types.string {
            true => types.array && is_list_of_texts(parsed),
            false => types.include(parsed),
        };
        if let Some(parsed) = parse(text).filter(is_meant) {
            self.repairs.note(at.path);
            return Some(self.convert(&parsed, declared, at).unwrap_or(parsed));
        }
        let meant = if types.string { None } else { self.tool.reread(at.member, text) }?;
        self.repairs.note(at.path);
        self.repairs.reread.push((at.path.to_owned(), text.to_owned()));
        Some(meant)
    }
}

/// The JSON that a text is. A number that would be rounded is none.
fn parse(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok().filter(|_| inexact_number(text).is_none())
}

fn is_list_of_texts(value: &Value) -> bool {
    value.as_array().is_some_and(|items| items.iter().all(Value::is_string))
}

/// The types of value that a schema takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Types {
    string: bool,
    array: bool,
    object: bool,
    integer: bool,
    number: bool,
    boolean: bool,
    null: bool,
}

impl Types {
    const ALL: Self = Self {
        string: true,
        array: true,
        object: true,
        integer: true,
        number: true,
        boolean: true,
        null: true,
    };

    /// Of what is not declared, all types count as taken: then a value stays what it is.
    fn of(declared: &Value) -> Self {
        if let Some(types) = declared.get("type") {
            let names = types.as_array().map_or(std::slice::from_ref(types), Vec::as_slice);
            return names.iter().filter_map(Value::as_str).fold(Self::default(), Self::with);
        }
        let choices = ["anyOf", "oneOf"].iter().find_map(|keyword| declared.get(keyword)?.as_array());
        if let Some(choices) = choices {
            return choices.iter().map(Self::of).fold(Self::default(), Self::or);
        }
        match declared.get("enum").and_then(Value::as_array) {
            Some(values) => Self {
                string: values.iter().any(Value::is_string),
                integer: values.iter().any(Value::is_number),
                number: values.iter().any(Value::is_number),
                boolean: values.iter().any(Value::is_boolean),
                null: values.iter().any(Value::is_null),
                ..Self::default()
            },
            None => Self::ALL,
        }
    }

    fn with(mut self, name: &str) -> Self {
        match name {
            "string" => self.string = true,
            "array" => self.array = true,
            "object" => self.object = true,
            "integer" => self.integer = true,
            "number" => (self.integer, self.number) = (true, true),
            "boolean" => self.boolean = true,
            "null" => self.null = true,
            _ => {}
        }
        self
    }

    fn or(self, other: Self) -> Self {
        Self {
            string: self.string || other.string,
            array: self.array || other.array,
            object: self.object || other.object,
            integer: self.integer || other.integer,
            number: self.number || other.number,
            boolean: self.boolean || other.boolean,
            null: self.null || other.null,
        }
    }

    /// Whether a value that was written as a text is of one of these types.
    fn include(self, value: &Value) -> bool {
        match value {
            Value::Array(_) => self.array,
            Value::Object(_) => self.object,
            Value::Number(number) if number.is_f64() => {
                self.number || self.integer && number.as_f64().is_some_and(|float| float.fract() == 0.0)
            }
            Value::Number(_) => self.integer || self.number,
            Value::Bool(_) => self.boolean,
            Value::String(_) | Value::Null => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn declared() -> Value {
        json!({"properties": {
            "lines": {"type": "array", "items": {"type": "integer"}},
            "top": {"type": "integer"},
            "word": {"type": "boolean"},
            "path": {"anyOf": [{"anyOf": [
                {"type": "string"}, {"type": "array", "items": {"type": "string"}}]}, {"type": "null"}]},
            "query": {"type": "string"},
            "asset": {"description": "any value"},
            "edits": {"type": "array", "items": {"type": "object", "properties": {
                "lines": {"type": "array", "items": {"type": "integer"}}, "old": {"type": "string"}}}},
            "inner": {"type": "object", "required": ["depth"], "properties": {
                "depth": {"type": "integer"}, "name": {"type": "string"}}},
        }})
    }

    fn converted(name: &str, value: Value) -> Option<Value> {
        converted_and_noted(name, value).0
    }

    fn converted_and_noted(name: &str, value: Value) -> (Option<Value>, Repairs) {
        let mut repairs = Repairs::default();
        let tool = crate::fuzzing::tool();
        let mut converter = Converter { tool: &*tool, repairs: &mut repairs };
        let at = Location { path: name, member: name };
        let meant = converter.convert(&value, property(&declared(), name), at);
        (meant, repairs)
    }

    #[test]
    fn members_of_objects_in_a_list_are_converted_and_named_by_their_path() {
        let edits = json!([
            {"lines": [1, 2], "old": null},
            {"lines": "[3, 4]", "old": "5"},
            {"lines": "6-7", "old": "[1]"},
        ]);
        let meant =
            json!([{"lines": [1, 2]}, {"lines": [3, 4], "old": "5"}, {"lines": [6, 7], "old": "[1]"}]);
        let (found, repairs) = converted_and_noted("edits", edits.clone());
        assert_eq!(found, Some(meant.clone()));
        assert_eq!(repairs.names, ["edits/0/old", "edits/1/lines", "edits/2/lines"]);
        assert_eq!(repairs.reread, [("edits/2/lines".to_owned(), "6-7".to_owned())]);
        let (found, repairs) = converted_and_noted("edits", json!(edits.to_string()));
        assert_eq!(found, Some(meant));
        assert_eq!(repairs.names[..2], ["edits", "edits/0/old"]);
    }

    #[test]
    fn a_json_text_is_converted_where_the_schema_takes_no_text() {
        assert_eq!(converted("lines", json!("[3, 7]")), Some(json!([3, 7])));
        assert_eq!(converted("lines", json!(["3", "7"])), Some(json!([3, 7])));
        assert_eq!(converted("lines", json!("[\"3\", 7]")), Some(json!([3, 7])));
        assert_eq!(converted("top", json!(" 5 ")), Some(json!(5)));
        assert_eq!(converted("word", json!("true")), Some(json!(true)));
        let inner = json!("{\"depth\": \"2\", \"name\": null}");
        assert_eq!(converted("inner", inner), Some(json!({"depth": 2})));
    }

    #[test]
    fn a_text_stays_a_text_where_one_is_taken_or_it_is_of_no_taken_type() {
        for (name, value) in [
            ("query", json!("[1, 2]")),
            ("query", json!("5")),
            ("asset", json!("{\"a\": 1}")),
            ("top", json!("[5]")),
            ("top", json!("five")),
            ("top", json!("5.5")),
            ("word", json!("yes")),
            ("lines", json!("3 to 7")),
            ("lines", json!([3, 7])),
            ("path", json!("src/[ab].rs")),
            ("path", json!("[1]")),
            ("top", json!("null")),
        ] {
            assert_eq!(converted(name, value.clone()), None, "{name} {value}");
        }
    }

    #[test]
    fn a_list_of_texts_in_a_text_is_the_list_where_both_are_taken() {
        let list = json!("[\"src\", \"!*.md\"]");
        assert!(hides_array(&list, property(&declared(), "path")));
        assert_eq!(converted("path", list), Some(json!(["src", "!*.md"])));
        assert!(!hides_array(&json!("[\"a\"]"), property(&declared(), "query")));
    }

    #[test]
    fn a_number_that_would_be_rounded_is_not_converted() {
        assert_eq!(converted("top", json!("123456789012345678901234567890")), None);
        assert_eq!(converted("inner", json!("{\"depth\": 0.1234567890123456789}")), None);
    }
}
