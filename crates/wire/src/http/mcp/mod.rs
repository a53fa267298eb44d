//! `/mcp`: Streamable HTTP for every revision. `POST` takes a message, `GET` listens to a session or
//! comes back to a stream, `DELETE` ends a session.

mod headers;
mod session;
mod sessions;
mod single;

pub(crate) use sessions::Sessions;

use std::sync::Arc;

use axum::{
    body::Body,
    extract::State,
    http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, header},
};
use headers::Era;
use pintle_contract::{Dialect, ErrorCode, Fault, RequestId, Stage};
use pintle_engine::{Cancel, CancelReason, Message, Opened, ProgressSink, Refused};
use rmcp::ServerHandler;
use session::{NotTaken, Session};
use tokio_util::sync::CancellationToken;

use super::{
    Shared,
    accept::{Accepts, accepts_events},
    connection::Connection,
    facts::RequestFacts,
    layers::Framed,
    refusal::{empty, frame_response},
    respond::{event_response, respond},
    stream::{EventId, EventStream, ReadStyle},
};
use crate::{
    json_rpc,
    mcp::{Asked, McpProgress, Origin, message::LISTEN},
    pipe::id_taken,
};

const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const LAST_EVENT_ID: &str = "last-event-id";

/// The stream of the reply that a request waits for. Travels with the request to its handler.
#[derive(Clone)]
pub struct ReplyStream(Arc<EventStream>);

impl ReplyStream {
    /// Closes the connection of the stream. Its client may come back for the reply.
    pub fn close(&self) {
        self.0.send_reader_away();
    }

    /// The call cannot be refused for want of a scope any more, so its response may begin before its reply. For
    /// calls that do not go through the engine, which says so itself.
    pub fn authorized(&self) {
        self.0.authorized();
    }
}

/// How a client takes its reply.
struct Reading {
    accepts: Accepts,
    connection: Option<CancellationToken>,
    facts: RequestFacts,
}

pub(crate) async fn post<H: ServerHandler + Clone>(
    shared: Arc<Shared<H>>,
    request: Framed,
) -> Response<Body> {
    let (parts, message) = request.into_parts();
    let client = Reading {
        accepts: Accepts::read(&parts.headers),
        connection: Connection::of(&parts.extensions),
        facts: RequestFacts::of(&parts.extensions),
    };
    let headers = parts.headers;
    match message {
        Message::Request(opened) if client.accepts.nothing() => {
            let message = "the reply is application/json or text/event-stream; accept both";
            let fault = Fault::invalid(Stage::Envelope, message);
            let refused = Refused { id: opened.id, method: Some(opened.method), fault };
            shared.refuse_with(StatusCode::NOT_ACCEPTABLE, refused, &client.facts).await
        }
        Message::Request(opened) if opened.dialect == Dialect::Mcp => {
            answer(&shared, &headers, client, opened).await
        }
        Message::Request(opened) if opened.method == "$/cancelRequest" && opened.cancels.is_some() => {
            let id = opened.id.clone();
            match notice(&shared, &headers, opened, &client.facts).await {
                Ok(()) => frame_response(StatusCode::OK, json_rpc::reply(id.as_ref(), "result", "{}")),
                Err(response) => *response,
            }
        }
        Message::Request(opened) => {
            let fault = Fault::invalid(Stage::Method, "/mcp takes MCP only")
                .hint("call a tool with tools/call; the direct dialect is at /rpc");
            let refused = Refused { id: opened.id, method: Some(opened.method), fault };
            shared.refuse(refused, &client.facts).await
        }
        Message::Notification(opened) => match notice(&shared, &headers, opened, &client.facts).await {
            Ok(()) => empty(StatusCode::ACCEPTED),
            Err(response) => *response,
        },
        Message::Response(response) => match session(&shared, &headers) {
            Ok(session) => {
                session.response(response).await;
                empty(StatusCode::ACCEPTED)
            }
            Err((status, fault)) => {
                shared.refuse_with(status, Refused { id: None, method: None, fault }, &client.facts).await
            }
        },
    }
}

/// Answers a request.
async fn answer<H: ServerHandler + Clone>(
    shared: &Arc<Shared<H>>,
    headers: &HeaderMap,
    client: Reading,
    opened: Opened,
) -> Response<Body> {
    let schema = |name: &str| shared.handler.get_tool(name).map(|tool| tool.input_schema);
    let era = match headers::era(headers, &opened, schema) {
        Ok(era) => era,
        Err(violation) => {
            let fault = violation.fault.clone();
            let refused = Refused { id: opened.id, method: Some(opened.method), fault };
            shared.log_refusal(&refused, &client.facts).await;
            return violation.response(refused.id.as_ref());
        }
    };
    let Some(id) = opened.id.clone() else {
        let fault = Fault::invalid(Stage::Envelope, "an MCP request needs an id");
        let refused = Refused { id: None, method: Some(opened.method), fault };
        return shared.refuse(refused, &client.facts).await;
    };
    match era {
        Era::Stateless => answer_alone(shared, client, opened, id).await,
        Era::Session if opened.method == "initialize" && !headers.contains_key(SESSION_ID) => {
            open_session(shared, client, opened, id).await
        }
        Era::Session => match session(shared, headers) {
            Ok(session) => answer_in_session(shared, &session, client, opened, id).await,
            Err((status, fault)) => {
                let refused = Refused { id: Some(id), method: Some(opened.method), fault };
                shared.refuse_with(status, refused, &client.facts).await
            }
        },
    }
}

async fn answer_alone<H: ServerHandler + Clone>(
    shared: &Arc<Shared<H>>,
    client: Reading,
    opened: Opened,
    id: RequestId,
) -> Response<Body> {
    let stream = EventStream::new(0, Arc::clone(&shared.unread));
    stream.read_by(client.connection);
    let (cancel, ticket) = shared.running.enter();
    // Whoever only listens is let go when the server stops; everything else is answered.
    let listens = opened.method == LISTEN;
    let until = listens.then(|| shared.stopping.clone());
    let end = CancellationToken::new();
    let mut origin = origin(shared, &opened, &id, &stream, Arc::clone(&cancel), &client.facts);
    origin.ticket = Some(Arc::new(ticket));
    let (handler, method) = (shared.handler.clone(), opened.method);
    let served =
        single::serve(handler, &method, opened.params, id.clone(), Arc::clone(&stream), origin, end.clone());
    if let Err(problem) = served {
        let fault = Fault::invalid(Stage::Arguments, problem);
        return refuse_inside(shared, id, method, fault, &client.facts).await;
    }
    let gone = move |_| {
        cancel.cancel(CancelReason::Silent);
        end.cancel();
    };
    respond(&stream, client.accepts, ReadStyle { until, ..ReadStyle::default() }, gone).await
}

async fn open_session<H: ServerHandler + Clone>(
    shared: &Arc<Shared<H>>,
    client: Reading,
    opened: Opened,
    id: RequestId,
) -> Response<Body> {
    if shared.stopping.is_cancelled() {
        return refuse_inside(shared, id, opened.method, stopping(), &client.facts).await;
    }
    let Some(session) = shared.sessions.open(Arc::clone(&shared.unread), shared.handler.clone()) else {
        let fault = Fault::new(ErrorCode::QueueOverloaded, "there are too many sessions, all of them busy")
            .hint("try again in a moment");
        return refuse_inside(shared, id, opened.method, fault, &client.facts).await;
    };
    let mut response = answer_in_session(shared, &session, client, opened, id).await;
    match HeaderValue::from_str(&session.id) {
        Ok(value) if response.status() == StatusCode::OK && !session.has_failed() => {
            response.headers_mut().insert(SESSION_ID, value);
        }
        _ => {
            shared.sessions.end(&session.id);
        }
    }
    response
}

async fn answer_in_session<H: ServerHandler + Clone>(
    shared: &Arc<Shared<H>>,
    session: &Arc<Session>,
    client: Reading,
    opened: Opened,
    id: RequestId,
) -> Response<Body> {
    let method = opened.method.clone();
    let Some(cancel) = session.in_flight.enter(&id) else {
        let refused = Refused { id: Some(id), method: Some(method), fault: id_taken() };
        return shared.refuse(refused, &client.facts).await;
    };
    let stream = session.new_stream();
    stream.read_by(client.connection);
    let origin = origin(shared, &opened, &id, &stream, cancel, &client.facts);
    let sent = session.request(&method, opened.params, id.clone(), Arc::clone(&stream), origin).await;
    let number = match sent {
        Ok(number) => number,
        Err(not_taken) => {
            session.in_flight.leave(&id);
            let fault = match not_taken {
                NotTaken::BadParams(problem) => Fault::invalid(Stage::Arguments, problem),
                NotTaken::Over => stopping(),
            };
            return refuse_inside(shared, id, method, fault, &client.facts).await;
        }
    };
    // Kept until it is known to be answered at once.
    session.keep(&stream);
    let (watched, left) = (Arc::clone(session), Arc::clone(&stream));
    let gone = move |may_return| watched.abandoned(number, Arc::clone(&left), may_return);
    let style = ReadStyle { names: true, priming: session.knows_priming(), until: None };
    let response = respond(&stream, client.accepts, style, gone).await;
    session.settled(&stream, &response);
    response
}

fn origin<H>(
    shared: &Shared<H>,
    opened: &Opened,
    id: &RequestId,
    stream: &Arc<EventStream>,
    cancel: Arc<Cancel>,
    facts: &RequestFacts,
) -> Origin {
    // What needs scopes. The engine says when they are checked.
    if matches!(opened.method.as_str(), "tools/call" | "resources/read") {
        stream.await_authorization();
    }
    let (engine, listener) = (Arc::clone(&shared.engine), Arc::clone(stream));
    let progress: Arc<dyn ProgressSink> = Arc::new(McpProgress { engine, listener, id: id.clone() });
    Origin {
        id: Some(id.clone()),
        asked: Asked::new(&shared.engine, facts.transport(), &opened.method, facts.frame_bytes),
        caller: Arc::clone(&shared.caller),
        transport: facts.transport(),
        cancel,
        meta: opened.meta.clone(),
        idempotency_key: opened.idempotency_key.clone(),
        progress: Some(progress),
        reply_stream: Some(ReplyStream(Arc::clone(stream))),
        ticket: None,
    }
}

/// Acts on a message that wants no reply.
async fn notice<H: ServerHandler + Clone>(
    shared: &Arc<Shared<H>>,
    headers: &HeaderMap,
    opened: Opened,
    facts: &RequestFacts,
) -> Result<(), Box<Response<Body>>> {
    let refused = |fault| Refused { id: opened.id.clone(), method: Some(opened.method.clone()), fault };
    match headers::era_of_notification(headers, Some(&opened)) {
        // A request that stands alone is cancelled by closing its stream.
        Ok(Era::Stateless) => return Ok(()),
        Ok(Era::Session) => {}
        Err(violation) => {
            let refused = refused(violation.fault.clone());
            shared.log_refusal(&refused, facts).await;
            return Err(violation.response(refused.id.as_ref()).into());
        }
    }
    let session = match session(shared, headers) {
        Ok(session) => session,
        Err((status, fault)) => {
            return Err(shared.refuse_with(status, refused(fault), facts).await.into());
        }
    };
    match (&opened.cancels, opened.dialect) {
        (Some(id), Dialect::Control) => {
            session.in_flight.cancel(id, CancelReason::Asked);
        }
        (Some(id), _) => session.cancelled(opened.params, id).await,
        (None, _) => session.notification(&opened.method, opened.params).await,
    }
    Ok(())
}

pub(crate) async fn get<H: ServerHandler + Clone>(
    State(shared): State<Arc<Shared<H>>>,
    request: Request<Body>,
) -> Response<Body> {
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
            return shared.refuse_with(status, Refused { id: None, method: None, fault }, &facts).await;
        }
    };
    let last = headers.get(LAST_EVENT_ID).map(|last| last.to_str().unwrap_or_default());
    let (stream, after) = match last {
        // What another reader has had is not told again, unless it is asked for.
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
            let watch = super::stream::Watch::new(move || session.abandoned(number, stream, true));
            reader.watched(watch)
        }
        None => reader,
    })
}

pub(crate) async fn delete<H: ServerHandler + Clone>(
    State(shared): State<Arc<Shared<H>>>,
    request: Request<Body>,
) -> Response<Body> {
    let facts = RequestFacts::of(request.extensions());
    if let Err(response) = in_session_era(&shared, request.headers(), &facts).await {
        return *response;
    }
    match session(&shared, request.headers()) {
        Ok(session) => {
            shared.sessions.end(&session.id);
            empty(StatusCode::NO_CONTENT)
        }
        Err((status, fault)) => {
            shared.refuse_with(status, Refused { id: None, method: None, fault }, &facts).await
        }
    }
}

/// The session that a request belongs to.
fn session<H>(shared: &Shared<H>, headers: &HeaderMap) -> Result<Arc<Session>, (StatusCode, Fault)> {
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
async fn refuse_inside<H: ServerHandler + Clone>(
    shared: &Shared<H>,
    id: RequestId,
    method: String,
    fault: Fault,
    facts: &RequestFacts,
) -> Response<Body> {
    let refused = Refused { id: Some(id), method: Some(method), fault };
    shared.refuse_with(StatusCode::OK, refused, facts).await
}

fn stopping() -> Fault {
    Fault::new(
        ErrorCode::Cancelled,
        "the session is over, or the server is stopping; try again in a new session",
    )
}

/// Checks that a request without a body belongs to a revision that has sessions.
async fn in_session_era<H: ServerHandler + Clone>(
    shared: &Shared<H>,
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
        Err(violation) => {
            let refused = Refused { id: None, method: None, fault: violation.fault.clone() };
            shared.log_refusal(&refused, facts).await;
            Err(violation.response(None).into())
        }
    }
}
