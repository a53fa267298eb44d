//! `pintle validate`: are these files what their schemas say?
//!
//! Exit code 0 if all are valid, 1 if one is not, 2 if one could not be read or is not JSON.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
    process::ExitCode,
    string::FromUtf8Error,
    sync::Arc,
};

use anstyle::{AnsiColor, Style};
use pintle_assets::{Assets, Bindings, Reason, Report};
use serde_json::{Value, json};
use thiserror::Error;

use crate::{
    cli::{AloneArguments, ValidateArguments},
    compose,
    error::StartError,
    output::{self, Line},
    settings::{Flags, Given, Workspace},
};

/// Validates files and folders, for people or as JSON.
pub fn run(arguments: ValidateArguments) -> Result<ExitCode, StartError> {
    let judge = Judge::load(arguments.flags, arguments.schema)?;
    let mut verdicts = Vec::new();
    for path in &arguments.paths {
        match judge.files_below(path) {
            Ok(files) if files.is_empty() => {
                verdicts.push(Verdict { path: path.clone(), report: Err(Unreadable::EmptyFolder) });
            }
            Ok(files) => verdicts.extend(files.into_iter().map(|file| judge.judge(file))),
            Err(error) => {
                verdicts.push(Verdict { path: path.clone(), report: Err(error.into()) });
            }
        }
    }
    if arguments.json {
        let files: Vec<Value> = verdicts.iter().map(Verdict::to_json).collect();
        let ok = verdicts.iter().all(|verdict| verdict.exit_code() == 0);
        output::json(&json!({"ok": ok, "files": files}));
    } else {
        print_for_people(&verdicts);
    }
    Ok(worst(&verdicts))
}

/// `pintle --validate PATH`: one file, its result as JSON.
pub fn run_for_programs(arguments: AloneArguments) -> Result<ExitCode, StartError> {
    let verdict = Judge::load(arguments.flags, arguments.schema)?.judge(arguments.validate);
    output::json(&verdict.result());
    Ok(worst(&[verdict]))
}

/// Knows by which schema a file is to be judged.
struct Judge {
    workspace: Workspace,
    assets: Arc<Assets>,
    bindings: Bindings,
    /// The schema that was asked for.
    schema: Option<String>,
}

impl Judge {
    fn load(flags: Flags, schema: Option<String>) -> Result<Self, StartError> {
        let workspace = Workspace::decide(&Given::read(flags)?)?;
        let assets = compose::load_assets(&workspace)?;
        let bindings = compose::bind(&workspace, &assets)?;
        Ok(Self { workspace, assets, bindings, schema })
    }

    /// The file itself, or below a folder the JSON files and those that are bound to a schema, sorted.
    fn files_below(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        if !fs::metadata(path)?.is_dir() {
            return Ok(vec![path.to_owned()]);
        }
        let mut found = Vec::new();
        let mut folders = vec![path.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder)? {
                let entry = entry?;
                // Links are not followed: they may lead out, or round in circles.
                let kind = entry.file_type()?;
                let path = entry.path();
                if kind.is_dir() {
                    folders.push(path);
                } else if kind.is_file()
                    && (path.extension().is_some_and(|end| end == "json") || !self.bound(&path).is_empty())
                {
                    found.push(path);
                }
            }
        }
        found.sort();
        Ok(found)
    }

    /// The schemas that a file is bound to, by its name and, if that is a link, by where it is.
    fn bound(&self, path: &Path) -> BTreeSet<&str> {
        let places = [self.workspace.name_in_root(path), self.workspace.place_in_root(path)];
        let places = places.into_iter().flatten();
        places.flat_map(|place| self.bindings.schemas_of(place.as_str()).collect::<Vec<_>>()).collect()
    }

    /// Judges by the schema that was asked for, else by those that the file is bound to, else by what it says.
    fn judge(&self, path: PathBuf) -> Verdict {
        let read = fs::read(&path).map_err(Unreadable::from).and_then(|bytes| {
            let not_utf8 = |error: FromUtf8Error| Unreadable::NotUtf8(error.utf8_error().valid_up_to() + 1);
            String::from_utf8(bytes).map_err(not_utf8)
        });
        let report = read.map(|text| {
            let judged = |schema| self.assets.validate_document(&text, &path.to_string_lossy(), schema);
            let bound = if self.schema.is_none() { self.bound(&path) } else { BTreeSet::new() };
            let reports = bound.into_iter().map(|schema| judged(Some(schema)));
            // A file that is bound more than once has to match every time.
            let worst = reports.reduce(|one, other| if one.ok { other } else { one });
            worst.unwrap_or_else(|| judged(self.schema.as_deref()))
        });
        Verdict { path, report }
    }
}

/// What came of one file: a report, or why there is none.
struct Verdict {
    path: PathBuf,
    report: Result<Report, Unreadable>,
}

/// Why there is nothing to validate.
#[derive(Debug, Error)]
enum Unreadable {
    #[error("the folder has no JSON files")]
    EmptyFolder,
    #[error("not UTF-8: byte {0} is wrong")]
    NotUtf8(usize),
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Verdict {
    fn exit_code(&self) -> u8 {
        match &self.report {
            Ok(Report { ok: true, .. }) => 0,
            Ok(Report { reason: Some(Reason::NotJson), .. }) | Err(_) => 2,
            Ok(_) => 1,
        }
    }

    /// The result as `validate_asset` would give it.
    fn result(&self) -> Value {
        match &self.report {
            Ok(Report { ok: true, .. }) => json!({"ok": true, "errors": []}),
            Ok(report) => json!({"ok": false, "reason": report.reason, "errors": report.errors}),
            Err(error) => json!({"ok": false, "reason": "io_error", "detail": error.to_string()}),
        }
    }

    fn to_json(&self) -> Value {
        let mut result = self.result();
        result["path"] = json!(self.path.to_string_lossy());
        if let Ok(report) = &self.report {
            result["schema"] = json!(report.schema);
        }
        result
    }
}

fn worst(verdicts: &[Verdict]) -> ExitCode {
    ExitCode::from(verdicts.iter().map(Verdict::exit_code).max().unwrap_or(0))
}

fn print_for_people(verdicts: &[Verdict]) {
    let good = AnsiColor::Green.on_default().bold();
    let bad = AnsiColor::Red.on_default().bold();
    let dim = Style::new().dimmed();
    for Verdict { path, report } in verdicts {
        let line = Line::default().text(&format!("{}: ", path.display()));
        match report {
            Err(problem) => line.styled(bad, "unreadable").text(&format!(": {problem}")).print(),
            Ok(report) => {
                let (style, word) = match (report.ok, report.reason) {
                    (true, _) => (good, "valid"),
                    (false, Some(Reason::NotJson)) => (bad, "not JSON"),
                    (false, _) => (bad, "invalid"),
                };
                let line = line.styled(style, word);
                match report.schema.as_str() {
                    "" => line.print(),
                    name => line.text(" ").styled(dim, &format!("(schema {name})")).print(),
                }
                for error in &report.errors {
                    let pointer = if error.issue.path.is_empty() { "(root)" } else { &error.issue.path };
                    let (line, column, msg) = (error.line, error.column, &error.issue.msg);
                    output::line(&format!("  {line}:{column}  {pointer}  {msg}"));
                }
            }
        }
    }
    if verdicts.len() > 1 {
        let count = |code: u8| verdicts.iter().filter(|verdict| verdict.exit_code() == code).count();
        output::line(&format!(
            "{} files: {} valid, {} invalid, {} unreadable",
            verdicts.len(),
            count(0),
            count(1),
            count(2)
        ));
    }
}
