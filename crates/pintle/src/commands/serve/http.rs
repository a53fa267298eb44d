//! Serving clients over HTTP, on this machine only.

use std::{process::ExitCode, sync::Arc};

use pintle_engine::Engine;
use pintle_wire::{Authentication, HttpOptions, HttpServer, McpService, Outlet};
use rustix::process::{Resource, getrlimit, setrlimit};

use super::{
    drain::{WatchedLog, drain, end_at_once},
    panel::Panel,
    signals::Signals,
};
use crate::{
    error::StartError,
    notices,
    ready::ReadyFile,
    settings::{ListenHttp, Serve},
};

pub(super) async fn serve(
    engine: Arc<Engine>,
    service: Arc<dyn McpService>,
    serve: Serve,
    (listen, authentication): (ListenHttp, Authentication),
    log: Option<Outlet>,
    panel: Option<Panel>,
) -> Result<ExitCode, StartError> {
    let address = listen.address;
    let problem = |error| StartError::Http { address, error };
    let mut signals = Signals::listen().map_err(problem)?;
    let options = HttpOptions {
        max_request_bytes: serve.max_request_bytes,
        write_timeout: serve.write_timeout,
        progress_always: serve.progress_always,
        origins: listen.origins,
        connections: connections(),
    };
    let mut server =
        HttpServer::start(listen.address, engine, authentication, service, options).await.map_err(problem)?;
    let log = log.map(WatchedLog::new);
    let ready = ReadyFile::write(serve.ready_file.clone());
    if let Some(panel) = panel {
        panel.show_for_http(server.address());
    }
    notices::plain(&format!("mcp:ready mode=http addr={}", server.address()));
    signals.next().await;
    server.stop_taking();
    tokio::select! {
        () = drain(&mut server, serve.drain) => {}
        () = signals.next() => return Ok(end_at_once(ready)),
    }
    if let Some(log) = log {
        log.finish().await;
    }
    drop(ready);
    Ok(ExitCode::SUCCESS)
}

/// How many connections may be open: as many as there can be descriptors for, within reason.
fn connections() -> usize {
    const MOST: u64 = 4096;
    /// For files, the log and the backend.
    const SPARE: u64 = 64;
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current < limit.maximum.or(Some(u64::MAX)) {
        let raised = rustix::process::Rlimit { current: limit.maximum, ..limit };
        // Where it may not be raised, fewer connections are taken.
        if setrlimit(Resource::Nofile, raised).is_ok() {
            limit = raised;
        }
    }
    // Each has one descriptor to be read and written, and one to be watched.
    let most = (limit.current.unwrap_or(u64::MAX).saturating_sub(SPARE) / 2).clamp(1, MOST);
    usize::try_from(most).unwrap_or(1)
}
