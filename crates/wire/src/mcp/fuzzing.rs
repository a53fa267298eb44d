//! What must hold of MCP messages whatever a client sends: the property that the fuzz target asserts.

use pintle_rpc::{Dialect, EnvelopeMode, Message, open};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, JsonRpcMessage};
use serde_json::{Value, json};

use super::message::{cancelled, client_request, notification, response};

/// Turns a message into the SDK's form, also one whose envelope is wrong and was let through. It is taken or refused, and
/// a call of a tool, which is built by hand, is what the SDK would have read.
pub(crate) fn mcp_message(bytes: &[u8]) {
    match open(bytes, |_| None, EnvelopeMode::Shadow) {
        Ok(Message::Request(opened)) if opened.dialect == Dialect::Mcp => {
            let taken = client_request(&opened.method, opened.params.clone());
            if let Ok(ClientRequest::CallToolRequest(call)) = &taken
                && let Some(expected) = read_by_sdk(&opened.method, &opened.params)
            {
                assert_eq!(json!(call), expected);
            }
        }
        Ok(Message::Notification(opened)) => {
            let _ = notification(&opened.method, opened.params.clone());
            if opened.cancels.is_some() {
                // Whatever else is said, the SDK must get the number that it knows the call by.
                let message = cancelled(opened.params, 7).map(|message| json!(message));
                assert!(message.is_none_or(|message| message["params"]["requestId"] == 7));
            }
        }
        Ok(Message::Response(message)) => drop(response(message)),
        _ => {}
    }
}

/// A call as the SDK reads it; none if it cannot, or takes it for something else.
fn read_by_sdk(method: &str, params: &Value) -> Option<Value> {
    let message = json!({"jsonrpc": "2.0", "id": 0, "method": method, "params": params});
    match serde_json::from_value::<ClientJsonRpcMessage>(message) {
        Ok(JsonRpcMessage::Request(request)) => match request.request {
            ClientRequest::CallToolRequest(call) => Some(json!(call)),
            _ => None,
        },
        _ => None,
    }
}
