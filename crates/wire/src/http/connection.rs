//! One connection, from its first byte to its last, however slow its other end is.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::{
    Router,
    http::{Extensions, Request},
};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::Sleep,
};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

/// How long a client may take over the head of a request, or be silent between two of them.
const HEAD_PATIENCE: Duration = Duration::from_secs(30);
/// How long a client may refuse to take a byte of what is sent to it.
const WRITE_PATIENCE: Duration = Duration::from_secs(30);
/// How much is read ahead of a request.
const READ_AHEAD: usize = 64 << 10;

/// Serves a connection until either end closes it. When the server stops, the request under way is
/// still answered.
pub(crate) async fn serve(socket: TcpStream, router: Router, stopping: CancellationToken) {
    // Replies are written whole; waiting for more to send only delays them.
    let _ = socket.set_nodelay(true);
    let connection = Connection(CancellationToken::new());
    let closed = connection.0.clone();
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(connection.clone());
        let router = router.clone();
        async move { router.oneshot(request).await }
    });
    let io = TokioIo::new(Impatient { socket, stalled: None });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_PATIENCE)
        .max_buf_size(READ_AHEAD)
        .serve_connection(io, service);
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        // A connection that breaks ends like any other.
        _ = connection.as_mut() => return,
        () = closed.cancelled() => return,
        () = stopping.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    tokio::select! {
        _ = connection => {}
        () = closed.cancelled() => {}
    }
}

/// Closes a connection, whatever is still to be sent. Travels with its requests.
#[derive(Clone)]
pub(crate) struct Connection(CancellationToken);

impl Connection {
    /// The connection that a request came by.
    pub(crate) fn of(extensions: &Extensions) -> Option<CancellationToken> {
        extensions.get::<Self>().map(|connection| connection.0.clone())
    }
}

/// A socket that gives up on a client that takes nothing.
struct Impatient {
    socket: TcpStream,
    /// Runs while the client takes nothing.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl Impatient {
    fn patiently<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(WRITE_PATIENCE)));
        ready!(stalled.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Impatient {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(context, buffer)
    }
}

impl AsyncWrite for Impatient {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write(context, bytes);
        self.patiently(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write_vectored(context, slices);
        self.patiently(context, written)
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
