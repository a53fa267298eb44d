//! The audit of permissions: one record for each decision whether a call may do what it asks for.

use std::sync::Arc;

use parking_lot::Mutex;
use pintle_contract::{Access, ErrorCode, Fault, Stage, missing_scopes};
use pintle_tool::{Authorizer, Caller};
use serde_json::{Map, Value, json};

use crate::{catalogue::Entry, clock::Clock, engine::Engine};

/// Where decisions are recorded.
pub trait AuditSink: Send + Sync {
    /// Records a decision. A call whose decision cannot be recorded is refused.
    fn record(&self, decision: Map<String, Value>) -> Result<(), Fault>;
}

/// Decides about one call: in step 5 about what its arguments name, and while it runs about what it finds. Each decision
/// is recorded.
pub(crate) struct CallAuthorizer {
    sink: Option<Arc<dyn AuditSink>>,
    clock: Arc<Clock>,
    caller: Arc<Caller>,
    tool: Arc<Entry>,
    decided: Mutex<Decided>,
}

/// What was decided so far.
#[derive(Default)]
struct Decided {
    accesses: Vec<Access>,
    is_refused: bool,
}

impl Authorizer for CallAuthorizer {
    fn authorize(&self, accesses: &[Access]) -> Result<(), Fault> {
        let decision = self.caller.require_all(accesses);
        if let Some(sink) = &self.sink {
            sink.record(self.record(accesses, decision.as_ref().err()))?;
            let mut decided = self.decided.lock();
            decided.accesses.extend_from_slice(accesses);
            decided.is_refused = decision.is_err();
        }
        decision
    }
}

impl CallAuthorizer {
    pub(crate) fn new(engine: &Engine, caller: &Arc<Caller>, tool: &Arc<Entry>) -> Self {
        Self {
            sink: engine.audit.clone(),
            clock: Arc::clone(&engine.clock),
            caller: Arc::clone(caller),
            tool: Arc::clone(tool),
            decided: Mutex::default(),
        }
    }

    pub(crate) fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Records that a call was refused only when its files were opened, because a link leads to what the caller may not
    /// use. The last decision was to allow it, and nothing was changed, so nothing depends on this record.
    pub(crate) fn note_refusal(&self, fault: &Fault) {
        let Some(sink) = self.sink.as_ref().filter(|_| fault.code == ErrorCode::Forbidden) else { return };
        let decided = self.decided.lock();
        if !decided.is_refused {
            let _ = sink.record(self.record(&decided.accesses, Some(fault)));
        }
    }

    /// What is recorded of a decision: who, what, on which paths. No other argument of the call.
    fn record(&self, accesses: &[Access], refusal: Option<&Fault>) -> Map<String, Value> {
        let paths = accesses.iter().filter_map(|access| match access {
            Access::Path(_, path) | Access::Tree(_, path) | Access::Enter(path) => Some(path.to_string()),
            Access::Named(_) => None,
        });
        let mut record = Map::new();
        record.insert("time".into(), json!(self.clock.now()));
        record.insert("caller".into(), json!(self.caller.identity()));
        record.insert("tool".into(), json!(self.tool.tool.definition().name));
        record.insert("paths".into(), paths.map(Value::from).collect());
        record.insert("decision".into(), json!(if refusal.is_none() { "allow" } else { "deny" }));
        let missing = refusal.and_then(|fault| missing_scopes(fault.details.as_ref()));
        record.insert("missing".into(), json!(missing));
        record
    }
}

/// The fault of a call whose decision could not be recorded.
pub fn not_recorded(problem: &str) -> Fault {
    Fault::new(ErrorCode::UpstreamFailed, format!("the audit log cannot be written: {problem}"))
        .at(Stage::Authorize)
        .hint("the call was not made; an operator has to make the audit log writable again")
        .details(json!({"reason": "io"}))
}
