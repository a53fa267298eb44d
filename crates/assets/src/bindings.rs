//! Bindings: globs that bind files to schemas. A write to a bound file is validated first, and refused if it would
//! bring an error that the file did not have before.

use std::{collections::HashSet, sync::Arc};

use globset::{GlobBuilder, GlobMatcher};
use parking_lot::Mutex;
use pintle_contract::{ErrorCode, Fault};
use serde_json::json;

use crate::{
    assets::Assets,
    document::{BYTE_ORDER_MARK_MESSAGE, LocatedIssue, Reason, Report},
};

/// Which files are bound to which schemas.
pub struct Bindings {
    assets: Arc<Assets>,
    bindings: Vec<Binding>,
    /// Held while a large file is validated, so that only one is parsed at a time.
    large: Mutex<()>,
}

/// Files above this size are validated one at a time, because a parsed file takes many times its size.
const LARGE: usize = 1 << 20;

struct Binding {
    files: GlobMatcher,
    schema: String,
}

/// A binding that is not valid, and why.
#[derive(Debug)]
pub struct BindError {
    /// Its index in the configuration, from 0.
    pub index: usize,
    /// Whether its schema is wrong; otherwise its glob is.
    pub is_about_schema: bool,
    /// What is wrong.
    pub problem: String,
}

impl Bindings {
    /// Binds files to schemas, by pairs of a glob over paths in the workspace and a schema's name.
    pub fn new(
        assets: Arc<Assets>,
        globs: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, BindError> {
        let bind = |(index, (glob, schema)): (usize, (String, String))| {
            let error = |is_about_schema, problem| BindError { index, is_about_schema, problem };
            let files = matcher(&glob, &schema).map_err(|problem| error(false, problem.to_string()))?;
            if assets.schemas().find(&schema).is_none() {
                let problem = assets.schemas().unknown_message(&schema);
                let problem = format!("`{glob}` is bound to a schema that is not there: {problem}");
                return Err(error(true, problem));
            }
            Ok(Binding { files, schema })
        };
        let bindings = globs.into_iter().enumerate().map(bind).collect::<Result<_, _>>()?;
        Ok(Self { assets, bindings, large: Mutex::default() })
    }

    /// The schemas that a file is bound to, by its path in the workspace without a leading slash.
    pub fn schemas_of(&self, path: &str) -> impl Iterator<Item = &str> {
        let bound = self.bindings.iter().filter(move |binding| binding.files.is_match(path));
        bound.map(|binding| binding.schema.as_str())
    }

    /// Validates `after`, the content that a write would leave, against the schemas that the file is bound to. A file
    /// whose content `before` is already invalid may be edited as long as the edit brings no new error. When `stop`
    /// returns true the validation is cancelled, and its verdict must not be used.
    pub fn judge(
        &self,
        path: &str,
        before: Option<&[u8]>,
        after: &[u8],
        stop: &dyn Fn() -> bool,
    ) -> Result<(), Fault> {
        let is_large = after.len() + before.map_or(0, <[u8]>::len) > LARGE;
        let _turn = is_large.then(|| self.large.lock());
        for schema in self.schemas_of(path) {
            let report = self.assets.validate_bytes(after, path, Some(schema), stop);
            if report.ok {
                continue;
            }
            let known = before.map(|before| self.assets.validate_bytes(before, path, Some(schema), stop));
            let known: HashSet<_> = known.iter().flat_map(Report::keys).collect();
            let is_new: Vec<bool> = report.keys().map(|key| !known.contains(&key)).collect();
            let errors = report.errors.iter().zip(is_new).filter(|(_, is_new)| *is_new);
            let errors: Vec<_> = errors.map(|(error, _)| error).collect();
            if let Some(first) = errors.first() {
                return Err(refusal(path, schema, first, &errors, !known.is_empty()));
            }
        }
        Ok(())
    }
}

/// Why a glob binds no files.
#[derive(Debug, thiserror::Error)]
enum GlobProblem {
    #[error("the binding of `{schema}` has no path")]
    Missing { schema: String },
    #[error("`{glob}` cannot bind files: paths begin at the root and have no `..`")]
    LeadsOut { glob: String },
    #[error("`{glob}` binds no file; `{folder}/**` binds all files below that folder")]
    IsFolder { glob: String, folder: String },
    #[error("`{glob}` cannot bind files: {problem}")]
    NotAGlob { glob: String, problem: globset::ErrorKind },
}

fn matcher(glob: &str, schema: &str) -> Result<GlobMatcher, GlobProblem> {
    let pattern = plain_glob(glob, schema)?;
    let built = GlobBuilder::new(&pattern).literal_separator(true).build();
    let files = built
        .map_err(|error| GlobProblem::NotAGlob { glob: glob.to_owned(), problem: error.kind().clone() })?;
    Ok(files.compile_matcher())
}

/// A glob as the paths that it is compared with are: one that is written otherwise would bind nothing.
fn plain_glob(glob: &str, schema: &str) -> Result<String, GlobProblem> {
    let names: Vec<&str> = glob.split('/').filter(|name| !matches!(*name, "" | ".")).collect();
    match names.as_slice() {
        [] => Err(GlobProblem::Missing { schema: schema.to_owned() }),
        names if names.contains(&"..") => Err(GlobProblem::LeadsOut { glob: glob.to_owned() }),
        names if glob.ends_with('/') => {
            Err(GlobProblem::IsFolder { glob: glob.to_owned(), folder: names.join("/") })
        }
        names => Ok(names.join("/")),
    }
}

impl Report {
    /// What identifies each error when two reports are compared: its path and its kind.
    fn keys(&self) -> impl Iterator<Item = (&str, &str)> {
        self.errors.iter().map(|LocatedIssue { issue, .. }| {
            let kind = match (&issue.keyword, self.reason) {
                (Some(keyword), _) => keyword,
                // A file with a byte order mark may be valid JSON otherwise, and then has to stay so.
                (None, _) if issue.msg == BYTE_ORDER_MARK_MESSAGE => issue.msg.as_str(),
                (None, Some(Reason::NotJson)) => "",
                (None, _) => issue.msg.as_str(),
            };
            (issue.path.as_str(), kind)
        })
    }
}

fn refusal(
    path: &str,
    schema: &str,
    first: &LocatedIssue,
    errors: &[&LocatedIssue],
    was_invalid: bool,
) -> Fault {
    let (LocatedIssue { issue, line, column }, count) = (first, errors.len());
    let value = if issue.path.is_empty() { "the whole file" } else { &issue.path };
    let more = if count > 1 { format!(" (and {} more)", count - 1) } else { String::new() };
    let brings = if was_invalid { "would bring new errors" } else { "would not match its schema" };
    let message = format!(
        "/{path} is bound to the schema `{schema}` and {brings}; nothing was written. Line {line}, column {column}, \
         {value}: {}{more}",
        issue.msg
    );
    Fault::new(ErrorCode::InvalidRequest, message)
        .hint("make the whole result match in one edit; get_schema returns the schema, validate_asset checks a value")
        .details(json!({"schema": schema, "errors": errors}))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::assets_of;
    use serde_json::Value;

    fn bindings(globs: &[(&str, &str)]) -> Result<Bindings, BindError> {
        let lamp = json!({
            "required": ["name"],
            "properties": {"name": {"type": "string"}, "watts": {"type": "number", "minimum": 0}}
        });
        let assets =
            assets_of(&[("lamp.schema.json", lamp), ("short.json", json!({"maxProperties": 1}))], &[]);
        Bindings::new(assets, globs.iter().map(|(glob, schema)| ((*glob).into(), (*schema).into())))
    }

    fn verdict(before: Option<&str>, after: &str) -> Result<(), Value> {
        let bindings = bindings(&[("/lamps/**/*.json", "lamp")]).expect("bound");
        let verdict = bindings.judge("lamps/a.json", before.map(str::as_bytes), after.as_bytes(), &|| false);
        verdict.map_err(|fault| json!(fault)["details"]["errors"].clone())
    }

    #[test]
    fn a_glob_binds_the_files_that_it_names_and_no_others() {
        let bindings = bindings(&[("/./lamps//**/*.json", "lamp"), ("*.json", "short")]).expect("bound");
        for (path, schemas) in [
            ("lamps/a.json", &["lamp"][..]),
            ("lamps/deep/er/a.json", &["lamp"]),
            ("a.json", &["short"]),
            ("lamps/a.txt", &[]),
            ("other/lamps/a.json", &[]),
            ("LAMPS/a.json", &[]),
        ] {
            assert_eq!(bindings.schemas_of(path).collect::<Vec<_>>(), schemas, "{path}");
        }
    }

    #[test]
    fn what_cannot_be_bound_says_why() {
        for (glob, schema, expected, is_about_schema) in [
            ("a[", "lamp", "`a[`", false),
            ("", "lamp", "no path", false),
            ("/./", "lamp", "no path", false),
            ("../lamps/*", "lamp", "no `..`", false),
            ("lamps/", "lamp", "`lamps/**`", false),
            ("*.json", "lmp", "`lamp`", true),
        ] {
            let error = bindings(&[("good", "lamp"), (glob, schema)]).err().expect("refused");
            assert!(error.problem.contains(expected), "{error:?}");
            assert_eq!((error.index, error.is_about_schema), (1, is_about_schema), "{error:?}");
        }
    }

    #[test]
    fn a_file_that_would_not_match_is_refused_with_every_error_and_its_position() {
        assert_eq!(verdict(None, r#"{"name": "x", "watts": 1}"#), Ok(()));
        let errors = verdict(Some(r#"{"name": "x"}"#), "{\n  \"watts\": -1\n}").expect_err("refused");
        let found: Vec<_> = errors
            .as_array()
            .expect("a list")
            .iter()
            .map(|error| {
                (
                    error["path"].as_str().unwrap_or_default(),
                    error["keyword"].as_str().unwrap_or_default(),
                    error["line"].clone(),
                    error["column"].clone(),
                )
            })
            .collect();
        assert_eq!(found, [("", "required", json!(1), json!(1)), ("/watts", "minimum", json!(2), json!(12))]);
        for broken in ["", "{", "\u{feff}", "[1, 2"] {
            let errors = verdict(None, broken).expect_err(broken);
            assert!(errors[0]["msg"].as_str().is_some_and(|msg| msg.starts_with("not JSON")), "{errors}");
        }
    }

    #[test]
    fn an_invalid_file_may_be_fixed_step_by_step_but_not_made_worse() {
        let both = r#"{"watts": -1}"#;
        assert_eq!(verdict(Some(both), r#"{"watts": -2}"#), Ok(()), "the same errors");
        assert_eq!(verdict(Some(both), r#"{"watts": 1}"#), Ok(()), "one error less");
        assert_eq!(verdict(Some("{"), "{{"), Ok(()), "still no JSON");
        let errors = verdict(Some(both), r#"{"watts": "x", "name": 1}"#).expect_err("worse");
        let paths: Vec<_> =
            errors.as_array().expect("a list").iter().map(|error| error["path"].clone()).collect();
        assert_eq!(paths, [json!("/name"), json!("/watts")], "only new errors are reported");
        assert!(verdict(Some(both), "{").is_err(), "no JSON any more");
        assert!(verdict(Some("{"), both).is_err(), "JSON, but with errors that were not there");
    }

    #[test]
    fn a_byte_order_mark_is_an_error_and_a_file_that_has_one_keeps_the_rest_valid() {
        let marked = "\u{feff}{\"name\": \"x\"}";
        for before in [None, Some("{\"name\": \"x\"}"), Some("{}"), Some("{")] {
            let errors = verdict(before, marked).expect_err("a mark");
            assert!(errors[0]["msg"].as_str().is_some_and(|msg| msg.contains("byte order mark")), "{errors}");
            assert_eq!((&errors[0]["line"], &errors[0]["column"]), (&json!(1), &json!(1)));
        }
        // It may stay where it is, or go, but nothing else may become wrong behind it.
        assert_eq!(verdict(Some(marked), "\u{feff}{\"name\": \"y\"}"), Ok(()));
        assert_eq!(verdict(Some(marked), "{\"name\": \"y\"}"), Ok(()));
        for after in ["\u{feff}{\"name\": 1}", "\u{feff}{", "{"] {
            let errors = verdict(Some(marked), after).expect_err(after);
            assert_eq!(errors.as_array().map(Vec::len), Some(1), "{errors}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_no_json() {
        let bindings = bindings(&[("*", "lamp")]).expect("bound");
        let fault = bindings.judge("a", None, b"{\n\"a\": \"\xff\"}", &|| false).expect_err("refused");
        let errors = json!(fault)["details"]["errors"].clone();
        assert_eq!((&errors[0]["line"], &errors[0]["column"]), (&json!(2), &json!(7)), "{errors}");
    }
}
