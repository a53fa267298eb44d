//! All sessions of a server.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use pintle_engine::Engine;
use pintle_tool::CancelReason;
use tokio_util::sync::CancellationToken;

use super::session::Session;
use crate::{http::unread::UnreadReplies, mcp::McpService};

/// How many sessions there may be; the one that was idle longest is evicted for a new one.
const MOST: usize = 4096;
/// How long a session may be idle. Its client can open a new one at any time.
const IDLE: Duration = Duration::from_secs(30 * 60);
/// How often idle sessions are looked for.
const SWEEP_INTERVAL: Duration = Duration::from_secs(5);

/// The sessions by their ids.
#[derive(Default)]
pub(crate) struct Sessions {
    sessions: Mutex<HashMap<Arc<str>, Arc<Session>>>,
}

impl Sessions {
    /// Opens a session; none if there are too many, all of them busy.
    pub(crate) fn open(
        self: &Arc<Self>,
        engine: Arc<Engine>,
        service: &dyn McpService,
        unread: Arc<UnreadReplies>,
    ) -> Option<Arc<Session>> {
        let mut sessions = self.sessions.lock();
        if sessions.len() >= MOST {
            let idle = sessions.values().filter_map(|session| Some((session.idle_since()?, session)));
            let longest = idle.min_by_key(|(since, _)| *since).map(|(_, session)| Arc::clone(session))?;
            sessions.remove(&longest.id);
            longest.end();
        }
        let id: Arc<str> = uuid::Uuid::new_v4().to_string().into();
        let all = Arc::clone(self);
        let session = Session::open(Arc::clone(&id), engine, service, unread, move |session| {
            all.sessions.lock().remove(&session.id);
        });
        sessions.insert(id, Arc::clone(&session));
        Some(session)
    }

    /// The session with this id.
    pub(crate) fn get(&self, id: &str) -> Option<Arc<Session>> {
        let session = self.sessions.lock().get(id).cloned();
        if let Some(session) = &session {
            session.touch();
        }
        session
    }

    /// Ends a session. `false` if there is none with this id.
    pub(crate) fn end(&self, id: &str) -> bool {
        let session = self.sessions.lock().remove(id);
        session.is_some_and(|session| {
            session.end();
            true
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.sessions.lock().len()
    }

    /// Takes no more requests in any session, and closes the streams that belong to none.
    pub(crate) fn stop_taking(&self) {
        for session in self.all() {
            session.close();
        }
    }

    /// Cancels what still runs.
    pub(crate) fn cancel_running(&self) {
        for session in self.all() {
            session.calls.cancel_all(CancelReason::Stopping);
        }
    }

    /// Evicts sessions that are idle for too long, and replies that nobody reads, until the server stops.
    pub(crate) async fn evict_idle_until_stopped(self: Arc<Self>, stopping: CancellationToken) {
        loop {
            tokio::select! {
                () = stopping.cancelled() => return,
                () = tokio::time::sleep(SWEEP_INTERVAL) => {}
            }
            for session in self.all() {
                if session.idle_since().is_some_and(|since| since.elapsed() > IDLE) {
                    self.end(&session.id);
                } else {
                    session.tidy();
                }
            }
        }
    }

    fn all(&self) -> Vec<Arc<Session>> {
        self.sessions.lock().values().cloned().collect()
    }
}
