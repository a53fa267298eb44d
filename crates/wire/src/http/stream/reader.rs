//! Reading a stream to one HTTP response, as events or as the reply alone.

use std::{
    collections::VecDeque,
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use http_body::{Frame, SizeHint};
use tokio_util::sync::CancellationToken;

use super::EventStream;

/// How many bytes are kept of what has been read, for a reader that lost the end of it.
const KEPT_WHEN_READ: usize = 16 << 10;
/// How often a silent stream sends an SSE comment as a keep-alive, so that both ends notice when the other is gone.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// When a reader that lost its connection should reconnect: the `retry` field of SSE.
const RETRY: Duration = Duration::from_millis(500);
/// How much is handed to a connection at a time: the rest stays in the stream, where it counts for the reply budget.
const PIECE: usize = 64 << 10;

/// How events are written.
#[derive(Clone, Default)]
pub(crate) struct ReadStyle {
    /// With SSE event ids, so that a reader can resume.
    pub(crate) ids: bool,
    /// With a priming event at the start: empty, and with an id to resume from.
    pub(crate) priming: bool,
    /// Ends when this fires, whatever is still to come.
    pub(crate) until: Option<CancellationToken>,
}

/// Reads a stream to one HTTP response.
pub(crate) struct Reader {
    stream: Arc<EventStream>,
    generation: u64,
    after: u64,
    style: ReadStyle,
    is_primed: bool,
    is_finished: bool,
    /// What has been taken from the stream but not been sent.
    pieces: VecDeque<Bytes>,
    watch: Option<OnDisconnect>,
}

/// What to do when a client disconnects before it has its reply: a drop guard.
pub(crate) struct OnDisconnect(Option<Box<dyn FnOnce() + Send>>);

impl OnDisconnect {
    pub(crate) fn new(gone: impl FnOnce() + Send + 'static) -> Self {
        Self(Some(Box::new(gone)))
    }

    /// The client has its reply.
    pub(crate) fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for OnDisconnect {
    fn drop(&mut self) {
        if let Some(gone) = self.0.take() {
            gone();
        }
    }
}

impl Reader {
    pub(super) fn new(stream: Arc<EventStream>, generation: u64, after: u64, style: ReadStyle) -> Self {
        let is_primed = !style.priming;
        Self {
            stream,
            generation,
            after,
            style,
            is_primed,
            is_finished: false,
            pieces: VecDeque::new(),
            watch: None,
        }
    }

    /// Acts if the client disconnects from here on.
    pub(crate) fn watched(mut self, watch: OnDisconnect) -> Self {
        self.watch = Some(watch);
        self
    }

    /// The body of a response.
    pub(crate) fn into_body(self) -> Body {
        Body::from_stream(stream::unfold(self, |mut reader| async move {
            let chunk = reader.next().await?;
            Some((Ok::<_, Infallible>(chunk), reader))
        }))
    }

    /// The next events, as bytes; none after the last.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        loop {
            let stream = Arc::clone(&self.stream);
            let mut changed = std::pin::pin!(stream.changed.notified());
            changed.as_mut().enable();
            if let Some(chunk) = self.take() {
                return chunk;
            }
            let until = self.style.until.clone();
            let stopped = async move {
                match until {
                    Some(until) => until.cancelled().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = changed => {}
                () = stopped => {
                    self.is_finished = true;
                    return None;
                }
                () = tokio::time::sleep(KEEP_ALIVE) => return Some(Bytes::from_static(b":\n\n")),
            }
        }
    }

    /// What can be read at once: `None` if nothing, `Some(None)` at the end.
    fn take(&mut self) -> Option<Option<Bytes>> {
        if self.pieces.is_empty() && !self.is_finished {
            self.gather();
        }
        match (self.pieces.pop_front(), self.is_finished) {
            (Some(piece), _) => {
                self.stream.note_progress();
                Some(Some(piece))
            }
            (None, true) => Some(None),
            (None, false) => None,
        }
    }

    /// Takes from the stream what is there.
    fn gather(&mut self) {
        let number = self.stream.number;
        if !self.is_primed {
            self.is_primed = true;
            let (after, retry) = (self.after, RETRY.as_millis());
            self.pieces.push_back(format!("id: {number}-{after}\nretry: {retry}\ndata: \n\n").into());
        }
        let mut state = self.stream.state.lock();
        if state.reader != self.generation {
            self.is_finished = true;
            return;
        }
        let after = self.after;
        for event in state.events.iter().filter(|event| event.number > after) {
            self.after = event.number;
            let id = if self.style.ids { format!("id: {number}-{}\n", event.number) } else { String::new() };
            if event.json.len() <= PIECE {
                let whole = [id.as_bytes(), b"data: ", &event.json, b"\n\n"].concat();
                self.pieces.push_back(whole.into());
            } else {
                self.pieces.push_back(format!("{id}data: ").into());
                self.pieces.extend(pieces(&event.json));
                self.pieces.push_back(Bytes::from_static(b"\n\n"));
            }
        }
        state.delivered = state.delivered.max(self.after);
        self.is_finished = state.ended.is_some();
    }
}

/// Slices of something large, without copying it.
fn pieces(whole: &Bytes) -> impl Iterator<Item = Bytes> + use<> {
    let whole = whole.clone();
    (0..whole.len()).step_by(PIECE).map(move |start| whole.slice(start..whole.len().min(start + PIECE)))
}

/// A body that holds a reply alone. The stream is held with it, and so is the reply's reservation.
pub(crate) struct ReplyBody {
    json: Bytes,
    stream: Arc<EventStream>,
}

impl ReplyBody {
    pub(crate) fn new(json: Bytes, stream: Arc<EventStream>) -> Self {
        Self { json, stream }
    }
}

impl http_body::Body for ReplyBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let length = self.json.len().min(PIECE);
        let piece = self.json.split_to(length);
        self.stream.note_progress();
        Poll::Ready((length > 0).then(|| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.json.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.json.len() as u64)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let is_finished = self.is_finished && self.pieces.is_empty();
        let mut state = self.stream.state.lock();
        if state.reader == self.generation {
            state.reader = 0;
            state.connection = None;
            if is_finished && state.ended.is_some() {
                state.was_read = true;
                state.reserved = None;
                // A reader that lost the end of something large has to call again.
                if state.events.iter().map(|event| event.json.len()).sum::<usize>() > KEPT_WHEN_READ {
                    state.events.clear();
                }
            }
        }
        drop(state);
        if is_finished && let Some(watch) = self.watch.take() {
            watch.disarm();
        }
    }
}
