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
/// How often idle sessions are evicted.
const SWEEP_INTERVAL: Duration = Duration::from_secs(5);

/// The sessions by their ids.
pub(crate) struct Sessions {
    sessions: Mutex<HashMap<Arc<str>, Arc<Session>>>,
    limit: usize,
}

impl Default for Sessions {
    fn default() -> Self {
        Self::with_limit(MOST)
    }
}

impl Sessions {
    fn with_limit(limit: usize) -> Self {
        Self { sessions: Mutex::default(), limit }
    }

    /// Opens a session; none if there are too many, all of them busy.
    pub(crate) fn open(
        self: &Arc<Self>,
        engine: Arc<Engine>,
        service: &dyn McpService,
        unread: Arc<UnreadReplies>,
        owner: &str,
    ) -> Option<Arc<Session>> {
        let mut sessions = self.sessions.lock();
        if sessions.len() >= self.limit {
            let idle = sessions.values().filter_map(|session| Some((session.idle_since()?, session)));
            let longest = idle.min_by_key(|(since, _)| *since).map(|(_, session)| Arc::clone(session))?;
            sessions.remove(&longest.id);
            longest.end();
        }
        let id: Arc<str> = uuid::Uuid::new_v4().to_string().into();
        let all = Arc::clone(self);
        let session = Session::open(Arc::clone(&id), owner, engine, service, unread, move |session| {
            all.sessions.lock().remove(&session.id);
        });
        sessions.insert(id, Arc::clone(&session));
        Some(session)
    }

    /// The session with this id, for the caller who opened it. For others there is none.
    pub(crate) fn get(&self, id: &str, caller: &str) -> Option<Arc<Session>> {
        let session = self.sessions.lock().get(id).filter(|session| &*session.owner == caller).cloned();
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

    /// Graceful shutdown: takes no more requests in any session, and ends the streams that belong to no request.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::{
        stream::ReadStyle,
        testing::{engine, service},
    };

    const ME: &str = "me";

    /// Sessions of an engine without tools.
    struct Fixture {
        engine: Arc<Engine>,
        sessions: Arc<Sessions>,
    }

    impl Fixture {
        fn new(limit: usize) -> Self {
            Self { engine: engine(), sessions: Arc::new(Sessions::with_limit(limit)) }
        }

        fn open(&self) -> Option<Arc<Session>> {
            self.sessions.open(Arc::clone(&self.engine), &service(&self.engine), Arc::default(), ME)
        }

        fn ids(&self) -> Vec<Arc<str>> {
            let mut ids: Vec<_> = self.sessions.all().iter().map(|session| Arc::clone(&session.id)).collect();
            ids.sort();
            ids
        }
    }

    fn sorted(sessions: &[&Arc<Session>]) -> Vec<Arc<str>> {
        let mut ids: Vec<_> = sessions.iter().map(|session| Arc::clone(&session.id)).collect();
        ids.sort();
        ids
    }

    #[tokio::test]
    async fn a_session_is_found_by_its_id_until_it_is_ended() {
        let fixture = Fixture::new(4);
        let (one, other) = (fixture.open().expect("a session"), fixture.open().expect("a session"));
        let is_version_4 = uuid::Uuid::parse_str(&one.id).is_ok_and(|id| id.get_version_num() == 4);
        assert!(is_version_4 && one.id != other.id);
        assert!(fixture.sessions.get(&one.id, ME).is_some_and(|found| Arc::ptr_eq(&found, &one)));
        assert!(fixture.sessions.get(&one.id, "another").is_none());
        assert!(fixture.sessions.end(&one.id));
        assert!(!fixture.sessions.end(&one.id));
        assert!(fixture.sessions.get(&one.id, ME).is_none() && fixture.sessions.get(&other.id, ME).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn the_session_that_was_idle_longest_is_evicted_for_a_new_one() {
        let fixture = Fixture::new(2);
        let moment = Duration::from_secs(1);
        let first = fixture.open().expect("a session");
        tokio::time::advance(moment).await;
        let second = fixture.open().expect("a session");
        tokio::time::advance(moment).await;
        // To be asked for is to be used.
        fixture.sessions.get(&first.id, ME);
        tokio::time::advance(moment).await;
        let third = fixture.open().expect("a session");
        assert_eq!(fixture.ids(), sorted(&[&first, &third]));
        // Whoever listens is not idle.
        let listening = first.standalone.read(0, ReadStyle::default());
        let fourth = fixture.open().expect("a session");
        assert_eq!(fixture.ids(), sorted(&[&first, &fourth]));
        drop((listening, second));
    }

    #[tokio::test]
    async fn no_session_is_opened_while_all_of_them_are_busy() {
        let fixture = Fixture::new(1);
        let only = fixture.open().expect("a session");
        let unanswered = only.bridge.count(false);
        assert!(fixture.open().is_none());
        drop(unanswered);
        assert!(fixture.open().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_is_evicted_after_half_an_hour_without_use() {
        let fixture = Fixture::new(4);
        let (idle, used) = (fixture.open().expect("a session"), fixture.open().expect("a session"));
        let (listened_to, busy) = (fixture.open().expect("a session"), fixture.open().expect("a session"));
        let listening = listened_to.standalone.read(0, ReadStyle::default());
        let unanswered = busy.bridge.count(false);
        let stopping = CancellationToken::new();
        tokio::spawn(Arc::clone(&fixture.sessions).evict_idle_until_stopped(stopping.clone()));
        for _ in 0..31 {
            tokio::time::sleep(Duration::from_secs(60)).await;
            used.touch();
        }
        assert_eq!(fixture.ids(), sorted(&[&used, &listened_to, &busy]));
        drop((listening, unanswered, idle));
        stopping.cancel();
    }
}
