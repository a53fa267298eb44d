//! Validating a file's text, for people: each error with its line and column.

use std::str::Utf8Error;

use pintle_contract::inexact_number;
use serde::Serialize;
use serde_json::Value;

use crate::{
    assets::Assets,
    issue::Issue,
    locate::{line_and_column, locate_all},
    names::component_of_file,
    schemas::Found,
};

/// The verdict on one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Whether the file is valid.
    pub ok: bool,
    /// Why it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// The schema it was judged by; empty if none was found, or none was needed.
    pub schema: String,
    /// What is wrong, sorted by path, then message.
    pub errors: Vec<LocatedIssue>,
}

/// In which way a file is not valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// It is JSON, but does not match its schema, or there is no usable schema for it.
    ValidationFailed,
    /// It is not JSON.
    NotJson,
}

/// What some editors begin a file with, and RFC 8259 does not allow in JSON.
const BYTE_ORDER_MARK: char = '\u{feff}';
/// What is wrong with it.
pub(crate) const BYTE_ORDER_MARK_MESSAGE: &str =
    "not JSON: the file begins with a byte order mark (U+FEFF); save it as UTF-8 without one";

/// An issue and where it stands in the text.
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
    /// Judges the text of a file by the schema of that name, else by the one that the file names, else
    /// by the one that its file name says, else by the one of whole assets.
    pub fn validate_document(&self, text: &str, file_name: &str, schema: Option<&str>) -> Report {
        self.validate_text(text, file_name, schema, &|| false)
    }

    /// The same for bytes, which need not be text; `stop` may leave it before its end.
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
            // The rest is judged all the same: what is wrong there is not hidden by the mark.
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
                (found.as_ref().map(Found::document_name).unwrap_or_default().to_owned(), found)
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
            errors: with_places(text, issues),
        }
    }
}

impl Report {
    /// The report on a file that has a byte order mark before what was judged.
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
    let issue =
        Issue::whole("this number cannot be held exactly, so what was judged would not be what is written");
    Report {
        ok: false,
        reason: Some(Reason::ValidationFailed),
        schema: String::new(),
        errors: vec![LocatedIssue { issue, line, column }],
    }
}

fn with_places(text: &str, issues: Vec<Issue>) -> Vec<LocatedIssue> {
    let culprits: Vec<_> = issues.iter().map(Issue::culprit).collect();
    let places = locate_all(text, culprits.iter().map(|culprit| &**culprit));
    let places: Vec<_> = culprits.iter().map(|culprit| places.get(&**culprit).copied()).collect();
    drop(culprits);
    issues
        .into_iter()
        .zip(places)
        .map(|(issue, place)| {
            let (line, column) = place.unwrap_or((1, 1));
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
        let told = &report.errors[0];
        assert_eq!((told.issue.msg.as_str(), told.line, told.column), ("schema_not_found", 2, 2));
        assert_eq!(report.reason, Some(Reason::ValidationFailed));
    }

    #[test]
    fn what_is_not_json_is_told_apart_with_its_place() {
        for (text, line, column) in
            [("{\n  \"é\": x\n}", 2, 8), ("", 1, 1), ("{\n", 2, 1), ("[1,]", 1, 4), ("{\"a\": 1} 2", 1, 10)]
        {
            let report = assets().validate_document(text, "Tone_1.json", None);
            assert_eq!(report.reason, Some(Reason::NotJson), "{text}");
            let told = &report.errors[0];
            assert_eq!((told.line, told.column), (line, column), "{text}: {}", told.issue.msg);
            assert!(told.issue.msg.starts_with("not JSON: ") && !told.issue.msg.contains("line"), "{told:?}");
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
            let told = &report.errors[0];
            assert_eq!((told.issue.path.as_str(), told.line, told.column), (path, 2, 9), "{told:?}");
        }
    }

    #[test]
    fn a_number_that_cannot_be_held_is_an_error_where_it_stands() {
        let report = assets().validate_document("{\n \"a\": [123456789012345678901]}", "Tone_1.json", None);
        let told = &report.errors[0];
        assert_eq!((report.ok, told.line, told.column), (false, 2, 8), "{told:?}");
        assert!(told.issue.msg.contains("exactly"), "{told:?}");
    }

    #[test]
    fn a_byte_order_mark_is_an_error_at_the_start_and_hides_no_other() {
        let told = |text: &str| {
            let report = assets().validate_document(text, "Tone_1.json", None);
            assert_eq!((report.ok, report.reason), (false, Some(Reason::NotJson)), "{text}");
            let errors = report.errors.into_iter();
            errors.map(|told| (told.issue.path, told.issue.msg, told.line, told.column)).collect::<Vec<_>>()
        };
        let mark = (String::new(), BYTE_ORDER_MARK_MESSAGE.to_owned(), 1, 1);
        assert_eq!(told("\u{feff}{\"a\": [1]}"), std::slice::from_ref(&mark));
        let errors = told("\u{feff}{\"a\": [\"x\"]}");
        assert_eq!(errors[0], mark);
        // Columns are those that editors show, which do not count the mark.
        assert_eq!((errors[1].0.as_str(), errors[1].2, errors[1].3), ("/a/0", 1, 8));
        let errors = told("\u{feff}{\n\"a\": }");
        assert!(errors.len() == 2 && errors.contains(&mark), "{errors:?}");
        assert!(errors.iter().any(|error| (error.2, error.3) == (2, 6)), "{errors:?}");
        // Only the first character is one; a second one is a character like any other.
        assert_eq!(told("\u{feff}\u{feff}1").len(), 2);
    }
}
