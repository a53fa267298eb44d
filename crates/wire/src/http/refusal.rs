//! Saying no over HTTP: the status from the table, and a JSON-RPC error as the body.

use axum::{
    body::Body,
    http::{HeaderValue, Response, StatusCode, header},
};
use pintle_contract::{ErrorCode, Fault, RequestId};
use serde_json::{Value, json};

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

/// A refusal with the status that the table has for it.
pub(crate) fn refusal(id: Option<&RequestId>, fault: &Fault) -> Response<Body> {
    numbered_refusal(status(fault), id, fault.json_rpc_code(), fault)
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
    let mut frame = json_rpc::reply(id, "error", &error.to_string());
    frame.pop();
    json_response(status, frame)
}

/// A refusal that HTTP has a status of its own for.
pub(crate) fn plain_refusal(status: StatusCode, message: &str) -> Response<Body> {
    let code = match status {
        StatusCode::NOT_FOUND => ErrorCode::NotFound,
        _ => ErrorCode::InvalidRequest,
    };
    let fault = Fault::new(code, message);
    numbered_refusal(status, None, i32::from(status.as_u16()), &fault)
}
