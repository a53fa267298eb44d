//! How much memory replies may take that their clients do not read.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use super::stream::EventStream;

/// Replies up to this size are not counted: connections and what a session keeps are limited, and so are
/// they.
const SMALL: usize = 4 << 10;
/// How much the others may take together.
const ROOM: usize = 128 << 20;

/// The large replies that have not been read. When they take too much room, the one that has waited
/// longest is let go, and its connection with it: whoever reads is served, whoever does not is not.
#[derive(Default)]
pub(crate) struct Room {
    replies: Mutex<Replies>,
}

#[derive(Default)]
struct Replies {
    bytes: usize,
    last: u64,
    waiting: BTreeMap<u64, (usize, Weak<EventStream>)>,
}

/// One reply's place, given back when dropped.
pub(crate) struct Place {
    room: Arc<Room>,
    number: u64,
}

impl Room {
    /// Makes room for a reply, if it needs any worth counting.
    pub(crate) fn take(self: &Arc<Self>, bytes: usize, stream: Weak<EventStream>) -> Option<Place> {
        if bytes <= SMALL {
            return None;
        }
        let mut replies = self.lock();
        replies.last += 1;
        let number = replies.last;
        replies.bytes += bytes;
        let mut let_go = Vec::new();
        while replies.bytes > ROOM
            && let Some((_, (bytes, stream))) = replies.waiting.pop_first()
        {
            replies.bytes -= bytes;
            let_go.push(stream);
        }
        replies.waiting.insert(number, (bytes, stream));
        drop(replies);
        for stream in let_go.iter().filter_map(Weak::upgrade) {
            stream.let_go();
        }
        Some(Place { room: Arc::clone(self), number })
    }

    fn lock(&self) -> MutexGuard<'_, Replies> {
        self.replies.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut replies = self.room.lock();
        if let Some((bytes, _)) = replies.waiting.remove(&self.number) {
            replies.bytes -= bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reply_that_waited_longest_makes_room_and_small_ones_need_none() {
        let room = Arc::new(Room::default());
        let streams: Vec<_> = (0..3).map(|number| EventStream::new(number, Arc::clone(&room))).collect();
        let half = ROOM / 2;
        let first = room.take(half, Arc::downgrade(&streams[0]));
        let second = room.take(half, Arc::downgrade(&streams[1]));
        assert!(room.take(SMALL, Weak::new()).is_none());
        assert!(streams[0].ended().is_none());
        let third = room.take(half, Arc::downgrade(&streams[2]));
        assert!(streams[0].ended().is_some());
        assert!(streams[1].ended().is_none() && streams[2].ended().is_none());
        drop((first, second, third));
        assert_eq!(room.lock().bytes, 0);
    }
}
