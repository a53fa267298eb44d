//! Saying no over HTTP: the status from the table, and a JSON-RPC error as the body.

use axum::{
    body::Body,
    http::{HeaderValue, Response, StatusCode, header},
};
use pintle_contract::{ErrorCode, Fault, RequestId, Stage};
use pintle_engine::Refused;
use rmcp::model::ErrorData;
use serde_json::{Value, json};

use super::{Shared, facts::RequestFacts};
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
    frame_response(status, json_rpc::reply(id, "error", &error.to_string()))
}

/// A frame as a response. The newline that ends it on a pipe stays away: the length says where the body ends.
pub(crate) fn frame_response(status: StatusCode, mut frame: String) -> Response<Body> {
    frame.truncate(frame.trim_end_matches('\n').len());
    json_response(status, frame)
}

impl<H> Shared<H> {
    /// Refuses a request with the status that the table has for it, and logs that.
    pub(crate) async fn refuse(&self, refused: Refused, facts: &RequestFacts) -> Response<Body> {
        self.refuse_with(status(&refused.fault), refused, facts).await
    }

    /// Refuses a request with a status that HTTP or the protocol has for it, and logs that.
    pub(crate) async fn refuse_with(
        &self,
        status: StatusCode,
        refused: Refused,
        facts: &RequestFacts,
    ) -> Response<Body> {
        self.log_refusal(&refused, facts).await;
        let number = refused.fault.json_rpc_code();
        numbered_refusal(status, refused.id.as_ref(), number, &refused.fault)
    }

    /// Refuses a request by what its head says: its message has not been read, or does not matter.
    pub(crate) async fn refuse_unread(
        &self,
        status: StatusCode,
        message: &str,
        facts: &RequestFacts,
    ) -> Response<Body> {
        let fault = Fault::invalid(Stage::Envelope, message);
        self.refuse_with(status, Refused { id: None, method: None, fault }, facts).await
    }

    /// Logs a refusal.
    pub(crate) async fn log_refusal(&self, refused: &Refused, facts: &RequestFacts) {
        self.engine.log_refusal(refused, &facts.transport(), facts.frame_bytes).await;
    }
}
