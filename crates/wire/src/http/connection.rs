//! One connection, from its first byte to its last, however slow its other end is.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use axum::{
    Router,
    http::{Extensions, Request, Response},
};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::Sleep,
};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::respond::is_events;

/// How long a client may take over the head of a request, or be silent between two of them.
const HEAD_PATIENCE: Duration = Duration::from_secs(30);
/// How much is read ahead of a request.
const READ_AHEAD: usize = 64 << 10;

/// How often it is looked whether the client is still there. One that has left, or has only said that it will
/// send no more, gets what is ready within this time.
const LOOK: Duration = Duration::from_millis(250);

/// Serves a connection until either end closes it. When the server stops, the request under way is
/// still answered.
pub(crate) async fn serve(
    socket: TcpStream,
    router: Router,
    connection: Connection,
    write_timeout: Duration,
    stopping: CancellationToken,
) {
    // Replies are written whole; waiting for more to send only delays them.
    let _ = socket.set_nodelay(true);
    let watched = socket.as_fd().try_clone_to_owned();
    let served = connection.clone();
    let service = service_fn(move |mut request: Request<Incoming>| {
        served.0.begin();
        request.extensions_mut().insert(served.clone());
        let (router, served) = (router.clone(), served.clone());
        async move {
            let response = router.oneshot(request).await;
            if let Ok(response) = &response {
                served.0.answered(response);
            }
            response
        }
    });
    let io = TokioIo::new(WriteTimeout { socket, timeout: write_timeout, stalled: None });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_PATIENCE)
        .max_buf_size(READ_AHEAD)
        // Whether a client that sends no more is gone is decided here: there it would depend on what it sent.
        .half_close(true)
        .serve_connection(io, service);
    let mut serving = std::pin::pin!(serving);
    let left = async {
        match &watched {
            Ok(socket) => has_left(socket).await,
            Err(_) => std::future::pending().await,
        }
    };
    let mut left = std::pin::pin!(left);
    tokio::select! {
        // A connection that breaks ends like any other.
        _ = serving.as_mut() => return,
        () = left.as_mut() => return,
        () = connection.0.closed.cancelled() => return,
        () = stopping.cancelled() => {}
    }
    // Half a request that may never become a whole one is not waited for.
    if connection.0.is_idle() {
        return;
    }
    serving.as_mut().graceful_shutdown();
    tokio::select! {
        _ = serving => {}
        () = left => {}
        () = connection.0.closed.cancelled() => {}
    }
}

/// Resolves when the client has left and had time to take what was ready.
async fn has_left(socket: &OwnedFd) {
    let mut seen = false;
    loop {
        tokio::time::sleep(LOOK).await;
        let mut watched = [PollFd::new(socket, PollFlags::RDHUP)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let ended = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR;
        if matches!(poll(&mut watched, Some(&now)), Ok(1)) && watched[0].revents().intersects(ended) {
            if seen {
                return;
            }
            seen = true;
        }
    }
}

/// One connection, as others see it: it can be asked whether it is idle, and closed whatever is still to be
/// sent. Travels with its requests.
#[derive(Clone)]
pub(crate) struct Connection(Arc<ConnectionState>);

struct ConnectionState {
    closed: CancellationToken,
    /// When it became idle, in the server's count of milliseconds; 0 while it is busy.
    idle_since: AtomicU64,
    started: Instant,
}

impl ConnectionState {
    fn begin(&self) {
        self.idle_since.store(0, Ordering::Relaxed);
    }

    fn answered<B>(&self, response: &Response<B>) {
        // A stream keeps its connection busy until the next request.
        if !is_events(response) {
            let now = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
            self.idle_since.store(now.max(1), Ordering::Relaxed);
        }
    }

    fn is_idle(&self) -> bool {
        self.idle_since.load(Ordering::Relaxed) != 0
    }
}

impl Connection {
    /// A connection that has not asked for anything yet.
    pub(crate) fn new(started: Instant) -> Self {
        let now = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        Self(Arc::new(ConnectionState {
            closed: CancellationToken::new(),
            idle_since: AtomicU64::new(now.max(1)),
            started,
        }))
    }

    /// The connection that a request came by.
    pub(crate) fn of(extensions: &Extensions) -> Option<CancellationToken> {
        extensions.get::<Self>().map(|connection| connection.0.closed.clone())
    }

    /// Since when it is idle; none while it is busy.
    pub(crate) fn idle_since(&self) -> Option<u64> {
        Some(self.0.idle_since.load(Ordering::Relaxed)).filter(|since| *since != 0)
    }

    /// Closes it.
    pub(crate) fn close(&self) {
        self.0.closed.cancel();
    }
}

/// A socket that fails when its client takes nothing for the write timeout.
struct WriteTimeout {
    socket: TcpStream,
    timeout: Duration,
    /// Runs while the client takes nothing.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl WriteTimeout {
    fn within_timeout<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let timeout = self.timeout;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(timeout)));
        ready!(stalled.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for WriteTimeout {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(context, buffer)
    }
}

impl AsyncWrite for WriteTimeout {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write(context, bytes);
        self.within_timeout(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write_vectored(context, slices);
        self.within_timeout(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }
}
