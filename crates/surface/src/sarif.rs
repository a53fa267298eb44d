//! Findings as SARIF 2.1.0, which code review tools show beside the code.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::{
    client::Severity,
    compare::{Comparison, Finding},
    decide::Verdict,
    lint::LintFinding,
    rules::RULES,
};

/// The findings of a comparison; `file` is what they are shown at.
pub fn sarif(comparison: &Comparison, file: &str) -> Value {
    let rules = RULES.iter().map(
        |rule| json!({"id": rule.id, "shortDescription": {"text": rule.summary}, "help": {"text": rule.source}}),
    );
    let results = comparison.findings.iter().chain(&comparison.texts).map(|finding| {
        json!({
            "ruleId": finding.rule,
            "level": level(finding),
            "message": {"text": message(finding)},
            "locations": [{
                "physicalLocation": {"artifactLocation": {"uri": file}},
                "logicalLocations": [{"fullyQualifiedName": format!("{}{}", finding.tool, finding.pointer)}],
            }],
            "properties": finding,
        })
    });
    log(rules.collect(), results.collect())
}

/// What clients would refuse, cut or rewrite.
pub fn lint_sarif(findings: &[LintFinding]) -> Value {
    let names: BTreeSet<&str> = findings.iter().map(|finding| finding.rule).collect();
    let rules = names.into_iter().map(|name| json!({ "id": name }));
    let results = findings.iter().map(|finding| {
        let level = match finding.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        json!({
            "ruleId": finding.rule,
            "level": level,
            "message": {"text": format!("{}: {}", finding.client, finding.message)},
            "locations": [{
                "logicalLocations": [{"fullyQualifiedName": format!("{}{}", finding.tool, finding.pointer)}],
            }],
            "properties": finding,
        })
    });
    log(rules.collect(), results.collect())
}

fn log(rules: Vec<Value>, results: Vec<Value>) -> Value {
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": "pintle contract", "version": env!("CARGO_PKG_VERSION"), "rules": rules}},
            "results": results,
        }],
    })
}

fn level(finding: &Finding) -> &'static str {
    match (finding.bump_missing, finding.decision.verdict) {
        (true, Verdict::Unknown) => "warning",
        (true, _) => "error",
        (false, _) => "note",
    }
}

fn message(finding: &Finding) -> String {
    let mut text = format!("{}{}: {}", finding.tool, finding.pointer, finding.summary);
    if let Some(witness) = &finding.decision.witness {
        text.push_str(&format!(" Witness: {witness}."));
    }
    if let Some(reason) = &finding.decision.reason {
        text.push_str(&format!(" Unknown, because {reason}."));
    }
    if let (true, Some(version)) = (finding.bump_missing, finding.bump) {
        text.push_str(&format!(" Needs schemaVersion {version}."));
    }
    text
}
