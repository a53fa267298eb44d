//! CORS: what lets a browser hand the server's responses to a web page. Which pages may call at all is decided before,
//! by [`super::origin`].

use axum::{
    extract::Request,
    http::{HeaderName, HeaderValue, StatusCode, header},
    middleware::Next,
    response::Response,
};

/// What a page may send and read, the same for every page.
const HEADERS: [(HeaderName, &str); 5] = [
    (header::VARY, "origin"),
    (
        header::ACCESS_CONTROL_EXPOSE_HEADERS,
        "mcp-session-id, mcp-protocol-version, www-authenticate, x-request-id",
    ),
    (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, DELETE"),
    (
        header::ACCESS_CONTROL_ALLOW_HEADERS,
        "accept, authorization, content-type, idempotency-key, last-event-id, mcp-method, mcp-name, \
         mcp-protocol-version, mcp-session-id, traceparent, x-request-id",
    ),
    (header::ACCESS_CONTROL_MAX_AGE, "600"),
];

/// Lets the page that called read the response.
pub(crate) async fn let_page_read(request: Request, next: Next) -> Response {
    let page = request.headers().get(header::ORIGIN).cloned();
    let mut response = next.run(request).await;
    if let Some(page) = page {
        let headers = response.headers_mut();
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, page);
        headers.extend(HEADERS.map(|(name, value)| (name, HeaderValue::from_static(value))));
    }
    response
}

/// A CORS preflight: a browser asks before it lets a page call.
pub(crate) async fn preflight() -> StatusCode {
    StatusCode::NO_CONTENT
}
