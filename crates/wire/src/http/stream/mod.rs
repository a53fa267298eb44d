//! What the server sends for one request, as server-sent events (SSE): progress first, the reply last.
//!
//! A **stream** holds the events until they are read, so that a slow reader holds up nobody, and a reader that lost its
//! connection can resume with `Last-Event-ID`. At most one **reader** has it at a time.

mod reader;

pub(crate) use reader::{OnDisconnect, ReadStyle, Reader, ReplyBody};

use std::{collections::VecDeque, sync::Arc, time::Duration};

use axum::http::StatusCode;
use bytes::Bytes;
use parking_lot::Mutex;
use pintle_engine::Reservation;
use tokio::{sync::Notify, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{
    auth::MissingScope,
    unread::{RegisteredReply, UnreadReplies},
};
use crate::json_rpc::Listener;

/// How many events besides the reply may wait for a reader; older ones are superseded.
const HELD: usize = 64;
/// How many bytes they may have together.
const HELD_BYTES: usize = 64 << 10;

/// The events of one stream.
pub(crate) struct EventStream {
    number: u64,
    unread: Arc<UnreadReplies>,
    state: Mutex<StreamState>,
    changed: Notify,
}

/// The status of a response that holds a reply alone.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReplyStatus {
    pub(crate) code: StatusCode,
    /// For a 403: the scopes that the call would have needed.
    pub(crate) missing_scope: Option<MissingScope>,
}

impl From<StatusCode> for ReplyStatus {
    fn from(code: StatusCode) -> Self {
        Self { code, missing_scope: None }
    }
}

#[derive(Default)]
struct StreamState {
    events: VecDeque<Event>,
    /// How many bytes the events besides the reply have.
    bytes: usize,
    /// How many events there have been.
    count: u64,
    /// The last one that was handed to a reader.
    delivered: u64,
    ended: Option<Instant>,
    /// The status of a response that holds the reply alone.
    status: ReplyStatus,
    /// Whether the call may still be refused for want of a scope, which shows in the status.
    awaits_authorization: bool,
    /// Which reader has the stream; they are counted from 1, and 0 is nobody.
    reader: u64,
    readers: u64,
    /// Whether somebody has read it to the end.
    was_read: bool,
    /// The connection of whoever reads, to be closed if the reply is evicted.
    connection: Option<CancellationToken>,
    /// The memory of a reply, and its registration among those that can be evicted.
    reserved: Option<(Reservation, RegisteredReply)>,
    /// When the reader last took something of the reply; at first, when the reply came.
    progress: Option<Instant>,
}

struct Event {
    number: u64,
    json: Bytes,
}

/// What a stream began with.
pub(crate) enum Beginning {
    /// The reply, and nothing else.
    Reply(ReplyStatus, Bytes),
    /// Something that the reply comes after.
    More,
    /// It ended without a reply.
    Nothing,
}

/// The SSE id of an event, which a reader sends back as `Last-Event-ID`: the stream's number and the event's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EventId {
    pub(crate) stream: u64,
    pub(crate) event: u64,
}

impl EventId {
    /// Reads what the client sends back.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let (stream, event) = text.split_once('-')?;
        let number =
            |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?;
        Some(Self { stream: number(stream)?, event: number(event)? })
    }
}

impl Listener for Arc<EventStream> {
    fn notify(&self, frame: String) {
        self.push(frame);
    }

    fn authorized(&self) {
        EventStream::authorized(self);
    }
}

impl EventStream {
    /// A stream; its number distinguishes it from others of the same session.
    pub(crate) fn new(number: u64, unread: Arc<UnreadReplies>) -> Arc<Self> {
        Arc::new(Self { number, unread, state: Mutex::default(), changed: Notify::new() })
    }

    /// The connection that reads from here on.
    pub(crate) fn read_by(&self, connection: Option<CancellationToken>) {
        self.state.lock().connection = connection;
    }

    /// Evicts the reply: drops it, and closes the connection of whoever should read it.
    pub(crate) fn evict(&self) {
        let mut state = self.state.lock();
        state.events.clear();
        state.reserved = None;
        state.ended.get_or_insert_with(Instant::now);
        state.reader = 0;
        let connection = state.connection.take();
        drop(state);
        if let Some(connection) = connection {
            connection.cancel();
        }
        self.changed.notify_waiters();
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Adds an event. Nothing can follow the reply.
    pub(crate) fn push(&self, frame: String) {
        let mut state = self.state.lock();
        if state.ended.is_some() {
            return;
        }
        if frame.len() > HELD_BYTES {
            return;
        }
        state.add(frame);
        state.bytes += state.events.back().map_or(0, |event| event.json.len());
        while state.events.len() > HELD || state.bytes > HELD_BYTES {
            let oldest = state.events.pop_front();
            state.bytes -= oldest.map_or(state.bytes, |event| event.json.len());
        }
        drop(state);
        self.changed.notify_waiters();
    }

    /// Adds the reply, which is the last event. The status counts if it is also the first.
    pub(crate) fn reply(
        self: &Arc<Self>,
        frame: String,
        status: impl Into<ReplyStatus>,
        mut reservation: Reservation,
    ) {
        reservation.shrink_to(frame.capacity());
        let registered = self.unread.register(Arc::downgrade(self));
        let mut state = self.state.lock();
        if state.ended.is_some() {
            return;
        }
        state.reserved = Some((reservation, registered));
        state.progress = Some(Instant::now());
        state.add(frame);
        state.status = status.into();
        state.ended = Some(Instant::now());
        drop(state);
        self.changed.notify_waiters();
    }

    /// The reader has taken a piece of the reply.
    fn note_progress(&self) {
        self.state.lock().progress = Some(Instant::now());
    }

    /// How long nobody has taken anything of the reply.
    pub(crate) fn stalled_for(&self) -> Duration {
        self.state.lock().progress.map_or(Duration::ZERO, |progress| progress.elapsed())
    }

    /// Ends without a reply.
    pub(crate) fn end(&self) {
        self.state.lock().ended.get_or_insert_with(Instant::now);
        self.changed.notify_waiters();
    }

    /// Closes the connection of the reader; it may resume the stream.
    pub(crate) fn disconnect_reader(&self) {
        self.state.lock().reader = 0;
        self.changed.notify_waiters();
    }

    /// Since when there is nothing more to come.
    pub(crate) fn ended(&self) -> Option<Instant> {
        self.state.lock().ended
    }

    pub(crate) fn has_reader(&self) -> bool {
        self.state.lock().reader != 0
    }

    /// The last event that was handed to a reader.
    pub(crate) fn delivered(&self) -> u64 {
        self.state.lock().delivered
    }

    /// How many events there have been.
    pub(crate) fn count(&self) -> u64 {
        self.state.lock().count
    }

    /// How many readers there have been.
    pub(crate) fn readers(&self) -> u64 {
        self.state.lock().readers
    }

    /// Whether somebody has read it to the end.
    pub(crate) fn was_read(&self) -> bool {
        self.state.lock().was_read
    }

    #[cfg(test)]
    fn bytes(&self) -> usize {
        self.state.lock().events.iter().map(|event| event.json.len()).sum()
    }

    /// The reply may be a refusal for want of a scope, whose status is another, until [`EventStream::authorized`].
    pub(crate) fn await_authorization(&self) {
        self.state.lock().awaits_authorization = true;
    }

    /// No scope is missing: the response may begin.
    pub(crate) fn authorized(&self) {
        self.state.lock().awaits_authorization = false;
        self.changed.notify_waiters();
    }

    /// Waits until no scope is missing, or something has come.
    pub(crate) async fn until_authorized(&self) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            {
                let state = self.state.lock();
                if !state.awaits_authorization || state.count > 0 || state.ended.is_some() {
                    return;
                }
            }
            changed.await;
        }
    }

    /// Waits for the first event.
    pub(crate) async fn beginning(&self) -> Beginning {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            {
                let state = self.state.lock();
                match (state.events.front(), state.ended) {
                    (Some(only), Some(_)) if state.count == 1 => {
                        return Beginning::Reply(state.status.clone(), only.json.clone());
                    }
                    (Some(_), _) => return Beginning::More,
                    (None, Some(_)) => return Beginning::Nothing,
                    (None, None) => {}
                }
            }
            changed.await;
        }
    }

    /// Waits for the end, whatever comes before it, and gives the last event.
    pub(crate) async fn last(&self) -> Option<(ReplyStatus, Bytes)> {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            {
                let state = self.state.lock();
                if state.ended.is_some() {
                    return state.events.back().map(|event| (state.status.clone(), event.json.clone()));
                }
            }
            changed.await;
        }
    }

    /// Reads the events after the given one. Whoever read before reads no more.
    pub(crate) fn read(self: &Arc<Self>, after: u64, style: ReadStyle) -> Reader {
        let mut state = self.state.lock();
        state.readers += 1;
        state.reader = state.readers;
        let generation = state.reader;
        drop(state);
        self.changed.notify_waiters();
        Reader::new(Arc::clone(self), generation, after, style)
    }
}

impl StreamState {
    fn add(&mut self, frame: String) {
        self.count += 1;
        self.events.push_back(Event { number: self.count, json: frame.into() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn text(mut reader: Reader) -> String {
        let mut text = String::new();
        while let Some(chunk) = reader.next().await {
            text.push_str(std::str::from_utf8(&chunk).expect("text"));
        }
        text
    }

    #[tokio::test]
    async fn events_come_in_order_and_nothing_follows_the_reply() {
        let stream = EventStream::new(7, Arc::default());
        stream.push("{\"progress\":1}".into());
        stream.reply("{\"result\":{}}".into(), StatusCode::OK, Reservation::default());
        stream.push("{\"progress\":2}".into());
        stream.reply("{\"result\":2}".into(), StatusCode::OK, Reservation::default());
        let style = ReadStyle { ids: true, priming: true, until: None };
        let expected = "id: 7-0\nretry: 500\ndata: \n\n\
                        id: 7-1\ndata: {\"progress\":1}\n\nid: 7-2\ndata: {\"result\":{}}\n\n";
        assert_eq!(text(stream.read(0, style)).await, expected);
        assert_eq!(text(stream.read(1, ReadStyle::default())).await, "data: {\"result\":{}}\n\n");
    }

    #[tokio::test]
    async fn a_new_reader_takes_over_and_the_old_one_ends() {
        let stream = EventStream::new(1, Arc::default());
        let mut old = stream.read(0, ReadStyle::default());
        let new = stream.read(0, ReadStyle::default());
        assert!(old.next().await.is_none());
        drop(old);
        assert!(stream.has_reader());
        stream.reply("{}".into(), StatusCode::OK, Reservation::default());
        assert_eq!(text(new).await, "data: {}\n\n");
        assert!(!stream.has_reader());
    }

    #[tokio::test]
    async fn a_reader_that_leaves_before_the_end_is_noticed_and_one_that_stays_is_not() {
        let gone = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let watch = || {
            let gone = Arc::clone(&gone);
            OnDisconnect::new(move || gone.store(true, std::sync::atomic::Ordering::Relaxed))
        };
        let stream = EventStream::new(1, Arc::default());
        stream.push("{}".into());
        let mut reader = stream.read(0, ReadStyle::default()).watched(watch());
        assert!(reader.next().await.is_some());
        drop(reader);
        assert!(gone.swap(false, std::sync::atomic::Ordering::Relaxed));
        stream.reply("{}".into(), StatusCode::OK, Reservation::default());
        text(stream.read(0, ReadStyle::default()).watched(watch())).await;
        assert!(!gone.load(std::sync::atomic::Ordering::Relaxed));
    }

    #[tokio::test]
    async fn a_reply_that_was_read_holds_no_reservation_and_its_eviction_closes_no_connection() {
        let stream = EventStream::new(1, Arc::default());
        let connection = CancellationToken::new();
        stream.read_by(Some(connection.clone()));
        stream.reply("x".repeat(1 << 20), StatusCode::OK, Reservation::default());
        assert!(stream.state.lock().reserved.is_some());
        text(stream.read(0, ReadStyle::default())).await;
        assert!(stream.was_read() && stream.state.lock().reserved.is_none() && stream.bytes() == 0);
        stream.evict();
        assert!(!connection.is_cancelled());
    }

    #[tokio::test]
    async fn a_reader_that_comes_back_with_the_last_event_gets_what_follows_it() {
        let stream = EventStream::new(3, Arc::default());
        for number in 1..=3 {
            stream.push(format!("{{\"progress\":{number}}}"));
        }
        let ids = ReadStyle { ids: true, ..ReadStyle::default() };
        let mut lost = stream.read(0, ids.clone());
        assert!(lost.next().await.is_some());
        drop(lost);
        stream.reply("{}".into(), StatusCode::OK, Reservation::default());
        for (last, expected) in [
            ("3-4", ""),
            ("3-3", "id: 3-4\ndata: {}\n\n"),
            ("3-2", "id: 3-3\ndata: {\"progress\":3}\n\nid: 3-4\ndata: {}\n\n"),
        ] {
            let id = EventId::read(last).expect("an event's id");
            assert_eq!((id.stream, id.event <= stream.count()), (3, true));
            assert_eq!(text(stream.read(id.event, ids.clone())).await, expected, "{last}");
        }
    }

    #[tokio::test]
    async fn a_priming_event_comes_first_with_an_id_to_resume_from() {
        let stream = EventStream::new(5, Arc::default());
        let priming = ReadStyle { ids: true, priming: true, until: None };
        let mut reader = stream.read(0, priming.clone());
        assert_eq!(reader.next().await.as_deref(), Some(&b"id: 5-0\nretry: 500\ndata: \n\n"[..]));
        stream.push("{\"progress\":1}".into());
        assert_eq!(reader.next().await.as_deref(), Some(&b"id: 5-1\ndata: {\"progress\":1}\n\n"[..]));
        drop(reader);
        assert_eq!(stream.delivered(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_stream_says_that_it_is_alive_and_one_that_is_to_end_ends() {
        let stop = CancellationToken::new();
        let stream = EventStream::new(1, Arc::default());
        let style = ReadStyle { until: Some(stop.clone()), ..ReadStyle::default() };
        let mut reader = stream.read(0, style);
        assert_eq!(reader.next().await.as_deref(), Some(&b":\n\n"[..]));
        stop.cancel();
        assert_eq!(reader.next().await, None);
    }

    #[tokio::test]
    async fn an_evicted_reply_closes_the_connection_and_leaves_nothing_to_read() {
        let stream = EventStream::new(1, Arc::default());
        let connection = CancellationToken::new();
        stream.read_by(Some(connection.clone()));
        stream.reply("x".repeat(1 << 20), StatusCode::OK, Reservation::default());
        let mut reader = stream.read(0, ReadStyle::default());
        stream.evict();
        assert!(connection.is_cancelled());
        assert!(
            reader.next().await.is_none() && stream.bytes() == 0 && stream.state.lock().reserved.is_none()
        );
    }

    #[tokio::test]
    async fn a_large_reply_comes_in_pieces_that_are_the_whole_together() {
        let json = format!("\"{}\"", "x".repeat(200_000));
        let stream = EventStream::new(2, Arc::default());
        stream.reply(json.clone(), StatusCode::OK, Reservation::default());
        let mut reader = stream.read(0, ReadStyle { ids: true, ..ReadStyle::default() });
        let mut found = Vec::new();
        while let Some(piece) = reader.next().await {
            assert!(piece.len() <= 64 << 10);
            found.extend_from_slice(&piece);
        }
        assert!(found == format!("id: 2-1\ndata: {json}\n\n").into_bytes());
    }

    #[test]
    fn a_reader_that_never_reads_holds_a_bounded_number_of_events() {
        let stream = EventStream::new(1, Arc::default());
        for _ in 0..10 * HELD {
            stream.push("{}".into());
        }
        assert_eq!(stream.state.lock().events.len(), HELD);
        for _ in 0..10 {
            stream.push("x".repeat(HELD_BYTES / 2));
        }
        stream.push("x".repeat(2 * HELD_BYTES));
        assert!(stream.bytes() <= HELD_BYTES);
    }

    #[test]
    fn event_ids_are_read_as_they_are_written() {
        assert_eq!(EventId::read("3-14"), Some(EventId { stream: 3, event: 14 }));
        for text in ["", "3", "3-", "-3", "3-x", "x-3", "3-1-4", "+3-+1", " 3-1"] {
            assert_eq!(EventId::read(text), None, "{text}");
        }
    }
}
