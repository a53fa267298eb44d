//! What every request passes before it is answered, in one list.

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    body::Body,
    extract::State,
    http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header},
    middleware::{self, Next},
    routing::{get, post_service},
};
use bytes::{Bytes, BytesMut};
use http_body::Body as _;
use http_body_util::BodyExt;
use pintle_contract::{ErrorCode, Fault, Stage};
use pintle_engine::Received;
use pintle_rpc::{Dialect, Opened};
use serde_json::json;
use tower::{ServiceBuilder, service_fn};

use super::{
    ServerState,
    facts::{self, RequestFacts},
    gate::gate,
    health, mcp, origin,
    refusal::{empty, json_response, numbered_refusal, refuse, status},
    rpc,
};
use crate::direct;

/// How long a client may take to send a body.
const BODY_PATIENCE: Duration = Duration::from_secs(30);
/// How much of a body that is too large is read and thrown away, so that the client hears why.
const THROWN_AWAY: usize = 64 << 20;

/// A request whose body has been opened.
pub(crate) type Framed = Request<Received>;

/// The whole server.
pub(crate) fn router(shared: Arc<ServerState>) -> Router {
    // Each of these reads bytes, then opens the envelope, then answers.
    macro_rules! framed {
        ($answer:path, $dialect:expr) => {{
            let [kinds, sized, opened, answered] = [(); 4].map(|()| Arc::clone(&shared));
            ServiceBuilder::new()
                .layer(gate(move |request| is_json(Arc::clone(&kinds), request)))
                .layer(gate(move |request| size(Arc::clone(&sized), $dialect, request)))
                .layer(gate(move |request| envelope(Arc::clone(&opened), request)))
                .service(service_fn(move |request: Framed| {
                    let shared = Arc::clone(&answered);
                    async move { Ok::<_, std::convert::Infallible>($answer(shared, request).await) }
                }))
        }};
    }
    Router::new()
        .route(
            "/mcp",
            post_service(framed!(mcp::post, Dialect::Mcp))
                .get(mcp::get)
                .delete(mcp::delete)
                .options(preflight)
                // A stream has a reader or it has none; there is no looking at its head.
                .head(wrong_method),
        )
        .route("/rpc", post_service(framed!(rpc::post, Dialect::Direct)).options(preflight))
        .route("/metrics", get(health::metrics))
        .route_layer(middleware::from_fn_with_state(Arc::clone(&shared), host_and_origin))
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .fallback(no_such_place)
        .method_not_allowed_fallback(wrong_method)
        .layer(
            ServiceBuilder::new()
                .layer(middleware::from_fn_with_state(Arc::clone(&shared), request_id))
                .layer(middleware::from_fn_with_state(Arc::clone(&shared), count)),
        )
        .with_state(shared)
}

/// Names each request, so that the client can find it again; a name that it brings is kept.
async fn request_id(
    State(shared): State<Arc<ServerState>>,
    mut request: Request<Body>,
    next: Next,
) -> Response<Body> {
    let id = facts::request_id(request.headers()).map(str::to_owned);
    let id = id.unwrap_or_else(|| {
        let is_fixed = shared.engine.clock().is_deterministic();
        if is_fixed { uuid::Uuid::nil() } else { uuid::Uuid::new_v4() }.to_string()
    });
    request.extensions_mut().insert(RequestFacts::new(&id));
    let mut response = next.run(request).await;
    if let Ok(id) = HeaderValue::try_from(id) {
        response.headers_mut().insert(facts::REQUEST_ID, id);
    }
    response
}

async fn count(State(shared): State<Arc<ServerState>>, request: Request<Body>, next: Next) -> Response<Body> {
    // Only paths that there are: a client must not be able to make up labels.
    let paths = ["/mcp", "/rpc", "/metrics", "/healthz", "/readyz"];
    let path = paths.into_iter().find(|path| *path == request.uri().path()).unwrap_or("other");
    let response = next.run(request).await;
    shared.metrics.count(path, response.status());
    response
}

/// Keeps out web pages of other sites (CORS), also those that got themselves a name for this address (DNS rebinding).
async fn host_and_origin(
    State(shared): State<Arc<ServerState>>,
    request: Request<Body>,
    next: Next,
) -> Response<Body> {
    match origin::check(request.uri(), request.headers(), &shared.options.origins) {
        Ok(()) => {
            let page = request.headers().get(header::ORIGIN).cloned();
            let mut response = next.run(request).await;
            if let Some(page) = page {
                origin::let_read(&mut response, page);
            }
            response
        }
        Err(fault) => {
            let facts = RequestFacts::of(request.extensions());
            refuse(shared.unopened(&facts), fault).await
        }
    }
}

/// CORS preflight: a browser asks before it lets a page call. The page's origin has been checked.
async fn preflight() -> Response<Body> {
    empty(StatusCode::NO_CONTENT)
}

/// CSRF guard: a browser sends anything but JSON across sites without a CORS preflight.
async fn is_json(shared: Arc<ServerState>, request: Request<Body>) -> Result<Request<Body>, Response<Body>> {
    let unsupported = StatusCode::UNSUPPORTED_MEDIA_TYPE;
    let facts = RequestFacts::of(request.extensions());
    let is_plain = |encoding: &HeaderValue| encoding.as_bytes().eq_ignore_ascii_case(b"identity");
    if !request.headers().get_all(header::CONTENT_ENCODING).iter().all(is_plain) {
        let message = "the body must not be compressed";
        return Err(shared.refuse_unread(unsupported, message, &facts).await);
    }
    let kind = request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next()).unwrap_or_default();
    if kind.trim().eq_ignore_ascii_case("application/json") {
        return Ok(request);
    }
    Err(shared.refuse_unread(unsupported, "Content-Type must be application/json", &facts).await)
}

/// Reads the body, unless it is too large or too slow.
async fn size(
    shared: Arc<ServerState>,
    dialect: Dialect,
    request: Request<Body>,
) -> Result<Request<Bytes>, Response<Body>> {
    let limit = shared.options.max_request_bytes;
    let (mut parts, body) = request.into_parts();
    let facts = RequestFacts::of(&parts.extensions);
    // A client that asks first, or that wants to send more than anybody would throw away, need not begin.
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    let asks_first = parts.headers.contains_key(header::EXPECT);
    if announced > limit && (asks_first || announced - limit > THROWN_AWAY) {
        return Err(closing(shared.refuse_size(announced, dialect, facts).await));
    }
    match tokio::time::timeout(BODY_PATIENCE, read(body, limit)).await {
        Ok(Ok(Ok(bytes))) => {
            parts.extensions.insert(facts.with_frame_bytes(bytes.len()));
            Ok(Request::from_parts(parts, bytes))
        }
        Ok(Ok(Err(TooLarge(bytes)))) => Err(shared.refuse_size(bytes, dialect, facts).await),
        Ok(Err(_)) => {
            let fault = Fault::invalid(Stage::Parse, "the request's body was cut off");
            Err(refuse(shared.unopened(&facts), fault).await)
        }
        Err(_) => {
            let status = StatusCode::REQUEST_TIMEOUT;
            Err(closing(shared.refuse_unread(status, "the body came too slowly", &facts).await))
        }
    }
}

impl ServerState {
    /// Refuses a body that is too large. The direct dialect answers with the result that it has on a pipe, too.
    async fn refuse_size(&self, bytes: usize, dialect: Dialect, facts: RequestFacts) -> Response<Body> {
        let limit = self.options.max_request_bytes;
        let message = format!("the request has {bytes} bytes or more; at most {limit} are allowed");
        let fault = Fault::invalid(Stage::Size, message)
            .details(json!({"reason": "payload_too_large", "limit": limit}));
        let incoming = self.unopened(&facts.with_frame_bytes(bytes));
        if dialect != Dialect::Direct {
            return refuse(incoming, fault).await;
        }
        let status = status(&fault);
        let refused = incoming.refuse(fault).await;
        json_response(status, direct::reply(None, &refused))
    }
}

/// The rest of the request is not read, so nothing can follow it.
fn closing(mut response: Response<Body>) -> Response<Body> {
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// A body over the limit; how much of it was seen.
struct TooLarge(usize);

async fn read(mut body: Body, limit: usize) -> Result<Result<Bytes, TooLarge>, axum::Error> {
    let mut whole = BytesMut::new();
    let mut seen = 0;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        seen += data.len();
        if seen <= limit {
            // Most bodies come in one piece, which need not be copied.
            if whole.is_empty() && body.is_end_stream() {
                return Ok(Ok(data));
            }
            whole.extend_from_slice(&data);
        } else {
            whole.clear();
            if seen - limit > THROWN_AWAY {
                break;
            }
        }
    }
    Ok(if seen <= limit { Ok(whole.freeze()) } else { Err(TooLarge(seen)) })
}

/// Opens the envelope.
async fn envelope(shared: Arc<ServerState>, request: Request<Bytes>) -> Result<Framed, Response<Body>> {
    let (parts, bytes) = request.into_parts();
    let transport = RequestFacts::of(&parts.extensions).transport();
    let with_headers =
        |incoming, mut opened: Opened| match take_key(&parts.headers, &mut opened.idempotency_key) {
            Ok(()) => {
                if opened.meta.traceparent.is_none() {
                    let traceparent = parts.headers.get("traceparent").and_then(|value| value.to_str().ok());
                    opened.meta.traceparent = traceparent.map(str::to_owned);
                }
                Ok((incoming, opened))
            }
            Err(fault) => Err((incoming, fault)),
        };
    let received = match shared.engine.receive(&bytes, &shared.caller, &transport) {
        Received::Request(incoming, opened) => {
            with_headers(incoming, opened).map(|(incoming, opened)| Received::Request(incoming, opened))
        }
        Received::Notification(incoming, opened) => {
            with_headers(incoming, opened).map(|(incoming, opened)| Received::Notification(incoming, opened))
        }
        Received::Refused(incoming, fault) => Err((incoming, fault)),
        response @ Received::Response(_) => Ok(response),
    };
    match received {
        Ok(received) => Ok(Request::from_parts(parts, received)),
        Err((incoming, fault)) => Err(refuse(incoming, fault).await),
    }
}

/// The key may come in a header; what it may be is the envelope's rule.
fn take_key(headers: &HeaderMap, key: &mut Option<String>) -> Result<(), Fault> {
    const LONGEST: usize = 255;
    let wrong = |message: &str| Err(Fault::invalid(Stage::Envelope, message));
    let mut values = headers.get_all("idempotency-key").iter();
    let (Some(header), None) = (values.next(), values.next()) else {
        return match headers.contains_key("idempotency-key") {
            true => wrong("the Idempotency-Key header is there twice"),
            false => Ok(()),
        };
    };
    let Ok(header) = header.to_str() else { return wrong("the Idempotency-Key header is not plain text") };
    if header.is_empty() || header.len() > LONGEST {
        return wrong("the Idempotency-Key header must have 1 to 255 characters");
    }
    match key {
        Some(key) if key != header => wrong("the Idempotency-Key header differs from `idempotencyKey`"),
        _ => {
            *key = Some(header.to_owned());
            Ok(())
        }
    }
}

async fn no_such_place() -> Response<Body> {
    let fault = Fault::new(ErrorCode::NotFound, "there is nothing here; try /mcp or /rpc");
    numbered_refusal(StatusCode::NOT_FOUND, None, fault.json_rpc_code(), &fault)
}

async fn wrong_method(State(shared): State<Arc<ServerState>>, request: Request<Body>) -> Response<Body> {
    let facts = RequestFacts::of(request.extensions());
    let message = "this address does not take that HTTP method";
    shared.refuse_unread(StatusCode::METHOD_NOT_ALLOWED, message, &facts).await
}
