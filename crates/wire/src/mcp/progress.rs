//! Telling an MCP client how far its call is.

use std::sync::Arc;

use pintle_contract::RequestId;
use pintle_engine::{Engine, Outlet, ProgressEvent, ProgressSink};
use serde_json::{Value, json};

use crate::json_rpc;

/// Tells one call's progress on its pipe.
pub(crate) struct PipeProgress {
    pub(crate) engine: Arc<Engine>,
    pub(crate) outlet: Outlet,
    pub(crate) id: RequestId,
}

impl ProgressSink for PipeProgress {
    fn emit(&self, token: &Value, tool: &str, event: &ProgressEvent) {
        let params = params(token, &self.id, tool, event, &self.engine.clock().now());
        let frame = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params});
        // Progress that finds no room is superseded by the next, or by the reply.
        self.outlet.offer(&[frame.to_string().as_bytes(), b"\n"]);
    }
}

fn params(token: &Value, id: &RequestId, tool: &str, event: &ProgressEvent, now: &str) -> Value {
    let mut params = json_rpc::progress_params(token, event);
    params["_meta"] = json!({
        "pintle/id": id.key(),
        "pintle/tool": tool,
        "pintle/stream": event.stream.name(),
        "pintle/phase": event.phase,
        "pintle/ts": now,
    });
    params
}
