//! Arguments as clients send them, read as they were meant.
//!
//! Some clients send arrays, numbers and booleans as JSON texts, and `null` for what they leave out. Such an argument
//! is converted where its schema leaves no doubt. A call that does not match after that is refused.

use pintle_contract::inexact_number;
use serde_json::{Map, Value};

use pintle_schema::CompiledSchema;
use pintle_tool::DynTool;

/// What was converted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Repairs {
    /// The names of the arguments, in the order of the call.
    pub(crate) names: Vec<String>,
    /// The arguments that were not JSON, with what the caller wrote: the tool knew what they mean.
    pub(crate) reread: Vec<(String, String)>,
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
        let (written, declared) = (&arguments[&name], property(declared, &name));
        let (meant, reread) = match convert(written, declared) {
            Some(meant) => (meant, None),
            None => {
                let text = written.as_str().filter(|_| !Types::of(declared).string);
                let Some(meant) = text.and_then(|text| tool.reread(&name, text)) else { continue };
                (meant, text.map(str::to_owned))
            }
        };
        let written = std::mem::replace(&mut arguments[&name], meant);
        if !is_matching(arguments, &name, schema) {
            // A number that is out of bounds is reported as that, not as a text.
            if is_accepted || reread.is_some() {
                arguments[&name] = written;
            }
            continue;
        }
        repairs.reread.extend(reread.map(|text| (name.clone(), text)));
        repairs.names.push(name);
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

/// What was meant by a value that the schema does not take as it stands.
fn convert(value: &Value, declared: &Value) -> Option<Value> {
    match value {
        Value::String(text) => {
            let parsed = parse(text)?;
            let types = Types::of(declared);
            let is_meant = match types.string {
                true => types.array && is_list_of_texts(&parsed),
                false => types.include(&parsed),
            };
            is_meant.then(|| convert(&parsed, declared).unwrap_or(parsed))
        }
        Value::Array(items) => {
            let converted: Vec<_> = items.iter().map(|item| convert(item, &declared["items"])).collect();
            if converted.iter().all(Option::is_none) {
                return None;
            }
            let meant = converted.into_iter().zip(items);
            Some(meant.map(|(converted, item)| converted.unwrap_or_else(|| item.clone())).collect())
        }
        Value::Object(members) => {
            let mut meant = members.clone();
            let mut is_changed = !remove_nulls(&mut meant, declared).is_empty();
            for (name, value) in &mut meant {
                if let Some(converted) = convert(value, property(declared, name)) {
                    *value = converted;
                    is_changed = true;
                }
            }
            is_changed.then_some(Value::Object(meant))
        }
        _ => None,
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
            "inner": {"type": "object", "required": ["depth"], "properties": {
                "depth": {"type": "integer"}, "name": {"type": "string"}}},
        }})
    }

    fn converted(name: &str, value: Value) -> Option<Value> {
        convert(&value, property(&declared(), name))
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
            ("lines", json!("3-7")),
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
