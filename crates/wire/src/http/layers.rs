//! What every request passes before it is answered, in one list.
//!
//! What concerns all requests is a layer here. What concerns a message alone (its type, size, envelope, session) is
//! checked by the extractors of its handler, so that a handler cannot see a message that was not checked.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Request, State},
    middleware::{Next, from_fn, from_fn_with_state},
    response::Response,
    routing::{get, post},
};
use tower::ServiceBuilder;
use tower_http::request_id::{PropagateRequestIdLayer, SetRequestIdLayer};

use super::{
    ServerState, auth, cors, health, mcp, origin,
    rejection::{Reason, Rejection},
    request_id::{self, MakeUuid},
    rpc,
};

/// The whole server.
pub(crate) fn router(state: Arc<ServerState>) -> Router {
    let is_deterministic = state.engine.clock().is_deterministic();
    let all_requests = ServiceBuilder::new()
        .map_request(request_id::drop_unusable)
        .layer(SetRequestIdLayer::x_request_id(MakeUuid { is_deterministic }))
        .layer(PropagateRequestIdLayer::x_request_id())
        .layer(from_fn_with_state(Arc::clone(&state), count));
    let from_browsers = ServiceBuilder::new()
        .layer(from_fn_with_state(Arc::clone(&state), check_host_and_origin))
        .layer(from_fn(cors::let_page_read))
        .layer(from_fn_with_state(Arc::clone(&state), auth::authenticate));
    Router::new()
        .route(
            "/mcp",
            post(mcp::post)
                .get(mcp::get)
                .delete(mcp::delete)
                .options(cors::preflight)
                // A GET takes the stream over from whoever reads it, and a HEAD must not.
                .head(method_not_allowed),
        )
        .route("/rpc", post(rpc::post).options(cors::preflight))
        .route("/metrics", get(health::metrics))
        .route_layer(from_browsers)
        .route("/.well-known/oauth-protected-resource", get(auth::protected_resource))
        .route("/.well-known/oauth-protected-resource/{*resource}", get(auth::protected_resource))
        .route("/register", post(auth::register))
        // Probes reach these by whatever name the operator has for the server.
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .fallback(no_such_path)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(all_requests)
        .with_state(state)
}

/// Counts requests for `/metrics`.
async fn count(State(state): State<Arc<ServerState>>, request: Request, next: Next) -> Response {
    // Only paths that there are: a client must not be able to make up labels.
    let paths = ["/mcp", "/rpc", "/metrics", "/healthz", "/readyz"];
    let path = paths.into_iter().find(|path| *path == request.uri().path()).unwrap_or("other");
    let response = next.run(request).await;
    state.metrics.count(path, response.status());
    response
}

/// Refuses requests of other sites' web pages: CSRF by their `Origin`, DNS rebinding by their `Host`.
async fn check_host_and_origin(
    State(state): State<Arc<ServerState>>,
    request: Request,
    next: Next,
) -> Result<Response, Rejection> {
    match origin::check(request.uri(), request.headers(), &state.options.origins) {
        Ok(()) => Ok(next.run(request).await),
        Err(fault) => Err(Reason::Fault(fault).reject(state.unopened(request.extensions(), 0)).await),
    }
}

async fn no_such_path() -> Rejection {
    Reason::NoSuchPath.reject_unlogged()
}

async fn method_not_allowed(State(state): State<Arc<ServerState>>, request: Request) -> Rejection {
    Reason::MethodNotAllowed.reject(state.unopened(request.extensions(), 0)).await
}

#[cfg(test)]
mod tests {
    use crate::http::testing::TestServer;

    const LEGACY: &str = "2025-06-18";
    const MODERN: &str = "2026-07-28";
    const REVISION: &str = "mcp-protocol-version";
    const SESSION: &str = "mcp-session-id";

    const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    const STATELESS_LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{
        "io.modelcontextprotocol/protocolVersion":"2026-07-28",
        "io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{
        "protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}"#;
    const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    const RESPONSE: &str = r#"{"jsonrpc":"2.0","id":9,"result":{}}"#;
    const CANCEL: &str = r#"{"jsonrpc":"2.0","id":2,"method":"$/cancelRequest","params":{"id":1}}"#;

    async fn open_session(server: &TestServer) -> String {
        let answer = server.send("POST", "/mcp", &[], INITIALIZE).await;
        let session = answer.header(SESSION).expect("a session").to_owned();
        assert_eq!(server.send("POST", "/mcp", &[(SESSION, &session)], INITIALIZED).await.status, 202);
        session
    }

    /// The status with no session, with an unknown one and with an open one, by the revision in the header.
    #[tokio::test]
    async fn the_revision_decides_whether_a_session_is_needed() {
        const UNKNOWN: &str = "1999-01-01";
        let server = TestServer::start();
        let session = open_session(&server).await;
        for (method, body, revision, expected) in [
            ("POST", LIST, None, [400, 404, 200]),
            ("POST", LIST, Some(LEGACY), [400, 404, 200]),
            ("POST", LIST, Some(MODERN), [400; 3]),
            ("POST", LIST, Some(UNKNOWN), [400; 3]),
            ("POST", STATELESS_LIST, Some(MODERN), [200; 3]),
            ("POST", STATELESS_LIST, None, [400; 3]),
            ("POST", STATELESS_LIST, Some(LEGACY), [400; 3]),
            ("POST", INITIALIZE, Some(MODERN), [400; 3]),
            ("POST", INITIALIZED, None, [400, 404, 202]),
            ("POST", INITIALIZED, Some(LEGACY), [400, 404, 202]),
            ("POST", INITIALIZED, Some(UNKNOWN), [400; 3]),
            ("POST", RESPONSE, None, [400, 404, 202]),
            ("POST", RESPONSE, Some(MODERN), [400, 404, 202]),
            ("POST", CANCEL, None, [400, 404, 200]),
            ("GET", "", None, [400, 404, 200]),
            ("GET", "", Some(LEGACY), [400, 404, 200]),
            ("GET", "", Some(MODERN), [405; 3]),
            ("GET", "", Some(UNKNOWN), [400; 3]),
            ("DELETE", "", Some(MODERN), [405; 3]),
            ("DELETE", "", Some(UNKNOWN), [400; 3]),
            // The last, because it ends the session.
            ("DELETE", "", None, [400, 404, 204]),
        ] {
            for (named, expected) in [None, Some("unknown"), Some(session.as_str())].into_iter().zip(expected)
            {
                let headers = [(REVISION, revision), (SESSION, named), ("mcp-method", Some("tools/list"))];
                let headers: Vec<_> =
                    headers.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
                let answer = server.send(method, "/mcp", &headers, body).await;
                assert_eq!(answer.status, expected, "{method} {headers:?} {body}");
            }
        }
    }

    /// Of several things that are wrong, the one that is checked first is reported.
    #[tokio::test]
    async fn checks_come_in_the_order_of_the_list() {
        let server = TestServer::start();
        let wrong = [
            (("host", "evil.test"), 403, 403),
            (("content-type", "text/plain"), 415, -32600),
            (("body", "too large"), 413, -32600),
            (("body", "no JSON"), 400, -32700),
            (("idempotency-key", ""), 400, -32600),
            (("accept", "text/html"), 406, -32600),
            (("mcp-protocol-version", "1999-01-01"), 400, -32022),
            (("mcp-session-id", "unknown"), 404, 404),
        ];
        for first in 0..wrong.len() {
            let mut body = LIST.to_owned();
            let mut headers = Vec::new();
            for ((name, value), ..) in wrong[first..].iter().rev() {
                match (*name, *value) {
                    ("body", "too large") => body = " ".repeat(2000),
                    ("body", text) => body = text.to_owned(),
                    header => headers.push(header),
                }
            }
            let answer = server.send("POST", "/mcp", &headers, body).await;
            let (_, status, number) = wrong[first];
            assert_eq!(answer.status, status, "{:?}", wrong[first]);
            assert_eq!(answer.error_number().await, number, "{:?}", wrong[first]);
        }
    }

    #[tokio::test]
    async fn every_response_names_its_request_and_only_an_allowed_page_can_read_it() {
        let server = TestServer::start();
        // A method that a path does not take, and a path that there is not, do nothing that a page could want.
        for (method, path, status, is_checked) in [
            ("POST", "/mcp", 400, true),
            ("PUT", "/mcp", 405, false),
            ("HEAD", "/mcp", 405, true),
            ("OPTIONS", "/mcp", 204, true),
            ("OPTIONS", "/rpc", 204, true),
            ("OPTIONS", "/metrics", 405, false),
            ("GET", "/healthz", 200, false),
            ("GET", "/nothing", 404, false),
        ] {
            for (origin, is_allowed) in
                [(None, true), (Some("http://localhost"), true), (Some("http://a"), false)]
            {
                let mut headers = vec![("x-request-id", "mine")];
                headers.extend(origin.map(|origin| ("origin", origin)));
                let answer = server.send(method, path, &headers, "").await;
                let expected = if is_allowed || !is_checked { status } else { 403 };
                assert_eq!(answer.status, expected, "{method} {path} {origin:?}");
                assert_eq!(answer.header("x-request-id"), Some("mine"), "{method} {path}");
                let readable_by = answer.header("access-control-allow-origin");
                assert_eq!(readable_by, origin.filter(|_| is_allowed && is_checked), "{method} {path}");
            }
        }
    }
}
