//! Authentication over HTTP: bearer tokens (RFC 6750).
//!
//! Every request to a path that does something passes [`authenticate`], which puts its [`Caller`] into the request's
//! extensions. There is no caller without it, so no handler can forget to ask.

mod challenge;
mod header;
mod jwks;
mod metadata;

pub use jwks::{JwksOptions, JwksTokens, NotAnIssuer};

use std::{net::SocketAddr, sync::Arc};

use axum::{
    extract::{Request, State},
    http::{Extensions, HeaderMap, Method},
    middleware::Next,
    response::Response,
};
use futures_util::future::BoxFuture;
use pintle_auth::{Identity, TokenError};
use pintle_contract::{DenyRules, ErrorCode, Fault, Permissions, Stage};
use pintle_tool::Caller;

pub(crate) use challenge::{MissingScope, register};
pub(crate) use metadata::protected_resource;

use super::{
    ServerState,
    rejection::{Reason, Rejection},
};

/// Who may call.
pub enum Authentication {
    /// Anybody, as this caller.
    Anyone(Arc<Caller>),
    /// Whoever bears a token.
    Tokens(Tokens),
}

/// How tokens are checked, and what they are worth here.
pub struct Tokens {
    /// What checks them.
    pub verifier: Arc<dyn TokenVerifier>,
    /// What no token grants.
    pub denied: Arc<DenyRules>,
    /// Where a client gets one.
    pub source: TokenSource,
}

/// Where a client gets a token.
#[derive(Clone, Debug)]
pub enum TokenSource {
    /// From whoever runs the server: there is no authorization server to be found.
    Operator,
    /// From an authorization server, which the server's metadata names (RFC 9728).
    AuthorizationServer {
        /// The issuer.
        issuer: String,
        /// The address of this server, as clients know it; without a final slash. If there is none, it is the address
        /// that is served on.
        public_url: Option<String>,
    },
}

/// Checks tokens.
pub trait TokenVerifier: Send + Sync {
    /// Who bears a token.
    fn verify<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Arc<Identity>, TokenError>>;
}

impl Authentication {
    /// Where a client gets a token, if it needs one.
    pub(crate) fn source(&self) -> Option<&TokenSource> {
        match self {
            Self::Anyone(_) => None,
            Self::Tokens(tokens) => Some(&tokens.source),
        }
    }

    /// Where the server is found, unless it has another address for its clients.
    pub(crate) fn served_on(&mut self, address: SocketAddr) {
        if let Self::Tokens(Tokens { source: TokenSource::AuthorizationServer { public_url, .. }, .. }) = self
        {
            public_url.get_or_insert_with(|| format!("http://{address}"));
        }
    }

    async fn caller(&self, headers: &HeaderMap) -> Result<Arc<Caller>, TokenError> {
        match self {
            Self::Anyone(caller) => Ok(Arc::clone(caller)),
            Self::Tokens(tokens) => {
                let identity = tokens.verifier.verify(header::bearer_token(headers)?).await?;
                let permissions = Permissions::new(identity.scopes.clone(), Arc::clone(&tokens.denied));
                let caller =
                    Caller::known_as(Arc::clone(&identity.name)).with_subject(Arc::clone(&identity.subject));
                Ok(Arc::new(caller.restricted_to(permissions)))
            }
        }
    }
}

/// The caller of a request.
#[derive(Clone)]
struct Authenticated(Arc<Caller>);

/// Refuses a request without a valid token.
pub(crate) async fn authenticate(
    State(state): State<Arc<ServerState>>,
    mut request: Request,
    next: Next,
) -> Result<Response, Rejection> {
    // A browser sends a preflight without any token.
    if request.method() == Method::OPTIONS {
        return Ok(next.run(request).await);
    }
    let caller = match state.authentication.caller(request.headers()).await {
        Ok(caller) => caller,
        Err(error) => {
            // Whoever floods the server without a token has its turns, too.
            let _turn = state.turn(&state.unknown_caller).await;
            let reason = refusal(&error, state.authentication.source(), request.uri().path());
            return Err(reason.reject(state.unopened(request.extensions(), 0)).await);
        }
    };
    request.extensions_mut().insert(Authenticated(caller));
    let mut response = next.run(request).await;
    challenge::add_missing_scope(&mut response, state.authentication.source());
    Ok(response)
}

fn refusal(error: &TokenError, source: Option<&TokenSource>, path: &str) -> Reason {
    if *error == TokenError::NoKeys {
        // The client's token may be good, so it is not told to get another.
        let fault = Fault::new(ErrorCode::UpstreamFailed, error.to_string());
        let fault = fault.at(Stage::Authorize).hint("try again in a moment");
        return if path == "/mcp" { Reason::InReply(fault) } else { Reason::Fault(fault) };
    }
    let hint = match source {
        Some(TokenSource::AuthorizationServer { issuer, .. }) => {
            format!("get a token from {issuer} and send it as `Authorization: Bearer TOKEN`")
        }
        _ => "ask whoever runs the server for a token (`pintle token mint --scope 'read:/'` prints one), and send it as \
              `Authorization: Bearer TOKEN`"
            .to_owned(),
    };
    let fault = Fault::new(ErrorCode::Unauthorized, error.to_string()).at(Stage::Authorize).hint(hint);
    let challenge = source.map(|source| challenge::unauthorized(error, source));
    Reason::Unauthorized { fault, challenge }
}

impl ServerState {
    /// The caller of a request. One that was refused before it was known may do nothing.
    pub(crate) fn caller_of(&self, extensions: &Extensions) -> Arc<Caller> {
        match (extensions.get::<Authenticated>(), &self.authentication) {
            (Some(Authenticated(caller)), _) | (None, Authentication::Anyone(caller)) => Arc::clone(caller),
            (None, Authentication::Tokens(_)) => Arc::clone(&self.unknown_caller),
        }
    }
}
