//! Whether every value of one schema is a value of another: proved, refuted by a witness, or unknown.
//!
//! `compatible` is a proof by set subtraction. `breaks` is a value that both validators were shown. Where neither is
//! found, for example because the canonical form cannot model a schema, the verdict is `unknown` with the reason.

use jsonschema::{
    PatternOptions, Validator,
    canonical::{
        CanonicalKind, CanonicalSchema, CanonicalView, CanonicalizationError, Containment, Satisfiability,
    },
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    dialect::modernize,
    instances::instances,
    members::{closed, opened},
    minimize::minimize,
};

/// What a schema describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// The arguments of a tool: what was accepted must be accepted.
    Input,
    /// The result of a tool: what is returned must be what was promised.
    Output,
}

/// What is known of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Proved: nothing that worked fails.
    Compatible,
    /// Shown by a witness: something that worked fails.
    Breaks,
    /// Neither.
    Unknown,
}

/// A verdict with what supports it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// The verdict.
    pub verdict: Verdict,
    /// A value that was accepted and no longer is (input), or is returned and was not promised (output).
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub witness: Option<Value>,
    /// Why the verdict is `unknown`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A member that is there, even if it is `null`: that is a value like any other.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl Decision {
    pub(crate) fn compatible() -> Self {
        Self { verdict: Verdict::Compatible, witness: None, reason: None }
    }

    pub(crate) fn breaks(witness: Value) -> Self {
        Self { verdict: Verdict::Breaks, witness: Some(witness), reason: None }
    }

    /// Nothing is known, for this reason.
    pub fn unknown(reason: impl Into<String>) -> Self {
        Self { verdict: Verdict::Unknown, witness: None, reason: Some(reason.into()) }
    }
}

/// Decides whether a change of a schema is compatible.
///
/// ```
/// use pintle_surface::{Side, Verdict, decide};
/// use serde_json::json;
///
/// let old = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
/// let new = json!({"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}});
/// let decision = decide(Side::Input, &old, &new);
/// assert_eq!(decision.verdict, Verdict::Breaks);
/// assert_eq!(decision.witness, Some(json!({"n": 0})));
/// assert_eq!(decide(Side::Output, &old, &new).verdict, Verdict::Compatible);
/// ```
pub fn decide(side: Side, old: &Value, new: &Value) -> Decision {
    match Pair::new(side, old, new) {
        Ok(pair) => pair.decide(),
        Err(reason) => Decision::unknown(reason),
    }
}

/// Two schemas in the form in which they are compared: every value of `sent` has to be a value of `read`.
pub(crate) struct Pair {
    sent: Value,
    read: Value,
    sent_validator: Validator,
    read_validator: Validator,
    /// The schemas as they were given. A witness that also tells these apart is a better one.
    given_sent: Option<Validator>,
    given_read: Option<Validator>,
}

impl Pair {
    pub(crate) fn new(side: Side, old: &Value, new: &Value) -> Result<Self, String> {
        let form = |schema: &Value, which: &str| {
            modernize(schema).map_err(|reason| format!("the {which} schema cannot be compared: {reason}"))
        };
        let (modern_old, modern_new) = (form(old, "old")?, form(new, "new")?);
        let (sent, read, given_sent, given_read) = match side {
            Side::Input => (closed(&arguments(modern_old)), closed(&arguments(modern_new)), old, new),
            Side::Output => (closed(&modern_new), opened(&modern_old), new, old),
        };
        let (sent_name, read_name) = if side == Side::Input { ("old", "new") } else { ("new", "old") };
        let compile = |schema: &Value, which: &str| {
            validator(schema).map_err(|error| format!("the {which} schema is not valid: {error}"))
        };
        Ok(Self {
            sent_validator: compile(&sent, sent_name)?,
            read_validator: compile(&read, read_name)?,
            given_sent: validator(given_sent).ok(),
            given_read: validator(given_read).ok(),
            sent,
            read,
        })
    }

    pub(crate) fn decide(&self) -> Decision {
        if self.sent == self.read {
            return Decision::compatible();
        }
        // A witness is often found at once, and a proof takes longer.
        if let Some(witness) = self.find_witness(instances(&self.sent, &[&self.sent, &self.read])) {
            return Decision::breaks(witness);
        }
        match self.prove() {
            Proof::Covered => Decision::compatible(),
            Proof::Open { reason, difference } => {
                let values = difference.map(|difference| instances(&difference, &[&difference]));
                match self.find_witness(values.unwrap_or_default()) {
                    Some(witness) => Decision::breaks(witness),
                    None => Decision::unknown(reason),
                }
            }
        }
    }

    /// Whether a value is sent and not read.
    pub(crate) fn is_witness(&self, value: &Value) -> bool {
        self.sent_validator.is_valid(value) && !self.read_validator.is_valid(value)
    }

    /// A proof that every value that is sent is read. `format` may be asserted or not, as validators differ, so the
    /// proof has to hold both ways.
    fn prove(&self) -> Proof {
        let plain = prove(&self.sent, &self.read, false);
        if !matches!(plain, Proof::Covered) || !(has_format(&self.sent) || has_format(&self.read)) {
            return plain;
        }
        match prove(&self.sent, &self.read, true) {
            Proof::Covered => Proof::Covered,
            Proof::Open { reason, .. } => Proof::Open {
                reason: format!("compatible only for validators that ignore `format`: {reason}"),
                difference: None,
            },
        }
    }

    /// The first of these values that shows a break, made small.
    fn find_witness(&self, values: Vec<Value>) -> Option<Value> {
        let found: Vec<Value> = values.into_iter().filter(|value| self.is_witness(value)).take(64).collect();
        let told_apart_as_given = |value: &Value| {
            self.given_sent.as_ref().is_some_and(|validator| validator.is_valid(value))
                && self.given_read.as_ref().is_some_and(|validator| !validator.is_valid(value))
        };
        if let Some(value) = found.iter().find(|value| told_apart_as_given(value)) {
            return Some(minimize(value.clone(), &|value| {
                self.is_witness(value) && told_apart_as_given(value)
            }));
        }
        found.into_iter().next().map(|value| minimize(value, &|value| self.is_witness(value)))
    }
}

/// The schema of arguments, which are always an object in MCP, whether the schema says so or not.
fn arguments(schema: Value) -> Value {
    match schema {
        Value::Bool(true) => json!({"type": "object"}),
        Value::Object(mut keywords) => {
            let may_be_object = match keywords.get("type") {
                None => true,
                Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
                Some(_) => false,
            };
            if may_be_object {
                keywords.insert("type".to_owned(), json!("object"));
            }
            Value::Object(keywords)
        }
        other => other,
    }
}

/// A validator that fetches nothing, does not assert `format`, and gives up on patterns that explode.
pub(crate) fn validator(schema: &Value) -> Result<Validator, String> {
    jsonschema::options()
        .with_pattern_options(patterns())
        .should_validate_formats(false)
        .offline()
        .build(schema)
        .map_err(|error| error.to_string())
}

fn patterns() -> PatternOptions<jsonschema::FancyRegex> {
    PatternOptions::fancy_regex().backtrack_limit(100_000).size_limit(1 << 20).dfa_size_limit(1 << 20)
}

enum Proof {
    Covered,
    Open { reason: String, difference: Option<Value> },
}

fn prove(sent: &Value, read: &Value, assert_formats: bool) -> Proof {
    let open = |reason: String| Proof::Open { reason, difference: None };
    let form = |schema: &Value| {
        let canonical = jsonschema::canonical::options()
            .with_pattern_options(patterns())
            .should_validate_formats(assert_formats)
            .offline()
            .canonicalize(schema)
            .map_err(|error| error.to_string())?;
        match canonical.kind() {
            CanonicalKind::Raw => Err(why_raw(&canonical)),
            _ => Ok(canonical),
        }
    };
    let (sent, read) = match (form(sent), form(read)) {
        (Ok(sent), Ok(read)) => (sent, read),
        (Err(reason), _) | (_, Err(reason)) => return open(reason),
    };
    let left = match sent.subtract(&read) {
        Ok(left) => left,
        Err(error) => {
            return match read.covers(&sent) {
                Ok(Containment::Yes) => Proof::Covered,
                _ => open(why_not(&error)),
            };
        }
    };
    match left.satisfiability() {
        Satisfiability::No => Proof::Covered,
        Satisfiability::Yes => Proof::Open {
            reason: "the difference is not empty, but no value of it was found".to_owned(),
            difference: Some(left.to_json_schema()),
        },
        Satisfiability::Unknown => match read.covers(&sent) {
            Ok(Containment::Yes) => Proof::Covered,
            _ => Proof::Open {
                reason: "it was neither proved that the difference is empty nor a value of it found"
                    .to_owned(),
                difference: Some(left.to_json_schema()),
            },
        },
    }
}

fn why_raw(schema: &CanonicalSchema) -> String {
    match schema.view() {
        CanonicalView::Raw(raw) => {
            let at = raw.pointer.map(|pointer| format!(" at {pointer:?}")).unwrap_or_default();
            format!("the algebra of schemas does not model this schema ({}{at})", raw.reason.as_str())
        }
        _ => "the algebra of schemas does not model this schema".to_owned(),
    }
}

fn why_not(error: &CanonicalizationError) -> String {
    match error {
        CanonicalizationError::UnsupportedResult => {
            "the algebra of schemas does not model the difference".to_owned()
        }
        other => other.to_string(),
    }
}

fn has_format(schema: &Value) -> bool {
    let mut found = schema.get("format").is_some();
    crate::subschemas::for_each(schema, &mut |subschema, _| found = found || has_format(subschema));
    found
}
