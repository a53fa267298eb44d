//! What clients would refuse, cut or rewrite of a surface.

use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use pintle_surface::{CLIENTS, Client, LintFinding, Severity, Surface, client_named, lint, lint_sarif};
use serde_json::json;

use crate::{
    cli::ContractFormat,
    error::{ContractError, StartError},
    output,
};

/// Exit code 1 if a client would refuse something.
pub fn run(surface: &Surface, client: &str, format: ContractFormat) -> Result<ExitCode, StartError> {
    let clients: Vec<&Client> = match client {
        "all" => CLIENTS.iter().collect(),
        name => vec![client_named(name).map_err(ContractError::Client)?],
    };
    let findings: Vec<LintFinding> = clients.iter().flat_map(|client| lint(surface, client)).collect();
    match format {
        ContractFormat::Table => lines(&findings, clients.len()),
        ContractFormat::Json => output::json(&json!({ "findings": findings })),
        ContractFormat::Sarif => output::json(&lint_sarif(&findings)),
    }
    let is_refused = findings.iter().any(|finding| finding.severity == Severity::Error);
    Ok(ExitCode::from(u8::from(is_refused)))
}

fn lines(findings: &[LintFinding], clients: usize) {
    for finding in findings {
        let (word, color) = match finding.severity {
            Severity::Error => ("error  ", AnsiColor::Red),
            Severity::Warning => ("warning", AnsiColor::Yellow),
        };
        let LintFinding { client, rule, message, .. } = finding;
        let [tool, pointer] = [&finding.tool, &finding.pointer].map(|text| output::name(text));
        output::Line::default()
            .styled(Style::new().fg_color(Some(color.into())), word)
            .text(&format!("  {client}  {tool}{pointer}  {rule}: {message}"))
            .print();
    }
    let errors = findings.iter().filter(|finding| finding.severity == Severity::Error).count();
    let counted = |count: usize, noun: &str| match count {
        1 => format!("1 {noun}"),
        count => format!("{count} {noun}s"),
    };
    let warnings = findings.len() - errors;
    output::line(&format!(
        "{}: {}, {}",
        counted(clients, "client"),
        counted(errors, "error"),
        counted(warnings, "warning")
    ));
}
