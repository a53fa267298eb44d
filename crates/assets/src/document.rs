//! Validates the text of a file and reports each error with its line and column.

use std::str::Utf8Error;

use pintle_contract::inexact_number;
use serde::Serialize;
use serde_json::Value;

use crate::{
    assets::Assets,
    issue::Issue,
    locate::{line_and_column, locate_all},
    names::component_of_file,
    schemas::ResolvedSchema,
};

/// The verdict on one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Whether the file is valid.
    pub ok: bool,
    /// Why it is not; none if it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// The schema it was validated against; empty if none was found, or the file is not JSON.
    pub schema: String,
    /// What is wrong, sorted by path, then message.
    pub errors: Vec<LocatedIssue>,
}

/// Why a file is not valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// It is JSON, but does not match its schema, or there is no usable schema for it.
    ValidationFailed,
    /// It is not JSON.
    NotJson,
}

/// The byte order mark (BOM) that some editors write first. RFC 8259 does not allow it in JSON.
const BYTE_ORDER_MARK: char = '\u{feff}';
/// The error of a file that begins with one.
pub(crate) const BYTE_ORDER_MARK_MESSAGE: &str =
    "not JSON: the file begins with a byte order mark (U+FEFF); save it as UTF-8 without one";

/// An issue and its position in the text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LocatedIssue {
    /// What is wrong.
    #[serde(flatten)]
    pub issue: Issue,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
}

impl Assets {
    /// Validates the text of a file against the named schema, else the one that the file names, else the one that
    /// its file name suggests, else the one of complete assets.
    pub fn validate_document(&self, text: &str, file_name: &str, schema: Option<&str>) -> Report {
        self.validate_text(text, file_name, schema, &|| false)
    }

    /// The same for bytes, which need not be text; the validation is cancelled when `stop` returns true.
    pub(crate) fn validate_bytes(
        &self,
        bytes: &[u8],
        file_name: &str,
        schema: Option<&str>,
        stop: &dyn Fn() -> bool,
    ) -> Report {
        match std::str::from_utf8(bytes) {
            Ok(text) => self.validate_text(text, file_name, schema, stop),
            Err(error) => not_text(bytes, &error),
        }
    }

    fn validate_text(
        &self,
        text: &str,
        file_name: &str,
        schema: Option<&str>,
        stop: &dyn Fn() -> bool,
    ) -> Report {
        match text.strip_prefix(BYTE_ORDER_MARK) {
            // The rest is validated all the same, so that the mark does not hide other errors.
            Some(rest) => self.validate_json(rest, file_name, schema, stop).with_byte_order_mark(),
            None => self.validate_json(text, file_name, schema, stop),
        }
    }

    fn validate_json(
        &self,
        text: &str,
        file_name: &str,
        schema: Option<&str>,
        stop: &dyn Fn() -> bool,
    ) -> Report {
        let document: Value = match serde_json::from_str(text) {
            Ok(document) => document,
            Err(error) => return not_json(text, &error),
        };
        if let Some(offset) = inexact_number(text) {
            return inexact(text, offset);
        }
        let (name, found) = match schema {
            Some(name) => (name.to_owned(), self.schemas().find(name)),
            None => {
                let file_name = file_name.rsplit(['/', '\\']).next().unwrap_or_default();
                let found = self.schemas().find_for(&document, &component_of_file(file_name));
                let found = found.or_else(|| self.schemas().find_default(&document));
                (found.as_ref().map(ResolvedSchema::document_name).unwrap_or_default().to_owned(), found)
            }
        };
        let issues = match found {
            Some(found) => found.issues(document, stop),
            None => vec![Issue::schema_not_found()],
        };
        let ok = issues.is_empty();
        Report {
            ok,
            reason: (!ok).then_some(Reason::ValidationFailed),
            schema: name,
            errors: with_positions(text, issues),
        }
    }
}

impl Report {
    /// Adds the error of a byte order mark to the report on the text after it.
    fn with_byte_order_mark(mut self) -> Self {
        let issue = Issue::whole(BYTE_ORDER_MARK_MESSAGE);
        self.errors.push(LocatedIssue { issue, line: 1, column: 1 });
        self.errors.sort_by(|a, b| (&a.issue.path, &a.issue.msg).cmp(&(&b.issue.path, &b.issue.msg)));
        Self { ok: false, reason: Some(Reason::NotJson), ..self }
    }
}

fn not_json(text: &str, error: &serde_json::Error) -> Report {
    let full = error.to_string();
    let msg = full.rsplit_once(" at line ").map_or(full.as_str(), |(msg, _)| msg);
    // The parser counts columns in bytes, from 0 at the end of a text that stops too early.
    let line = text.split('\n').nth(error.line().saturating_sub(1)).unwrap_or_default();
    let before = line.as_bytes().iter().take(error.column());
    let column = before.filter(|byte| (**byte as i8) >= -0x40).count();
    Report {
        ok: false,
        reason: Some(Reason::NotJson),
        schema: String::new(),
        errors: vec![LocatedIssue {
            issue: Issue::whole(format!("not JSON: {msg}")),
            line: error.line().max(1),
            column: column.max(1),
        }],
    }
}

fn not_text(bytes: &[u8], error: &Utf8Error) -> Report {
    let (valid, _) = bytes.split_at(error.valid_up_to());
    let valid = String::from_utf8_lossy(valid);
    let (line, column) = line_and_column(&valid, valid.len());
    let issue = Issue::whole(format!("not JSON: byte {} is not UTF-8", valid.len() + 1));
    Report {
        ok: false,
        reason: Some(Reason::NotJson),
        schema: String::new(),
        errors: vec![LocatedIssue { issue, line, column }],
    }
}

fn inexact(text: &str, offset: usize) -> Report {
    let (line, column) = line_and_column(text, offset);
    let issue = Issue::whole(
        "this number has more digits than JSON libraries keep, so it would be validated as another number",
    );
    Report {
        ok: false,
        reason: Some(Reason::ValidationFailed),
        schema: String::new(),
        errors: vec![LocatedIssue { issue, line, column }],
    }
}

fn with_positions(text: &str, issues: Vec<Issue>) -> Vec<LocatedIssue> {
    let culprits: Vec<_> = issues.iter().map(Issue::culprit).collect();
    let positions = locate_all(text, culprits.iter().map(|culprit| &**culprit));
    let positions: Vec<_> = culprits.iter().map(|culprit| positions.get(&**culprit).copied()).collect();
    drop(culprits);
    issues
        .into_iter()
        .zip(positions)
        .map(|(issue, position)| {
            let (line, column) = position.unwrap_or((1, 1));
            LocatedIssue { issue, line, column }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::assets_of;
    use serde_json::json;

    fn assets() -> std::sync::Arc<Assets> {
        assets_of(
            &[
                ("tone.schema.json", json!({"properties": {"a": {"items": {"type": "number"}}}})),
                ("synesthetic-asset.schema.json", json!({"type": "object"})),
            ],
            &[],
        )
    }

    #[test]
    fn each_error_has_its_line_and_column() {
        let report = assets().validate_document("{\n  \"a\": [1, \"é\", \"x\"]\n}", "f.json", Some("tone"));
        assert_eq!(
            serde_json::to_value(report).expect("serializes"),
            json!({
                "ok": false,
                "reason": "validation_failed",
                "schema": "tone",
                "errors": [
                    {
                        "path": "/a/1", "msg": "\"é\" is not of type \"number\"", "keyword": "type",
                        "schemaPath": "/properties/a/items/type", "line": 2, "column": 12
                    },
                    {
                        "path": "/a/2", "msg": "\"x\" is not of type \"number\"", "keyword": "type",
                        "schemaPath": "/properties/a/items/type", "line": 2, "column": 17
                    }
                ]
            })
        );
    }

    #[test]
    fn the_schema_is_the_given_one_else_the_named_one_else_that_of_the_file_name() {
        let schema = |text: &str, file: &str, given: Option<&str>| {
            let report = assets().validate_document(text, file, given);
            (report.ok, report.schema)
        };
        assert_eq!(schema("{}", "x.json", Some("tone")), (true, "tone".into()));
        assert_eq!(schema(r#"{"$schemaRef": "s/tone.schema.json"}"#, "x.json", None), (true, "tone".into()));
        assert_eq!(schema(r#"{"$schema": "tone.json"}"#, "x.json", None), (true, "tone".into()));
        assert_eq!(schema("{}", "some/where/Tone_1.json", None), (true, "tone".into()));
        assert_eq!(schema("{}", "SynestheticAsset_1.json", None), (true, "nested-synesthetic-asset".into()));
        assert_eq!(schema("{}", "x.json", None), (true, "nested-synesthetic-asset".into()));
        assert_eq!(schema(r#"{"$schemaRef": 7}"#, "x.json", None), (true, "nested-synesthetic-asset".into()));
        assert_eq!(schema(r#"{"$schema": "x"}"#, "x.json", None), (true, "nested-synesthetic-asset".into()));
        assert_eq!(schema("[]", "x.json", None), (false, "nested-synesthetic-asset".into()));
        assert_eq!(schema(r#"{"$schemaRef": "gone.json"}"#, "x.json", None), (false, String::new()));
        assert_eq!(schema("{}", "Tone_1.json", Some("none")), (false, "none".into()));
    }

    #[test]
    fn without_a_schema_of_whole_assets_there_is_no_default() {
        let assets = assets_of(&[("tone.schema.json", json!(true))], &[]);
        let report = assets.validate_document("{}", "x.json", None);
        assert_eq!((report.ok, report.errors[0].issue.msg.as_str()), (false, "schema_not_found"));
    }

    #[test]
    fn an_unknown_schema_is_an_error_of_the_whole_file() {
        let report = assets().validate_document("\n {}", "x.json", Some("none"));
        let error = &report.errors[0];
        assert_eq!((error.issue.msg.as_str(), error.line, error.column), ("schema_not_found", 2, 2));
        assert_eq!(report.reason, Some(Reason::ValidationFailed));
    }

    #[test]
    fn not_json_is_a_reason_of_its_own_with_a_position() {
        for (text, line, column) in
            [("{\n  \"é\": x\n}", 2, 8), ("", 1, 1), ("{\n", 2, 1), ("[1,]", 1, 4), ("{\"a\": 1} 2", 1, 10)]
        {
            let report = assets().validate_document(text, "Tone_1.json", None);
            assert_eq!(report.reason, Some(Reason::NotJson), "{text}");
            let error = &report.errors[0];
            assert_eq!((error.line, error.column), (line, column), "{text}: {}", error.issue.msg);
            assert!(
                error.issue.msg.starts_with("not JSON: ") && !error.issue.msg.contains("line"),
                "{error:?}"
            );
        }
    }

    #[test]
    fn a_member_that_is_one_too_many_is_pointed_at() {
        let closed = json!({"properties": {"a": {"additionalProperties": false, "properties": {"b": true}}}});
        let open = json!({"allOf": [{"properties": {"b": true}}], "unevaluatedProperties": false});
        let assets = assets_of(&[("closed.json", closed), ("open.json", open)], &[]);
        for (text, schema, path) in
            [("{\"a\": {\"b\": 1,\n \"c/~\": 2}}", "closed", "/a"), ("{\"b\": 1,\n \"c/~\": 2}", "open", "")]
        {
            let report = assets.validate_document(text, "x.json", Some(schema));
            let error = &report.errors[0];
            assert_eq!((error.issue.path.as_str(), error.line, error.column), (path, 2, 9), "{error:?}");
        }
    }

    #[test]
    fn a_number_that_cannot_be_held_exactly_is_an_error_at_its_position() {
        let report = assets().validate_document("{\n \"a\": [123456789012345678901]}", "Tone_1.json", None);
        let error = &report.errors[0];
        assert_eq!((report.ok, error.line, error.column), (false, 2, 8), "{error:?}");
        assert!(error.issue.msg.contains("more digits"), "{error:?}");
    }

    #[test]
    fn a_byte_order_mark_is_an_error_at_the_start_and_hides_no_other() {
        let error = |text: &str| {
            let report = assets().validate_document(text, "Tone_1.json", None);
            assert_eq!((report.ok, report.reason), (false, Some(Reason::NotJson)), "{text}");
            let errors = report.errors.into_iter();
            errors
                .map(|error| (error.issue.path, error.issue.msg, error.line, error.column))
                .collect::<Vec<_>>()
        };
        let mark = (String::new(), BYTE_ORDER_MARK_MESSAGE.to_owned(), 1, 1);
        assert_eq!(error("\u{feff}{\"a\": [1]}"), std::slice::from_ref(&mark));
        let errors = error("\u{feff}{\"a\": [\"x\"]}");
        assert_eq!(errors[0], mark);
        // Columns are those that editors show, which do not count the mark.
        assert_eq!((errors[1].0.as_str(), errors[1].2, errors[1].3), ("/a/0", 1, 8));
        let errors = error("\u{feff}{\n\"a\": }");
        assert!(errors.len() == 2 && errors.contains(&mark), "{errors:?}");
        assert!(errors.iter().any(|error| (error.2, error.3) == (2, 6)), "{errors:?}");
        // Only the first character is one; a second one is a character like any other.
        assert_eq!(error("\u{feff}\u{feff}1").len(), 2);
    }
}
