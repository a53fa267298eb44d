//! HTTP: `/mcp`, `/rpc`, and what a keeper of servers asks for.

mod accept;
mod connection;
mod facts;
mod gate;
mod health;
mod layers;
mod mcp;
mod origin;
mod refusal;
mod respond;
mod rpc;
mod running;
mod server;
mod stream;
mod unread;

pub use mcp::ReplyStream;
pub use origin::Origins;
pub use server::{HttpOptions, HttpServer};

use std::sync::Arc;

use health::HttpMetrics;
use mcp::Sessions;
use pintle_engine::{Caller, Engine};
use running::Running;
pub(crate) use running::Ticket;
use tokio_util::sync::CancellationToken;
use unread::UnreadReplies;

/// What all requests share.
pub(crate) struct Shared<H> {
    engine: Arc<Engine>,
    handler: H,
    options: HttpOptions,
    caller: Arc<Caller>,
    sessions: Arc<Sessions>,
    running: Arc<Running>,
    unread: Arc<UnreadReplies>,
    stopping: CancellationToken,
    metrics: HttpMetrics,
}
