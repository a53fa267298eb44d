//! `POST /rpc`: the direct dialect, one request at a time, each on its own.

use std::sync::Arc;

use axum::{
    body::Body,
    http::{Response, StatusCode},
};
use pintle_contract::{Dialect, Fault, Stage};
use pintle_engine::{
    ArgumentReading, CallRequest, CancelReason, Message, Opened, Outcome, ProgressSink, Refused, Reply,
};
use rmcp::ServerHandler;

use tokio_util::sync::CancellationToken;

use super::{
    Shared,
    accept::Accepts,
    connection::Connection,
    facts::RequestFacts,
    layers::Framed,
    refusal::{empty, status},
    respond::respond,
    stream::{EventStream, ReadStyle},
};
use crate::direct;

/// The method of a cancel, where there is something to cancel.
const CANCEL: &str = "$/cancelRequest";

pub(crate) async fn post<H: ServerHandler + Clone>(
    shared: Arc<Shared<H>>,
    request: Framed,
) -> Response<Body> {
    let (parts, message) = request.into_parts();
    let accepts = Accepts::read(&parts.headers);
    let facts = RequestFacts::of(&parts.extensions);
    if accepts.nothing() {
        let message = "the reply is application/json; accept it";
        return shared.refuse_unread(StatusCode::NOT_ACCEPTABLE, message, &facts).await;
    }
    let opened = match message {
        Message::Request(opened) => opened,
        // A client that believes to have cancelled something must learn that it has not.
        Message::Notification(opened) if opened.method == CANCEL => opened,
        // Nothing is under way here that another notification or a response could be about.
        Message::Notification(_) | Message::Response(_) => return empty(StatusCode::ACCEPTED),
    };
    let fault = match opened.dialect {
        Dialect::Direct => {
            return call(shared, opened, accepts, Connection::of(&parts.extensions), &facts).await;
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
    shared.refuse(Refused { id: opened.id, method: Some(opened.method), fault }, &facts).await
}

async fn call<H: ServerHandler + Clone>(
    shared: Arc<Shared<H>>,
    mut opened: Opened,
    accepts: Accepts,
    connection: Option<CancellationToken>,
    facts: &RequestFacts,
) -> Response<Body> {
    let stream = EventStream::new(0, Arc::clone(&shared.unread));
    stream.read_by(connection);
    let (cancel, ticket) = shared.running.enter();
    if shared.options.progress_always && accepts.events && opened.meta.progress_token.is_none() {
        opened.meta.progress_token = opened.id.as_ref().map(|id| id.key().into());
    }
    let target = direct::target(opened.method);
    stream.await_authorization();
    let progress = accepts.events.then(|| -> Arc<dyn ProgressSink> {
        let (engine, listener) = (Arc::clone(&shared.engine), Arc::clone(&stream));
        Arc::new(direct::DirectProgress { engine, listener, id: opened.id.clone() })
    });
    let request = CallRequest {
        id: opened.id.clone(),
        caller: Arc::clone(&shared.caller),
        transport: facts.transport(),
        target,
        params: opened.params,
        argument_reading: ArgumentReading::Strict,
        left_out: Vec::new(),
        meta: opened.meta,
        idempotency_key: opened.idempotency_key,
        cancel: Arc::clone(&cancel),
        progress,
        reply_factor: direct::REPLY_FACTOR,
    };
    let replying = Arc::clone(&stream);
    // A task of its own, so that a call whose client leaves still comes to its end and its log record.
    tokio::spawn(async move {
        let _ticket = ticket;
        let Reply { outcome, reservation, .. } = shared.engine.call(request).await;
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
