//! `/mcp`: Streamable HTTP for every revision. `POST` takes a message, `GET` listens to a session or
//! comes back to a stream, `DELETE` ends a session.

mod headers;
mod session;
mod sessions;
mod stateless;
mod stream_reply;

pub(crate) use sessions::Sessions;
pub use stream_reply::ReplyStream;
pub(crate) use stream_reply::StreamReply;

use std::sync::Arc;

use axum::{
    body::Body,
    extract::State,
    http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, header},
};
use headers::{Era, Violation};
use pintle_contract::{ErrorCode, Fault, Stage};
use pintle_engine::{Incoming, Received};
use pintle_rpc::{Dialect, Opened};
use pintle_tool::CancelReason;
use session::Session;
use tokio_util::sync::CancellationToken;

use super::{
    ServerState,
    accept::{Accepts, accepts_events},
    connection::Connection,
    facts::RequestFacts,
    layers::Framed,
    refusal::{empty, error_status, json_response, refuse, refuse_with},
    respond::{event_response, respond},
    stream::{EventId, EventStream, ReadStyle, Watch},
};
use crate::{
    calls::id_taken,
    json_rpc,
    mcp::{INITIALIZE, NotTaken, Taken},
};

const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const LAST_EVENT_ID: &str = "last-event-id";

/// How a client reads its reply.
struct ClientReading {
    accepts: Accepts,
    connection: Option<CancellationToken>,
}

pub(crate) async fn post(shared: Arc<ServerState>, request: Framed) -> Response<Body> {
    let (parts, received) = request.into_parts();
    let headers = parts.headers;
    let client =
        ClientReading { accepts: Accepts::read(&headers), connection: Connection::of(&parts.extensions) };
    match received {
        Received::Request(incoming, _) if client.accepts.nothing() => {
            let message = "the reply is application/json or text/event-stream; accept both";
            let fault = Fault::invalid(Stage::Envelope, message);
            refuse_with(StatusCode::NOT_ACCEPTABLE, incoming, fault).await
        }
        Received::Request(incoming, opened) if opened.dialect == Dialect::Mcp => {
            answer(&shared, &headers, client, incoming, opened).await
        }
        Received::Request(incoming, opened)
            if opened.method == "$/cancelRequest" && opened.cancels.is_some() =>
        {
            let id = opened.id.clone();
            match notice(&shared, &headers, incoming, opened).await {
                Ok(()) => json_response(StatusCode::OK, json_rpc::reply(id.as_ref(), "result", "{}")),
                Err(response) => *response,
            }
        }
        Received::Request(incoming, _) => {
            let fault = Fault::invalid(Stage::Method, "/mcp takes MCP only")
                .hint("call a tool with tools/call; the direct dialect is at /rpc");
            refuse(incoming, fault).await
        }
        Received::Notification(incoming, opened) => match notice(&shared, &headers, incoming, opened).await {
            Ok(()) => empty(StatusCode::ACCEPTED),
            Err(response) => *response,
        },
        Received::Refused(incoming, fault) => refuse(incoming, fault).await,
        Received::Response(response) => match session(&shared, &headers) {
            Ok(session) => {
                session.response(response).await;
                empty(StatusCode::ACCEPTED)
            }
            Err((status, fault)) => {
                let facts = RequestFacts::of(&parts.extensions);
                refuse_with(status, shared.unopened(&facts), fault).await
            }
        },
    }
}

/// Answers a request.
async fn answer(
    shared: &Arc<ServerState>,
    headers: &HeaderMap,
    client: ClientReading,
    incoming: Incoming,
    opened: Opened,
) -> Response<Body> {
    let era = match headers::era(headers, &opened, |name| shared.service.input_schema(name)) {
        Ok(era) => era,
        Err(violation) => return refuse_violation(incoming, violation).await,
    };
    if opened.id.is_none() {
        return refuse(incoming, Fault::invalid(Stage::Envelope, "an MCP request needs an id")).await;
    }
    match era {
        Era::Stateless => stateless::answer(shared, client, incoming, opened).await,
        Era::Session if opened.method == INITIALIZE && !headers.contains_key(SESSION_ID) => {
            open_session(shared, client, incoming, opened).await
        }
        Era::Session => match session(shared, headers) {
            Ok(session) => answer_in_session(&session, client, incoming, opened).await,
            Err((status, fault)) => refuse_with(status, incoming, fault).await,
        },
    }
}

async fn open_session(
    shared: &Arc<ServerState>,
    client: ClientReading,
    incoming: Incoming,
    opened: Opened,
) -> Response<Body> {
    if shared.stopping.is_cancelled() {
        return refuse_inside(incoming, stopping()).await;
    }
    let (engine, unread) = (Arc::clone(&shared.engine), Arc::clone(&shared.unread));
    let Some(session) = shared.sessions.open(engine, shared.service.as_ref(), unread) else {
        let fault = Fault::new(ErrorCode::QueueOverloaded, "there are too many sessions, all of them busy")
            .hint("try again in a moment");
        return refuse_inside(incoming, fault).await;
    };
    let mut response = answer_in_session(&session, client, incoming, opened).await;
    match HeaderValue::from_str(&session.id) {
        Ok(value) if response.status() == StatusCode::OK && !session.bridge.has_failed() => {
            response.headers_mut().insert(SESSION_ID, value);
        }
        _ => {
            shared.sessions.end(&session.id);
        }
    }
    response
}

async fn answer_in_session(
    session: &Arc<Session>,
    client: ClientReading,
    incoming: Incoming,
    opened: Opened,
) -> Response<Body> {
    let stream = session.new_stream();
    stream.read_by(client.connection);
    await_authorization(&stream, &opened.method);
    let reply_to = StreamReply { stream: Arc::clone(&stream), status: error_status };
    let extend = |extensions: &mut rmcp::model::Extensions| {
        extensions.insert(ReplyStream(Arc::clone(&stream)));
    };
    let Taken { number, message } = match session.bridge.take(incoming, opened, reply_to, extend) {
        Ok(taken) => taken,
        Err(NotTaken::IdTaken(incoming)) => return refuse(incoming, id_taken()).await,
        Err(NotTaken::BadParams(incoming, problem)) => {
            return refuse_inside(incoming, Fault::invalid(Stage::Arguments, problem)).await;
        }
    };
    if !session.bridge.send(message).await {
        // The SDK has not seen it, so the message is still there to be refused.
        let incoming = session.bridge.leave(number).and_then(|call| call.answer?.into_incoming());
        return match incoming {
            Some(incoming) => refuse_inside(incoming, stopping()).await,
            None => empty(StatusCode::NOT_FOUND),
        };
    }
    // Kept until it is known to be answered at once.
    session.keep(&stream);
    let (watched, left) = (Arc::clone(session), Arc::clone(&stream));
    let gone = move |may_return| watched.abandoned(number, Arc::clone(&left), may_return);
    let style = ReadStyle { names: true, priming: session.knows_priming(), until: None };
    let response = respond(&stream, client.accepts, style, gone).await;
    session.settled(&stream, &response);
    response
}

/// A response waits for the engine to say that no scope is missing, if the method needs any: a missing one shows in the
/// status.
fn await_authorization(stream: &EventStream, method: &str) {
    if matches!(method, "tools/call" | "resources/read") {
        stream.await_authorization();
    }
}

/// Acts on a message that wants no reply.
async fn notice(
    shared: &Arc<ServerState>,
    headers: &HeaderMap,
    incoming: Incoming,
    opened: Opened,
) -> Result<(), Box<Response<Body>>> {
    match headers::era_of_notification(headers, Some(&opened)) {
        // A request that stands alone is cancelled by closing its stream.
        Ok(Era::Stateless) => {
            incoming.acknowledge("notification", 0).await;
            return Ok(());
        }
        Ok(Era::Session) => {}
        Err(violation) => return Err(refuse_violation(incoming, violation).await.into()),
    }
    let session = match session(shared, headers) {
        Ok(session) => session,
        Err((status, fault)) => return Err(refuse_with(status, incoming, fault).await.into()),
    };
    match (&opened.cancels, opened.dialect) {
        (Some(id), Dialect::Control) => session.calls.cancel(id, CancelReason::Asked),
        (Some(id), _) => session.cancelled(opened.params, id).await,
        (None, _) => session.notification(&opened.method, opened.params).await,
    }
    incoming.acknowledge("notification", 0).await;
    Ok(())
}

/// Refuses a request that the protocol forbids.
async fn refuse_violation(incoming: Incoming, violation: Violation) -> Response<Body> {
    let response = violation.response(incoming.id());
    let _refused = incoming.refuse(violation.fault).await;
    response
}

pub(crate) async fn get(State(shared): State<Arc<ServerState>>, request: Request<Body>) -> Response<Body> {
    let headers = request.headers();
    let facts = RequestFacts::of(request.extensions());
    if let Err(response) = in_session_era(&shared, headers, &facts).await {
        return *response;
    }
    if !accepts_events(headers) {
        let message = "this is a text/event-stream; accept it";
        return shared.refuse_unread(StatusCode::NOT_ACCEPTABLE, message, &facts).await;
    }
    let session = match session(&shared, headers) {
        Ok(session) => session,
        Err((status, fault)) => {
            return refuse_with(status, shared.unopened(&facts), fault).await;
        }
    };
    let last = headers.get(LAST_EVENT_ID).map(|last| last.to_str().unwrap_or_default());
    let (stream, after) = match last {
        // What another reader has had is not sent again, unless it is asked for.
        None => (Arc::clone(&session.standalone), session.standalone.delivered()),
        Some(last) => {
            let id = EventId::read(last);
            match id.and_then(|id| Some((session.stream(id.stream)?, id.event))) {
                Some((stream, event)) if event <= stream.count() => (stream, event),
                _ => {
                    let message = "Last-Event-ID names no event of this session that can be read from again";
                    return shared.refuse_unread(StatusCode::BAD_REQUEST, message, &facts).await;
                }
            }
        }
    };
    let style = ReadStyle {
        names: true,
        priming: session.knows_priming() && last.is_none(),
        until: (stream.number() == 0).then(|| shared.stopping.clone()),
    };
    let reader = stream.read(after, style);
    stream.read_by(Connection::of(request.extensions()));
    event_response(match session.number_of(&stream) {
        Some(number) => {
            let watch = Watch::new(move || session.abandoned(number, stream, true));
            reader.watched(watch)
        }
        None => reader,
    })
}

pub(crate) async fn delete(State(shared): State<Arc<ServerState>>, request: Request<Body>) -> Response<Body> {
    let facts = RequestFacts::of(request.extensions());
    if let Err(response) = in_session_era(&shared, request.headers(), &facts).await {
        return *response;
    }
    match session(&shared, request.headers()) {
        Ok(session) => {
            shared.sessions.end(&session.id);
            empty(StatusCode::NO_CONTENT)
        }
        Err((status, fault)) => refuse_with(status, shared.unopened(&facts), fault).await,
    }
}

/// The session that a request belongs to.
fn session(shared: &ServerState, headers: &HeaderMap) -> Result<Arc<Session>, (StatusCode, Fault)> {
    let Some(id) = headers.get(SESSION_ID) else {
        let message = "the Mcp-Session-Id header is missing; `initialize` opens a session and gives its id";
        return Err((StatusCode::BAD_REQUEST, Fault::invalid(Stage::Envelope, message)));
    };
    let session = id.to_str().ok().and_then(|id| shared.sessions.get(id));
    session.ok_or_else(|| {
        let message = "there is no such session; open a new one with `initialize`";
        (StatusCode::NOT_FOUND, Fault::new(ErrorCode::NotFound, message).at(Stage::Envelope))
    })
}

/// Refuses a request with an error inside a 200: some clients end their session on anything else.
async fn refuse_inside(incoming: Incoming, fault: Fault) -> Response<Body> {
    refuse_with(StatusCode::OK, incoming, fault).await
}

fn stopping() -> Fault {
    Fault::new(
        ErrorCode::Cancelled,
        "the session is over, or the server is stopping; try again in a new session",
    )
}

/// Checks that a request without a body belongs to a revision that has sessions.
async fn in_session_era(
    shared: &ServerState,
    headers: &HeaderMap,
    facts: &RequestFacts,
) -> Result<(), Box<Response<Body>>> {
    match headers::era_of_headers(headers) {
        Ok(Era::Session) => Ok(()),
        Ok(Era::Stateless) => {
            let message = "this revision of the protocol uses POST only";
            let mut response = shared.refuse_unread(StatusCode::METHOD_NOT_ALLOWED, message, facts).await;
            response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST"));
            Err(response.into())
        }
        Err(violation) => Err(refuse_violation(shared.unopened(facts), violation).await.into()),
    }
}
