//! The extractors of `/mcp`: what a request is about, once its revision, its headers and its session are checked.

use std::sync::Arc;

use axum::{
    extract::{FromRequest, FromRequestParts, Request},
    http::{HeaderMap, request::Parts},
};
use pintle_contract::{Fault, Stage};
use pintle_engine::Incoming;
use pintle_rpc::{Dialect, Opened};
use pintle_tool::Caller;
use serde_json::Value;

use super::{
    SESSION_ID,
    headers::{self, Era},
    session::Session,
};
use crate::{
    http::{
        ServerState,
        accept::accepts_events,
        message::{ClientReading, Message, Posted},
        rejection::{Reason, Rejection},
        stream::{EventId, EventStream},
    },
    mcp::INITIALIZE,
};

/// What a client is refused with that accepts no reply.
const TO_ACCEPT: &str = "the reply is application/json or text/event-stream; accept both";

/// What a `POST /mcp` brings.
pub(crate) enum McpMessage {
    /// A request, and who answers it.
    Request(Box<McpExchange>, Server),
    /// A notification of a session; without one, it is of a revision that has nothing to notify of.
    Notification(Incoming, Box<Opened>, Option<Arc<Session>>),
    /// A client's response to something that the server asked in a session.
    Response(Value, Arc<Session>),
}

/// A request, with how its client reads the reply.
pub(crate) struct McpExchange {
    pub(crate) incoming: Incoming,
    pub(crate) opened: Opened,
    pub(crate) client: ClientReading,
}

/// Who answers a request.
pub(crate) enum Server {
    /// One for this request alone.
    Stateless,
    /// A session that the request opens.
    NewSession,
    /// The session that the request names.
    Session(Arc<Session>),
}

impl FromRequest<Arc<ServerState>> for McpMessage {
    type Rejection = Rejection;

    async fn from_request(request: Request, state: &Arc<ServerState>) -> Result<Self, Rejection> {
        let Posted { message, client, parts, bytes } =
            Posted::read(request, state, Dialect::Mcp, TO_ACCEPT).await?;
        match message {
            Message::Request(incoming, opened) if is_cancel(&opened) => {
                notification(state, &parts.headers, incoming, opened).await
            }
            Message::Request(incoming, opened) => {
                match server(state, &parts.headers, &opened, incoming.caller()) {
                    Ok(server) => {
                        Ok(Self::Request(Box::new(McpExchange { incoming, opened, client }), server))
                    }
                    Err(reason) => Err(reason.reject(incoming).await),
                }
            }
            Message::Notification(incoming, opened) => {
                notification(state, &parts.headers, incoming, opened).await
            }
            Message::Response(response) => {
                match session(state, &parts.headers, &state.caller_of(&parts.extensions)) {
                    Ok(session) => Ok(Self::Response(response, session)),
                    Err(reason) => Err(reason.reject(state.unopened(&parts.extensions, bytes)).await),
                }
            }
        }
    }
}

/// A cancel may have an id of its own; then it is acted on like a notification, and answered.
fn is_cancel(opened: &Opened) -> bool {
    opened.method == "$/cancelRequest" && opened.cancels.is_some()
}

/// Who answers a request, as its headers say.
fn server(
    state: &ServerState,
    headers: &HeaderMap,
    opened: &Opened,
    caller: &Caller,
) -> Result<Server, Reason> {
    if opened.dialect != Dialect::Mcp {
        let fault = Fault::invalid(Stage::Method, "/mcp takes MCP only");
        return Err(fault.hint("call a tool with tools/call; the direct dialect is at /rpc").into());
    }
    let era = headers::era(headers, opened, |name| state.service.input_schema(name))?;
    if opened.id.is_none() {
        return Err(Fault::invalid(Stage::Envelope, "an MCP request needs an id").into());
    }
    match era {
        Era::Stateless => Ok(Server::Stateless),
        Era::Session if opened.method == INITIALIZE && !headers.contains_key(SESSION_ID) => {
            Ok(Server::NewSession)
        }
        Era::Session => session(state, headers, caller).map(Server::Session),
    }
}

async fn notification(
    state: &ServerState,
    headers: &HeaderMap,
    incoming: Incoming,
    opened: Opened,
) -> Result<McpMessage, Rejection> {
    let era = headers::era_of_notification(headers, Some(&opened)).map_err(Reason::from);
    let session = era.and_then(|era| match era {
        Era::Stateless => Ok(None),
        Era::Session => session(state, headers, incoming.caller()).map(Some),
    });
    match session {
        Ok(session) => Ok(McpMessage::Notification(incoming, Box::new(opened), session)),
        Err(reason) => Err(reason.reject(incoming).await),
    }
}

/// The session that a request names.
fn session(state: &ServerState, headers: &HeaderMap, caller: &Caller) -> Result<Arc<Session>, Reason> {
    let id = headers.get(SESSION_ID).ok_or(Reason::NoSessionId)?;
    let session = id.to_str().ok().and_then(|id| state.sessions.get(id, caller.identity()));
    session.ok_or(Reason::NoSuchSession)
}

/// A request without a body, of a revision that has sessions: the others use `POST` only.
pub(crate) struct SessionRevision;

impl FromRequestParts<Arc<ServerState>> for SessionRevision {
    type Rejection = Rejection;

    async fn from_request_parts(parts: &mut Parts, state: &Arc<ServerState>) -> Result<Self, Rejection> {
        let reason = match headers::era_of_headers(&parts.headers) {
            Ok(Era::Session) => return Ok(Self),
            Ok(Era::Stateless) => Reason::PostOnly,
            Err(violation) => violation.into(),
        };
        Err(reason.reject(state.unopened(&parts.extensions, 0)).await)
    }
}

/// A request whose client reads events.
pub(crate) struct AcceptsEvents;

impl FromRequestParts<Arc<ServerState>> for AcceptsEvents {
    type Rejection = Rejection;

    async fn from_request_parts(parts: &mut Parts, state: &Arc<ServerState>) -> Result<Self, Rejection> {
        if accepts_events(&parts.headers) {
            return Ok(Self);
        }
        let reason = Reason::NotAcceptable("this is a text/event-stream; accept it");
        Err(reason.reject(state.unopened(&parts.extensions, 0)).await)
    }
}

/// The session that a request without a body belongs to.
pub(crate) struct InSession(pub(crate) Arc<Session>);

impl FromRequestParts<Arc<ServerState>> for InSession {
    type Rejection = Rejection;

    async fn from_request_parts(parts: &mut Parts, state: &Arc<ServerState>) -> Result<Self, Rejection> {
        match session(state, &parts.headers, &state.caller_of(&parts.extensions)) {
            Ok(session) => Ok(Self(session)),
            Err(reason) => Err(reason.reject(state.unopened(&parts.extensions, 0)).await),
        }
    }
}

/// A stream of a session's events, and where in it to begin.
pub(crate) struct SessionEvents {
    pub(crate) session: Arc<Session>,
    pub(crate) stream: Arc<EventStream>,
    /// The number of the last event that the reader has.
    pub(crate) after: u64,
    /// Whether the reader goes on where it was, with `Last-Event-ID`.
    pub(crate) is_resumed: bool,
}

impl FromRequestParts<Arc<ServerState>> for SessionEvents {
    type Rejection = Rejection;

    async fn from_request_parts(parts: &mut Parts, state: &Arc<ServerState>) -> Result<Self, Rejection> {
        let InSession(session) = InSession::from_request_parts(parts, state).await?;
        let Some(last) = parts.headers.get("last-event-id") else {
            // What another reader has had is not sent again, unless it is asked for.
            let (stream, after) = (Arc::clone(&session.standalone), session.standalone.delivered());
            return Ok(Self { session, stream, after, is_resumed: false });
        };
        let id = last.to_str().ok().and_then(EventId::read);
        match id.and_then(|id| Some((session.stream(id.stream)?, id.event))) {
            Some((stream, after)) if after <= stream.count() => {
                Ok(Self { session, stream, after, is_resumed: true })
            }
            _ => Err(Reason::NoSuchEvent.reject(state.unopened(&parts.extensions, 0)).await),
        }
    }
}
