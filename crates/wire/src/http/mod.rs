//! HTTP: `/mcp`, `/rpc`, and health, readiness and metrics for operators.

mod accept;
mod auth;
mod body;
mod connection;
mod cors;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod health;
mod layers;
mod mcp;
mod message;
mod origin;
mod rejection;
mod request_id;
mod respond;
mod rpc;
mod server;
mod stream;
#[cfg(test)]
mod testing;
mod turns;
mod unread;

pub use auth::{Authentication, JwksOptions, JwksTokens, NotAnIssuer, TokenSource, TokenVerifier, Tokens};
pub use mcp::ReplyStream;
pub use origin::{Origins, OriginsError};
pub use server::{HttpOptions, HttpServer};

use std::sync::Arc;

use health::HttpMetrics;
use mcp::{Sessions, StreamReply};
use pintle_contract::{Permissions, Scopes};
use pintle_engine::Engine;
use pintle_tool::Caller;
use tokio_util::sync::CancellationToken;
use turns::Turns;
use unread::UnreadReplies;

use crate::{
    calls::Calls,
    mcp::{BridgedCalls, McpService},
};

/// What all requests share.
pub(crate) struct ServerState {
    engine: Arc<Engine>,
    service: Arc<dyn McpService>,
    options: HttpOptions,
    authentication: Authentication,
    /// Whoever was refused before it was known who it is.
    unknown_caller: Arc<Caller>,
    sessions: Arc<Sessions>,
    /// The calls that belong to no session.
    calls: Arc<BridgedCalls<StreamReply>>,
    unread: Arc<UnreadReplies>,
    turns: Turns,
    stopping: CancellationToken,
    metrics: HttpMetrics,
}

impl ServerState {
    fn new(
        engine: Arc<Engine>,
        authentication: Authentication,
        service: Arc<dyn McpService>,
        options: HttpOptions,
    ) -> Arc<Self> {
        Arc::new(Self {
            metrics: HttpMetrics::new(engine.metrics()),
            engine,
            service,
            options,
            authentication,
            unknown_caller: Arc::new(
                Caller::known_as("unknown").restricted_to(Permissions::new(Scopes::none(), Arc::default())),
            ),
            sessions: Arc::default(),
            calls: Calls::of_many_clients(),
            unread: Arc::default(),
            turns: Turns::default(),
            stopping: CancellationToken::new(),
        })
    }
}
