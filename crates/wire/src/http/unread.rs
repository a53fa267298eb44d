//! Evicting clients that do not read, when the reply budget is full.
//!
//! A connection that takes nothing for the write timeout is closed in any case. While results wait for memory, the reply
//! that has made no progress for longest is evicted sooner, so that a client that does not read holds up nobody else.

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
    time::Duration,
};

use parking_lot::Mutex;
use pintle_engine::Engine;

use super::stream::EventStream;

/// How long a reply must have made no progress to be evicted while others wait.
const STALLED: Duration = Duration::from_secs(5);
/// How often that is looked at while others wait.
const LOOK: Duration = Duration::from_millis(100);

/// The replies that hold a reservation.
#[derive(Default)]
pub(crate) struct UnreadReplies {
    streams: Mutex<(u64, BTreeMap<u64, Weak<EventStream>>)>,
}

/// One reply's registration, ended when dropped.
pub(crate) struct Registered {
    replies: Arc<UnreadReplies>,
    number: u64,
}

impl UnreadReplies {
    pub(crate) fn register(self: &Arc<Self>, stream: Weak<EventStream>) -> Registered {
        let mut streams = self.streams.lock();
        streams.0 += 1;
        let number = streams.0;
        streams.1.insert(number, stream);
        Registered { replies: Arc::clone(self), number }
    }

    /// Evicts while results wait for memory. Never resolves.
    pub(crate) async fn evict_under_pressure(self: Arc<Self>, engine: Arc<Engine>) {
        loop {
            engine.reply_budget().under_pressure().await;
            if let Some(stream) = self.longest_stalled().filter(|stream| stream.stalled_for() >= STALLED) {
                stream.evict();
            } else {
                tokio::time::sleep(LOOK).await;
            }
        }
    }

    fn longest_stalled(&self) -> Option<Arc<EventStream>> {
        let streams: Vec<_> = self.streams.lock().1.values().filter_map(Weak::upgrade).collect();
        streams.into_iter().max_by_key(|stream| stream.stalled_for())
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.replies.streams.lock().1.remove(&self.number);
    }
}
