//! `/mcp`: Streamable HTTP for every revision. `POST` takes a message, `GET` listens to a session or resumes a stream,
//! `DELETE` ends a session.

mod extract;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod headers;
mod session;
mod sessions;
mod stateless;
mod stream_reply;

pub(crate) use headers::Violation;
pub(crate) use sessions::Sessions;
pub use stream_reply::ReplyStream;
pub(crate) use stream_reply::StreamReply;

use std::sync::Arc;

use axum::{
    extract::State,
    http::{HeaderName, HeaderValue, StatusCode},
    response::{IntoResponse, Response},
};
use extract::{AcceptsEvents, InSession, McpExchange, McpMessage, Server, SessionEvents, SessionRevision};
use pintle_contract::{ErrorCode, Fault};
use pintle_engine::Incoming;
use pintle_rpc::{Dialect, Opened};
use pintle_tool::CancelReason;
use session::Session;

use super::{
    ServerState,
    message::ClientReading,
    rejection::{Reason, Rejection, error_status},
    respond::{event_response, json_response, respond},
    stream::{EventStream, OnDisconnect, ReadStyle},
};
use crate::{
    calls::id_taken,
    json_rpc,
    mcp::{NotTaken, Taken},
};

const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");

/// Takes a message.
pub(crate) async fn post(
    State(state): State<Arc<ServerState>>,
    message: McpMessage,
) -> Result<Response, Rejection> {
    match message {
        McpMessage::Request(exchange, Server::Stateless) => stateless::answer(&state, *exchange).await,
        McpMessage::Request(exchange, Server::NewSession) => open_session(&state, *exchange).await,
        McpMessage::Request(exchange, Server::Session(session)) => {
            answer_in_session(&session, *exchange).await
        }
        McpMessage::Notification(incoming, opened, session) => {
            Ok(act_on_notification(incoming, *opened, session).await)
        }
        McpMessage::Response(response, session) => {
            session.response(response).await;
            Ok(StatusCode::ACCEPTED.into_response())
        }
    }
}

/// Listens to a session, or goes on reading one of its streams.
pub(crate) async fn get(
    State(state): State<Arc<ServerState>>,
    _: SessionRevision,
    _: AcceptsEvents,
    SessionEvents { session, stream, after, is_resumed }: SessionEvents,
    ClientReading { connection, .. }: ClientReading,
) -> Response {
    let style = ReadStyle {
        ids: true,
        priming: session.knows_priming() && !is_resumed,
        until: (stream.number() == 0).then(|| state.stopping.clone()),
    };
    let reader = stream.read(after, style);
    stream.read_by(connection);
    event_response(match session.number_of(&stream) {
        Some(number) => reader.watched(OnDisconnect::new(move || session.abandoned(number, stream, true))),
        None => reader,
    })
}

/// Ends a session.
pub(crate) async fn delete(
    State(state): State<Arc<ServerState>>,
    _: SessionRevision,
    InSession(session): InSession,
) -> StatusCode {
    state.sessions.end(&session.id);
    StatusCode::NO_CONTENT
}

async fn open_session(state: &Arc<ServerState>, exchange: McpExchange) -> Result<Response, Rejection> {
    if state.stopping.is_cancelled() {
        return Err(Reason::InReply(stopping()).reject(exchange.incoming).await);
    }
    let (engine, unread) = (Arc::clone(&state.engine), Arc::clone(&state.unread));
    let owner = exchange.incoming.caller().identity();
    let Some(session) = state.sessions.open(engine, state.service.as_ref(), unread, owner) else {
        let fault = Fault::new(ErrorCode::QueueOverloaded, "there are too many sessions, all of them busy")
            .hint("try again in a moment");
        return Err(Reason::InReply(fault).reject(exchange.incoming).await);
    };
    let id = HeaderValue::from_str(&session.id);
    let mut answered = answer_in_session(&session, exchange).await;
    match (&mut answered, id) {
        (Ok(response), Ok(id)) if response.status() == StatusCode::OK && !session.bridge.has_failed() => {
            response.headers_mut().insert(SESSION_ID, id);
        }
        _ => {
            state.sessions.end(&session.id);
        }
    }
    answered
}

async fn answer_in_session(
    session: &Arc<Session>,
    McpExchange { incoming, opened, client }: McpExchange,
) -> Result<Response, Rejection> {
    let stream = session.new_stream();
    stream.read_by(client.connection);
    await_authorization(&stream, &opened.method);
    let reply_to = StreamReply { stream: Arc::clone(&stream), status: error_status };
    let extend = |extensions: &mut rmcp::model::Extensions| {
        extensions.insert(ReplyStream(Arc::clone(&stream)));
    };
    let Taken { number, message } = match session.bridge.take(incoming, opened, reply_to, extend) {
        Ok(taken) => taken,
        Err(NotTaken::IdTaken(incoming)) => return Err(Reason::Fault(id_taken()).reject(incoming).await),
        Err(NotTaken::BadParams(incoming, problem)) => {
            return Err(Reason::InReply(problem.into()).reject(incoming).await);
        }
    };
    if !session.bridge.send(message).await {
        // The SDK has not seen it, so the message is still there to be refused.
        let incoming = session.bridge.remove(number).and_then(|call| call.answer?.into_incoming());
        return match incoming {
            Some(incoming) => Err(Reason::InReply(stopping()).reject(incoming).await),
            None => Ok(StatusCode::NOT_FOUND.into_response()),
        };
    }
    // Kept until it is known to be answered at once.
    session.keep(&stream);
    let (watched, left) = (Arc::clone(session), Arc::clone(&stream));
    let gone = move |may_return| watched.abandoned(number, Arc::clone(&left), may_return);
    let style = ReadStyle { ids: true, priming: session.knows_priming(), until: None };
    let response = respond(&stream, client.accepts, style, gone).await;
    session.settled(&stream, &response);
    Ok(response)
}

/// A response waits for the engine to say that no scope is missing, if the method needs any: a missing one shows in the
/// status.
fn await_authorization(stream: &EventStream, method: &str) {
    if matches!(method, "tools/call" | "resources/read") {
        stream.await_authorization();
    }
}

/// Acts on a notification, or on a cancel that has an id of its own: that one is answered.
async fn act_on_notification(incoming: Incoming, opened: Opened, session: Option<Arc<Session>>) -> Response {
    // In a revision without sessions a request is cancelled by closing its stream.
    if let Some(session) = session {
        match (&opened.cancels, opened.dialect) {
            (Some(id), Dialect::Control) => session.calls.cancel(id, CancelReason::Asked),
            (Some(id), _) => session.cancelled(opened.params, id).await,
            (None, _) => session.notification(&opened.method, opened.params).await,
        }
    }
    incoming.acknowledge("notification", 0).await;
    match opened.id {
        Some(id) => json_response(StatusCode::OK, json_rpc::reply(Some(&id), "result", "{}")),
        None => StatusCode::ACCEPTED.into_response(),
    }
}

fn stopping() -> Fault {
    Fault::new(
        ErrorCode::Cancelled,
        "the session is over, or the server is stopping; try again in a new session",
    )
}
