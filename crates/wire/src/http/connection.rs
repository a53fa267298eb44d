//! One connection, from its first byte to its last, however slow its other end is.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use axum::{
    Router,
    http::{Extensions, Request, Response},
};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{io::Interest, net::TcpStream};
use tokio_io_timeout::TimeoutWriter;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::respond::is_events;

/// How long a client may take to send the head of a request, or keep an idle connection open.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// How much is read ahead of a request.
const READ_AHEAD: usize = 64 << 10;

/// How long a client that has closed its end may take what is ready. It may only have said that it will send no more.
const LEAVING_GRACE: Duration = Duration::from_millis(250);

/// Serves a connection until either end closes it. Graceful shutdown: when the server stops, the request under way is
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
    let mut socket = TimeoutWriter::new(socket);
    socket.set_timeout(Some(write_timeout));
    let io = TokioIo::new(Box::pin(socket));
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(READ_AHEAD)
        // `has_left` decides whether a half-closed connection is gone. hyper would decide by what else the client sent.
        .half_close(true)
        .serve_connection(io, service);
    let mut serving = std::pin::pin!(serving);
    // Without a file descriptor to watch, a client that leaves is noticed when it is written to.
    let left = async {
        let watching = match watched {
            Ok(socket) => has_left(socket).await,
            Err(error) => Err(error),
        };
        if watching.is_err() {
            std::future::pending::<()>().await;
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
    // An idle connection may hold the beginning of a request, whose rest may never come.
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

/// Resolves when the client has closed its end and had time to take what was ready.
async fn has_left(socket: OwnedFd) -> io::Result<()> {
    let socket = TcpStream::from_std(socket.into())?;
    while !socket.ready(Interest::READABLE).await?.is_read_closed() {
        // Bytes have come, which hyper reads. Clearing the readiness makes the next turn wait for another event.
        let _ = socket.try_io(Interest::READABLE, || io::Result::<()>::Err(io::ErrorKind::WouldBlock.into()));
    }
    tokio::time::sleep(LEAVING_GRACE).await;
    Ok(())
}

/// A handle to one connection: whether it is idle, and a way to close it whatever is still to be sent. It is in the
/// extensions of the requests that come by the connection.
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

#[cfg(test)]
mod tests {
    use super::*;
    use axum::routing::get;
    use tokio::{io::AsyncWriteExt, net::TcpListener};

    /// More than the buffers of two sockets hold.
    const LARGE: usize = 64 << 20;

    #[tokio::test]
    async fn a_client_that_reads_nothing_for_the_write_timeout_is_disconnected() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let mut client = TcpStream::connect(address).await.expect("connects");
        let (socket, _) = listener.accept().await.expect("a connection");
        client.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").await.expect("sends");
        let router = Router::new().route("/", get(|| async { vec![b'x'; LARGE] }));
        let connection = Connection::new(Instant::now());
        let write_timeout = Duration::from_millis(100);
        let serving = serve(socket, router, connection, write_timeout, CancellationToken::new());
        tokio::time::timeout(Duration::from_secs(60), serving).await.expect("the connection is closed");
        drop(client);
    }
}
