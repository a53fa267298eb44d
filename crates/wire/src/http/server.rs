//! Accepting connections, and graceful shutdown.

use std::{
    io,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use axum::Router;
use pintle_engine::Engine;
use pintle_tool::CancelReason;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    Authentication, ServerState,
    connection::{self, Connection},
    layers,
    mcp::{Sessions, StreamReply},
    origin::Origins,
};

use crate::{
    mcp::{BridgedCalls, McpService, TaskStore},
    registry::Registry,
};

/// How HTTP is served.
#[derive(Clone, Debug)]
pub struct HttpOptions {
    /// The longest body, in bytes.
    pub max_request_bytes: usize,
    /// How long a client may take nothing of what is written to it.
    pub write_timeout: Duration,
    /// Report progress of direct calls also when it is not asked for.
    pub progress_always: bool,
    /// Who may call besides the machine's own pages.
    pub origins: Origins,
    /// How many connections may be open at the same time. For the next one, the one that was idle longest is evicted; if
    /// all are busy, it waits.
    pub connections: usize,
}

/// A server that is running.
pub struct HttpServer {
    address: SocketAddr,
    control: Control,
    tasks: TaskTracker,
}

/// What stops a server.
struct Control {
    engine: Arc<Engine>,
    sessions: Arc<Sessions>,
    calls: Arc<BridgedCalls<StreamReply>>,
    /// The calls that outlive their requests.
    mcp_tasks: Arc<TaskStore>,
    stopping: CancellationToken,
}

impl HttpServer {
    /// Starts serving whoever may call. MCP is answered by `service`.
    pub async fn start(
        address: SocketAddr,
        engine: Arc<Engine>,
        mut authentication: Authentication,
        service: Arc<dyn McpService>,
        options: HttpOptions,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        authentication.served_on(address);
        let (most, write_timeout) = (options.connections, options.write_timeout);
        let shared = ServerState::new(engine, authentication, service, options);
        let control = Control {
            engine: Arc::clone(&shared.engine),
            sessions: Arc::clone(&shared.sessions),
            calls: Arc::clone(&shared.calls),
            mcp_tasks: Arc::clone(shared.service.tasks()),
            stopping: shared.stopping.clone(),
        };
        let tasks = TaskTracker::new();
        tasks.spawn(Arc::clone(&shared.sessions).evict_idle_until_stopped(shared.stopping.clone()));
        let evicting = Arc::clone(&shared.unread).evict_under_pressure(Arc::clone(&shared.engine));
        let stopping = shared.stopping.clone();
        tasks.spawn(async move {
            // While the server drains, a client that does not read is not evicted before the end of the drain.
            tokio::select! { () = evicting => {}, () = stopping.cancelled() => {} }
        });
        let open = shared.metrics.connections.clone();
        let router = layers::router(shared);
        tasks.spawn(accept(
            listener,
            router,
            most,
            write_timeout,
            open,
            control.stopping.clone(),
            tasks.clone(),
        ));
        Ok(Self { address, control, tasks })
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Resolves when the server was stopped, every connection is closed and every task has ended.
    pub async fn ended(&mut self) {
        self.tasks.wait().await;
        self.control.mcp_tasks.all_ended().await;
    }

    /// Graceful shutdown: takes no new requests, cancels those that wait and closes what is idle. What runs goes on.
    pub fn stop_taking(&self) {
        self.tasks.close();
        self.control.stopping.cancel();
        self.control.engine.stop_waiting();
        self.control.sessions.stop_taking();
        self.control.mcp_tasks.stop();
    }

    /// Cancels what still runs.
    pub fn cancel_running(&self) {
        self.control.calls.cancel_all(CancelReason::Stopping);
        self.control.sessions.cancel_running();
        self.control.mcp_tasks.cancel_all(CancelReason::Stopping);
    }
}

async fn accept(
    listener: TcpListener,
    router: Router,
    most: usize,
    write_timeout: Duration,
    open: prometheus::IntGauge,
    stopping: CancellationToken,
    tasks: TaskTracker,
) {
    let started = Instant::now();
    let all = Arc::new(Registry::default());
    let capacity = Arc::new(Semaphore::new(most));
    loop {
        let next = async {
            let socket = take_one(&listener).await;
            if capacity.available_permits() == 0 {
                evict_longest_idle(&all);
            }
            (socket, Arc::clone(&capacity).acquire_owned().await)
        };
        let (socket, permit) = tokio::select! {
            () = stopping.cancelled() => return,
            (socket, Ok(permit)) = next => (socket, permit),
        };
        let connection = Connection::new(started);
        let registered = all.register(connection.clone());
        let (router, stopping, open) = (router.clone(), stopping.clone(), open.clone());
        tasks.spawn(async move {
            open.inc();
            connection::serve(socket, router, connection, write_timeout, stopping).await;
            open.dec();
            drop(registered);
            drop(permit);
        });
    }
}

/// Evicts the connection that was idle longest, if there is an idle one, for whoever comes next.
fn evict_longest_idle(all: &Registry<Connection>) {
    let all = all.entries();
    let idle = all.iter().filter_map(|(_, connection)| Some((connection.idle_since()?, connection)));
    if let Some((_, connection)) = idle.min_by_key(|(since, _)| *since) {
        connection.close();
    }
}

async fn take_one(listener: &TcpListener) -> TcpStream {
    // Accepting fails when there are no more file descriptors; one may be free again in a moment.
    const MOMENT: Duration = Duration::from_millis(20);
    loop {
        match listener.accept().await {
            Ok((socket, _)) => return socket,
            Err(_) => tokio::time::sleep(MOMENT).await,
        }
    }
}
