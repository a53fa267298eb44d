//! The changes of one schema, each with its rule and verdict.

use std::time::Instant;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    changes::{Change, ChangeKind, changes},
    decide::{Decision, Pair, Side, Verdict, decide},
    rules::{self, Rule},
};

/// Two versions of one schema.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SchemaPair {
    /// What the schema describes.
    pub side: Side,
    /// The old version.
    pub old: Value,
    /// The new version.
    pub new: Value,
}

/// One change of a schema.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SchemaFinding {
    /// The rule, by its name.
    pub rule: String,
    /// Where, within the schema.
    pub pointer: String,
    /// What stood there.
    pub old: Value,
    /// What stands there.
    pub new: Value,
    /// What it means for callers.
    #[serde(flatten)]
    pub decision: Decision,
}

/// Judges a pair by the algebra of schemas. This can take long for hostile schemas, so callers bound it from outside.
/// After `deadline` changes are no longer judged alone.
pub fn judge(pair: &SchemaPair, deadline: Instant) -> Vec<SchemaFinding> {
    let whole = Whole::decide(pair);
    let found = changes(&pair.old, &pair.new);
    let about_values = found.iter().filter(|change| is_about_values(change)).count();
    let mut judged: Vec<SchemaFinding> = found
        .iter()
        .map(|change| {
            let decision = match &whole.decision {
                _ if !is_about_values(change) => Decision::compatible(),
                Decision { verdict: Verdict::Compatible, .. } => Decision::compatible(),
                decision if about_values == 1 => decision.clone(),
                _ if Instant::now() > deadline => {
                    whole.not_judged_alone("there was no time left to judge this change alone")
                }
                _ => whole.decide_alone(change, pair),
            };
            finding(change, pair, decision, &whole)
        })
        .collect();
    let same = |finding: &SchemaFinding| finding.decision.verdict == whole.decision.verdict;
    if whole.decision.verdict != Verdict::Compatible && !judged.iter().any(same) {
        judged.push(whole.finding(pair));
    }
    judged
}

/// The changes of a pair that could not be judged, for this reason.
pub fn judge_by_structure(pair: &SchemaPair, reason: &str) -> Vec<SchemaFinding> {
    let whole = Whole { decision: Decision::unknown(reason), pair: None, is_equal: false };
    let found = changes(&pair.old, &pair.new);
    let mut judged: Vec<SchemaFinding> = found
        .iter()
        .map(|change| {
            let decision =
                if is_about_values(change) { whole.decision.clone() } else { Decision::compatible() };
            finding(change, pair, decision, &whole)
        })
        .collect();
    if !judged.iter().any(|finding| finding.decision.verdict == Verdict::Unknown) {
        judged.push(whole.finding(pair));
    }
    judged
}

fn is_about_values(change: &Change) -> bool {
    !matches!(change.kind, ChangeKind::Default | ChangeKind::Meaning | ChangeKind::Text)
}

/// The two whole schemas, compared.
struct Whole {
    decision: Decision,
    pair: Option<Pair>,
    /// Both have the same values and declare the same members.
    is_equal: bool,
}

impl Whole {
    fn decide(pair: &SchemaPair) -> Self {
        match Pair::new(pair.side, &pair.old, &pair.new) {
            Ok(compared) => {
                let decision = compared.decide();
                let is_equal = decision.verdict == Verdict::Compatible && are_equal(&pair.old, &pair.new);
                Self { decision, pair: Some(compared), is_equal }
            }
            Err(reason) => Self { decision: Decision::unknown(reason), pair: None, is_equal: false },
        }
    }

    /// Judges one change: with all others left out for arguments, with all others made for results, because a witness
    /// has to be an old call, or a new result. It has to show the break of the whole as well: another change can make
    /// up for this one.
    fn decide_alone(&self, change: &Change, pair: &SchemaPair) -> Decision {
        let SchemaPair { side, old, new } = pair;
        let alone = match side {
            Side::Input => decide(*side, old, &change.apply(old, new)),
            Side::Output => decide(*side, &change.revert(old, new), new),
        };
        let shows_whole = |witness: &Value| self.pair.as_ref().is_some_and(|whole| whole.is_witness(witness));
        match (&alone.verdict, &alone.witness) {
            (Verdict::Compatible, _) => alone,
            (Verdict::Breaks, Some(witness)) if shows_whole(witness) => alone,
            (Verdict::Breaks, _) => {
                let reason = "alone it breaks, but other changes may make up for it";
                self.blame(change, pair, Decision::unknown(reason))
            }
            (Verdict::Unknown, _) => self.blame(change, pair, alone),
        }
    }

    /// The break of the whole, if its witness shows none without this change; else what is known of the change.
    fn blame(&self, change: &Change, pair: &SchemaPair, otherwise: Decision) -> Decision {
        let SchemaPair { side, old, new } = pair;
        let Some(witness) = &self.decision.witness else { return otherwise };
        let without = Pair::new(*side, old, &change.revert(old, new));
        match without.is_ok_and(|without| !without.is_witness(witness)) {
            true => self.decision.clone(),
            false => otherwise,
        }
    }

    /// What is known of a change that is not judged: that the whole breaks says nothing about it.
    fn not_judged_alone(&self, reason: &str) -> Decision {
        match self.decision.verdict {
            Verdict::Breaks => Decision::unknown(reason),
            Verdict::Compatible | Verdict::Unknown => self.decision.clone(),
        }
    }

    /// What is known of the whole and of no single change.
    fn finding(&self, pair: &SchemaPair) -> SchemaFinding {
        SchemaFinding {
            rule: values_rule(pair.side, self.decision.verdict, false).id.to_owned(),
            pointer: String::new(),
            old: pair.old.clone(),
            new: pair.new.clone(),
            decision: self.decision.clone(),
        }
    }
}

fn finding(change: &Change, pair: &SchemaPair, decision: Decision, whole: &Whole) -> SchemaFinding {
    let rule = rule_of(change, pair, &decision, whole);
    SchemaFinding {
        rule: rule.id.to_owned(),
        pointer: change.pointer.clone(),
        old: change.old.clone(),
        new: change.new.clone(),
        decision,
    }
}

fn rule_of(change: &Change, pair: &SchemaPair, decision: &Decision, whole: &Whole) -> Rule {
    match (&change.kind, pair.side) {
        (_, side) if whole.is_equal && is_about_values(change) => {
            values_rule(side, Verdict::Compatible, true)
        }
        (ChangeKind::MemberAdded { required: true }, Side::Input) => rules::REQUIRED_ARGUMENT_ADDED,
        (ChangeKind::MemberAdded { required: false }, Side::Input) => rules::ARGUMENT_ADDED,
        (ChangeKind::MemberRemoved { .. }, Side::Input) => rules::ARGUMENT_REMOVED,
        (ChangeKind::MadeRequired, Side::Input) => rules::ARGUMENT_MADE_REQUIRED,
        (ChangeKind::MadeOptional, Side::Input) => rules::ARGUMENT_MADE_OPTIONAL,
        (ChangeKind::MemberAdded { required: true }, Side::Output) => rules::REQUIRED_FIELD_ADDED,
        (ChangeKind::MemberAdded { required: false }, Side::Output) => rules::FIELD_ADDED,
        (ChangeKind::MemberRemoved { .. }, Side::Output) => rules::FIELD_REMOVED,
        (ChangeKind::MadeRequired, Side::Output) => rules::FIELD_MADE_REQUIRED,
        (ChangeKind::MadeOptional, Side::Output) => rules::FIELD_MADE_OPTIONAL,
        (ChangeKind::Default, Side::Input) => rules::DEFAULT_CHANGED,
        (ChangeKind::Meaning, _) => rules::MEANING_CHANGED,
        (ChangeKind::Default, Side::Output) | (ChangeKind::Text, _) => rules::SCHEMA_TEXT_CHANGED,
        (ChangeKind::Values, side) => {
            let rewritten = decision.verdict == Verdict::Compatible
                && are_equal(&pair.old, &change.apply(&pair.old, &pair.new));
            values_rule(side, decision.verdict, rewritten)
        }
    }
}

/// Whether two schemas have the same values and declare the same members.
fn are_equal(old: &Value, new: &Value) -> bool {
    let covers = |old, new| decide(Side::Input, old, new).verdict == Verdict::Compatible;
    covers(old, new) && covers(new, old)
}

fn values_rule(side: Side, verdict: Verdict, rewritten: bool) -> Rule {
    match (side, verdict) {
        (Side::Input, Verdict::Compatible) if rewritten => rules::ARGUMENT_REWRITTEN,
        (Side::Input, Verdict::Compatible) => rules::ARGUMENT_WIDENED,
        (Side::Input, Verdict::Breaks) => rules::ARGUMENT_NARROWED,
        (Side::Input, Verdict::Unknown) => rules::ARGUMENT_UNDECIDED,
        (Side::Output, Verdict::Compatible) if rewritten => rules::RESULT_REWRITTEN,
        (Side::Output, Verdict::Compatible) => rules::RESULT_NARROWED,
        (Side::Output, Verdict::Breaks) => rules::RESULT_WIDENED,
        (Side::Output, Verdict::Unknown) => rules::RESULT_UNDECIDED,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::{Map, json};

    use super::*;

    /// The rules and verdicts of the changes of arguments, by the name of the argument.
    fn verdicts(old: &Value, new: &Value, deadline: Instant) -> Vec<(String, String, Verdict)> {
        let of = |properties: &Value| json!({"type": "object", "properties": properties});
        let pair = SchemaPair { side: Side::Input, old: of(old), new: of(new) };
        let findings = judge(&pair, deadline).into_iter();
        findings.map(|found| (found.pointer, found.rule, found.decision.verdict)).collect()
    }

    fn later() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    #[test]
    fn a_change_is_not_blamed_for_the_break_of_another() {
        // The algebra cannot decide about such a number, so it is not known what the new argument alone does.
        let new = json!({"a": {"type": "integer", "minimum": 1e40}});
        let found = verdicts(&json!({"x": {"type": "string"}}), &new, later());
        let of = |rule: &str| found.iter().find(|(_, found, _)| found == rule).map(|found| found.2);
        assert_eq!(of("argument-removed"), Some(Verdict::Breaks), "{found:?}");
        assert_ne!(of("argument-added"), Some(Verdict::Breaks), "{found:?}");
    }

    #[test]
    fn of_many_changes_only_those_that_break_are_breaks() {
        let old = json!({"x": {"type": "integer"}});
        let mut new: Map<String, Value> =
            (0..60).map(|index| (format!("a{index}"), json!({"type": "string"}))).collect();
        new.insert("x".to_owned(), json!({"type": "integer", "minimum": 1}));
        let found = verdicts(&old, &Value::Object(new), later());
        let breaks: Vec<_> = found.iter().filter(|found| found.2 == Verdict::Breaks).collect();
        assert_eq!((found.len(), breaks.len()), (61, 1), "{found:?}");
        assert_eq!(breaks[0].0, "/properties/x/minimum");
    }

    #[test]
    fn without_time_to_judge_a_change_the_break_of_the_whole_is_reported_and_the_change_is_unknown() {
        let old = json!({"x": {"type": "integer"}});
        let new = json!({"a": {"type": "string"}, "x": {"type": "integer", "minimum": 1}});
        let found = verdicts(&old, &new, Instant::now());
        let breaks: Vec<_> = found.iter().filter(|found| found.2 == Verdict::Breaks).collect();
        assert_eq!((found.len(), breaks.len()), (3, 1), "{found:?}");
        assert_eq!(breaks[0].0, "", "the whole schema");
    }
}
