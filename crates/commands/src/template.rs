//! The arguments of a program, with places for fields.

use std::{collections::HashMap, ffi::OsString};

use pintle_contract::{Fault, Stage, nearest};
use serde_json::{Map, Value};

use crate::error::ManifestError;

/// The arguments of a program after its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Template(Vec<Element>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Element {
    /// Always the same.
    Literal(String),
    /// The value of a field.
    Field {
        name: String,
        /// It comes after `--`, where nothing is read as an option.
        is_after_options: bool,
    },
    /// An option and the field that is its value: both are there, or neither.
    Option { option: String, name: String },
}

impl Template {
    /// Reads the elements of a template. `fields` are the tool's, and whether each of them is always there. `Err` says
    /// which element is wrong, and why.
    pub(crate) fn parse(
        elements: &[String],
        fields: &HashMap<String, bool>,
    ) -> Result<Self, (usize, ManifestError)> {
        let mut parsed: Vec<Element> = Vec::new();
        for (index, text) in elements.iter().enumerate() {
            let form = match field_of(text).filter(|name| fields.contains_key(*name)) {
                Some(name) => Form::Field(name),
                None => Form::of(text),
            };
            let element = match form {
                Form::Field(name) => {
                    check_field(name, fields).map_err(|error| (index, error))?;
                    let name = name.to_owned();
                    let is_after_options =
                        parsed.iter().any(|element| *element == Element::Literal("--".into()));
                    match parsed.pop_if(|last| !is_after_options && takes_value(last)) {
                        Some(Element::Literal(option)) => Element::Option { option, name },
                        _ => Element::Field { name, is_after_options },
                    }
                }
                Form::Literal(text) => Element::Literal(text.into()),
                Form::Mixed(name) if fields.contains_key(name) => {
                    let (name, element) = (name.to_owned(), text.clone());
                    return Err((index, ManifestError::PartOfElement { name, element }));
                }
                Form::Mixed(_) => Element::Literal(text.clone()),
            };
            parsed.push(element);
        }
        Ok(Self(parsed))
    }

    /// The fields that stand in it.
    pub(crate) fn fields(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|element| match element {
            Element::Field { name, .. } | Element::Option { name, .. } => Some(name.as_str()),
            Element::Literal(_) => None,
        })
    }

    /// Puts the values of the fields in their places: each is one argument, a list as many as it has elements.
    pub(crate) fn fill(&self, fields: &Map<String, Value>) -> Result<Vec<OsString>, Fault> {
        let mut arguments = Vec::new();
        for element in &self.0 {
            match element {
                Element::Literal(text) => arguments.push(text.into()),
                Element::Field { name, is_after_options } => {
                    for value in values(fields, name) {
                        arguments.push(argument(name, value, !is_after_options)?);
                    }
                }
                Element::Option { option, name } => {
                    // Without a value the option would take what comes next for it.
                    for (index, value) in values(fields, name).iter().enumerate() {
                        if index == 0 {
                            arguments.push(option.into());
                        }
                        // Only the first is the option's value.
                        arguments.push(argument(name, value, index > 0)?);
                    }
                }
            }
        }
        Ok(arguments)
    }
}

/// What stands in the braces of an element that is nothing else.
fn field_of(text: &str) -> Option<&str> {
    text.strip_prefix('{')?.strip_suffix('}')
}

/// Whether an element stands for a field.
pub(crate) fn is_field(text: &str, fields: &HashMap<String, bool>) -> bool {
    field_of(text).is_some_and(|name| fields.contains_key(name))
}

/// Whether an element is an option whose value is the next element: not a single dash, which is a file's name for
/// standard input, and not one that has its value already.
fn takes_value(element: &Element) -> bool {
    matches!(element, Element::Literal(text) if text.starts_with('-') && text != "-" && !text.contains('='))
}

/// The values of a field: those of a list, or one, or none.
fn values<'a>(fields: &'a Map<String, Value>, name: &str) -> &'a [Value] {
    match fields.get(name) {
        None | Some(Value::Null) => &[],
        Some(Value::Array(values)) => values,
        Some(value) => std::slice::from_ref(value),
    }
}

fn check_field(name: &str, fields: &HashMap<String, bool>) -> Result<(), ManifestError> {
    match fields.get(name) {
        Some(true) => Ok(()),
        Some(false) => Err(ManifestError::FieldMayBeAbsent(name.to_owned())),
        None => {
            let near = nearest(name, fields.keys().map(String::as_str)).map(str::to_owned);
            Err(ManifestError::UnknownField { name: name.to_owned(), near })
        }
    }
}

/// One value as one argument.
fn argument(name: &str, value: &Value, refuses_dash: bool) -> Result<OsString, Fault> {
    let text = match value {
        Value::String(text) => text.clone(),
        other => return Ok(other.to_string().into()),
    };
    if text.contains('\0') {
        let problem = format!("`{name}` holds a NUL character, which no argument of a program can hold");
        return Err(Fault::invalid(Stage::Arguments, problem).hint("send it without that character"));
    }
    if refuses_dash && text.starts_with('-') {
        let problem = format!("`{name}` begins with `-`, so the program would read it as an option");
        let hint = "write a path as `./-name`; the manifest can put \"--\" before the field";
        return Err(Fault::invalid(Stage::Arguments, problem).hint(hint));
    }
    Ok(text.into())
}

/// What an element looks like.
enum Form<'a> {
    /// `{name}`.
    Field(&'a str),
    /// A text without fields, or `{{text}}`, which stands for `{text}`.
    Literal(&'a str),
    /// A text with `{name}` in it.
    Mixed(&'a str),
}

impl<'a> Form<'a> {
    fn of(text: &'a str) -> Self {
        let is_name = |name: &str| {
            let is_letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
            !name.is_empty() && name.chars().all(is_letter)
        };
        if text.starts_with("{{") && text.ends_with("}}") {
            return Self::Literal(&text[1..text.len() - 1]);
        }
        if let Some(name) = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'))
            && is_name(name)
        {
            return Self::Field(name);
        }
        let mut rest = text;
        while let Some((_, after)) = rest.split_once('{') {
            if let Some((name, _)) = after.split_once('}')
                && is_name(name)
            {
                return Self::Mixed(name);
            }
            rest = after;
        }
        Self::Literal(text)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn template(elements: &[&str]) -> Result<Template, (usize, ManifestError)> {
        let fields = [("path", true), ("paths", true), ("level", false)];
        let fields = fields.into_iter().map(|(name, is_there)| (name.to_owned(), is_there)).collect();
        Template::parse(&elements.iter().map(ToString::to_string).collect::<Vec<_>>(), &fields)
    }

    fn filled(elements: &[&str], fields: &Value) -> Result<Vec<String>, Refused> {
        let fields = fields.as_object().expect("an object");
        match template(elements).expect("a template").fill(fields) {
            Ok(arguments) => Ok(arguments.into_iter().map(|one| one.into_string().expect("text")).collect()),
            Err(fault) => Err(Refused(fault.message.clone())),
        }
    }

    /// The message of a fault.
    #[derive(Debug, PartialEq)]
    struct Refused(String);

    #[test]
    fn a_field_fills_one_element_and_a_list_as_many_as_it_has() {
        let fields = json!({"path": "a b\n$(id) 'x\"", "paths": ["one", "", 3, true, {"a": [1]}]});
        assert_eq!(
            filled(&["-x", "{path}", "{{path}}", "{}", "{1..3}", "{paths}", "end"], &fields),
            Ok([
                "-x",
                "a b\n$(id) 'x\"",
                "{path}",
                "{}",
                "{1..3}",
                "one",
                "",
                "3",
                "true",
                "{\"a\":[1]}",
                "end"
            ]
            .map(String::from)
            .to_vec())
        );
        assert_eq!(
            filled(&["{path}", "{paths}"], &json!({"path": 1.5, "paths": []})),
            Ok(vec!["1.5".into()])
        );
    }

    #[test]
    fn what_would_be_read_as_an_option_is_refused_unless_the_template_says_where_options_end() {
        let fields = json!({"path": "-rf"});
        for elements in [&["{path}"][..], &["x", "{path}"], &["-v", "x", "{path}"]] {
            let Refused(problem) = filled(elements, &fields).expect_err("refused");
            assert!(problem.contains("begins with `-`"), "{problem}");
        }
        for elements in [&["--", "{path}"][..], &["-e", "{path}"], &["--", "x", "{path}"]] {
            assert_eq!(filled(elements, &fields).expect("taken").last().map(String::as_str), Some("-rf"));
        }
        assert_eq!(filled(&["{path}"], &json!({"path": -5})), Ok(vec!["-5".into()]), "a number is no option");
        assert!(filled(&["{paths}"], &json!({"paths": ["a", "--all"]})).is_err());
    }

    #[test]
    fn of_a_list_after_an_option_only_the_first_may_begin_with_a_dash() {
        let list = |paths: &[&str]| json!({ "paths": paths });
        let words = |words: &[&str]| Ok(words.iter().map(ToString::to_string).collect());
        assert_eq!(filled(&["-e", "{paths}", "end"], &list(&["-a", "b"])), words(&["-e", "-a", "b", "end"]));
        for elements in [&["-e", "{paths}"][..], &["-", "{paths}"], &["--level=3", "{paths}"]] {
            assert!(filled(elements, &list(&["a", "--evil"])).is_err(), "{elements:?}");
        }
        for elements in [&["-", "{path}"][..], &["--level=3", "{path}"]] {
            assert!(filled(elements, &json!({"path": "--evil"})).is_err(), "{elements:?}");
        }
        let free = filled(&["--", "-e", "{paths}"], &list(&["a", "--all"]));
        assert_eq!(free, words(&["--", "-e", "a", "--all"]));
    }

    #[test]
    fn a_property_of_any_name_is_a_field() {
        let fields = HashMap::from([("a.b".to_owned(), true)]);
        let template = Template::parse(&["{a.b}".into()], &fields).expect("a template");
        assert_eq!(template.fields().collect::<Vec<_>>(), ["a.b"]);
    }

    #[test]
    fn an_option_without_a_value_is_left_out() {
        for none in [json!({"path": null, "paths": []}), json!({"path": [], "paths": null})] {
            assert_eq!(
                filled(&["--out", "{path}", "-e", "{paths}", "end"], &none),
                Ok(vec!["end".to_owned()])
            );
            let kept = filled(&["-v", "--", "{paths}", "-x", "{path}"], &none);
            assert_eq!(
                kept,
                Ok(["-v", "--", "-x"].map(String::from).to_vec()),
                "nothing is an option after `--`"
            );
        }
    }

    #[test]
    fn a_template_that_cannot_be_meant_is_refused_with_its_element() {
        for (elements, index, expected) in [
            (&["x", "--file={path}"][..], 1, "only a part of `--file={path}`"),
            (&["{pth}"], 0, "the nearest is `path`"),
            (&["a", "b", "{level}"], 2, "may be absent"),
        ] {
            let (at, problem) = template(elements).expect_err("refused");
            assert!(at == index && problem.to_string().contains(expected), "{at}: {problem}");
        }
        assert!(template(&["{print $1}", "a{b}c", "{", "}{", "{{x}}"]).is_ok(), "not every brace is a field");
    }

    proptest! {
        #[test]
        fn whatever_a_caller_sends_is_one_argument_or_is_refused(text in any::<String>()) {
            for elements in [["x", "{path}", "y"], ["--", "{path}", "y"]] {
                match filled(&elements, &json!({"path": text})) {
                    Ok(arguments) => prop_assert_eq!(arguments, [elements[0], &text, "y"]),
                    Err(_) => prop_assert!(text.contains('\0') || text.starts_with('-') && elements[0] == "x"),
                }
            }
        }
    }
}
