//! Two surfaces, compared.

use std::collections::{BTreeMap, BTreeSet};

use pintle_contract::pointer_segment;
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    decide::{Decision, Side, Verdict},
    judge::{SchemaFinding, SchemaPair},
    rules::{self, RULES, Rule, Subject},
    surface::{Surface, SurfaceTool},
};

/// One difference between two surfaces.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// The tool's stable name, or nothing for what belongs to all.
    pub tool: String,
    /// Where, within the tool's definition or within the surface.
    pub pointer: String,
    /// The rule, by its name.
    pub rule: &'static str,
    /// What stood there.
    pub old: Value,
    /// What stands there.
    pub new: Value,
    /// The lowest version that declares the change, if it needs one.
    pub bump: Option<u64>,
    /// The change needs a bump and has none.
    pub bump_missing: bool,
    /// What it means for callers.
    #[serde(flatten)]
    pub decision: Decision,
    /// What changed, in one sentence.
    pub summary: &'static str,
}

/// The differences between two surfaces.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Comparison {
    /// What callers send, read or rely on.
    pub findings: Vec<Finding>,
    /// What a model or a person reads.
    pub texts: Vec<Finding>,
}

/// What a comparison comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing breaks without a bump, and no bump is missing.
    Passes,
    /// Something breaks, or a bump is missing.
    Fails,
    /// Neither is known.
    Unknown,
}

impl Comparison {
    /// What it comes to. A break that a bump declares is no failure; what has no version of its own, such as a tool
    /// that is gone, cannot be declared.
    pub fn outcome(&self) -> Outcome {
        let fails = |finding: &Finding| finding.bump_missing && finding.decision.verdict != Verdict::Unknown;
        let unknown =
            |finding: &Finding| finding.bump_missing && finding.decision.verdict == Verdict::Unknown;
        if self.findings.iter().any(fails) {
            Outcome::Fails
        } else if self.findings.iter().any(unknown) {
            Outcome::Unknown
        } else {
            Outcome::Passes
        }
    }
}

/// Compares two surfaces. `judge` judges the changes of one schema.
pub fn compare(
    old: &Surface,
    new: &Surface,
    judge: &mut dyn FnMut(&SchemaPair) -> Vec<SchemaFinding>,
) -> Comparison {
    let mut comparing = Comparing { comparison: Comparison::default(), judge };
    comparing.common(old, new);
    let renamed: BTreeMap<&str, &str> = new
        .tools
        .iter()
        .flat_map(|(name, tool)| tool.aliases.iter().map(|alias| (alias.as_str(), name.as_str())))
        .filter(|(alias, _)| !new.tools.contains_key(*alias))
        .collect();
    for (name, old_tool) in &old.tools {
        match (new.tools.get(name), renamed.get(name.as_str())) {
            (Some(new_tool), _) => comparing.tool(name, name, old_tool, new_tool),
            (None, Some(to)) => {
                let new_tool = &new.tools[*to];
                let mut reporting = comparing.reporting(to, Versions::of(old_tool, new_tool));
                reporting.changed("/name", rules::TOOL_RENAMED, json!(name), json!(to));
                comparing.tool(to, name, old_tool, new_tool);
            }
            (None, None) => {
                let mut reporting = comparing.reporting(name, Versions::none(old_tool.schema_version));
                reporting.add("", rules::TOOL_REMOVED, json!(name), Value::Null, breaks_by_absence());
            }
        }
    }
    let known = |name: &String, tool: &SurfaceTool| {
        old.tools.contains_key(name) || tool.aliases.iter().any(|alias| old.tools.contains_key(alias))
    };
    for (name, tool) in new.tools.iter().filter(|(name, tool)| !known(name, tool)) {
        let mut reporting = comparing.reporting(name, Versions { old: 0, new: Some(tool.schema_version) });
        reporting.changed("", rules::TOOL_ADDED, Value::Null, json!(name));
    }
    comparing.comparison
}

/// Something that callers name is gone. No value shows it better than its name.
fn breaks_by_absence() -> Decision {
    Decision { verdict: Verdict::Breaks, witness: None, reason: None }
}

#[derive(Clone, Copy)]
struct Versions {
    old: u64,
    /// Nothing has a version any more.
    new: Option<u64>,
}

impl Versions {
    fn of(old: &SurfaceTool, new: &SurfaceTool) -> Self {
        Self { old: old.schema_version, new: Some(new.schema_version) }
    }

    fn none(old: u64) -> Self {
        Self { old, new: None }
    }

    fn is_bumped(self) -> bool {
        self.new.is_some_and(|new| new > self.old)
    }
}

struct Comparing<'a> {
    comparison: Comparison,
    judge: &'a mut dyn FnMut(&SchemaPair) -> Vec<SchemaFinding>,
}

impl Comparing<'_> {
    fn reporting<'a>(&'a mut self, tool: &'a str, versions: Versions) -> Reporting<'a> {
        Reporting { comparison: &mut self.comparison, judge: &mut *self.judge, tool, versions }
    }

    /// `former` is the name in the old surface.
    fn tool(&mut self, name: &str, former: &str, old: &SurfaceTool, new: &SurfaceTool) {
        let mut reporting = self.reporting(name, Versions::of(old, new));
        reporting.version("/schemaVersion", old.schema_version, new.schema_version);
        reporting.schemas(old, new);
        reporting.annotations(old, new);
        reporting.names(name, former, old, new);
        // A list of tools says nothing about timeouts.
        let (before, after) = (old.timeout_ms.or(new.timeout_ms), new.timeout_ms.or(old.timeout_ms));
        reporting.changed("/timeoutMs", rules::TIMEOUT_CHANGED, json!(before), json!(after));
        reporting.codes("/errorCodes", &old.error_codes, &new.error_codes);
        reporting.changed("/title", rules::TITLE_CHANGED, json!(old.title), json!(new.title));
        let (before, after) = (json!(old.description), json!(new.description));
        reporting.changed("/description", rules::DESCRIPTION_CHANGED, before, after);
        reporting.changed("/deprecated", rules::DEPRECATED, json!(old.deprecated), json!(new.deprecated));
    }

    /// What belongs to no single tool.
    fn common(&mut self, old: &Surface, new: &Surface) {
        let mut reporting = self.reporting("", Versions { old: old.version, new: Some(new.version) });
        // A list of tools alone has no version.
        if new.version > 0 {
            reporting.version("/surfaceVersion", old.version, new.version);
        }
        let keys = |section: &BTreeMap<String, Value>| section.keys().cloned().collect::<BTreeSet<_>>();
        // A list of tools alone says nothing about error codes and the like.
        if !old.error_codes.is_empty() && !new.error_codes.is_empty() {
            reporting.codes("/errorCodes", &keys(&old.error_codes), &keys(&new.error_codes));
            reporting.section("/errorCodes", rules::ERROR_CODE_CHANGED, &old.error_codes, &new.error_codes);
        }
        reporting.section("/defaults", rules::SETTING_DEFAULT_CHANGED, &old.defaults, &new.defaults);
        reporting.section("/timeouts", rules::TIMEOUT_CHANGED, &old.timeouts, &new.timeouts);
        if !old.resource_templates.is_empty() && !new.resource_templates.is_empty() {
            reporting.resources(&old.resource_templates, &new.resource_templates);
        }
        if old.instructions.is_some() && new.instructions.is_some() {
            let (before, after) = (json!(old.instructions), json!(new.instructions));
            reporting.changed("/instructions", rules::INSTRUCTIONS_CHANGED, before, after);
        }
    }
}

/// Reports what is found of one tool, or of what belongs to none.
struct Reporting<'a> {
    comparison: &'a mut Comparison,
    judge: &'a mut dyn FnMut(&SchemaPair) -> Vec<SchemaFinding>,
    tool: &'a str,
    versions: Versions,
}

impl Reporting<'_> {
    fn add(&mut self, pointer: &str, rule: Rule, old: Value, new: Value, decision: Decision) {
        // In doubt a bump is needed: an unknown verdict is none that says that nothing breaks.
        let needs_bump = rule.needs_bump || decision.verdict != Verdict::Compatible;
        let finding = Finding {
            tool: self.tool.to_owned(),
            pointer: pointer.to_owned(),
            rule: rule.id,
            old,
            new,
            bump: (needs_bump && self.versions.new.is_some()).then_some(self.versions.old.saturating_add(1)),
            bump_missing: needs_bump && !self.versions.is_bumped(),
            decision,
            summary: rule.summary,
        };
        match rule.subject {
            Subject::Contract => self.comparison.findings.push(finding),
            Subject::Text => self.comparison.texts.push(finding),
        }
    }

    /// Reports what breaks no call, if it changed.
    fn changed(&mut self, pointer: &str, rule: Rule, old: Value, new: Value) {
        if old != new {
            self.add(pointer, rule, old, new, Decision::compatible());
        }
    }

    fn version(&mut self, pointer: &str, old: u64, new: u64) {
        if new < old {
            self.add(pointer, rules::VERSION_FELL, json!(old), json!(new), breaks_by_absence());
        }
    }

    fn schemas(&mut self, old: &SurfaceTool, new: &SurfaceTool) {
        self.schema(Side::Input, "/inputSchema", &old.input_schema, &new.input_schema);
        match (&old.output_schema, &new.output_schema) {
            (Some(old), Some(new)) => self.schema(Side::Output, "/outputSchema", old, new),
            (None, Some(new)) => {
                self.changed("/outputSchema", rules::OUTPUT_SCHEMA_ADDED, Value::Null, new.clone());
            }
            (Some(old), None) => {
                // Without a schema the result can be anything.
                let pair = SchemaPair { side: Side::Output, old: old.clone(), new: Value::Bool(true) };
                let judged = (self.judge)(&pair).into_iter().next();
                let decision = judged.map_or_else(breaks_by_absence, |finding| finding.decision);
                self.add("/outputSchema", rules::OUTPUT_SCHEMA_REMOVED, old.clone(), Value::Null, decision);
            }
            (None, None) => {}
        }
    }

    fn schema(&mut self, side: Side, at: &str, old: &Value, new: &Value) {
        if old == new {
            return;
        }
        let pair = SchemaPair { side, old: old.clone(), new: new.clone() };
        for finding in (self.judge)(&pair) {
            let SchemaFinding { rule, pointer, old, new, decision } = finding;
            let Some(rule) = RULES.iter().find(|known| known.id == rule) else { continue };
            self.add(&format!("{at}{pointer}"), *rule, old, new, decision);
        }
    }

    fn annotations(&mut self, old: &SurfaceTool, new: &SurfaceTool) {
        let names: BTreeSet<&String> = old.annotations.keys().chain(new.annotations.keys()).collect();
        for name in names {
            let (before, after) = (old.annotations.get(name), new.annotations.get(name));
            if before == after || name == "title" {
                continue;
            }
            let rule = match promises_less(name, before, after) {
                true => rules::ANNOTATION_FLIPPED,
                false => rules::ANNOTATION_CHANGED,
            };
            let (before, after) = (before.cloned().unwrap_or_default(), after.cloned().unwrap_or_default());
            self.changed(&format!("/annotations/{}", pointer_segment(name)), rule, before, after);
        }
    }

    fn names(&mut self, name: &str, former: &str, old: &SurfaceTool, new: &SurfaceTool) {
        for alias in old.aliases.iter().filter(|alias| !new.aliases.contains(*alias) && *alias != name) {
            self.add("/aliases", rules::ALIAS_REMOVED, json!(alias), Value::Null, breaks_by_absence());
        }
        // The former name of a renamed tool is an alias that is reported with the rename.
        let is_new = |alias: &&String| !old.aliases.contains(*alias) && *alias != former;
        for alias in new.aliases.iter().filter(is_new) {
            self.changed("/aliases", rules::ALIAS_ADDED, Value::Null, json!(alias));
        }
    }

    fn codes(&mut self, at: &str, old: &BTreeSet<String>, new: &BTreeSet<String>) {
        for code in old.difference(new) {
            let pointer = format!("{at}/{}", pointer_segment(code));
            self.changed(&pointer, rules::ERROR_CODE_REMOVED, json!(code), Value::Null);
        }
        for code in new.difference(old) {
            let pointer = format!("{at}/{}", pointer_segment(code));
            self.changed(&pointer, rules::ERROR_CODE_ADDED, Value::Null, json!(code));
        }
    }

    /// Reports what both sides have and what differs.
    fn section(
        &mut self,
        at: &str,
        rule: Rule,
        old: &BTreeMap<String, Value>,
        new: &BTreeMap<String, Value>,
    ) {
        for (name, before) in old {
            if let Some(after) = new.get(name) {
                let pointer = format!("{at}/{}", pointer_segment(name));
                self.changed(&pointer, rule, before.clone(), after.clone());
            }
        }
    }

    fn resources(&mut self, old: &BTreeMap<String, Value>, new: &BTreeMap<String, Value>) {
        let at = |uri: &str| format!("/resourceTemplates/{}", pointer_segment(uri));
        for uri in old.keys().filter(|uri| !new.contains_key(*uri)) {
            self.add(&at(uri), rules::RESOURCE_REMOVED, json!(uri), Value::Null, breaks_by_absence());
        }
        for uri in new.keys().filter(|uri| !old.contains_key(*uri)) {
            self.changed(&at(uri), rules::RESOURCE_ADDED, Value::Null, json!(uri));
        }
    }
}

/// Whether a hint promised something that it no longer promises. An absent hint has the default of the protocol.
fn promises_less(name: &str, old: Option<&Value>, new: Option<&Value>) -> bool {
    let promise = match name {
        "readOnlyHint" | "idempotentHint" => true,
        "destructiveHint" | "openWorldHint" => false,
        _ => return false,
    };
    // A tool is not read-only, not idempotent, destructive and open, unless it says otherwise.
    let value = |hint: Option<&Value>| hint.and_then(Value::as_bool).unwrap_or(!promise);
    value(old) == promise && value(new) != promise
}
