//! Evicting clients that do not read, when the reply budget is full.
//!
//! A connection that takes nothing for the write timeout is closed in any case. While results wait for memory, the reply
//! that has made no progress for longest is evicted sooner, so that a client that does not read holds up nobody else.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use pintle_engine::Engine;

use super::stream::EventStream;
use crate::registry::{Registered, Registry};

/// How long a reply must have made no progress to be evicted while others wait.
const STALLED: Duration = Duration::from_secs(5);
/// How often replies are checked while others wait.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// The replies that hold a reservation.
#[derive(Default)]
pub(crate) struct UnreadReplies {
    streams: Arc<Registry<Weak<EventStream>>>,
}

/// One reply's registration, ended when dropped.
pub(crate) type RegisteredReply = Registered<Weak<EventStream>>;

impl UnreadReplies {
    pub(crate) fn register(&self, stream: Weak<EventStream>) -> RegisteredReply {
        self.streams.register(stream)
    }

    /// Evicts while results wait for memory. Never resolves.
    pub(crate) async fn evict_under_pressure(self: Arc<Self>, engine: Arc<Engine>) {
        loop {
            engine.reply_budget().under_pressure().await;
            if let Some(stream) = self.longest_stalled().filter(|stream| stream.stalled_for() >= STALLED) {
                stream.evict();
            } else {
                tokio::time::sleep(CHECK_INTERVAL).await;
            }
        }
    }

    fn longest_stalled(&self) -> Option<Arc<EventStream>> {
        // What is upgraded may be the last reference, and dropping that ends its registration, which takes the lock.
        let streams: Vec<_> =
            self.streams.entries().iter().filter_map(|(_, stream)| stream.upgrade()).collect();
        streams.into_iter().max_by_key(|stream| stream.stalled_for())
    }
}
