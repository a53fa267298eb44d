//! `POST /rpc`: the direct dialect, one request at a time, each on its own.

use std::sync::Arc;

use axum::{
    body::Body,
    http::{Response, StatusCode},
};
use pintle_contract::{Fault, Stage};
use pintle_engine::{Incoming, Outcome, Received, Reply};
use pintle_rpc::{Dialect, Opened};
use pintle_tool::{CancelReason, ProgressSink};
use tokio_util::sync::CancellationToken;

use super::{
    ServerState,
    accept::Accepts,
    connection::Connection,
    layers::Framed,
    refusal::{empty, refuse, refuse_with, status},
    respond::respond,
    stream::{EventStream, ReadStyle},
};
use crate::direct;

/// The method of a cancel, where there is something to cancel.
const CANCEL: &str = "$/cancelRequest";

pub(crate) async fn post(shared: Arc<ServerState>, request: Framed) -> Response<Body> {
    let (parts, received) = request.into_parts();
    let accepts = Accepts::read(&parts.headers);
    let (incoming, opened) = match received {
        Received::Request(incoming, opened) => (incoming, opened),
        // A client that believes to have cancelled something must learn that it has not.
        Received::Notification(incoming, opened) if opened.method == CANCEL => (incoming, opened),
        // Nothing is under way here that another notification or a response could be about.
        Received::Notification(incoming, _) => {
            incoming.acknowledge("notification", 0).await;
            return empty(StatusCode::ACCEPTED);
        }
        Received::Response(_) => return empty(StatusCode::ACCEPTED),
        Received::Refused(incoming, fault) => return refuse(incoming, fault).await,
    };
    if accepts.nothing() {
        let fault = Fault::invalid(Stage::Envelope, "the reply is application/json; accept it");
        return refuse_with(StatusCode::NOT_ACCEPTABLE, incoming, fault).await;
    }
    let fault = match opened.dialect {
        Dialect::Direct => {
            let connection = Connection::of(&parts.extensions);
            return call(shared, incoming, opened, accepts, connection).await;
        }
        Dialect::Control if opened.method == CANCEL => {
            let message =
                "on /rpc each request stands alone, so `$/cancelRequest` has nothing to cancel here";
            Fault::invalid(Stage::Method, message)
                .hint("to cancel a call, close the connection that waits for its reply")
        }
        Dialect::Control | Dialect::Mcp => {
            Fault::invalid(Stage::Method, "/rpc takes the direct dialect only")
                .hint("the method is the tool's name, the params its arguments; MCP is at /mcp")
        }
    };
    refuse(incoming, fault).await
}

async fn call(
    shared: Arc<ServerState>,
    incoming: Incoming,
    mut opened: Opened,
    accepts: Accepts,
    connection: Option<CancellationToken>,
) -> Response<Body> {
    let stream = EventStream::new(0, Arc::clone(&shared.unread));
    stream.read_by(connection);
    let cancel = Arc::clone(incoming.cancel());
    let registration = shared.calls.register(None, Arc::clone(&cancel));
    if shared.options.progress_always && accepts.events && opened.meta.progress_token.is_none() {
        opened.meta.progress_token = opened.id.as_ref().map(|id| id.key().into());
    }
    let target = direct::target(opened.method);
    stream.await_authorization();
    let progress = accepts.events.then(|| -> Arc<dyn ProgressSink> {
        let (engine, listener) = (Arc::clone(&shared.engine), Arc::clone(&stream));
        Arc::new(direct::DirectProgress { engine, listener, id: opened.id.clone() })
    });
    let call = direct::call(target, opened.params, opened.meta, opened.idempotency_key, progress);
    let replying = Arc::clone(&stream);
    // A task of its own, so that a call whose client leaves still comes to its end and its log record.
    tokio::spawn(async move {
        let _registration = registration;
        let Reply { outcome, reservation, .. } = incoming.call(call).await;
        let frame = direct::reply(opened.id.as_ref(), &outcome);
        replying.reply(frame, reply_status(&outcome), reservation);
    });
    let gone = move |_| {
        cancel.cancel(CancelReason::Silent);
    };
    respond(&stream, accepts, ReadStyle::default(), gone).await
}

/// Only what happened before the tool ran shows in the status. A tool that does not exist answers in
/// this dialect with a result.
fn reply_status(outcome: &Outcome) -> StatusCode {
    match outcome {
        Outcome::Fault(fault) if !matches!(fault.stage, Stage::Run | Stage::Tool) => status(fault),
        _ => StatusCode::OK,
    }
}
