//! Progress notifications of MCP.

use std::sync::Arc;

use pintle_engine::Engine;
use pintle_rpc::RequestId;
use pintle_tool::{ProgressEvent, ProgressSink};
use serde_json::{Value, json};

use crate::json_rpc::{self, Listener};

/// Reports one call's progress to its client.
pub(crate) struct McpProgress<L> {
    pub(crate) engine: Arc<Engine>,
    pub(crate) listener: L,
    pub(crate) id: Option<RequestId>,
}

impl<L: Listener> ProgressSink for McpProgress<L> {
    fn emit(&self, token: &Value, tool: &str, event: &ProgressEvent) {
        let params = params(token, self.id.as_ref(), tool, event, &self.engine.clock().now());
        let frame = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params});
        self.listener.notify(frame.to_string());
    }

    fn authorized(&self) {
        self.listener.authorized();
    }
}

fn params(token: &Value, id: Option<&RequestId>, tool: &str, event: &ProgressEvent, now: &str) -> Value {
    let mut params = json_rpc::progress_params(token, event);
    params["_meta"] = json!({
        "pintle/id": id.map(RequestId::key),
        "pintle/tool": tool,
        "pintle/stream": event.stream.name(),
        "pintle/phase": event.phase,
        "pintle/ts": now,
    });
    params
}
