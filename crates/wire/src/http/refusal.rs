//! Saying no over HTTP: the status from the table, and a JSON-RPC error as the body.

use axum::{
    body::Body,
    http::{HeaderValue, Response, StatusCode, header},
};
use pintle_contract::{ErrorCode, Fault, Stage};
use pintle_engine::Incoming;
use pintle_rpc::RequestId;
use rmcp::model::ErrorData;
use serde_json::{Value, json};

use super::{ServerState, facts::RequestFacts};
use crate::json_rpc;

/// A response that is JSON.
pub(crate) fn json_response(status: StatusCode, json: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(json.into());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// A response without a body.
pub(crate) fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// The status of a fault.
pub(crate) fn status(fault: &Fault) -> StatusCode {
    StatusCode::from_u16(fault.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// The status of an error on `/mcp`, in every revision: a missing scope shows, everything else is inside a 200, because
/// some clients end their session on anything else.
pub(crate) fn error_status(error: &ErrorData) -> StatusCode {
    let forbidden = ErrorCode::Forbidden.row();
    let is_forbidden = error.code.0 == forbidden.json_rpc;
    is_forbidden.then(|| StatusCode::from_u16(forbidden.http).ok()).flatten().unwrap_or(StatusCode::OK)
}

/// A refusal with a status and a number that the protocol, not the table, gives it.
pub(crate) fn numbered_refusal(
    status: StatusCode,
    id: Option<&RequestId>,
    number: i32,
    fault: &Fault,
) -> Response<Body> {
    error_response(status, id, &json!({"code": number, "message": fault.message, "data": fault}))
}

/// A JSON-RPC error as a response.
pub(crate) fn error_response(status: StatusCode, id: Option<&RequestId>, error: &Value) -> Response<Body> {
    json_response(status, json_rpc::reply(id, "error", &error.to_string()))
}

/// Refuses a request with the status that the table has for it, and logs that.
pub(crate) async fn refuse(incoming: Incoming, fault: Fault) -> Response<Body> {
    refuse_with(status(&fault), incoming, fault).await
}

/// Refuses a request with a status that HTTP or the protocol has for it, and logs that.
pub(crate) async fn refuse_with(status: StatusCode, incoming: Incoming, fault: Fault) -> Response<Body> {
    let response = numbered_refusal(status, incoming.id(), fault.json_rpc_code(), &fault);
    let _refused = incoming.refuse(fault).await;
    response
}

impl ServerState {
    /// A request whose message has not been read, or does not matter.
    pub(crate) fn unopened(&self, facts: &RequestFacts) -> Incoming {
        self.engine.unopened(&self.caller, &facts.transport(), None, facts.frame_bytes)
    }

    /// Refuses a request by what its head says.
    pub(crate) async fn refuse_unread(
        &self,
        status: StatusCode,
        message: &str,
        facts: &RequestFacts,
    ) -> Response<Body> {
        refuse_with(status, self.unopened(facts), Fault::invalid(Stage::Envelope, message)).await
    }
}
