//! Replies of MCP over HTTP: the last event of a request's stream.

use std::{
    future::{Future, ready},
    sync::Arc,
};

use axum::http::StatusCode;
use rmcp::ErrorData;

use crate::{
    http::{
        auth::MissingScope,
        stream::{EventStream, ReplyStatus},
    },
    json_rpc::{Listener, ReplyFrame},
    mcp::{Gone, ReplyTo},
};

/// The stream that a reply goes to.
#[derive(Clone)]
pub(crate) struct StreamReply {
    pub(crate) stream: Arc<EventStream>,
    /// The status of a response that is an error and nothing else.
    pub(crate) status: fn(&ErrorData) -> StatusCode,
}

impl ReplyTo for StreamReply {
    const SHOWS_MISSING_SCOPES: bool = true;

    fn reply(
        &self,
        reply: ReplyFrame,
        error: Option<&ErrorData>,
    ) -> impl Future<Output = Result<(), Gone>> + Send + use<> {
        let missing = |error: &ErrorData| MissingScope::of(error.data.as_ref()?.get("details"));
        let status = ReplyStatus {
            code: error.map_or(StatusCode::OK, self.status),
            missing_scope: error.and_then(missing),
        };
        self.stream.reply(reply.frame, status, reply.reservation);
        ready(Ok(()))
    }

    fn send(&self, frame: String) -> impl Future<Output = Result<(), Gone>> + Send + use<> {
        self.stream.push(frame);
        ready(Ok(()))
    }

    fn end(&self) {
        self.stream.end();
    }

    fn listener(&self) -> impl Listener {
        Arc::clone(&self.stream)
    }
}

/// The stream of the reply that a request waits for. Travels with the request to its handler.
#[derive(Clone)]
pub struct ReplyStream(pub(super) Arc<EventStream>);

impl ReplyStream {
    /// Closes the connection of the stream. Its client may resume it for the reply.
    pub fn close(&self) {
        self.0.disconnect_reader();
    }

    /// The call cannot be refused for want of a scope any more, so its response may begin before its reply. For
    /// calls that do not go through the engine, which says so itself.
    pub fn authorized(&self) {
        self.0.authorized();
    }
}
