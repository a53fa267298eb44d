//! `pintle index`: builds the search index, or refreshes it.

use std::{
    io::IsTerminal,
    process::ExitCode,
    time::{Duration, Instant},
};

use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressStyle};
use parking_lot::Mutex;
use pintle_contract::WorkspacePath;
use pintle_search::{BuildReport, Observer, Phase};
use serde_json::{Value, json};

use crate::{
    cli::IndexArguments,
    compose,
    error::StartError,
    notices, output,
    settings::{Given, Workspace},
};

/// Builds. Exit code 0 if there is an index now, 2 if not.
pub fn run(arguments: IndexArguments) -> Result<ExitCode, StartError> {
    let prints_phases = arguments.flags.rig.phases_json;
    let workspace = Workspace::decide(&Given::read(arguments.flags)?)?;
    workspace.refuse_state_inside_root()?;
    let path = arguments.path.as_deref().map(WorkspacePath::parse).transpose();
    let path = path.map_err(StartError::Path)?;
    compose::open_folder(&workspace)?;
    let search = compose::open_search(&workspace)?;
    let shown = Shown::new(std::io::stderr().is_terminal() && !arguments.json && !prints_phases);
    let report = search.build_index(arguments.full, path.as_ref(), &shown);
    shown.bar.finish_and_clear();
    let report = report?;
    if prints_phases {
        output::json(&shown.phases(&report));
    } else if arguments.json {
        output::json(&to_json(&report));
    } else {
        print(&report, shown.begun.elapsed());
    }
    Ok(ExitCode::SUCCESS)
}

fn print(report: &BuildReport, took: Duration) {
    if let Some(reason) = report.rebuilt {
        notices::warning(&format!("everything was read again: {reason}"));
    }
    output::line(&format!(
        "{} files, {}; index {} (generation {}), {} read and {} removed in {:.1} s",
        HumanCount(report.files),
        HumanBytes(report.bytes),
        HumanBytes(report.size),
        report.generation,
        HumanCount(report.read),
        HumanCount(report.removed),
        took.as_secs_f64(),
    ));
    for (reason, count) in &report.skipped {
        output::line(&format!("  not searched: {} {}", HumanCount(*count), explain(reason, *count)));
    }
}

fn explain(reason: &str, count: u64) -> &str {
    match reason {
        "binary" => "binary (with a NUL byte)",
        "too_large" => "too large (see --max-file-bytes)",
        "unreadable" => "unreadable",
        "unreadable_folder" if count == 1 => "unreadable folder",
        "unreadable_folder" => "unreadable folders",
        "ignored_by_rule" => "ignored by a rule (in .gitignore, .ignore or .rgignore)",
        "inside_git" => "inside `.git`",
        "symbolic_link" if count == 1 => "symbolic link",
        "symbolic_link" => "symbolic links",
        "special_file" => "neither file nor folder",
        other => other,
    }
}

fn to_json(report: &BuildReport) -> Value {
    let skipped = report.skipped.iter().map(|(reason, count)| ((*reason).to_owned(), json!(count)));
    json!({
        "generation": report.generation,
        "read": report.read,
        "removed": report.removed,
        "rebuilt": report.rebuilt,
        "files": report.files,
        "bytes": report.bytes,
        "skipped": skipped.collect::<serde_json::Map<_, _>>(),
        "textSize": report.text_size,
        "size": report.size,
    })
}

/// Shows how far a build is, and remembers when each phase was ready.
struct Shown {
    bar: ProgressBar,
    begun: Instant,
    phase: Mutex<Option<Phase>>,
    ready: Mutex<Vec<(Phase, Duration)>>,
}

impl Shown {
    fn new(is_watched: bool) -> Self {
        let bar = if is_watched { ProgressBar::new(0) } else { ProgressBar::hidden() };
        Self { bar, begun: Instant::now(), phase: Mutex::default(), ready: Mutex::default() }
    }

    fn phases(&self, report: &BuildReport) -> Value {
        let ready = self.ready.lock();
        let milliseconds = |wanted: Phase| {
            let found = ready.iter().find(|(phase, _)| *phase == wanted);
            found.map(|(_, after)| after.as_secs_f64() * 1000.0)
        };
        json!({
            "textReadyMs": milliseconds(Phase::Text),
            "wordsReadyMs": milliseconds(Phase::Words),
            "symbolsReadyMs": milliseconds(Phase::Symbols),
            "totalMs": self.begun.elapsed().as_secs_f64() * 1000.0,
            "textBytes": report.text_size,
            "indexBytes": report.size,
            "corpusBytes": report.bytes,
            "files": report.files,
        })
    }
}

impl Observer for Shown {
    fn step(&self, phase: Phase, done: u64, total: u64) {
        if self.bar.is_hidden() {
            return;
        }
        let mut present = self.phase.lock();
        if *present != Some(phase) {
            *present = Some(phase);
            let label = match phase {
                Phase::Waiting => "waiting for another build",
                Phase::Walk => "looking for files",
                Phase::Text => "text",
                Phase::Words => "words",
                Phase::Symbols => "symbols",
            };
            let template = match total {
                0 => "{msg} {spinner}",
                _ => "{msg:8} {bar:30} {bytes}/{total_bytes}  {bytes_per_sec}  {eta} left",
            };
            if let Ok(style) = ProgressStyle::with_template(template) {
                self.bar.set_style(style);
            }
            self.bar.set_message(label);
            self.bar.reset();
        }
        self.bar.set_length(total);
        self.bar.set_position(done);
    }

    fn ready(&self, phase: Phase) {
        let mut ready = self.ready.lock();
        ready.push((phase, self.begun.elapsed()));
    }

    fn has_ended(&self) -> bool {
        false
    }
}
