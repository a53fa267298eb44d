//! `WWW-Authenticate`: what a client that was refused needs.
//!
//! A 401 always has it. A 403 has it only where an authorization server can grant more: real agents that find it
//! elsewhere begin an OAuth flow that cannot succeed, and hide the error from their model.

use std::sync::Arc;

use axum::{
    extract::State,
    http::{
        HeaderValue, StatusCode,
        header::{CONTENT_TYPE, WWW_AUTHENTICATE},
    },
    response::{IntoResponse, Response},
};
use pintle_auth::TokenError;
use pintle_contract::{Fault, Scopes, missing_scopes};
use serde_json::{Value, json};

use super::{TokenSource, metadata::metadata_url};
use crate::http::{ServerState, rejection::Reason};

/// The scopes that a refused call would have needed, for the header of its response.
#[derive(Clone, Debug)]
pub(crate) struct MissingScope(String);

impl MissingScope {
    /// The scopes that a fault names.
    pub(crate) fn of(details: Option<&Value>) -> Option<Self> {
        missing_scopes(details).map(Self)
    }

    /// The scopes that a fault names.
    pub(crate) fn of_fault(fault: &Fault) -> Option<Self> {
        Self::of(fault.details.as_ref())
    }
}

/// The challenge of a 401.
pub(super) fn unauthorized(error: &TokenError, source: &TokenSource) -> String {
    let mut challenge = match source {
        TokenSource::Operator => "Bearer realm=\"pintle\"".to_owned(),
        TokenSource::AuthorizationServer { public_url, .. } => {
            format!("Bearer resource_metadata={}", quoted(&metadata_url(public_url.as_deref())))
        }
    };
    // A request without any token is no failed attempt, and has no error code (RFC 6750, 3.1).
    if *error != TokenError::Missing {
        challenge.push_str(", error=\"invalid_token\"");
    }
    // One client shows its user this text and no other.
    let advice = match (error, source) {
        (TokenError::Missing, TokenSource::Operator) => "; `pintle token mint` prints one",
        _ => "",
    };
    challenge.push_str(&format!(", error_description={}", quoted(&format!("{error}{advice}"))));
    challenge
}

/// The answer to a client that wants to register for a login. With local tokens there is none, and some clients show
/// their user nothing but this answer.
pub(crate) async fn register(State(state): State<Arc<ServerState>>) -> Response {
    let Some(TokenSource::Operator) = state.authentication.source() else {
        return Reason::NoSuchPath.reject_unlogged().into_response();
    };
    let description = "no token was sent, and this server has no login: `pintle token mint` prints a token; send it as \
                       `Authorization: Bearer TOKEN`";
    let body = json!({"error": "access_denied", "error_description": description});
    (StatusCode::NOT_FOUND, [(CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}

/// Adds the challenge of a 403, if there is an authorization server to ask for more.
pub(super) fn add_missing_scope(response: &mut Response, source: Option<&TokenSource>) {
    let Some(TokenSource::AuthorizationServer { public_url, .. }) = source else { return };
    let Some(MissingScope(scope)) = response.extensions().get::<MissingScope>() else { return };
    if response.status() != StatusCode::FORBIDDEN {
        return;
    }
    let mut challenge = "Bearer error=\"insufficient_scope\"".to_owned();
    if can_be_asked_for(scope) {
        challenge.push_str(&format!(", scope={}", quoted(scope)));
    }
    challenge.push_str(&format!(", resource_metadata={}", quoted(&metadata_url(public_url.as_deref()))));
    if let Ok(challenge) = HeaderValue::from_str(&challenge) {
        response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    }
}

/// Whether a client can ask for these scopes. Those of a path with a space, or with a letter that is not ASCII, cannot be
/// written in a request for a token (RFC 6749, 3.3), and a part of them would be other scopes.
fn can_be_asked_for(scopes: &str) -> bool {
    let is_written = |c: char| (' '..='~').contains(&c) && !matches!(c, '"' | '\\');
    scopes.chars().all(is_written) && Scopes::parse(scopes.split(' ')).is_ok()
}

/// A quoted string of a header. What cannot stand in one, such as a letter that is not ASCII in a path, is left out.
fn quoted(text: &str) -> String {
    let plain = text.chars().filter(|c| (' '..='~').contains(c) && !matches!(c, '"' | '\\'));
    format!("\"{}\"", plain.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_says_what_is_wrong_and_where_a_token_comes_from() {
        let server = TokenSource::AuthorizationServer {
            issuer: "https://issuer.example".into(),
            public_url: Some("https://pintle.example".into()),
        };
        assert_eq!(
            unauthorized(&TokenError::Expired, &TokenSource::Operator),
            "Bearer realm=\"pintle\", error=\"invalid_token\", error_description=\"the token has expired\""
        );
        assert_eq!(
            unauthorized(&TokenError::Missing, &server),
            "Bearer resource_metadata=\"https://pintle.example/.well-known/oauth-protected-resource/mcp\", \
             error_description=\"no token was sent\""
        );
        for (scopes, expected) in [
            ("read:/a", true),
            ("write:/a write:/b/c", true),
            ("assets:read", true),
            ("read:/a b", false),
            ("read:/caf\u{e9}", false),
            ("read:/a\"b", false),
        ] {
            assert_eq!(can_be_asked_for(scopes), expected, "{scopes}");
        }
        assert_eq!(quoted("read:/a\"b\\c\u{e9}\n"), "\"read:/abc\"");
    }
}
