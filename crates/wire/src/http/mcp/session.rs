//! One client's session, of the revisions that have them.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use axum::{
    body::Body,
    http::{Response, StatusCode},
};
use pintle_contract::RequestId;
use pintle_engine::{CancelReason, InFlight};
use rmcp::{
    RoleServer, ServerHandler, ServiceExt,
    model::{
        ClientJsonRpcMessage, ErrorData, GetExtensions, JsonRpcMessage, NumberOrString, ServerJsonRpcMessage,
        ServerNotification, ServerResult,
    },
    service::OriginatingRequestId,
    transport::Transport,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{
    http::{refusal::error_status, respond::is_events, stream::EventStream, unread::UnreadReplies},
    mcp::{Gone, HeldReply, Origin, Pending, Waiting, message},
};

/// How many messages may wait for the SDK before their senders do.
const WAITING: usize = 64;
/// How long a client that lost its connection may take to come back for its reply.
const RETURN_PATIENCE: Duration = Duration::from_secs(2);
/// How long a reply that nobody has read is kept.
const REPLY_KEPT: Duration = Duration::from_secs(60);
/// How many streams that have been read to the end are kept for readers who lost the last of it.
const READ_STREAMS_KEPT: usize = 4;
/// How many replies that nobody has read are kept.
const UNREAD_STREAMS_KEPT: usize = 32;
/// How many streams make it worth to look which are still needed.
const MANY_STREAMS: usize = 2 * (READ_STREAMS_KEPT + UNREAD_STREAMS_KEPT);

/// Our number of the request that opens a session.
const FIRST: i64 = 0;

/// Why a request did not get to the SDK.
pub(crate) enum NotTaken {
    /// The params make no sense; it says how.
    BadParams(String),
    /// The session has ended.
    Over,
}

/// A session. Its own stream, number 0, carries what belongs to no request.
pub(crate) struct Session {
    pub(crate) id: Arc<str>,
    pub(crate) in_flight: InFlight,
    pub(crate) standalone: Arc<EventStream>,
    unread: Arc<UnreadReplies>,
    sender: Mutex<Option<mpsc::Sender<ClientJsonRpcMessage>>>,
    pending: Pending<ReplyTo>,
    streams: Mutex<BTreeMap<u64, Arc<EventStream>>>,
    last_stream: AtomicU64,
    last_used: Mutex<Instant>,
    /// Ends the SDK's part, whatever still waits in it.
    over: CancellationToken,
    /// Whether the handshake failed.
    has_failed: AtomicBool,
    /// Whether the client's revision knows events that only have a name.
    knows_priming: AtomicBool,
}

/// Where the SDK's words about one request go.
#[derive(Clone)]
struct ReplyTo {
    stream: Arc<EventStream>,
    progress_token: Option<Value>,
}

impl Session {
    /// Opens a session and starts serving it. `ended` is called when it is over.
    pub(crate) fn open(
        id: Arc<str>,
        unread: Arc<UnreadReplies>,
        handler: impl ServerHandler,
        ended: impl FnOnce(&Session) + Send + 'static,
    ) -> Arc<Self> {
        let (sender, receiver) = mpsc::channel(WAITING);
        let session = Arc::new(Self {
            id,
            in_flight: InFlight::default(),
            standalone: EventStream::new(0, Arc::clone(&unread)),
            unread,
            sender: Mutex::new(Some(sender)),
            pending: Pending::default(),
            streams: Mutex::default(),
            last_stream: AtomicU64::new(0),
            last_used: Mutex::new(Instant::now()),
            over: CancellationToken::new(),
            has_failed: AtomicBool::new(false),
            knows_priming: AtomicBool::new(false),
        });
        let transport = SessionTransport { session: Arc::clone(&session), receiver };
        let served = Arc::clone(&session);
        tokio::spawn(async move {
            if let Ok(running) = handler.serve_with_ct(transport, served.over.clone()).await {
                let _ = running.waiting().await;
            }
            served.close();
            ended(&served);
        });
        session
    }

    /// Takes a request to the SDK, and gives our number for it.
    pub(crate) async fn request(
        &self,
        method: &str,
        params: Value,
        id: RequestId,
        stream: Arc<EventStream>,
        origin: Origin,
    ) -> Result<i64, NotTaken> {
        let progress_token = params["_meta"].get("progressToken").cloned();
        let number = self.pending.enter(id, origin.asked.clone(), ReplyTo { stream, progress_token });
        match message::request(method, params, number, origin) {
            Ok(message) => {
                if !self.send(message).await {
                    self.pending.leave(number);
                    return Err(NotTaken::Over);
                }
                Ok(number)
            }
            Err(problem) => {
                self.pending.leave(number);
                // Only the handshake can be the first.
                self.has_failed.fetch_or(number == FIRST, Ordering::Relaxed);
                Err(NotTaken::BadParams(problem))
            }
        }
    }

    /// Takes a notification to the SDK. One that it cannot read is passed over.
    pub(crate) async fn notification(&self, method: &str, params: Value) {
        if let Some(message) = message::notification(method, params) {
            self.send(message).await;
        }
    }

    /// Takes a client's response to the SDK.
    pub(crate) async fn response(&self, message: Value) {
        if let Ok(message) = serde_json::from_value(message) {
            self.send(message).await;
        }
    }

    /// The client wants no reply to this request any more.
    pub(crate) async fn cancelled(&self, params: Value, id: &RequestId) {
        if let Some(number) = self.pending.number_of(id) {
            self.forget(number, params).await;
        }
    }

    /// The client is gone. One that may return has a moment to do so.
    pub(crate) fn abandoned(self: &Arc<Self>, number: i64, stream: Arc<EventStream>, may_return: bool) {
        if stream.ended().is_some() {
            return;
        }
        let session = Arc::clone(self);
        let readers = stream.readers();
        tokio::spawn(async move {
            if may_return {
                tokio::time::sleep(RETURN_PATIENCE).await;
            }
            // Whoever came back and left again has a moment of their own.
            let has_returned = stream.readers() != readers;
            if !stream.has_reader() && !has_returned && stream.ended().is_none() {
                session.forget(number, json!({})).await;
            }
        });
    }

    /// Cancels a request that nobody wants answered.
    async fn forget(&self, number: i64, params: Value) {
        let Some(waiting) = self.pending.leave(number) else { return };
        self.in_flight.cancel(&waiting.id, CancelReason::Silent);
        self.in_flight.leave(&waiting.id);
        waiting.reply_to.stream.end();
        if let Some(message) = message::cancelled(params, number) {
            self.send(message).await;
        }
    }

    /// A stream for a request's reply.
    pub(crate) fn new_stream(&self) -> Arc<EventStream> {
        let number = self.last_stream.fetch_add(1, Ordering::Relaxed) + 1;
        EventStream::new(number, Arc::clone(&self.unread))
    }

    /// Keeps a stream for readers who lose their connection.
    pub(crate) fn keep(&self, stream: &Arc<EventStream>) {
        let mut streams = self.streams();
        streams.insert(stream.number(), Arc::clone(stream));
        if streams.len() > MANY_STREAMS {
            tidy(&mut streams);
        }
    }

    /// A request's response is decided: one that was answered at once has nothing to come back for.
    pub(crate) fn settled(&self, stream: &EventStream, response: &Response<Body>) {
        if !is_events(response) {
            self.streams().remove(&stream.number());
        }
    }

    /// Our number for the request whose reply goes to a stream.
    pub(crate) fn number_of(&self, stream: &Arc<EventStream>) -> Option<i64> {
        self.pending.find(|reply_to| Arc::ptr_eq(&reply_to.stream, stream))
    }

    /// A stream that a reader wants to come back to.
    pub(crate) fn stream(&self, number: u64) -> Option<Arc<EventStream>> {
        match number {
            0 => Some(Arc::clone(&self.standalone)),
            _ => self.streams().get(&number).cloned(),
        }
    }

    /// Whether the handshake was answered with an error.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    fn learn_revision(&self, version: &str) {
        const PRIMING_SINCE: &str = "2025-11-25";
        self.knows_priming.store(version >= PRIMING_SINCE, Ordering::Relaxed);
    }

    pub(crate) fn knows_priming(&self) -> bool {
        self.knows_priming.load(Ordering::Relaxed)
    }

    /// The session was used just now.
    pub(crate) fn touch(&self) {
        *self.last_used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Since when nobody has used the session; none while something runs or listens.
    pub(crate) fn idle_since(&self) -> Option<Instant> {
        let is_idle = self.pending.is_empty() && !self.standalone.has_reader();
        is_idle.then(|| *self.last_used.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Lets go of replies that nobody has come for.
    pub(crate) fn tidy(&self) {
        tidy(&mut self.streams());
    }

    /// Takes no more. What was taken is still answered.
    pub(crate) fn close(&self) {
        *self.sender.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.standalone.end();
    }

    /// Ends the session with all that it does; nobody wants the replies.
    pub(crate) fn end(&self) {
        self.close();
        self.in_flight.cancel_all(CancelReason::Silent);
        for reply_to in self.pending.all() {
            reply_to.stream.end();
        }
        self.streams().clear();
        self.over.cancel();
    }

    async fn send(&self, message: ClientJsonRpcMessage) -> bool {
        let sender = self.sender.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match sender {
            Some(sender) => sender.send(message).await.is_ok(),
            None => false,
        }
    }

    fn streams(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<EventStream>>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends what the SDK says where it belongs. Gives the request that failed, if one did.
    fn deliver(&self, message: ServerJsonRpcMessage) -> Option<(Waiting<ReplyTo>, ErrorData)> {
        match message {
            JsonRpcMessage::Response(response) => {
                if let ServerResult::InitializeResult(result) = &response.result {
                    self.learn_revision(result.protocol_version.as_str());
                }
                self.settle(&response.id, StatusCode::OK, |id, held| {
                    message::result_frame(id, &response.result, held.result.as_ref())
                });
                None
            }
            JsonRpcMessage::Error(error) => {
                let number = error.id.as_ref()?;
                if *number == NumberOrString::Number(FIRST) {
                    self.has_failed.store(true, Ordering::Relaxed);
                }
                let status = error_status(&error.error);
                let waiting = self.settle(number, status, |id, _| message::error_frame(id, &error.error))?;
                Some((waiting, error.error))
            }
            other => {
                let stream = self.stream_of(&other).unwrap_or_else(|| Arc::clone(&self.standalone));
                stream.push(message::told_frame(&other, |number| self.pending.id_of(number)));
                None
            }
        }
    }

    /// Gives a request its reply, unless it was cancelled and its client wants none.
    fn settle(
        &self,
        number: &NumberOrString,
        status: StatusCode,
        frame: impl FnOnce(&RequestId, &HeldReply) -> String,
    ) -> Option<Waiting<ReplyTo>> {
        let waiting = self.pending.settle(number)?;
        let cancel = self.in_flight.leave(&waiting.id);
        if cancel.is_some_and(|cancel| cancel.reason() == Some(CancelReason::Silent)) {
            waiting.reply_to.stream.end();
            return None;
        }
        let held = waiting.asked.take_held();
        let frame = frame(&waiting.id, &held);
        waiting.reply_to.stream.reply(frame, status, held.reservation);
        Some(waiting)
    }

    /// The stream of the request that a message is about, if it is about one.
    fn stream_of(&self, message: &ServerJsonRpcMessage) -> Option<Arc<EventStream>> {
        match message {
            JsonRpcMessage::Request(request) => {
                let origin = request.request.extensions().get::<OriginatingRequestId>()?;
                Some(self.pending.reply_to(&origin.0)?.stream)
            }
            JsonRpcMessage::Notification(notification) => match &notification.notification {
                ServerNotification::ProgressNotification(progress) => {
                    let token = serde_json::to_value(&progress.params.progress_token).ok()?;
                    let mut waiting = self.pending.all().into_iter();
                    Some(waiting.find(|reply_to| reply_to.progress_token.as_ref() == Some(&token))?.stream)
                }
                _ => None,
            },
            _ => None,
        }
    }
}

fn tidy(streams: &mut BTreeMap<u64, Arc<EventStream>>) {
    streams.retain(|_, stream| stream.ended().is_none_or(|ended| ended.elapsed() <= REPLY_KEPT));
    for (was_read, kept) in [(true, READ_STREAMS_KEPT), (false, UNREAD_STREAMS_KEPT)] {
        let ended = streams.iter().filter(|(_, stream)| stream.ended().is_some());
        let numbers: Vec<_> =
            ended.filter(|(_, stream)| stream.was_read() == was_read).map(|(number, _)| *number).collect();
        for number in numbers.iter().rev().skip(kept) {
            streams.remove(number);
        }
    }
}

struct SessionTransport {
    session: Arc<Session>,
    receiver: mpsc::Receiver<ClientJsonRpcMessage>,
}

impl Transport<RoleServer> for SessionTransport {
    type Error = Gone;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Gone>> + Send + 'static {
        let failed = self.session.deliver(message);
        async move {
            if let Some((waiting, error)) = failed {
                waiting.asked.log(waiting.id, error).await;
            }
            Ok(())
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        match self.receiver.recv().await {
            Some(message) => Some(message),
            None => {
                // The SDK would give up on what still runs after a few seconds.
                self.session.pending.until_empty().await;
                None
            }
        }
    }

    async fn close(&mut self) -> Result<(), Gone> {
        Ok(())
    }
}
