//! Graceful shutdown: what runs may finish, what waits to be written is written, within limits.

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use pintle_process::Spawner;
use pintle_wire::{HttpServer, Outlet, Pipe};

use crate::ready::ReadyFile;

use super::{log::report_when_lost, signals::Signals};

/// How long the last records may take to reach a log file.
const LAST_RECORDS: Duration = Duration::from_secs(10);

/// Something that is being served.
pub(super) trait Served {
    /// Resolves when it is over.
    async fn ended(&mut self);
    /// Cancels what still runs.
    fn cancel_running(&self);
}

impl Served for Pipe {
    async fn ended(&mut self) {
        Pipe::ended(self).await;
    }

    fn cancel_running(&self) {
        Pipe::cancel_running(self);
    }
}

impl Served for HttpServer {
    async fn ended(&mut self) {
        HttpServer::ended(self).await;
    }

    fn cancel_running(&self) {
        HttpServer::cancel_running(self);
    }
}

/// Waits for what runs, and cancels it when the time is over.
pub(super) async fn drain(served: &mut impl Served, patience: Duration) {
    const CANCELLED_ENDS: Duration = Duration::from_secs(1);
    if tokio::time::timeout(patience, served.ended()).await.is_err() {
        served.cancel_running();
        let _ = tokio::time::timeout(CANCELLED_ENDS, served.ended()).await;
    }
}

/// Waits until the commands of cancelled calls have ended, unless a signal comes. What is still there when the server
/// ends is killed by its watcher at once.
pub(in crate::commands) async fn end_commands(spawner: Spawner) {
    const KILL: Duration = Duration::from_millis(500);
    let Ok(mut signals) = Signals::listen() else { return };
    tokio::select! {
        _ = tokio::time::timeout(spawner.longest_grace() + KILL, spawner.all_ended()) => {}
        () = signals.next() => {}
    }
}

/// Waits until everything is written: for as long as it takes, or until a deadline, but for a moment at
/// least. Says whether it was.
pub(super) async fn finish(outlet: &Outlet, deadline: Option<Instant>) -> bool {
    const MOMENT: Duration = Duration::from_secs(1);
    let started = Instant::now();
    loop {
        let waiting = outlet.clone();
        let finished = tokio::task::spawn_blocking(move || waiting.finish(MOMENT)).await;
        if finished.unwrap_or(true) {
            return true;
        }
        if deadline.is_some_and(|deadline| Instant::now() >= deadline.max(started + MOMENT)) {
            return false;
        }
    }
}

/// A log file of its own, and the task that says when it is lost.
pub(super) struct WatchedLog {
    log: Outlet,
    lost: tokio::task::JoinHandle<()>,
}

impl WatchedLog {
    pub(super) fn new(log: Outlet) -> Self {
        Self { lost: tokio::spawn(report_when_lost(log.clone())), log }
    }

    /// Writes the last records.
    pub(super) async fn finish(self) {
        finish(&self.log, Some(Instant::now() + LAST_RECORDS)).await;
        if self.log.is_closed() {
            let _ = self.lost.await;
        }
    }
}

/// The second signal: nothing more is waited for.
pub(super) fn end_at_once(ready: Option<ReadyFile>) -> ExitCode {
    drop(ready);
    std::process::exit(1)
}
