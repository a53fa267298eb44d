//! The audit of permissions: one record for each decision whether a call may do what it asks for.

use pintle_contract::{Access, ErrorCode, Fault, Stage, missing_scopes};
use pintle_tool::Caller;
use serde_json::{Map, Value, json};

use crate::engine::Engine;

/// Where decisions are recorded.
pub trait AuditSink: Send + Sync {
    /// Records a decision. A call whose decision cannot be recorded is refused.
    fn record(&self, decision: Map<String, Value>) -> Result<(), Fault>;
}

impl Engine {
    /// Step 5: checks that the caller has the accesses that a call needs, and records the decision.
    pub(crate) fn authorize(&self, caller: &Caller, tool: &str, accesses: &[Access]) -> Result<(), Fault> {
        let decided = caller.require_all(accesses);
        if let Some(audit) = &self.audit {
            audit.record(self.decision(caller, tool, accesses, decided.as_ref().err()))?;
        }
        decided
    }

    /// Records that a call was refused only when its files were opened, because a link leads to what the caller may not
    /// use. Its first decision was to allow it, and the call was not made, so nothing depends on this record.
    pub(crate) fn note_refusal(&self, caller: &Caller, tool: &str, accesses: &[Access], fault: &Fault) {
        if fault.code == ErrorCode::Forbidden
            && let Some(audit) = &self.audit
        {
            let _ = audit.record(self.decision(caller, tool, accesses, Some(fault)));
        }
    }

    /// What is recorded of a decision: who, what, on which paths. No other argument of the call.
    fn decision(
        &self,
        caller: &Caller,
        tool: &str,
        accesses: &[Access],
        refusal: Option<&Fault>,
    ) -> Map<String, Value> {
        let paths = accesses.iter().filter_map(|access| match access {
            Access::Path(_, path) | Access::Tree(_, path) | Access::Enter(path) => Some(path.to_string()),
            Access::Named(_) => None,
        });
        let mut decision = Map::new();
        decision.insert("time".into(), json!(self.clock().now()));
        decision.insert("caller".into(), json!(caller.identity()));
        decision.insert("tool".into(), json!(tool));
        decision.insert("paths".into(), paths.map(Value::from).collect());
        decision.insert("decision".into(), json!(if refusal.is_none() { "allow" } else { "deny" }));
        let missing = refusal.and_then(|fault| missing_scopes(fault.details.as_ref()));
        decision.insert("missing".into(), json!(missing));
        decision
    }
}

/// The fault of a call whose decision could not be recorded.
pub fn not_recorded(problem: &str) -> Fault {
    Fault::new(ErrorCode::UpstreamFailed, format!("the audit log cannot be written: {problem}"))
        .at(Stage::Authorize)
        .hint("the call was not made; an operator has to make the audit log writable again")
        .details(json!({"reason": "io"}))
}
