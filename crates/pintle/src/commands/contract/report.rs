//! A comparison, shown: lines for people, JSON, or SARIF for code review tools.

use std::{collections::BTreeMap, path::Path};

use anstyle::{AnsiColor, Style};
use pintle_surface::{Comparison, Finding, Outcome, Verdict, sarif};
use serde_json::json;

use crate::{cli::ContractFormat, output};

pub fn show(comparison: &Comparison, format: ContractFormat, at: &Path) {
    match format {
        ContractFormat::Table => lines(comparison),
        ContractFormat::Json => {
            let mut shown = json!(comparison);
            shown["outcome"] = json!(match comparison.outcome() {
                Outcome::Passes => "passes",
                Outcome::Fails => "fails",
                Outcome::Unknown => "unknown",
            });
            output::json(&shown);
        }
        ContractFormat::Sarif => output::json(&sarif(comparison, &at.to_string_lossy())),
    }
}

fn lines(comparison: &Comparison) {
    for finding in &comparison.findings {
        finding_lines(finding);
    }
    if !comparison.texts.is_empty() {
        output::line("");
        output::line("Texts that a model or a person reads, by tool (--json has each of them):");
        let mut by_tool: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
        for text in &comparison.texts {
            *by_tool.entry(&text.tool).or_default().entry(text.rule).or_default() += 1;
        }
        for (tool, rules) in by_tool {
            let counts: Vec<_> = rules.iter().map(|(rule, count)| format!("{count} {rule}")).collect();
            output::line(&format!("  {}: {}", shown_tool(tool), counts.join(", ")));
        }
    }
    let count = |verdict: Verdict| {
        comparison.findings.iter().filter(|finding| finding.decision.verdict == verdict).count()
    };
    let missing = comparison.findings.iter().filter(|finding| finding.bump_missing).count();
    let [breaks, unknown, compatible] = [Verdict::Breaks, Verdict::Unknown, Verdict::Compatible].map(count);
    if !comparison.findings.is_empty() || !comparison.texts.is_empty() {
        output::line("");
    }
    output::line(&format!(
        "{breaks} breaking, {unknown} unknown, {compatible} compatible, {} in texts; {missing} without the bump that they need",
        comparison.texts.len()
    ));
}

fn shown_tool(tool: &str) -> String {
    if tool.is_empty() { "(all tools)".to_owned() } else { output::name(tool) }
}

fn finding_lines(finding: &Finding) {
    let (word, color) = match finding.decision.verdict {
        Verdict::Breaks => ("breaks    ", AnsiColor::Red),
        Verdict::Unknown => ("unknown   ", AnsiColor::Yellow),
        Verdict::Compatible => ("compatible", AnsiColor::Green),
    };
    let style = Style::new().fg_color(Some(color.into()));
    let tool = shown_tool(&finding.tool);
    output::Line::default()
        .styled(style, word)
        .text(&format!("  {tool}  {}  {}: {}", output::name(&finding.pointer), finding.rule, finding.summary))
        .print();
    if let Some(witness) = &finding.decision.witness {
        output::line(&format!("            witness: {witness}"));
    }
    if let Some(reason) = &finding.decision.reason {
        output::line(&format!("            {}", output::name(reason)));
    }
    if let (false, Some(version)) = (finding.bump_missing, finding.bump) {
        output::line(&format!("            declared: schemaVersion is {version} or higher"));
    }
    if finding.bump_missing {
        output::line(&match finding.bump {
            Some(version) => format!("            needs schemaVersion {version}"),
            None => "            cannot be declared by a version: keep it, or give the new tool its name as an alias".to_owned(),
        });
    }
}
