//! Telling an MCP client how far its call is.

use std::sync::Arc;

use pintle_contract::RequestId;
use pintle_engine::{Engine, ProgressEvent, ProgressSink};
use serde_json::{Value, json};

use crate::json_rpc::{self, Listener};

/// Tells one call's progress to its client.
pub(crate) struct McpProgress<L> {
    pub(crate) engine: Arc<Engine>,
    pub(crate) listener: L,
    pub(crate) id: RequestId,
}

impl<L: Listener> ProgressSink for McpProgress<L> {
    fn emit(&self, token: &Value, tool: &str, event: &ProgressEvent) {
        let params = params(token, &self.id, tool, event, &self.engine.clock().now());
        let frame = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params});
        self.listener.tell(format!("{frame}\n"));
    }

    fn authorized(&self) {
        self.listener.authorized();
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
