//! A registry of compiled JSON Schemas, and error messages that say what to change.
//!
//! A [`SchemaRegistry`] holds schemas by fingerprint, so that equal schemas share one validator. A [`CompiledSchema`]
//! validates values; a mismatch becomes a [`Fault`] that names the nearest known member and never quotes a value.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use jsonschema::{Validator, error::ValidationErrorKind};
use parking_lot::Mutex;
use pintle_contract::{
    ENVELOPE_SCHEMA, Fault, Fingerprint, Stage, TOOL_IO_SCHEMA, fingerprint, meant_by, pointer_segment,
};
use serde_json::{Value, json};

/// Compiled schemas, cached by fingerprint: tools that share a schema share its validator.
#[derive(Default)]
pub struct SchemaRegistry {
    declared: Mutex<HashMap<Fingerprint, Arc<CompiledSchema>>>,
}

impl SchemaRegistry {
    /// Compiles a schema that comes from outside, or returns why it does not compile. Nothing is ever fetched: a `$ref`
    /// out of the schema is an error.
    pub fn load(&self, schema: &Value) -> Result<Arc<CompiledSchema>, Fault> {
        let declared = self.declare(schema);
        declared.validator()?;
        Ok(declared)
    }

    /// A built-in schema, compiled on first use, because most clients call only a few tools.
    pub fn declare(&self, schema: &Value) -> Arc<CompiledSchema> {
        let key = fingerprint(schema);
        let declare = || Arc::new(CompiledSchema { schema: schema.clone(), validator: OnceLock::new() });
        Arc::clone(self.declared.lock().entry(key).or_insert_with(declare))
    }

    /// The validator of the envelope.
    pub fn load_envelope(&self) -> Result<Arc<CompiledSchema>, Fault> {
        Ok(self.declare(&parse(ENVELOPE_SCHEMA)?))
    }

    /// The validator of the params of `mcp.tool.invoke`, whatever tool they name.
    pub fn load_invocation(&self) -> Result<Arc<CompiledSchema>, Fault> {
        Ok(self.declare(&parse(TOOL_IO_SCHEMA)?))
    }
}

fn parse(schema: &str) -> Result<Value, Fault> {
    serde_json::from_str(schema).map_err(|_| Fault::internal("a built-in schema is not JSON"))
}

/// A schema with its validator.
pub struct CompiledSchema {
    schema: Value,
    validator: OnceLock<Validator>,
}

/// One validation error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// JSON Pointer (RFC 6901) to the value, or to the unknown member itself.
    pub path: String,
    /// What is wrong.
    pub message: String,
    /// Whether it is a member that the schema does not have.
    pub is_unknown_member: bool,
}

impl Mismatch {
    /// Something that is wrong with a value that is known.
    pub fn new(path: &str, message: String) -> Self {
        Self { path: path.to_owned(), message, is_unknown_member: false }
    }
}

impl CompiledSchema {
    fn validator(&self) -> Result<&Validator, Fault> {
        if let Some(known) = self.validator.get() {
            return Ok(known);
        }
        let compiled = jsonschema::draft202012::options().offline().build(&self.schema);
        let compiled =
            compiled.map_err(|error| Fault::internal(format!("a schema does not compile: {error}")))?;
        Ok(self.validator.get_or_init(|| compiled))
    }

    /// Whether the value is valid. No value is valid against a schema that does not compile.
    pub fn accepts(&self, value: &Value) -> bool {
        self.validator().is_ok_and(|validator| validator.is_valid(value))
    }

    /// All validation errors of a value; `noun` is what messages call a member.
    pub fn mismatches(&self, value: &Value, noun: &str) -> Vec<Mismatch> {
        let validator = match self.validator() {
            Ok(validator) => validator,
            Err(fault) => return vec![Mismatch::new("", fault.message.clone())],
        };
        let mut found: Vec<Mismatch> =
            validator.iter_errors(value).flat_map(|error| self.explain(&error, noun)).collect();
        found.sort_by(|a, b| (&a.path, &a.message).cmp(&(&b.path, &b.message)));
        found.dedup();
        found
    }

    /// Validates a value and returns the fault if it is invalid; `subject` is what the message calls the value, `noun` what
    /// it calls a member.
    pub fn check(&self, value: &Value, stage: Stage, subject: &str, noun: &str) -> Option<Fault> {
        (!self.accepts(value)).then(|| self.fault(value, stage, subject, noun))
    }

    /// The fault for an invalid value; `subject` is what the message calls the value.
    pub fn fault(&self, value: &Value, stage: Stage, subject: &str, noun: &str) -> Fault {
        self.fault_with(Vec::new(), value, stage, subject, noun)
    }

    /// The same, with more that is wrong than the schema can tell.
    pub fn fault_with(
        &self,
        others: Vec<Mismatch>,
        value: &Value,
        stage: Stage,
        subject: &str,
        noun: &str,
    ) -> Fault {
        const SHOWN: usize = 500;
        let mut mismatches = self.mismatches(value, noun);
        mismatches.extend(others);
        // A misspelt member is also reported as missing under its right name: show the unknown one first.
        mismatches.sort_by_key(|mismatch| !mismatch.is_unknown_member);
        let shown: Vec<&str> = mismatches.iter().take(3).map(|m| m.message.as_str()).collect();
        let more = mismatches.len().saturating_sub(shown.len());
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        let errors: Vec<Value> = mismatches
            .iter()
            .take(SHOWN)
            .map(|mismatch| json!({"path": mismatch.path, "msg": mismatch.message}))
            .collect();
        let fault = Fault::invalid(stage, format!("{subject}: {}{more}", shown.join("; ")))
            .details(json!({ "errors": errors }));
        match self.describe_missing(value) {
            Some(hint) => fault.hint(hint),
            None => fault,
        }
    }

    /// The descriptions of the missing members, which say where their values come from.
    fn describe_missing(&self, value: &Value) -> Option<String> {
        let members = value.as_object()?;
        let names = self.schema.get("required")?.as_array()?.iter().filter_map(Value::as_str);
        let described = names.filter(|name| !members.contains_key(*name)).filter_map(|name| {
            let description = self.schema.get("properties")?.get(name)?.get("description")?.as_str()?;
            Some(format!("`{name}`: {description}"))
        });
        let described: Vec<String> = described.collect();
        (!described.is_empty()).then(|| described.join(" "))
    }

    fn explain(&self, error: &jsonschema::ValidationError<'_>, noun: &str) -> Vec<Mismatch> {
        let path = error.instance_path().as_str();
        match error.kind() {
            ValidationErrorKind::AdditionalProperties { unexpected } => {
                let known = self.known_members(error.schema_path().as_str());
                unexpected
                    .iter()
                    .map(|name| Mismatch {
                        path: format!("{path}/{}", pointer_segment(name)),
                        message: format!("{}{}", located(path), unknown_member(name, noun, &known)),
                        is_unknown_member: true,
                    })
                    .collect()
            }
            ValidationErrorKind::Required { property } => {
                let name = property.as_str().unwrap_or_default();
                let message = format!("{}{noun} `{name}` is missing", located(path));
                vec![Mismatch::new(path, message)]
            }
            _ => {
                vec![Mismatch::new(path, format!("{}{}", located(path), error.masked_with("the value")))]
            }
        }
    }

    /// The members that the object schema of a keyword declares.
    fn known_members(&self, keyword_path: &str) -> Vec<&str> {
        let parent = keyword_path.rsplit_once('/').map_or("", |(parent, _)| parent);
        let properties = self.schema.pointer(parent).and_then(|schema| schema.get("properties"));
        let names = properties.and_then(Value::as_object).map(|map| map.keys());
        names.into_iter().flatten().map(String::as_str).collect()
    }
}

/// Where something is wrong, unless that is the whole value.
fn located(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!("`{path}`: ") }
}

fn unknown_member(name: &str, noun: &str, known: &[&str]) -> String {
    let shown = shorten(name);
    match meant_by(name, known) {
        Some((near, how)) => format!(
            "unknown {noun} `{shown}`; the nearest known one is `{near}`{how} (known: {})",
            known.join(", ")
        ),
        None if known.is_empty() => format!("unknown {noun} `{shown}`; none is allowed here"),
        None => format!("unknown {noun} `{shown}` (known: {})", known.join(", ")),
    }
}

/// The beginning of a text that may be long.
fn shorten(text: &str) -> String {
    const SHOWN: usize = 80;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "asset": true,
                "schema": {"type": "string"},
                "inner": {"type": "object", "properties": {"depth": true}, "additionalProperties": false}
            },
            "required": ["schema"],
            "additionalProperties": false
        })
    }

    #[test]
    fn equal_schemas_share_one_validator() {
        let registry = SchemaRegistry::default();
        let first = registry.load(&json!({"type": "object", "minProperties": 1})).expect("compiles");
        let second = registry.load(&json!({"minProperties": 1, "type": "object"})).expect("compiles");
        assert!(Arc::ptr_eq(&first, &second));
    }

    #[test]
    fn a_reference_out_of_the_schema_is_never_fetched() {
        let registry = SchemaRegistry::default();
        for target in ["http://127.0.0.1:1/x.json", "file:///etc/hostname"] {
            assert!(registry.load(&json!({"$ref": target})).is_err(), "{target}");
        }
    }

    #[test]
    fn nothing_matches_a_schema_that_does_not_compile() {
        let declared = SchemaRegistry::default().declare(&json!({"type": "no such type"}));
        assert!(!declared.accepts(&json!(1)));
        let mismatches = declared.mismatches(&json!(1), "field");
        assert!(mismatches[0].message.contains("does not compile"), "{mismatches:?}");
    }

    #[test]
    fn an_unknown_member_is_named_with_the_nearest_known_one_at_its_own_depth() {
        let compiled = SchemaRegistry::default().load(&schema()).expect("compiles");
        let found =
            compiled.mismatches(&json!({"shema": "x", "schema": "y", "inner": {"dept/h": 1}}), "argument");
        assert_eq!(
            found.iter().map(|m| (m.path.as_str(), m.message.as_str())).collect::<Vec<_>>(),
            [
                (
                    "/inner/dept~1h",
                    "`/inner`: unknown argument `dept/h`; the nearest known one is `depth` (known: depth)"
                ),
                (
                    "/shema",
                    "unknown argument `shema`; the nearest known one is `schema` (known: asset, schema, inner)"
                ),
            ]
        );
    }

    #[test]
    fn a_mismatch_does_not_quote_the_value() {
        let compiled = SchemaRegistry::default().load(&schema()).expect("compiles");
        let fault = compiled.fault(
            &json!({"schema": ["hunter2"]}),
            Stage::Arguments,
            "the arguments do not match",
            "argument",
        );
        assert!(!fault.message.contains("hunter2"), "{}", fault.message);
        assert!(fault.message.contains("/schema"), "{}", fault.message);
    }
}
