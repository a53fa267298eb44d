//! A request that stands alone: the revisions without sessions.

use std::sync::Arc;

use axum::{
    body::Body,
    http::{Response, StatusCode},
};
use pintle_contract::{Fault, Stage};
use pintle_engine::Incoming;
use pintle_rpc::{Opened, PROTOCOL_VERSION_KEY};
use rmcp::{
    model::{ErrorCode, ErrorData, InitializeRequestParams, ProtocolVersion},
    service::serve_directly_with_ct,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{ClientReading, ReplyStream, StreamReply, await_authorization, refuse_inside};
use crate::{
    calls::id_taken,
    http::{
        ServerState,
        refusal::error_status,
        respond::respond,
        stream::{EventStream, ReadStyle},
    },
    mcp::{Bridge, LISTEN, NotTaken, Taken},
};

/// Has the SDK answer one request on a stream of its own.
pub(super) async fn answer(
    shared: &Arc<ServerState>,
    client: ClientReading,
    incoming: Incoming,
    opened: Opened,
) -> Response<Body> {
    let stream = EventStream::new(0, Arc::clone(&shared.unread));
    stream.read_by(client.connection);
    await_authorization(&stream, &opened.method);
    // Whoever only listens is released when the server stops; everything else is answered.
    let until = (opened.method == LISTEN).then(|| shared.stopping.clone());
    let peer = peer(&opened.params);
    let reply_to = StreamReply { stream: Arc::clone(&stream), status: stateless_status };
    let bridge = Bridge::for_one(Arc::clone(&shared.engine), Arc::clone(&shared.calls), reply_to.clone());
    let extend = |extensions: &mut rmcp::model::Extensions| {
        extensions.insert(ReplyStream(Arc::clone(&stream)));
    };
    let Taken { number, message } = match bridge.take(incoming, opened, reply_to, extend) {
        Ok(taken) => taken,
        Err(NotTaken::IdTaken(incoming)) => return refuse_inside(incoming, id_taken()).await,
        Err(NotTaken::BadParams(incoming, problem)) => {
            return refuse_inside(incoming, Fault::invalid(Stage::Arguments, problem)).await;
        }
    };
    let end = CancellationToken::new();
    let transport = bridge.transport_for_one(message);
    let service = serve_directly_with_ct(shared.service.service(), transport, peer, end.clone());
    let ending = Arc::clone(&stream);
    let watched = Arc::clone(&bridge);
    tokio::spawn(async move {
        let _ = service.waiting().await;
        // However the SDK ends, nobody is left waiting.
        drop(bridge.leave(number));
        ending.end();
    });
    // A call that was answered with a task is out of the registry, and goes on.
    let gone = move |_| {
        let _ = watched.forget(number, json!({}));
        end.cancel();
    };
    respond(&stream, client.accepts, ReadStyle { until, ..ReadStyle::default() }, gone).await
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
