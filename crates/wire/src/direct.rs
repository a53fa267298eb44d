//! The direct dialect: the method is the tool's name, the result is the tool's own object.

use std::sync::Arc;

use pintle_contract::{ErrorCode, Fault, Meta, Stage};
use pintle_engine::{ArgumentReading, Call, Clock, Engine, Outcome, Target};
use pintle_rpc::RequestId;
use pintle_tool::{ProgressEvent, ProgressSink};
use serde_json::{Value, json};

use crate::json_rpc::{self, Listener};

/// The result for a line over the limit.
const TOO_LARGE: &str =
    r#"{"ok":false,"reason":"validation_failed","errors":[{"path":"","msg":"payload_too_large"}]}"#;
/// The result for a tool that there is not.
const UNKNOWN_TOOL: &str = r#"{"ok":false,"reason":"unsupported","detail":"tool not implemented"}"#;

/// A reply carries the result once, with the id and a few words around it.
const REPLY_FACTOR: usize = 1;

/// What a method is aimed at.
pub(crate) fn target(method: String) -> Target {
    match method.as_str() {
        "mcp.discover" => Target::Discover,
        "mcp.tool.invoke" => Target::Invoke,
        _ => Target::Tool(method),
    }
}

/// The call of a direct request.
pub(crate) fn call(
    target: Target,
    params: Value,
    meta: Meta,
    idempotency_key: Option<String>,
    progress: Option<Arc<dyn ProgressSink>>,
) -> Call {
    Call {
        target,
        params,
        argument_reading: ArgumentReading::Strict,
        left_out: Vec::new(),
        meta,
        idempotency_key,
        progress,
        reply_factor: REPLY_FACTOR,
    }
}

/// The frame of a call's reply.
pub(crate) fn reply(id: Option<&RequestId>, outcome: &Outcome) -> String {
    match outcome {
        Outcome::Success(json) | Outcome::Declined(json, _) => result(id, json.get()),
        Outcome::Fault(fault) => refusal(id, fault),
    }
}

/// The frame of a refusal.
pub(crate) fn refusal(id: Option<&RequestId>, fault: &Fault) -> String {
    match (fault.code, fault.stage) {
        (ErrorCode::InvalidRequest, Stage::Size) => result(id, TOO_LARGE),
        (ErrorCode::InvalidRequest, Stage::Tool) => result(id, UNKNOWN_TOOL),
        _ => {
            let error = json!({"code": fault.json_rpc_code(), "message": fault.message, "data": fault});
            json_rpc::reply(id, "error", &error.to_string())
        }
    }
}

/// The frame of a success.
pub(crate) fn result(id: Option<&RequestId>, json: &str) -> String {
    json_rpc::reply(id, "result", json)
}

/// Reports one call's progress to its client.
pub(crate) struct DirectProgress<L> {
    pub(crate) engine: Arc<Engine>,
    pub(crate) listener: L,
    pub(crate) id: Option<RequestId>,
}

impl<L: Listener> ProgressSink for DirectProgress<L> {
    fn emit(&self, token: &Value, tool: &str, event: &ProgressEvent) {
        self.listener.notify(progress(token, self.id.as_ref(), tool, event, self.engine.clock()));
    }

    fn authorized(&self) {
        self.listener.authorized();
    }
}

fn progress(
    token: &Value,
    id: Option<&RequestId>,
    tool: &str,
    event: &ProgressEvent,
    clock: &Clock,
) -> String {
    let mut params = json_rpc::progress_params(token, event);
    params["tool"] = json!(tool);
    params["stream"] = json!(event.stream.name());
    params["phase"] = json!(event.phase);
    params["ts"] = json!(clock.now());
    // The id goes back byte for byte, here too.
    let id = id.map_or("null", RequestId::raw);
    let params = params.to_string();
    let members = params.strip_prefix('{').unwrap_or(&params);
    let head = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"id":"#;
    [head, id, ",", members, "}"].concat()
}
