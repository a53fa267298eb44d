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
use pintle_engine::{Cancel, CancelReason, Message, Opened, ProgressSink, Refused, Transport};
use rmcp::ServerHandler;
use session::Session;
use tokio_util::sync::CancellationToken;

use super::{
    Shared,
    connection::Connection,
    layers::{Framed, frame_bytes, refuse},
    refusal::{empty, numbered_refusal, plain_refusal},
    respond::{Accepts, event_response, respond},
    stream::{EventId, EventStream, ReadStyle},
};
use crate::{
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
}

/// How a client takes its reply.
struct Reading {
    accepts: Accepts,
    connection: Option<CancellationToken>,
    /// The size of what it asked with, for the log.
    frame_bytes: usize,
}

pub(crate) async fn post<H: ServerHandler + Clone>(
    shared: Arc<Shared<H>>,
    request: Framed,
) -> Response<Body> {
    let (parts, message) = request.into_parts();
    let client = Reading {
        accepts: Accepts::read(&parts.headers),
        connection: Connection::of(&parts.extensions),
        frame_bytes: frame_bytes(&parts.extensions),
    };
    let headers = parts.headers;
    if client.accepts.nothing() {
        return plain_refusal(
            StatusCode::NOT_ACCEPTABLE,
            "the reply is application/json or text/event-stream; accept both",
        );
    }
    match message {
        Message::Request(opened) if opened.dialect == Dialect::Mcp => {
            answer(&shared, &headers, client, opened).await
        }
        Message::Request(opened) => {
            let fault = Fault::invalid(Stage::Method, "/mcp takes MCP only")
                .hint("call a tool with tools/call; the direct dialect is at /rpc");
            let refused = Refused { id: opened.id, method: Some(opened.method), fault };
            refuse(&shared, refused, client.frame_bytes).await
        }
        Message::Notification(opened) => match notice(&shared, &headers, opened).await {
            Ok(()) => empty(StatusCode::ACCEPTED),
            Err(response) => *response,
        },
        Message::Response(response) => match session(&shared, &headers) {
            Ok(session) => {
                session.response(response).await;
                empty(StatusCode::ACCEPTED)
            }
            Err(response) => *response,
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
            shared.engine.log_refusal(&refused, Transport::Http, client.frame_bytes).await;
            return violation.response(refused.id.as_ref());
        }
    };
    let Some(id) = opened.id.clone() else {
        let fault = Fault::invalid(Stage::Envelope, "an MCP request needs an id");
        let refused = Refused { id: None, method: Some(opened.method), fault };
        return refuse(shared, refused, client.frame_bytes).await;
    };
    match era {
        Era::Stateless => answer_alone(shared, client, opened, id).await,
        Era::Session if opened.method == "initialize" && !headers.contains_key(SESSION_ID) => {
            open_session(shared, client, opened, id).await
        }
        Era::Session => match session(shared, headers) {
            Ok(session) => answer_in_session(shared, &session, client, opened, id).await,
            Err(response) => *response,
        },
    }
}

async fn answer_alone<H: ServerHandler + Clone>(
    shared: &Arc<Shared<H>>,
    client: Reading,
    opened: Opened,
    id: RequestId,
) -> Response<Body> {
    let stream = EventStream::new(0, Arc::clone(&shared.room));
    stream.read_by(client.connection);
    let (cancel, ticket) = shared.running.enter();
    // Whoever only listens is let go when the server stops; everything else is answered.
    let listens = opened.method == LISTEN;
    let until = listens.then(|| shared.stopping.clone());
    let end = CancellationToken::new();
    let mut origin = origin(shared, &opened, &id, &stream, Arc::clone(&cancel), client.frame_bytes);
    origin.ticket = Some(Arc::new(ticket));
    let (handler, method) = (shared.handler.clone(), opened.method);
    let served =
        single::serve(handler, &method, opened.params, id.clone(), Arc::clone(&stream), origin, end.clone());
    if let Err(problem) = served {
        return refuse_params(shared, id, method, problem, client.frame_bytes).await;
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
    let Some(session) = shared.sessions.open(Arc::clone(&shared.room), shared.handler.clone()) else {
        let fault = Fault::new(ErrorCode::QueueOverloaded, "there are too many sessions, all of them busy")
            .hint("try again in a moment");
        let refused = Refused { id: Some(id), method: Some(opened.method), fault };
        shared.engine.log_refusal(&refused, Transport::Http, client.frame_bytes).await;
        let number = refused.fault.json_rpc_code();
        return numbered_refusal(StatusCode::OK, refused.id.as_ref(), number, &refused.fault);
    };
    let version = opened.params["protocolVersion"].as_str().map(str::to_owned);
    session.learn_revision(version.as_deref());
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
        return refuse(shared, refused, client.frame_bytes).await;
    };
    let stream = session.new_stream();
    stream.read_by(client.connection);
    let origin = origin(shared, &opened, &id, &stream, cancel, client.frame_bytes);
    let sent = session.request(&method, opened.params, id.clone(), Arc::clone(&stream), origin).await;
    let number = match sent {
        Ok(number) => number,
        Err(problem) => {
            session.in_flight.leave(&id);
            return refuse_params(shared, id, method, problem, client.frame_bytes).await;
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
    frame_bytes: usize,
) -> Origin {
    let (engine, listener) = (Arc::clone(&shared.engine), Arc::clone(stream));
    let progress: Arc<dyn ProgressSink> = Arc::new(McpProgress { engine, listener, id: id.clone() });
    Origin {
        id: Some(id.clone()),
        asked: Asked::new(&shared.engine, Transport::Http, &opened.method, frame_bytes),
        caller: Arc::clone(&shared.caller),
        transport: Transport::Http,
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
) -> Result<(), Box<Response<Body>>> {
    match headers::era_of_notification(headers, Some(&opened)) {
        // A request that stands alone is cancelled by closing its stream.
        Ok(Era::Stateless) => return Ok(()),
        Ok(Era::Session) => {}
        Err(violation) => return Err(violation.response(None).into()),
    }
    let session = session(shared, headers)?;
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
    match headers::era_of_headers(headers) {
        Ok(Era::Session) => {}
        Ok(Era::Stateless) => return only_post(),
        Err(violation) => return violation.response(None),
    }
    if !Accepts::read(headers).events {
        return plain_refusal(StatusCode::NOT_ACCEPTABLE, "this is a text/event-stream; accept it");
    }
    let session = match session(&shared, headers) {
        Ok(session) => session,
        Err(response) => return *response,
    };
    let last = headers.get(LAST_EVENT_ID).map(|last| last.to_str().unwrap_or_default());
    let (stream, after) = match last {
        None => (Arc::clone(&session.standalone), 0),
        Some(last) => {
            let id = EventId::read(last);
            match id.and_then(|id| Some((session.stream(id.stream)?, id.event))) {
                Some(found) => found,
                None => {
                    let message = "Last-Event-ID names no stream of this session that can be read again";
                    return plain_refusal(StatusCode::BAD_REQUEST, message);
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
    match headers::era_of_headers(request.headers()) {
        Ok(Era::Session) => {}
        Ok(Era::Stateless) => return only_post(),
        Err(violation) => return violation.response(None),
    }
    match session(&shared, request.headers()) {
        Ok(session) => {
            shared.sessions.end(&session.id);
            empty(StatusCode::NO_CONTENT)
        }
        Err(response) => *response,
    }
}

/// The session that a request belongs to.
fn session<H>(shared: &Shared<H>, headers: &HeaderMap) -> Result<Arc<Session>, Box<Response<Body>>> {
    let Some(id) = headers.get(SESSION_ID) else {
        let message = "the Mcp-Session-Id header is missing; `initialize` opens a session and gives its id";
        return Err(plain_refusal(StatusCode::BAD_REQUEST, message).into());
    };
    let session = id.to_str().ok().and_then(|id| shared.sessions.get(id));
    session.ok_or_else(|| {
        plain_refusal(StatusCode::NOT_FOUND, "there is no such session; open a new one with `initialize`")
            .into()
    })
}

async fn refuse_params<H: ServerHandler + Clone>(
    shared: &Shared<H>,
    id: RequestId,
    method: String,
    problem: String,
    frame_bytes: usize,
) -> Response<Body> {
    let fault = Fault::invalid(Stage::Arguments, problem);
    let refused = Refused { id: Some(id), method: Some(method), fault };
    shared.engine.log_refusal(&refused, Transport::Http, frame_bytes).await;
    let number = refused.fault.json_rpc_code();
    numbered_refusal(StatusCode::OK, refused.id.as_ref(), number, &refused.fault)
}

fn only_post() -> Response<Body> {
    let mut response =
        plain_refusal(StatusCode::METHOD_NOT_ALLOWED, "this revision of the protocol uses POST only");
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST"));
    response
}
