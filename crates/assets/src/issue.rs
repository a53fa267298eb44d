//! Turns errors of the validator into issues: where the asset does not match its schema and why. For `anyOf` and
//! `oneOf` the message also says what is wrong with the branch that comes closest.

use std::{
    borrow::Cow,
    collections::BinaryHeap,
    fmt::{self, Write},
};

use jsonschema::{ValidationError, error::ValidationErrorKind};
use pintle_contract::pointer_segment;
use schemars::JsonSchema;
use serde::Serialize;

use crate::quoting::may_quote;

/// The most issues that are reported for one asset.
const MAX_ISSUES: usize = 1_000;
/// The most bytes of paths in one report, because a single path can be as long as the asset.
const MAX_PATH_BYTES: usize = 1 << 20;
/// The longest message; schemas and assets can make one of any length.
const MAX_MESSAGE_CHARS: usize = 500;
/// How many levels of nested `anyOf` and `oneOf` are followed.
const MAX_CHOICES: usize = 16;

/// One way in which an asset does not match.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub struct Issue {
    /// RFC 6901 pointer to the value that does not match; empty for the asset itself.
    pub path: String,
    /// What is wrong.
    pub msg: String,
    /// The schema keyword that refused the value.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub keyword: Option<String>,
    /// RFC 6901 pointer to that keyword, walked from the named schema through its references.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub schema_path: Option<String>,
    /// The member that the schema does not allow, if that is the issue.
    #[serde(skip)]
    #[schemars(skip)]
    pub(crate) unexpected: Option<String>,
}

impl Issue {
    /// An issue with the asset as a whole.
    pub(crate) fn whole(msg: impl Into<String>) -> Self {
        Self { path: String::new(), msg: msg.into(), keyword: None, schema_path: None, unexpected: None }
    }

    pub(crate) fn schema_not_found() -> Self {
        Self::whole("schema_not_found")
    }

    /// The schema exists but does not compile.
    pub(crate) fn schema_invalid(reason: &str) -> Self {
        Self::whole(format!("schema_invalid: {reason}"))
    }

    /// The asset is invalid, but listing its errors exceeded the budget.
    pub(crate) fn too_many() -> Self {
        Self::whole(
            "the asset does not match, but its errors are too many to list, because of choices (anyOf, oneOf) \
             within choices; validate its parts by themselves",
        )
    }

    /// The validation was cancelled.
    pub(crate) fn unfinished() -> Self {
        Self::whole("the validation was stopped before its end")
    }

    /// JSON Pointer to what a person should look at: the value, or its member that is not allowed.
    pub(crate) fn culprit(&self) -> Cow<'_, str> {
        match &self.unexpected {
            Some(member) => {
                let member = pointer_segment(member);
                Cow::Owned(format!("{}/{member}", self.path))
            }
            None => Cow::Borrowed(&self.path),
        }
    }

    fn new(error: &ValidationError<'_>) -> Self {
        Self {
            path: error.instance_path().as_str().to_owned(),
            msg: message(error),
            keyword: Some(error.kind().keyword().to_owned()),
            schema_path: Some(error.evaluation_path().as_str().to_owned()),
            unexpected: unexpected(error.kind()).cloned(),
        }
    }
}

/// The first member that is not allowed, for the two keywords that forbid members.
fn unexpected(kind: &ValidationErrorKind) -> Option<&String> {
    match kind {
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => unexpected.first(),
        _ => None,
    }
}

/// The issues of an asset, sorted by path, then message; the last one says if there are more.
pub(crate) fn collect<'a>(errors: impl Iterator<Item = ValidationError<'a>>) -> Vec<Issue> {
    let mut first = BinaryHeap::new();
    let mut total = 0;
    for error in errors.filter(|error| !is_met(error)) {
        total += 1;
        if first.len() == MAX_ISSUES && is_beyond(&error, &first) {
            continue;
        }
        first.push(Issue::new(&error));
        if first.len() > MAX_ISSUES {
            first.pop();
        }
    }
    let mut issues = first.into_sorted_vec();
    let mut path_bytes = 0;
    let kept = issues.iter().take_while(|issue| {
        path_bytes += issue.path.len();
        path_bytes <= MAX_PATH_BYTES
    });
    let kept = kept.count().max(1);
    issues.truncate(kept);
    if let Some(last) = issues.last_mut()
        && kept < total
    {
        last.msg.push_str(&format!(" (these are the first {kept} of {total} errors)"));
    }
    issues
}

/// The one issue of an asset that would have too many to be listed.
pub(crate) fn only_first(error: &ValidationError<'_>) -> Issue {
    let mut issue = Issue::new(error);
    issue.msg.push_str(" (the asset is too large to list all its errors: fix this one first)");
    issue
}

/// Whether an error asks for a member that is there. The validator reports this false error next to the real one when
/// a closed schema requires exactly one member.
fn is_met(error: &ValidationError<'_>) -> bool {
    let ValidationErrorKind::Required { property } = error.kind() else { return false };
    property.as_str().is_some_and(|property| error.instance().get(property).is_some())
}

/// Whether an error sorts after all issues that are kept: then its message need not be made.
fn is_beyond(error: &ValidationError<'_>, first: &BinaryHeap<Issue>) -> bool {
    first.peek().is_some_and(|last| error.instance_path().as_str() > last.path.as_str())
}

/// What is wrong with a schema that does not compile.
pub(crate) fn compile_message(error: &ValidationError<'_>) -> String {
    let path = match error.instance_path().as_str() {
        "" => error.schema_path().as_str(),
        path => path,
    };
    let separator = if path.is_empty() { "" } else { ": " };
    format!("{path}{separator}{}", message(error))
}

fn message(error: &ValidationError<'_>) -> String {
    let mut message = plain_message(error);
    if let Some(reason) = closest_reason(error) {
        let path = reason.instance_path().as_str();
        let separator = if path.is_empty() { "" } else { " " };
        message.push_str(&bounded(format_args!("; closest: {path}{separator}{}", plain_message(reason))));
    }
    message
}

/// The validator's own message, without large values.
fn plain_message(error: &ValidationError<'_>) -> String {
    match may_quote(error.instance()) {
        true => bounded(format_args!("{error}")),
        false => bounded(format_args!("{}", error.masked_with("value"))),
    }
}

/// Why the branch that comes closest was refused, for an error about a choice of schemas.
fn closest_reason<'e>(error: &'e ValidationError<'_>) -> Option<&'e ValidationError<'static>> {
    let mut reason = closest_in_choice(error)?;
    for _ in 0..MAX_CHOICES {
        match closest_in_choice(reason) {
            Some(inner) => reason = inner,
            None => break,
        }
    }
    Some(reason)
}

fn closest_in_choice<'e>(error: &'e ValidationError<'_>) -> Option<&'e ValidationError<'static>> {
    let (ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context }) =
        error.kind()
    else {
        return None;
    };
    let own_depth = depth(error);
    // The deeper a branch got before it failed, the closer it is. At the same depth, a branch that refused the value
    // itself (by type, const or enum) is further away than one that refused something inside it.
    let distance = |branch: &&Vec<ValidationError<'static>>| {
        let deepest = branch.iter().map(depth).max().unwrap_or_default();
        let refused_outright = branch.iter().any(|error| {
            depth(error) == own_depth && matches!(error.kind().keyword(), "type" | "const" | "enum")
        });
        (usize::MAX - deepest, refused_outright, branch.len())
    };
    let branch = context.iter().filter(|branch| !branch.is_empty()).min_by_key(distance)?;
    branch.iter().min_by_key(|error| (usize::MAX - depth(error), error.instance_path().as_str()))
}

fn depth(error: &ValidationError<'_>) -> usize {
    error.instance_path().as_str().bytes().filter(|&b| b == b'/').count()
}

/// A formatted text, cut to [`MAX_MESSAGE_CHARS`].
fn bounded(arguments: fmt::Arguments<'_>) -> String {
    let mut bounded = Bounded { text: String::new(), left: MAX_MESSAGE_CHARS };
    if bounded.write_fmt(arguments).is_err() {
        bounded.text.push('…');
    }
    bounded.text
}

/// A writer that stops formatting at a length, so that a long text is never built first.
struct Bounded {
    text: String,
    left: usize,
}

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            self.left = self.left.checked_sub(1).ok_or(fmt::Error)?;
            self.text.push(character);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn issues(schema: &Value, asset: &Value) -> Vec<Issue> {
        let validator = jsonschema::draft202012::new(schema).expect("compiles");
        collect(validator.iter_errors(asset))
    }

    fn messages(schema: &Value, asset: &Value) -> Vec<String> {
        issues(schema, asset).into_iter().map(|issue| issue.msg).collect()
    }

    #[test]
    fn an_issue_says_where_what_and_by_which_keyword() {
        let schema = json!({
            "properties": {"a/b": {"items": {"$ref": "#/$defs/n"}}},
            "$defs": {"n": {"type": "number"}}
        });
        assert_eq!(
            serde_json::to_value(issues(&schema, &json!({"a/b": [1, "x"]}))).expect("serializes"),
            json!([{
                "path": "/a~1b/1",
                "msg": "\"x\" is not of type \"number\"",
                "keyword": "type",
                "schemaPath": "/properties/a~1b/items/$ref/type"
            }])
        );
    }

    #[test]
    fn a_required_member_that_is_there_is_not_reported_as_missing() {
        let schema = json!({"type": "object", "required": ["zz"], "properties": {"a": {"type": "integer"}}, "additionalProperties": false});
        let found = issues(&schema, &json!({"zz": 1}));
        let keywords: Vec<_> = found.iter().map(|issue| issue.keyword.as_deref()).collect();
        assert_eq!(keywords, [Some("additionalProperties")], "{:?}", messages(&schema, &json!({"zz": 1})));
        assert_eq!(messages(&schema, &json!({})), ["\"zz\" is a required property"]);
    }

    #[test]
    fn issues_are_sorted_by_path_then_message() {
        let schema = json!({
            "required": ["z"],
            "minProperties": 9,
            "properties": {"b": {"type": "string"}, "a": {"type": "string", "minimum": 5}}
        });
        let found = issues(&schema, &json!({"b": 1, "a": 2}));
        let found: Vec<_> = found.iter().map(|issue| (issue.path.as_str(), issue.msg.as_str())).collect();
        assert_eq!(
            found,
            [
                ("", "\"z\" is a required property"),
                ("", "{\"b\":1,\"a\":2} has less than 9 properties"),
                ("/a", "2 is less than the minimum of 5"),
                ("/a", "2 is not of type \"string\""),
                ("/b", "1 is not of type \"string\""),
            ]
        );
    }

    #[test]
    fn a_large_value_is_not_quoted_and_no_message_is_long() {
        let long = "x".repeat(10_000);
        assert_eq!(messages(&json!({"type": "number"}), &json!(long)), ["value is not of type \"number\""]);
        let found = messages(
            &json!({"properties": {"a": true}, "additionalProperties": false}),
            &json!({ long.as_str(): 1 }),
        );
        assert!(found[0].starts_with("Additional properties are not allowed ('xxx"), "{found:?}");
        assert_eq!(found[0].chars().count(), MAX_MESSAGE_CHARS + 1);
        let choice = json!({"additionalProperties": {"anyOf": [{"items": {"type": "null"}}]}});
        let found = messages(&choice, &json!({ long.as_str(): [1] }));
        assert!(found[0].chars().count() <= 2 * (MAX_MESSAGE_CHARS + 1), "{}", found[0].len());
        let found = messages(&json!({"const": long}), &json!(1));
        assert_eq!(found[0].chars().count(), MAX_MESSAGE_CHARS + 1);
    }

    #[test]
    fn a_choice_reports_what_is_wrong_with_the_branch_that_got_deepest() {
        let schema = json!({"properties": {"shader": {"anyOf": [
            {"type": "null"},
            {"properties": {"uniforms": {"items": {"oneOf": [{"type": "number"}, {"type": "null"}]}}}}
        ]}}});
        assert_eq!(
            messages(&schema, &json!({"shader": {"uniforms": ["x"]}})),
            ["{\"uniforms\":[\"x\"]} is not valid under any of the schemas listed in the 'anyOf' keyword; \
              closest: /shader/uniforms/0 \"x\" is not of type \"number\""]
        );
    }

    #[test]
    fn a_branch_that_got_deeper_is_closer_than_one_with_fewer_errors() {
        let numbers = json!({"additionalProperties": {"type": "number"}});
        let schema = json!({"anyOf": [{"required": ["kind"]}, numbers]});
        let found = messages(&schema, &json!({"a": "x", "b": "y"}));
        assert!(found[0].ends_with("; closest: /a \"x\" is not of type \"number\""), "{found:?}");
    }

    #[test]
    fn a_branch_of_the_right_type_is_closer_than_one_of_the_wrong_type() {
        let schema = json!({"anyOf": [{"type": "null"}, {"type": "object", "required": ["a"]}]});
        let found = messages(&schema, &json!({}));
        assert!(found[0].ends_with("; closest: \"a\" is a required property"), "{found:?}");
    }

    #[test]
    fn a_thousand_issues_are_reported_and_the_last_says_how_many_there_are() {
        let schema = json!({"items": {"type": "string"}});
        let found = issues(&schema, &json!(vec![0; 2_500]));
        assert_eq!(found.len(), MAX_ISSUES);
        assert!(found.is_sorted());
        assert_eq!(
            (found[0].path.as_str(), found[1].path.as_str(), found[2].path.as_str()),
            ("/0", "/1", "/10")
        );
        let last = &found[MAX_ISSUES - 1].msg;
        assert!(last.ends_with("(these are the first 1000 of 2500 errors)"), "{last}");
        let found =
            issues(&json!({"additionalProperties": schema}), &json!({"k".repeat(400_000): [0, 0, 0]}));
        assert_eq!(found.len(), 2);
        assert!(found[1].msg.ends_with("(these are the first 2 of 3 errors)"));
        assert_eq!(
            issues(&schema, &json!(vec![0; 1_000])).last().map(|i| i.msg.contains("first")),
            Some(false)
        );
    }
}
