//! What must hold of the era of a request whatever its headers say: a part of the property of the fuzz target for headers.

use std::sync::Arc;

use axum::http::HeaderMap;
use pintle_rpc::{EnvelopeMode, Message, PROTOCOL_VERSION_KEY, open};
use rmcp::model::JsonObject;
use serde_json::json;

use super::headers::{Era, Violation, era, era_of_headers, era_of_notification};

/// There is always an era or a violation with its number; a request that is served on its own says in its header
/// which revision it speaks, and in its body the same.
pub(crate) fn assert_eras(headers: &HeaderMap, body: &[u8]) {
    if let Err(violation) = era_of_headers(headers) {
        assert_violation(&violation);
    }
    let opened = match open(body, |_| None, EnvelopeMode::Shadow) {
        Ok(Message::Request(opened) | Message::Notification(opened)) => opened,
        _ => return,
    };
    if let Err(violation) = era_of_notification(headers, Some(&opened)) {
        assert_violation(&violation);
    }
    let schema = json!({"properties": {
        "path": {"x-mcp-header": "Path"},
        "deep": {"properties": {"flag": {"x-mcp-header": "flag"}}},
    }});
    let schema: Option<Arc<JsonObject>> = schema.as_object().cloned().map(Arc::new);
    match era(headers, &opened, |_| schema.clone()) {
        Ok(Era::Stateless) => {
            let version = headers.get("mcp-protocol-version").and_then(|value| value.to_str().ok());
            assert_eq!(version.map(str::trim), opened.params["_meta"][PROTOCOL_VERSION_KEY].as_str());
            assert!(version.is_some());
        }
        Ok(Era::Session) => {}
        Err(violation) => assert_violation(&violation),
    }
}

fn assert_violation(violation: &Violation) {
    assert!(violation.number < 0 && !violation.fault.message.is_empty());
}
