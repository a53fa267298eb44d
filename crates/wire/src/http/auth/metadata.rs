//! The metadata of a protected resource (RFC 9728), by which a client finds the authorization server.

use std::sync::Arc;

use axum::{
    extract::State,
    http::{StatusCode, Uri, header},
    response::{IntoResponse, Response},
};
use serde_json::json;

use super::TokenSource;
use crate::http::{
    ServerState,
    rejection::{Reason, Rejection},
};

/// The address of the metadata, without a resource's own path.
pub(crate) const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// The address of the metadata of `/mcp`.
pub(super) fn metadata_url(public_url: Option<&str>) -> String {
    format!("{}{WELL_KNOWN}/mcp", public_url.unwrap_or_default())
}

/// Answers with the metadata of the resource whose path follows the well-known one. It is open to everybody.
pub(crate) async fn protected_resource(
    State(state): State<Arc<ServerState>>,
    uri: Uri,
) -> Result<Response, Rejection> {
    let Some(TokenSource::AuthorizationServer { issuer, public_url }) = state.authentication.source() else {
        return Err(Reason::NoSuchPath.reject_unlogged());
    };
    let path = uri.path().strip_prefix(WELL_KNOWN).unwrap_or_default();
    if !["", "/mcp", "/rpc", "/metrics"].contains(&path) {
        return Err(Reason::NoSuchPath.reject_unlogged());
    }
    let public_url = public_url.as_deref().unwrap_or_default();
    let metadata = json!({
        "resource": format!("{public_url}{path}"),
        "authorization_servers": [issuer],
        "bearer_methods_supported": ["header"],
        "scopes_supported": ["read:/", "write:/", "assets:read", "assets:publish", "metrics:read"],
        "resource_name": "Pintle",
    });
    let headers = [
        (header::CONTENT_TYPE, "application/json"),
        (header::CACHE_CONTROL, "public, max-age=3600"),
        // A page must be able to find the authorization server before it has a token.
        (header::ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
    ];
    Ok((StatusCode::OK, headers, metadata.to_string()).into_response())
}
