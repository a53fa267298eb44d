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
    ServerState, cors, health, mcp, origin,
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
        .layer(from_fn(cors::let_page_read));
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

/// Keeps out web pages of other sites (CSRF), also those that got themselves a name for this address (DNS rebinding).
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
