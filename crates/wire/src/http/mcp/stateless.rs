//! A request that stands alone: the revisions without sessions.

use std::sync::Arc;

use axum::{http::StatusCode, response::Response};
use pintle_rpc::PROTOCOL_VERSION_KEY;
use rmcp::{
    model::{ErrorCode, ErrorData, InitializeRequestParams, ProtocolVersion},
    service::serve_directly_with_ct,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{ReplyStream, StreamReply, await_authorization, extract::McpExchange};
use crate::{
    calls::id_taken,
    http::{
        ServerState,
        rejection::{Reason, Rejection, error_status},
        respond::respond,
        stream::{EventStream, ReadStyle},
    },
    mcp::{Bridge, LISTEN, NotTaken, Taken},
};

/// Has the SDK answer one request on a stream of its own.
pub(super) async fn answer(
    state: &Arc<ServerState>,
    McpExchange { incoming, opened, client }: McpExchange,
) -> Result<Response, Rejection> {
    let stream = EventStream::new(0, Arc::clone(&state.unread));
    stream.read_by(client.connection);
    await_authorization(&stream, &opened.method);
    // Whoever only listens is released when the server stops; everything else is answered.
    let until = (opened.method == LISTEN).then(|| state.stopping.clone());
    let peer = peer(&opened.params);
    let reply_to = StreamReply { stream: Arc::clone(&stream), status: stateless_status };
    let bridge = Bridge::for_one(Arc::clone(&state.engine), Arc::clone(&state.calls), reply_to.clone());
    let extend = |extensions: &mut rmcp::model::Extensions| {
        extensions.insert(ReplyStream(Arc::clone(&stream)));
    };
    let Taken { number, message } = match bridge.take(incoming, opened, reply_to, extend) {
        Ok(taken) => taken,
        Err(NotTaken::IdTaken(incoming)) => return Err(Reason::InReply(id_taken()).reject(incoming).await),
        Err(NotTaken::BadParams(incoming, problem)) => {
            return Err(Reason::InReply(problem.into()).reject(incoming).await);
        }
    };
    let end = CancellationToken::new();
    let transport = bridge.transport_for_one(message);
    let service = serve_directly_with_ct(state.service.service(), transport, peer, end.clone());
    let ending = Arc::clone(&stream);
    let watched = Arc::clone(&bridge);
    tokio::spawn(async move {
        let _ = service.waiting().await;
        // However the SDK ends, nobody is left waiting.
        drop(bridge.remove(number));
        ending.end();
    });
    // A call that was answered with a task is out of the registry, and goes on.
    let gone = move |_| {
        let _ = watched.forget(number, json!({}));
        end.cancel();
    };
    Ok(respond(&stream, client.accepts, ReadStyle { until, ..ReadStyle::default() }, gone).await)
}

/// What the SDK would know of the client from a handshake.
fn peer(params: &Value) -> Option<InitializeRequestParams> {
    let version = params["_meta"].get(PROTOCOL_VERSION_KEY).cloned()?;
    let version: ProtocolVersion = serde_json::from_value(version).ok()?;
    let mut peer = InitializeRequestParams::default();
    peer.protocol_version = version;
    Some(peer)
}

/// The statuses that this revision has for its own errors.
fn stateless_status(error: &ErrorData) -> StatusCode {
    match error.code {
        ErrorCode::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        ErrorCode::UNSUPPORTED_PROTOCOL_VERSION
        | ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY
        | ErrorCode::HEADER_MISMATCH => StatusCode::BAD_REQUEST,
        _ => error_status(error),
    }
}
