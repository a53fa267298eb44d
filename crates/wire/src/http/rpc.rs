//! `POST /rpc`: the direct dialect, one request at a time, each on its own.

use std::sync::Arc;

use axum::{
    extract::{FromRequest, Request, State},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use pintle_contract::{Fault, Stage};
use pintle_engine::{Incoming, Outcome, Reply};
use pintle_rpc::{Dialect, Opened};
use pintle_tool::{CancelReason, ProgressSink};

use super::{
    ServerState,
    auth::MissingScope,
    message::{ClientReading, Message, Posted},
    rejection::{Reason, Rejection, fault_status},
    respond::respond,
    stream::{EventStream, ReadStyle, ReplyStatus},
};
use crate::direct;

/// The method of a cancel, where there is something to cancel.
const CANCEL: &str = "$/cancelRequest";
/// What a client is refused with that accepts no reply.
const TO_ACCEPT: &str = "the reply is application/json; accept it";

/// What a `POST /rpc` asks for.
pub(crate) enum RpcMessage {
    /// A call of a tool.
    Call(Incoming, Box<Opened>, ClientReading),
    /// Nothing is under way here that a notification could be about.
    Notification(Incoming),
    /// Nothing is under way here that a response could be about.
    Response,
}

impl FromRequest<Arc<ServerState>> for RpcMessage {
    type Rejection = Rejection;

    async fn from_request(request: Request, state: &Arc<ServerState>) -> Result<Self, Rejection> {
        let Posted { message, client, .. } = Posted::read(request, state, Dialect::Direct, TO_ACCEPT).await?;
        let (incoming, opened) = match message {
            Message::Request(incoming, opened) if opened.dialect == Dialect::Direct => {
                return Ok(Self::Call(incoming, Box::new(opened), client));
            }
            // A client that believes to have cancelled something must learn that it has not.
            Message::Notification(incoming, opened) if opened.method == CANCEL => (incoming, opened),
            Message::Request(incoming, opened) => (incoming, opened),
            Message::Notification(incoming, _) => return Ok(Self::Notification(incoming)),
            Message::Response(_) => return Ok(Self::Response),
        };
        let reason = if client.accepts.nothing() {
            Reason::NotAcceptable(TO_ACCEPT)
        } else if opened.method == CANCEL {
            let message =
                "on /rpc each request stands alone, so `$/cancelRequest` has nothing to cancel here";
            Fault::invalid(Stage::Method, message)
                .hint("to cancel a call, close the connection that waits for its reply")
                .into()
        } else {
            Fault::invalid(Stage::Method, "/rpc takes the direct dialect only")
                .hint("the method is the tool's name, the params its arguments; MCP is at /mcp")
                .into()
        };
        Err(reason.reject(incoming).await)
    }
}

pub(crate) async fn post(State(state): State<Arc<ServerState>>, message: RpcMessage) -> Response {
    match message {
        RpcMessage::Call(incoming, opened, client) => call(state, incoming, *opened, client).await,
        RpcMessage::Notification(incoming) => {
            incoming.acknowledge("notification", 0).await;
            StatusCode::ACCEPTED.into_response()
        }
        RpcMessage::Response => StatusCode::ACCEPTED.into_response(),
    }
}

async fn call(
    state: Arc<ServerState>,
    incoming: Incoming,
    mut opened: Opened,
    ClientReading { accepts, connection }: ClientReading,
) -> Response {
    let stream = EventStream::new(0, Arc::clone(&state.unread));
    stream.read_by(connection);
    let cancel = Arc::clone(incoming.cancel());
    let registration = state.calls.register(None, Arc::clone(&cancel));
    if state.options.progress_always && accepts.events && opened.meta.progress_token.is_none() {
        opened.meta.progress_token = opened.id.as_ref().map(|id| id.key().into());
    }
    let target = direct::target(opened.method);
    stream.await_authorization();
    let progress = accepts.events.then(|| -> Arc<dyn ProgressSink> {
        let (engine, listener) = (Arc::clone(&state.engine), Arc::clone(&stream));
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
fn reply_status(outcome: &Outcome) -> ReplyStatus {
    match outcome {
        Outcome::Fault(fault) if !matches!(fault.stage, Stage::Run | Stage::Tool) => {
            ReplyStatus { code: fault_status(fault), missing_scope: MissingScope::of_fault(fault) }
        }
        _ => StatusCode::OK.into(),
    }
}
