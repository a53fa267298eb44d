//! The rules by which a change is judged, one entry each.

use serde::Serialize;

/// What a rule is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// What callers send, read or rely on.
    Contract,
    /// What a model or a person reads.
    Text,
}

/// One rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The name in findings.
    pub id: &'static str,
    /// What changed, in one sentence.
    pub summary: &'static str,
    /// Whether the change needs a higher `schemaVersion`.
    pub needs_bump: bool,
    /// What it is about.
    pub subject: Subject,
    /// Where the rule comes from.
    pub source: &'static str,
}

const BUMP: &str = "stability rules 2.2: a bump is required";
const NO_BUMP: &str = "stability rules 2.2: no bump is required";
const NAMES: &str = "stability rules 3.1: names are stable";
const DOUBT: &str = "stability rules 2.2: if in doubt, bump";
const ALGEBRA: &str = "set subtraction of the two schemas";

const fn rule(id: &'static str, summary: &'static str, needs_bump: bool, source: &'static str) -> Rule {
    Rule { id, summary, needs_bump, subject: Subject::Contract, source }
}

const fn text(id: &'static str, summary: &'static str) -> Rule {
    Rule { id, summary, needs_bump: false, subject: Subject::Text, source: NO_BUMP }
}

macro_rules! rules {
    ($($name:ident = $rule:expr;)*) => {
        $(pub(crate) const $name: Rule = $rule;)*

        /// Every rule.
        pub const RULES: &[Rule] = &[$($name),*];
    };
}

rules! {
    TOOL_REMOVED = rule("tool-removed", "The tool is gone.", true, NAMES);
    TOOL_ADDED = rule("tool-added", "The tool is new.", false, NO_BUMP);
    TOOL_RENAMED = rule("tool-renamed", "The tool has a new name; the old one is an alias.", true, NAMES);
    ALIAS_REMOVED = rule("alias-removed", "An old name no longer works.", true, NAMES);
    ALIAS_ADDED = rule("alias-added", "The tool has a further name.", false, NO_BUMP);
    VERSION_FELL = rule("version-fell", "`schemaVersion` is lower than it was.", true, "stability rules 2.1: monotonic");

    REQUIRED_ARGUMENT_ADDED = rule("required-argument-added", "A required argument is new.", true, BUMP);
    ARGUMENT_ADDED = rule("argument-added", "An optional argument is new.", false, NO_BUMP);
    ARGUMENT_REMOVED = rule("argument-removed", "An argument is gone.", true, BUMP);
    ARGUMENT_MADE_REQUIRED = rule("argument-made-required", "An optional argument is now required.", true, BUMP);
    ARGUMENT_MADE_OPTIONAL = rule("argument-made-optional", "A required argument is now optional.", false, NO_BUMP);
    ARGUMENT_NARROWED = rule("argument-narrowed", "Values that were accepted are refused.", true, ALGEBRA);
    ARGUMENT_WIDENED = rule("argument-widened", "More values are accepted.", false, ALGEBRA);
    ARGUMENT_REWRITTEN = rule("argument-rewritten", "The same values are accepted, written differently.", false, ALGEBRA);
    ARGUMENT_UNDECIDED = rule("argument-undecided", "Whether values are refused is not known.", true, DOUBT);
    DEFAULT_CHANGED = rule("default-changed", "The default of an argument changed.", true, BUMP);
    MEANING_CHANGED = rule("meaning-changed", "`x-meaning` changed: the same value means something else.", true, BUMP);

    REQUIRED_FIELD_ADDED = rule("required-result-field-added", "A required field of the result is new.", true, BUMP);
    FIELD_ADDED = rule("result-field-added", "An optional field of the result is new.", false, NO_BUMP);
    FIELD_REMOVED = rule("result-field-removed", "A field of the result is gone.", true, BUMP);
    FIELD_MADE_REQUIRED = rule("result-field-made-required", "A field is now always in the result.", true, BUMP);
    FIELD_MADE_OPTIONAL = rule("result-field-made-optional", "A field may now be absent from the result.", true, BUMP);
    RESULT_WIDENED = rule("result-widened", "Results are possible that the old schema rejects.", true, ALGEBRA);
    RESULT_NARROWED = rule("result-narrowed", "Fewer results are possible.", false, ALGEBRA);
    RESULT_REWRITTEN = rule("result-rewritten", "The same results are possible, written differently.", false, ALGEBRA);
    RESULT_UNDECIDED = rule("result-undecided", "Whether the old schema rejects a result is not known.", true, DOUBT);
    OUTPUT_SCHEMA_ADDED = rule("output-schema-added", "The result has a schema now.", false, NO_BUMP);
    OUTPUT_SCHEMA_REMOVED = rule("output-schema-removed", "The result has no schema any more.", true, BUMP);

    ANNOTATION_FLIPPED = rule("annotation-flipped", "A hint promises less than it did.", true, BUMP);
    ANNOTATION_CHANGED = rule("annotation-changed", "A hint changed and promises no less.", false, NO_BUMP);
    TIMEOUT_CHANGED = rule("timeout-changed", "A timeout changed.", true, BUMP);
    ERROR_CODE_ADDED = rule("error-code-added", "An error code is new.", true, BUMP);
    ERROR_CODE_REMOVED = rule("error-code-removed", "An error code is gone.", true, BUMP);
    ERROR_CODE_CHANGED = rule("error-code-changed", "The numbers of an error code changed.", true, BUMP);
    SETTING_DEFAULT_CHANGED = rule("setting-default-changed", "A default of the server changed.", true, BUMP);
    RESOURCE_REMOVED = rule("resource-removed", "A resource template is gone.", true, NAMES);
    RESOURCE_ADDED = rule("resource-added", "A resource template is new.", false, NO_BUMP);
    DEPRECATED = text("deprecated", "The tool is marked as deprecated, or no longer.");

    TITLE_CHANGED = text("title-changed", "The title changed.");
    DESCRIPTION_CHANGED = text("description-changed", "The description changed.");
    SCHEMA_TEXT_CHANGED = text("schema-text-changed", "A text inside a schema changed.");
    INSTRUCTIONS_CHANGED = text("instructions-changed", "The instructions for the model changed.");
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_rule_has_a_name_of_its_own() {
        let names: BTreeSet<_> = RULES.iter().map(|rule| rule.id).collect();
        assert_eq!(names.len(), RULES.len());
    }
}
