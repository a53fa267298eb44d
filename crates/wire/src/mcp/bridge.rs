//! The one bridge to the SDK, whatever transport a client uses.
//!
//! A **bridge** takes a client's messages to the SDK and the SDK's messages back to the client. It gives each request a
//! number of its own, because the SDK cannot hold every id that JSON-RPC allows; it puts the client's id back, cancels,
//! and logs what no handler has answered. Where a reply goes is for the transport to say ([`ReplyTo`]): a pipe, the
//! stream of a session, the single response of a stateless request.

use std::{
    future::Future,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use parking_lot::Mutex;
use pintle_engine::{Engine, Incoming};
use pintle_rpc::{Opened, RequestId};
use pintle_tool::{CancelReason, ProgressSink};
use rmcp::{
    RoleServer,
    model::{
        ClientJsonRpcMessage, ErrorData, GetExtensions, JsonRpcMessage, NumberOrString, ServerJsonRpcMessage,
        ServerNotification, ServerResult,
    },
    service::{DynService, OriginatingRequestId, ServiceExt},
    transport::Transport,
};
use serde_json::{Value, json};
use tokio::{
    runtime::Handle,
    sync::{Notify, mpsc},
};

use super::{
    McpProgress, McpRequest,
    message::{self, ParamsError},
};
use crate::{
    calls::{Calls, PendingCall},
    json_rpc::{Listener, ReplyFrame},
};

/// How many messages may wait for the SDK before their senders do.
const WAITING: usize = 64;

/// Where the reply to a request goes, and what the server says about the request before it.
pub(crate) trait ReplyTo: Clone + Send + Sync + 'static {
    /// Takes the one reply; `error` is set if it is an error. Whatever decides on the order of frames happens before
    /// the future is awaited.
    fn reply(
        &self,
        frame: ReplyFrame,
        error: Option<&ErrorData>,
    ) -> impl Future<Output = Result<(), Gone>> + Send + use<Self>;

    /// Takes a notification or a request of the server.
    fn send(&self, frame: String) -> impl Future<Output = Result<(), Gone>> + Send + use<Self>;

    /// No reply will come.
    fn end(&self) {}

    /// Who receives the progress of the call.
    fn listener(&self) -> impl Listener;

    /// Whether a missing scope shows outside the reply.
    const SHOWS_MISSING_SCOPES: bool;
}

/// Nobody reads the replies any more.
#[derive(Debug)]
pub(crate) struct Gone;

impl std::fmt::Display for Gone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("nobody reads the replies any more")
    }
}

impl std::error::Error for Gone {}

/// What the bridge needs to answer a request that it has given to the SDK.
pub(crate) struct McpCall<R> {
    request: McpRequest,
    pub(crate) reply_to: R,
    progress_token: Option<Value>,
    is_handshake: bool,
    _unanswered: Unanswered,
}

impl<R> McpCall<R> {
    /// The message, if no handler has taken it.
    pub(crate) fn into_incoming(self) -> Option<Incoming> {
        self.request.take_unanswered()
    }
}

/// The calls that a bridge answers, or that are answered beside it.
pub(crate) type BridgedCalls<R> = Calls<McpCall<R>>;

/// A client's way to the SDK and back.
pub(crate) struct Bridge<R> {
    engine: Arc<Engine>,
    calls: Arc<BridgedCalls<R>>,
    /// Where messages go that are about no request.
    default_to: R,
    runtime: Handle,
    sender: Mutex<Option<mpsc::Sender<ClientJsonRpcMessage>>>,
    unanswered: Arc<Count>,
    /// The revision that the handshake agreed on.
    revision: OnceLock<String>,
    has_failed: AtomicBool,
}

/// How many requests of a bridge are not answered.
#[derive(Default)]
struct Count {
    requests: AtomicUsize,
    /// Of these, how many only listen for notifications: nothing limits how long they wait.
    listening: AtomicUsize,
    changed: Notify,
}

/// One unanswered request, counted until dropped.
pub(crate) struct Unanswered {
    count: Arc<Count>,
    listens: bool,
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        if self.listens {
            self.count.listening.fetch_sub(1, Ordering::AcqRel);
        }
        self.count.requests.fetch_sub(1, Ordering::AcqRel);
        self.count.changed.notify_waiters();
    }
}

/// Why a request did not get to the SDK. The message is still to be refused.
pub(crate) enum NotTaken {
    /// Its id belongs to one that has not been answered yet.
    IdTaken(Incoming),
    /// The params make no sense.
    BadParams(Incoming, ParamsError),
}

/// A request that is registered, on its way to the SDK.
pub(crate) struct Taken {
    pub(crate) number: i64,
    pub(crate) message: ClientJsonRpcMessage,
}

impl<R: ReplyTo> Bridge<R> {
    /// A bridge for a client that sends many messages, with the SDK's end of it.
    pub(crate) fn new(
        engine: Arc<Engine>,
        calls: Arc<BridgedCalls<R>>,
        default_to: R,
    ) -> (Arc<Self>, SdkTransport<R>) {
        let (sender, receiver) = mpsc::channel(WAITING);
        let bridge = Arc::new(Self::with(engine, calls, default_to, Some(sender)));
        let source = Source::Queue(Arc::new(tokio::sync::Mutex::new(receiver)));
        (Arc::clone(&bridge), SdkTransport { bridge, source, has_begun: false })
    }

    /// A bridge for one stateless request.
    pub(crate) fn for_one(engine: Arc<Engine>, calls: Arc<BridgedCalls<R>>, reply_to: R) -> Arc<Self> {
        Arc::new(Self::with(engine, calls, reply_to, None))
    }

    fn with(
        engine: Arc<Engine>,
        calls: Arc<BridgedCalls<R>>,
        default_to: R,
        sender: Option<mpsc::Sender<ClientJsonRpcMessage>>,
    ) -> Self {
        Self {
            engine,
            calls,
            default_to,
            sender: Mutex::new(sender),
            runtime: Handle::current(),
            unanswered: Arc::default(),
            revision: OnceLock::new(),
            has_failed: AtomicBool::new(false),
        }
    }

    /// The SDK's end for one stateless request.
    pub(crate) fn transport_for_one(self: &Arc<Self>, message: ClientJsonRpcMessage) -> SdkTransport<R> {
        SdkTransport {
            bridge: Arc::clone(self),
            source: Source::One(Some(Box::new(message))),
            has_begun: false,
        }
    }

    /// Registers a request, and makes the SDK's form of it.
    pub(crate) fn take(
        &self,
        incoming: Incoming,
        opened: Opened,
        reply_to: R,
        extend: impl FnOnce(&mut rmcp::model::Extensions),
    ) -> Result<Taken, NotTaken> {
        let Opened { id, method, params, meta, idempotency_key, .. } = opened;
        let progress_token = params["_meta"].get("progressToken").cloned();
        let task = params.get("task").cloned();
        let mut request = match message::client_request(&method, params) {
            Ok(request) => request,
            Err(problem) => {
                self.has_failed.fetch_or(method == message::INITIALIZE, Ordering::Relaxed);
                return Err(NotTaken::BadParams(incoming, problem));
            }
        };
        let cancel = Arc::clone(incoming.cancel());
        let progress: Arc<dyn ProgressSink> = Arc::new(McpProgress {
            engine: Arc::clone(&self.engine),
            listener: reply_to.listener(),
            id: id.clone(),
        });
        let mcp_request =
            McpRequest::new(incoming, meta, idempotency_key, progress, R::SHOWS_MISSING_SCOPES, task);
        let answer = McpCall {
            request: mcp_request.clone(),
            reply_to,
            progress_token,
            is_handshake: method == message::INITIALIZE,
            _unanswered: self.count(method == message::LISTEN),
        };
        let Some(number) = self.calls.enter(PendingCall { id, cancel, answer: Some(answer) }) else {
            return match mcp_request.take_unanswered() {
                Some(incoming) => Err(NotTaken::IdTaken(incoming)),
                None => unreachable!("no handler has seen the request"),
            };
        };
        let extensions = request.extensions_mut();
        extensions.insert(mcp_request);
        extend(extensions);
        let message = ClientJsonRpcMessage::request(request, NumberOrString::Number(number));
        Ok(Taken { number, message })
    }

    /// Counts a request that is answered beside the SDK, so that the end of the bridge waits for it.
    pub(crate) fn count(&self, listens: bool) -> Unanswered {
        self.unanswered.requests.fetch_add(1, Ordering::AcqRel);
        if listens {
            self.unanswered.listening.fetch_add(1, Ordering::AcqRel);
        }
        Unanswered { count: Arc::clone(&self.unanswered), listens }
    }

    /// Removes a request from the registry; `None` if it was answered already.
    pub(crate) fn remove(&self, number: i64) -> Option<PendingCall<McpCall<R>>> {
        self.calls.remove(number)
    }

    /// Takes a message to the SDK; waits while it is busy. `false` if it takes no more.
    pub(crate) async fn send(&self, message: ClientJsonRpcMessage) -> bool {
        match self.sender() {
            Some(sender) => sender.send(message).await.is_ok(),
            None => false,
        }
    }

    /// The same for a thread outside the runtime.
    pub(crate) fn send_blocking(&self, message: ClientJsonRpcMessage) -> bool {
        self.sender().is_some_and(|sender| sender.blocking_send(message).is_ok())
    }

    /// Cancels a request and forgets it: no reply to it is sent from here on. Returns the notification for the SDK. `None` if the
    /// SDK has no such request.
    pub(crate) fn forget(&self, number: i64, params: Value) -> Option<ClientJsonRpcMessage> {
        let call = self.calls.remove(number)?;
        call.cancel.cancel(CancelReason::Silent);
        if let Some(answer) = call.answer {
            answer.reply_to.end();
        }
        message::cancelled(params, number)
    }

    /// The number of a request that the SDK has.
    pub(crate) fn number_of(&self, id: &RequestId) -> Option<i64> {
        let number = self.calls.number_of(id)?;
        self.calls.inspect(number, |call| call.answer.is_some())?.then_some(number)
    }

    /// The number of a request by where its reply goes.
    pub(crate) fn find(&self, is_meant: impl Fn(&R) -> bool) -> Option<i64> {
        self.calls.find(|number, call| {
            let answer = call.answer.as_ref()?;
            is_meant(&answer.reply_to).then_some(number)
        })
    }

    /// Resolves when fewer than `limit` requests are unanswered, of those that do not only listen.
    pub(crate) async fn until_below(&self, limit: usize) {
        self.until(|requests, listening| requests.saturating_sub(listening) < limit).await;
    }

    /// Resolves when every request is answered.
    async fn until_answered(&self) {
        self.until(|requests, _| requests == 0).await;
    }

    async fn until(&self, is_met: impl Fn(usize, usize) -> bool) {
        let count = &self.unanswered;
        loop {
            let mut changed = std::pin::pin!(count.changed.notified());
            changed.as_mut().enable();
            if is_met(count.requests.load(Ordering::Acquire), count.listening.load(Ordering::Acquire)) {
                return;
            }
            changed.await;
        }
    }

    /// Whether nothing is unanswered.
    pub(crate) fn is_idle(&self) -> bool {
        self.unanswered.requests.load(Ordering::Acquire) == 0
    }

    /// Graceful shutdown: takes no more messages. What was taken is still answered; requests that only listen are
    /// ended.
    pub(crate) fn close(&self) {
        let sender = self.sender.lock().take();
        let listener = |number: i64, call: &PendingCall<McpCall<R>>| {
            call.answer.as_ref().is_some_and(|answer| answer._unanswered.listens).then_some(number)
        };
        let mut cancels = Vec::new();
        while let Some(number) = self.calls.find(listener) {
            cancels.extend(self.forget(number, json!({})));
        }
        let Some(sender) = sender else { return };
        // There may be more listeners than the channel has capacity for. The SDK's end stays open until all are sent.
        self.runtime.spawn(async move {
            for cancel in cancels {
                if sender.send(cancel).await.is_err() {
                    return;
                }
            }
        });
    }

    /// The revision that the handshake agreed on, if it has.
    pub(crate) fn revision(&self) -> Option<&str> {
        self.revision.get().map(String::as_str)
    }

    /// Whether the handshake was answered with an error.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    fn sender(&self) -> Option<mpsc::Sender<ClientJsonRpcMessage>> {
        self.sender.lock().clone()
    }

    /// Takes the answered request out of the registry. `None` if its client has cancelled it and wants no reply.
    fn settle(&self, number: &NumberOrString) -> Option<(Option<RequestId>, McpCall<R>)> {
        let NumberOrString::Number(number) = number else { return None };
        let PendingCall { id, cancel, answer } = self.calls.remove(*number)?;
        let answer = answer?;
        if cancel.reason() == Some(CancelReason::Silent) {
            answer.reply_to.end();
            return None;
        }
        Some((id, answer))
    }

    /// Routes a message of the SDK to the request that it is about. Everything that decides on the order of frames
    /// happens before the future is awaited.
    fn deliver(
        &self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Gone>> + Send + use<R> {
        let mut unlogged = None;
        let (reply, notice) = match message {
            JsonRpcMessage::Response(response) => {
                if let ServerResult::InitializeResult(result) = &response.result {
                    let _ = self.revision.set(result.protocol_version.to_string());
                }
                let reply = self.settle(&response.id).map(|(id, call)| {
                    let held = call.request.take_held();
                    let frame = message::result_frame(id.as_ref(), &response.result, held.body.as_ref());
                    let bytes = frame.len();
                    unlogged = call
                        .request
                        .take_unanswered()
                        .map(|incoming| (incoming, Ok((bytes, call.is_handshake))));
                    let evicted = || message::evicted_frame(id.as_ref(), &response.result);
                    call.reply_to.reply(ReplyFrame::large(frame, held.reservation, evicted), None)
                });
                (reply, None)
            }
            JsonRpcMessage::Error(error) => {
                let reply = error.id.as_ref().and_then(|number| self.settle(number)).map(|(id, call)| {
                    self.has_failed.fetch_or(call.is_handshake, Ordering::Relaxed);
                    let fault = message::fault_of(&error.error);
                    unlogged = call.request.take_unanswered().map(|incoming| (incoming, Err(fault)));
                    let frame = message::error_frame(id.as_ref(), &error.error);
                    call.reply_to.reply(ReplyFrame::short(frame), Some(&error.error))
                });
                (reply, None)
            }
            other => {
                let to = self.subject_of(&other).unwrap_or_else(|| self.default_to.clone());
                let id_of = |number| self.calls.inspect(number, |call| call.id.clone()).flatten();
                (None, Some(to.send(message::notice_frame(&other, id_of))))
            }
        };
        async move {
            match unlogged {
                Some((incoming, Ok((bytes, is_handshake)))) => {
                    incoming.acknowledge(if is_handshake { "initialize" } else { "protocol" }, bytes).await;
                }
                Some((incoming, Err(fault))) => {
                    let _refused = incoming.refuse(fault).await;
                }
                None => {}
            }
            match (reply, notice) {
                (Some(reply), _) => reply.await,
                (None, Some(notice)) => notice.await,
                (None, None) => Ok(()),
            }
        }
    }

    /// Where the messages about a request go that a message of the server is about, if it is about one.
    fn subject_of(&self, message: &ServerJsonRpcMessage) -> Option<R> {
        let reply_to = |call: &PendingCall<McpCall<R>>| Some(call.answer.as_ref()?.reply_to.clone());
        match message {
            JsonRpcMessage::Request(request) => {
                let NumberOrString::Number(number) =
                    request.request.extensions().get::<OriginatingRequestId>()?.0
                else {
                    return None;
                };
                self.calls.inspect(number, reply_to).flatten()
            }
            JsonRpcMessage::Notification(notification) => match &notification.notification {
                ServerNotification::ProgressNotification(progress) => {
                    let token = serde_json::to_value(&progress.params.progress_token).ok()?;
                    let has_token = |call: &PendingCall<McpCall<R>>| {
                        call.answer
                            .as_ref()
                            .is_some_and(|answer| answer.progress_token.as_ref() == Some(&token))
                    };
                    self.calls.find(|_, call| has_token(call).then(|| reply_to(call)).flatten())
                }
                _ => None,
            },
            _ => None,
        }
    }
}

/// Where the SDK's end takes a client's messages from.
enum Source {
    Queue(Arc<tokio::sync::Mutex<mpsc::Receiver<ClientJsonRpcMessage>>>),
    One(Option<Box<ClientJsonRpcMessage>>),
}

/// The SDK's end of a bridge.
pub(crate) struct SdkTransport<R> {
    bridge: Arc<Bridge<R>>,
    source: Source,
    /// Whether a request has come: the SDK gives up on a client that begins with anything else.
    has_begun: bool,
}

impl<R: ReplyTo> SdkTransport<R> {
    /// Has services answer until the bridge is closed and everything is answered. A client whose handshake failed may
    /// try again, with the next service.
    pub(crate) async fn serve(self, service: impl Fn() -> Box<dyn DynService<RoleServer>>) {
        let Source::Queue(receiver) = self.source else { return };
        loop {
            {
                let receiver = receiver.lock().await;
                if receiver.is_closed() && receiver.is_empty() {
                    break;
                }
            }
            let source = Source::Queue(Arc::clone(&receiver));
            let transport = SdkTransport { bridge: Arc::clone(&self.bridge), source, has_begun: false };
            if let Ok(running) = service().serve(transport).await {
                let _ = running.waiting().await;
            }
        }
        self.bridge.until_answered().await;
    }
}

impl<R: ReplyTo> Transport<RoleServer> for SdkTransport<R> {
    type Error = Gone;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Gone>> + Send + 'static {
        self.bridge.deliver(message)
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            let message = match &mut self.source {
                Source::Queue(receiver) => receiver.lock().await.recv().await,
                Source::One(message) => message.take().map(|message| *message),
            };
            let Some(message) = message else {
                // The SDK would give up on what still runs after a few seconds.
                self.bridge.until_answered().await;
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
