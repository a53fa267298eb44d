//! MCP on a pipe that is shared with the direct dialect. The pipe's reader has checked the envelope
//! already.

use std::sync::{Arc, Mutex, PoisonError};

use pintle_contract::RequestId;
use pintle_engine::{CancelReason, InFlight, Outlet, OutletClosed};
use rmcp::{
    RoleServer, ServerHandler, ServiceExt,
    model::{ClientJsonRpcMessage, ErrorData, JsonRpcMessage, NumberOrString, ServerJsonRpcMessage},
    transport::Transport,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{Gone, Origin, Pending, Waiting, message};
use crate::json_rpc::ReplyFrame;

/// How many messages may wait for the SDK before the reader does.
const WAITING: usize = 64;

/// The reader's end: takes messages to the SDK.
pub(crate) struct McpFeed {
    sender: Mutex<Option<mpsc::Sender<ClientJsonRpcMessage>>>,
    /// With whether the request only listens.
    pending: Arc<Pending<bool>>,
}

/// The SDK's end, before it is started.
pub(crate) struct McpRoute {
    receiver: Arc<tokio::sync::Mutex<mpsc::Receiver<ClientJsonRpcMessage>>>,
    pending: Arc<Pending<bool>>,
    in_flight: Arc<InFlight>,
    outlet: Outlet,
}

/// Both ends of a pipe's MCP.
pub(crate) fn route(in_flight: Arc<InFlight>, outlet: Outlet) -> (McpFeed, McpRoute) {
    let (sender, receiver) = mpsc::channel(WAITING);
    let pending = Arc::new(Pending::default());
    let feed = McpFeed { sender: Mutex::new(Some(sender)), pending: Arc::clone(&pending) };
    let receiver = Arc::new(tokio::sync::Mutex::new(receiver));
    (feed, McpRoute { receiver, pending, in_flight, outlet })
}

impl McpFeed {
    /// Resolves when fewer than `limit` requests wait for their replies. Those that only listen wait for as long as
    /// they like, so they do not count.
    pub(crate) async fn until_below(&self, limit: usize) {
        self.pending.until_below(limit, |listens| !listens).await;
    }

    /// Takes a request to the SDK; waits while it is busy. `Err` says what is wrong with the params.
    pub(crate) fn request(
        &self,
        method: &str,
        params: Value,
        id: RequestId,
        origin: Origin,
    ) -> Result<(), String> {
        let number = self.pending.enter(id, origin.asked.clone(), method == message::LISTEN);
        match message::request(method, params, number, origin) {
            Ok(message) => {
                // Too late: nobody will answer it, and nobody must wait for that.
                if !self.send(message) {
                    self.pending.leave(number);
                }
                Ok(())
            }
            Err(problem) => {
                self.pending.leave(number);
                Err(problem)
            }
        }
    }

    /// Takes a notification to the SDK. One that it cannot read is passed over.
    pub(crate) fn notification(&self, method: &str, params: Value) {
        if let Some(message) = message::notification(method, params) {
            self.send(message);
        }
    }

    /// Tells the SDK that a request is cancelled, and forgets it: the SDK answers nothing from here on.
    /// `false` if the SDK has no such request.
    pub(crate) fn cancelled(&self, params: Value, id: &RequestId) -> bool {
        let Some(number) = self.pending.number_of(id) else { return false };
        self.pending.leave(number);
        if let Some(message) = message::cancelled(params, number) {
            self.send(message);
        }
        true
    }

    /// Takes a client's response to the SDK.
    pub(crate) fn response(&self, message: Value) {
        if let Ok(message) = serde_json::from_value(message) {
            self.send(message);
        }
    }

    /// Takes no more. What was taken is still answered; who only listens is let go.
    pub(crate) fn close(&self) {
        let sender = self.sender.lock().unwrap_or_else(PoisonError::into_inner).take();
        while let Some(number) = self.pending.find(|listens| *listens) {
            self.pending.leave(number);
            // If there is no room, the SDK gives up on them a little later by itself.
            if let (Some(sender), Some(message)) = (&sender, message::cancelled(json!({}), number)) {
                let _ = sender.try_send(message);
            }
        }
    }

    /// `false` if the SDK takes no more.
    fn send(&self, message: ClientJsonRpcMessage) -> bool {
        let sender = self.sender.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(sender) = sender else { return false };
        sender.blocking_send(message).is_ok()
    }
}

impl McpRoute {
    /// Serves until the reader has closed its end and everything is answered.
    pub(crate) async fn serve(self, handler: impl ServerHandler + Clone) {
        // A client whose handshake failed may try again.
        while !self.is_closed().await {
            let transport = PipeTransport {
                receiver: Arc::clone(&self.receiver),
                pending: Arc::clone(&self.pending),
                in_flight: Arc::clone(&self.in_flight),
                outlet: self.outlet.clone(),
                has_begun: false,
            };
            if let Ok(running) = handler.clone().serve(transport).await {
                let _ = running.waiting().await;
            }
        }
    }

    async fn is_closed(&self) -> bool {
        let receiver = self.receiver.lock().await;
        receiver.is_closed() && receiver.is_empty()
    }
}

struct PipeTransport {
    receiver: Arc<tokio::sync::Mutex<mpsc::Receiver<ClientJsonRpcMessage>>>,
    pending: Arc<Pending<bool>>,
    in_flight: Arc<InFlight>,
    outlet: Outlet,
    /// Whether a request has come: the SDK gives up on a client that begins with anything else.
    has_begun: bool,
}

impl Transport<RoleServer> for PipeTransport {
    type Error = Gone;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Gone>> + Send + 'static {
        let (frame, failed) = self.frame(message);
        let outlet = self.outlet.clone();
        async move {
            if let Some((waiting, error)) = failed {
                waiting.asked.log(waiting.id, error).await;
            }
            let Some(frame) = frame else { return Ok(()) };
            let written = frame.write_to(&outlet).await;
            outlet.flush();
            written.map_err(|OutletClosed| Gone)
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            let Some(message) = self.receiver.lock().await.recv().await else {
                // The SDK would give up on what still runs after a few seconds.
                self.pending.until_empty().await;
                return None;
            };
            self.has_begun |= matches!(message, JsonRpcMessage::Request(_));
            if self.has_begun {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), Gone> {
        Ok(())
    }
}

impl PipeTransport {
    /// The frame of a message, unless nobody wants it; and the request that failed, if one did.
    fn frame(
        &self,
        message: ServerJsonRpcMessage,
    ) -> (Option<ReplyFrame>, Option<(Waiting<bool>, ErrorData)>) {
        match message {
            JsonRpcMessage::Response(response) => {
                let Some(waiting) = self.settle(&response.id) else { return (None, None) };
                let held = waiting.asked.take_held();
                let evicted = || message::evicted_frame(&waiting.id, &response.result);
                let frame = message::result_frame(&waiting.id, &response.result, held.result.as_ref());
                (Some(ReplyFrame::large(frame, held.reservation, evicted)), None)
            }
            JsonRpcMessage::Error(error) => {
                let Some(waiting) = error.id.as_ref().and_then(|number| self.settle(number)) else {
                    return (None, None);
                };
                let frame = message::error_frame(&waiting.id, &error.error);
                (Some(ReplyFrame::short(frame)), Some((waiting, error.error)))
            }
            other => {
                let frame = message::told_frame(&other, |number| self.pending.id_of(number));
                (Some(ReplyFrame::short(frame)), None)
            }
        }
    }

    /// The request that the client knows by its own id, which is free again from here on. None if the
    /// client has cancelled the request and wants no reply.
    fn settle(&self, number: &NumberOrString) -> Option<Waiting<bool>> {
        let waiting = self.pending.settle(number)?;
        let cancel = self.in_flight.leave(&waiting.id);
        let silent = cancel.is_some_and(|cancel| cancel.reason() == Some(CancelReason::Silent));
        (!silent).then_some(waiting)
    }
}
