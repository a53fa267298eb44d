//! One client's session, of the revisions that have them.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use axum::response::Response;
use parking_lot::{Mutex, MutexGuard};
use pintle_engine::Engine;
use pintle_rpc::RequestId;
use pintle_tool::CancelReason;
use rmcp::{model::ClientJsonRpcMessage, service::ServiceExt};
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::StreamReply;
use crate::{
    calls::Calls,
    http::{rejection::error_status, respond::is_events, stream::EventStream, unread::UnreadReplies},
    mcp::{Bridge, BridgedCalls, McpService, notification, response},
};

/// How long a client that lost its connection may take to reconnect for its reply.
const RECONNECT_GRACE: Duration = Duration::from_secs(2);
/// How long a reply that nobody has read is kept.
const REPLY_KEPT: Duration = Duration::from_secs(60);
/// How many streams that have been read to the end are kept for readers who lost the last of it.
const READ_STREAMS_KEPT: usize = 4;
/// How many replies that nobody has read are kept.
const UNREAD_STREAMS_KEPT: usize = 32;
/// With more streams than this, those that are not needed any more are evicted at once.
const MANY_STREAMS: usize = 2 * (READ_STREAMS_KEPT + UNREAD_STREAMS_KEPT);

/// A session. Its own stream, number 0, carries what belongs to no request.
pub(crate) struct Session {
    pub(crate) id: Arc<str>,
    /// The identity of the caller who opened it. For others it does not exist.
    pub(crate) owner: Box<str>,
    pub(crate) bridge: Arc<Bridge<StreamReply>>,
    pub(crate) calls: Arc<BridgedCalls<StreamReply>>,
    pub(crate) standalone: Arc<EventStream>,
    unread: Arc<UnreadReplies>,
    streams: Mutex<BTreeMap<u64, Arc<EventStream>>>,
    last_stream: AtomicU64,
    last_used: Mutex<Instant>,
    /// Ends the SDK's part, whatever still waits in it.
    over: CancellationToken,
}

impl Session {
    /// Opens a session and starts serving it. `ended` is called when it is over.
    pub(crate) fn open(
        id: Arc<str>,
        owner: &str,
        engine: Arc<Engine>,
        service: &dyn McpService,
        unread: Arc<UnreadReplies>,
        ended: impl FnOnce(&Session) + Send + 'static,
    ) -> Arc<Self> {
        let calls = Calls::of_one_client();
        let standalone = EventStream::new(0, Arc::clone(&unread));
        let default_to = StreamReply { stream: Arc::clone(&standalone), status: error_status };
        let (bridge, transport) = Bridge::new(engine, Arc::clone(&calls), default_to);
        let session = Arc::new(Self {
            id,
            owner: owner.into(),
            bridge,
            calls,
            standalone,
            unread,
            streams: Mutex::default(),
            last_stream: AtomicU64::new(0),
            last_used: Mutex::new(Instant::now()),
            over: CancellationToken::new(),
        });
        let (served, service) = (Arc::clone(&session), service.service());
        tokio::spawn(async move {
            if let Ok(running) = service.serve_with_ct(transport, served.over.clone()).await {
                let _ = running.waiting().await;
            }
            served.close();
            ended(&served);
        });
        session
    }

    /// Takes a notification to the SDK. One that it cannot read is passed over.
    pub(crate) async fn notification(&self, method: &str, params: Value) {
        if let Some(message) = notification(method, params) {
            self.bridge.send(message).await;
        }
    }

    /// Takes a client's response to the SDK.
    pub(crate) async fn response(&self, message: Value) {
        if let Some(message) = response(message) {
            self.bridge.send(message).await;
        }
    }

    /// The client wants no reply to this request any more.
    pub(crate) async fn cancelled(&self, params: Value, id: &RequestId) {
        if let Some(message) = self.bridge.number_of(id).and_then(|number| self.bridge.forget(number, params))
        {
            self.bridge.send(message).await;
        }
    }

    /// The client has disconnected. One that may reconnect has a moment to do so.
    pub(crate) fn abandoned(self: &Arc<Self>, number: i64, stream: Arc<EventStream>, may_return: bool) {
        if stream.ended().is_some() {
            return;
        }
        let session = Arc::clone(self);
        let readers = stream.readers();
        tokio::spawn(async move {
            if may_return {
                tokio::time::sleep(RECONNECT_GRACE).await;
            }
            // A client that reconnected and was lost again has a moment of its own.
            let has_returned = stream.readers() != readers;
            if !stream.has_reader() && !has_returned && stream.ended().is_none() {
                let message: Option<ClientJsonRpcMessage> = session.bridge.forget(number, json!({}));
                if let Some(message) = message {
                    session.bridge.send(message).await;
                }
            }
        });
    }

    /// A stream for a request's reply.
    pub(crate) fn new_stream(&self) -> Arc<EventStream> {
        let number = self.last_stream.fetch_add(1, Ordering::Relaxed) + 1;
        EventStream::new(number, Arc::clone(&self.unread))
    }

    /// Keeps a stream for readers that lose their connection and resume it with `Last-Event-ID`.
    pub(crate) fn keep(&self, stream: &Arc<EventStream>) {
        let mut streams = self.streams();
        streams.insert(stream.number(), Arc::clone(stream));
        if streams.len() > MANY_STREAMS {
            tidy(&mut streams);
        }
    }

    /// A request's response is decided: one that was answered at once has nothing to come back for.
    pub(crate) fn settled(&self, stream: &EventStream, response: &Response) {
        if !is_events(response) {
            self.streams().remove(&stream.number());
        }
    }

    /// Our number for the request whose reply goes to a stream.
    pub(crate) fn number_of(&self, stream: &Arc<EventStream>) -> Option<i64> {
        self.bridge.find(|reply_to| Arc::ptr_eq(&reply_to.stream, stream))
    }

    /// A stream that a reader wants to resume.
    pub(crate) fn stream(&self, number: u64) -> Option<Arc<EventStream>> {
        match number {
            0 => Some(Arc::clone(&self.standalone)),
            _ => self.streams().get(&number).cloned(),
        }
    }

    /// Whether the client's revision has SSE priming events, which have an id and no data.
    pub(crate) fn knows_priming(&self) -> bool {
        const PRIMING_SINCE: &str = "2025-11-25";
        self.bridge.revision().is_some_and(|revision| revision >= PRIMING_SINCE)
    }

    /// The session was used just now.
    pub(crate) fn touch(&self) {
        *self.last_used.lock() = Instant::now();
    }

    /// Since when nobody has used the session; none while something runs or listens.
    pub(crate) fn idle_since(&self) -> Option<Instant> {
        let is_idle = self.bridge.is_idle() && !self.standalone.has_reader();
        is_idle.then(|| *self.last_used.lock())
    }

    /// Evicts replies that nobody has come for.
    pub(crate) fn tidy(&self) {
        tidy(&mut self.streams());
    }

    /// Takes no more. What was taken is still answered.
    pub(crate) fn close(&self) {
        self.bridge.close();
        self.standalone.end();
    }

    /// Ends the session with all that it does; nobody wants the replies.
    pub(crate) fn end(&self) {
        self.close();
        while let Some(number) = self.bridge.find(|_| true) {
            // The SDK's part ends as a whole, so it need not learn of each request.
            let _ = self.bridge.forget(number, json!({}));
        }
        self.calls.cancel_all(CancelReason::Silent);
        self.streams().clear();
        self.over.cancel();
    }

    fn streams(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<EventStream>>> {
        self.streams.lock()
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

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::StatusCode;
    use pintle_engine::Reservation;

    use crate::http::{
        stream::ReadStyle,
        testing::{engine, service},
    };

    fn session() -> Arc<Session> {
        let engine = engine();
        Session::open("id".into(), "me", Arc::clone(&engine), &service(&engine), Arc::default(), |_| {})
    }

    /// A stream that has ended.
    fn replied(session: &Session) -> Arc<EventStream> {
        let stream = session.new_stream();
        session.keep(&stream);
        stream.reply("{}".into(), StatusCode::OK, Reservation::default());
        stream
    }

    #[tokio::test(start_paused = true)]
    async fn a_reply_that_nobody_reads_is_evicted_after_a_minute() {
        let session = session();
        let (unread, running) = (replied(&session), session.new_stream());
        session.keep(&running);
        tokio::time::advance(REPLY_KEPT).await;
        session.tidy();
        assert!(session.stream(unread.number()).is_some());
        tokio::time::advance(Duration::from_secs(1)).await;
        session.tidy();
        assert!(session.stream(unread.number()).is_none());
        assert!(session.stream(running.number()).is_some(), "what runs is kept");
    }

    #[tokio::test]
    async fn only_the_last_streams_are_kept_for_readers_who_come_back() {
        let session = session();
        let read: Vec<_> = (0..2 * READ_STREAMS_KEPT).map(|_| replied(&session)).collect();
        for stream in &read {
            let mut reader = stream.read(0, ReadStyle::default());
            while reader.next().await.is_some() {}
        }
        let unread: Vec<_> = (0..2 * UNREAD_STREAMS_KEPT).map(|_| replied(&session)).collect();
        session.tidy();
        for (streams, kept) in [(read, READ_STREAMS_KEPT), (unread, UNREAD_STREAMS_KEPT)] {
            let found: Vec<_> =
                streams.iter().map(|stream| session.stream(stream.number()).is_some()).collect();
            assert_eq!(found, [vec![false; kept], vec![true; kept]].concat());
        }
        assert!(session.stream(0).is_some(), "the session's own stream stays");
    }
}
