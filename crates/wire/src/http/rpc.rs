//! `POST /rpc`: the direct dialect, one request at a time, each on its own.

use std::sync::Arc;

use axum::{
    body::Body,
    http::{Response, StatusCode},
};
use pintle_contract::{Dialect, Fault, Stage};
use pintle_engine::{
    CallRequest, CancelReason, Message, Opened, Outcome, ProgressSink, Refused, Target, Transport,
};
use rmcp::ServerHandler;

use tokio_util::sync::CancellationToken;

use super::{
    Shared,
    connection::Connection,
    layers::{Framed, frame_bytes},
    refusal::{empty, json_response, status},
    respond::{Accepts, respond},
    stream::{EventStream, ReadStyle},
};
use crate::direct;

pub(crate) async fn post<H: ServerHandler + Clone>(
    shared: Arc<Shared<H>>,
    request: Framed,
) -> Response<Body> {
    let (parts, message) = request.into_parts();
    let accepts = Accepts::read(&parts.headers);
    if accepts.nothing() {
        let message = "the reply is application/json; accept it";
        return shared.refuse_unread(StatusCode::NOT_ACCEPTABLE, message).await;
    }
    let opened = match message {
        Message::Request(opened) => opened,
        // Nothing is under way here that a notification or a response could be about.
        Message::Notification(_) | Message::Response(_) => return empty(StatusCode::ACCEPTED),
    };
    match opened.dialect {
        Dialect::Direct => call(shared, opened, accepts, Connection::of(&parts.extensions)).await,
        Dialect::Control if opened.method == "$/cancelRequest" => {
            json_response(StatusCode::OK, frame(direct::result(opened.id.as_ref(), "{}")))
        }
        Dialect::Control | Dialect::Mcp => {
            let fault = Fault::invalid(Stage::Method, "/rpc takes the direct dialect only")
                .hint("the method is the tool's name, the params its arguments; MCP is at /mcp");
            shared
                .refuse(
                    Refused { id: opened.id, method: Some(opened.method), fault },
                    frame_bytes(&parts.extensions),
                )
                .await
        }
    }
}

async fn call<H: ServerHandler + Clone>(
    shared: Arc<Shared<H>>,
    mut opened: Opened,
    accepts: Accepts,
    connection: Option<CancellationToken>,
) -> Response<Body> {
    let stream = EventStream::new(0, Arc::clone(&shared.room));
    stream.read_by(connection);
    let (cancel, ticket) = shared.running.enter();
    if shared.options.progress_always && accepts.events && opened.meta.progress_token.is_none() {
        opened.meta.progress_token = opened.id.as_ref().map(|id| id.key().into());
    }
    let target = direct::target(opened.method);
    let may_tell =
        accepts.events && (opened.meta.progress_token.is_some() || matches!(target, Target::Invoke));
    let progress = may_tell.then(|| -> Arc<dyn ProgressSink> {
        let (engine, listener) = (Arc::clone(&shared.engine), Arc::clone(&stream));
        Arc::new(direct::DirectProgress { engine, listener, id: opened.id.clone() })
    });
    let request = CallRequest {
        id: opened.id.clone(),
        caller: Arc::clone(&shared.caller),
        transport: Transport::Http,
        target,
        params: opened.params,
        meta: opened.meta,
        idempotency_key: opened.idempotency_key,
        cancel: Arc::clone(&cancel),
        progress,
    };
    let replying = Arc::clone(&stream);
    // A task of its own, so that a call whose client leaves still comes to its end and its log record.
    tokio::spawn(async move {
        let _ticket = ticket;
        let outcome = shared.engine.call(request).await;
        replying.reply(direct::reply(opened.id.as_ref(), &outcome), reply_status(&outcome));
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

fn frame(mut frame: String) -> String {
    frame.pop();
    frame
}
