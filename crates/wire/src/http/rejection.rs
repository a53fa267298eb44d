//! Refusing a request over HTTP.
//!
//! A [`Reason`] says why a request is refused, and knows its own status. A [`Rejection`] is a reason that has been
//! logged: extractors and handlers return it, and axum turns it into the response. There is no other way from a reason
//! to a response, so no refusal of a message can be forgotten in the log.

use axum::{
    http::{Extensions, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use pintle_contract::{ErrorCode, Fault, Stage};
use pintle_engine::Incoming;
use pintle_rpc::{Dialect, RequestId};
use rmcp::model::ErrorData;
use serde_json::{Value, json};
use thiserror::Error;

use super::{ServerState, auth::MissingScope, mcp::Violation, request_id, respond::json_response};
use crate::{direct, json_rpc};

/// Why a request is refused.
#[derive(Debug, Error)]
pub(crate) enum Reason {
    /// The table of errors has the status.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// The refusal is the reply, inside a 200: some clients end their session on any other status.
    #[error(transparent)]
    InReply(Fault),
    /// There is no valid token.
    #[error("{fault}")]
    Unauthorized {
        fault: Fault,
        /// The value of `WWW-Authenticate`.
        challenge: Option<String>,
    },
    /// The protocol has a number and further data for it.
    #[error(transparent)]
    Violation(#[from] Violation),
    #[error("the body must not be compressed")]
    Compressed,
    #[error("Content-Type must be application/json")]
    NotJson,
    #[error("the request has {bytes} bytes or more; at most {limit} are allowed")]
    TooLarge {
        bytes: usize,
        limit: usize,
        /// The direct dialect answers with the result that it has on a pipe, too.
        dialect: Dialect,
        is_read: bool,
    },
    #[error("the request's body was cut off")]
    CutOff,
    #[error("the body came too slowly")]
    TooSlow,
    /// Holds what the client would have to accept.
    #[error("{0}")]
    NotAcceptable(&'static str),
    #[error("this address does not take that HTTP method")]
    MethodNotAllowed,
    #[error("this revision of the protocol uses POST only")]
    PostOnly,
    #[error("there is nothing here; try /mcp or /rpc")]
    NoSuchPath,
    #[error("the Mcp-Session-Id header is missing; `initialize` opens a session and gives its id")]
    NoSessionId,
    #[error("there is no such session; open a new one with `initialize`")]
    NoSuchSession,
    #[error("Last-Event-ID names no event of this session that can be read from again")]
    NoSuchEvent,
}

impl Reason {
    /// The status of the response.
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::Fault(fault) | Self::Unauthorized { fault, .. } => fault_status(fault),
            Self::InReply(_) => StatusCode::OK,
            Self::Compressed | Self::NotJson => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::NotAcceptable(_) => StatusCode::NOT_ACCEPTABLE,
            Self::MethodNotAllowed | Self::PostOnly => StatusCode::METHOD_NOT_ALLOWED,
            Self::NoSuchPath | Self::NoSuchSession => StatusCode::NOT_FOUND,
            Self::Violation(_) | Self::CutOff | Self::NoSessionId | Self::NoSuchEvent => {
                StatusCode::BAD_REQUEST
            }
        }
    }

    /// The error object that the client gets and the log names.
    fn fault(&self) -> Fault {
        match self {
            Self::Fault(fault)
            | Self::InReply(fault)
            | Self::Unauthorized { fault, .. }
            | Self::Violation(Violation { fault, .. }) => fault.clone(),
            Self::TooLarge { limit, .. } => Fault::invalid(Stage::Size, self.to_string())
                .details(json!({"reason": "payload_too_large", "limit": limit})),
            Self::CutOff => Fault::invalid(Stage::Parse, self.to_string()),
            Self::NoSuchPath => Fault::new(ErrorCode::NotFound, self.to_string()),
            Self::NoSuchSession => Fault::new(ErrorCode::NotFound, self.to_string()).at(Stage::Envelope),
            _ => Fault::invalid(Stage::Envelope, self.to_string()),
        }
    }

    /// Logs the refusal of a message.
    pub(crate) async fn reject(self, incoming: Incoming) -> Rejection {
        let rejection = Rejection { id: incoming.id().cloned(), fault: self.fault(), reason: self };
        let _refused = incoming.refuse(rejection.fault.clone()).await;
        rejection
    }

    /// Refuses a request that is no message: there is nothing at its path. Only such a one is not logged, or else anybody
    /// who looks for paths would fill the log.
    pub(crate) fn reject_unlogged(self) -> Rejection {
        Rejection { id: None, fault: self.fault(), reason: self }
    }

    /// Whether the rest of the request is left unread, so that nothing can follow it on the connection.
    fn leaves_body_unread(&self) -> bool {
        matches!(self, Self::TooSlow | Self::TooLarge { is_read: false, .. })
    }
}

/// A refusal that has been logged, on its way to the client.
#[derive(Debug)]
pub(crate) struct Rejection {
    reason: Reason,
    fault: Fault,
    /// The id of the request, if it has been read.
    id: Option<RequestId>,
}

impl IntoResponse for Rejection {
    fn into_response(self) -> Response {
        let Self { reason, fault, id } = self;
        let frame = match &reason {
            Reason::TooLarge { dialect: Dialect::Direct, .. } => direct::refusal(id.as_ref(), &fault),
            Reason::Violation(violation) => {
                json_rpc::reply(id.as_ref(), "error", &violation.error().to_string())
            }
            _ => {
                let error = json!({"code": fault.json_rpc_code(), "message": fault.message, "data": fault});
                json_rpc::reply(id.as_ref(), "error", &error.to_string())
            }
        };
        let mut response = json_response(reason.status(), frame);
        if reason.leaves_body_unread() {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        if let Reason::Unauthorized { challenge: Some(challenge), .. } = &reason
            && let Ok(challenge) = HeaderValue::from_str(challenge)
        {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
        if let Some(missing) = MissingScope::of_fault(&fault) {
            response.extensions_mut().insert(missing);
        }
        if matches!(reason, Reason::PostOnly) {
            response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST"));
        }
        response
    }
}

/// The status that the table of errors has for a fault.
pub(crate) fn fault_status(fault: &Fault) -> StatusCode {
    StatusCode::from_u16(fault.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// The status of an error on `/mcp`, in every revision: a missing scope shows, everything else is inside a 200, because
/// some clients end their session on anything else.
pub(crate) fn error_status(error: &ErrorData) -> StatusCode {
    let forbidden = ErrorCode::Forbidden.row();
    let is_forbidden = error.code.0 == forbidden.json_rpc;
    is_forbidden.then(|| StatusCode::from_u16(forbidden.http).ok()).flatten().unwrap_or(StatusCode::OK)
}

impl ServerState {
    /// A request whose message has not been read, or does not matter.
    pub(crate) fn unopened(&self, extensions: &Extensions, frame_bytes: usize) -> Incoming {
        self.engine.unopened(
            &self.caller_of(extensions),
            &request_id::transport(extensions),
            None,
            frame_bytes,
        )
    }
}

impl Violation {
    /// The JSON-RPC error: the fault, with what the protocol wants to be said besides.
    fn error(&self) -> Value {
        let mut data = json!(self.fault);
        for (name, value) in self.data.iter().filter_map(Value::as_object).flatten() {
            data[name] = value.clone();
        }
        json!({"code": self.number, "message": self.fault.message, "data": data})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_knows_its_status_and_its_number() {
        let too_large = |dialect, is_read| Reason::TooLarge { bytes: 9, limit: 8, dialect, is_read };
        let forbidden = || Fault::new(ErrorCode::Forbidden, "no");
        for (reason, status, number, closes) in [
            (Reason::Fault(forbidden()), 403, 403, false),
            (Reason::InReply(forbidden()), 200, 403, false),
            (Reason::Compressed, 415, -32600, false),
            (Reason::NotJson, 415, -32600, false),
            (too_large(Dialect::Mcp, true), 413, -32600, false),
            (too_large(Dialect::Mcp, false), 413, -32600, true),
            (Reason::CutOff, 400, -32700, false),
            (Reason::TooSlow, 408, -32600, true),
            (Reason::NotAcceptable("accept it"), 406, -32600, false),
            (Reason::MethodNotAllowed, 405, -32600, false),
            (Reason::PostOnly, 405, -32600, false),
            (Reason::NoSuchPath, 404, 404, false),
            (Reason::NoSessionId, 400, -32600, false),
            (Reason::NoSuchSession, 404, 404, false),
            (Reason::NoSuchEvent, 400, -32600, false),
        ] {
            let rejection = reason.reject_unlogged();
            assert_eq!(rejection.fault.json_rpc_code(), number, "{:?}", rejection.reason);
            let (shown, is_post_only) =
                (rejection.reason.to_string(), matches!(rejection.reason, Reason::PostOnly));
            let response = rejection.into_response();
            assert_eq!(response.status(), status, "{shown}");
            assert_eq!(response.headers().contains_key(header::CONNECTION), closes, "{shown}");
            assert_eq!(response.headers().contains_key(header::ALLOW), is_post_only, "{shown}");
            assert_eq!(response.headers()[header::CONTENT_TYPE], "application/json", "{shown}");
        }
    }
}
