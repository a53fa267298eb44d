//! A byte stream out of the process, written by a thread of its own.
//!
//! Frames are gathered in one buffer while the thread writes another, so a burst of small frames
//! costs few system calls, and a reader that stops reading holds up nothing but its own stream. The
//! buffer is bounded: who writes more waits, or is told that there is no room.

use std::{
    io::{ErrorKind, Write},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// The stream is gone: whoever read it has closed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutletClosed;

/// A handle to the stream; clones share it.
#[derive(Clone)]
pub struct Outlet(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    /// Tells the thread that there is something to write.
    work: Condvar,
    /// Tells writers that there is room, and flushers that all is written.
    room: Notify,
    idle: Condvar,
    closed: CancellationToken,
    high_water: usize,
}

#[derive(Default)]
struct State {
    gathered: Vec<u8>,
    flush_wanted: bool,
    urgent: bool,
    writing: bool,
    stopped: bool,
    failure: Option<std::io::Error>,
}

impl Outlet {
    /// Starts the thread. Past `high_water` gathered bytes there is no room. The thread waits for
    /// `linger` before it writes, so that more can gather.
    pub fn new(
        name: &str,
        mut stream: impl Write + Send + 'static,
        high_water: usize,
        linger: Duration,
    ) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            work: Condvar::new(),
            room: Notify::new(),
            idle: Condvar::new(),
            closed: CancellationToken::new(),
            high_water,
        });
        let outlet = Self(Arc::clone(&shared));
        std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || shared.write_all_to(&mut stream, linger))?;
        Ok(outlet)
    }

    /// Adds a frame, once there is room. It goes out at the next [`Outlet::flush`].
    pub async fn write(&self, frame: &[&[u8]]) -> Result<(), OutletClosed> {
        loop {
            let room = self.0.room.notified();
            if self.gather(&mut self.0.lock(), frame)? {
                return Ok(());
            }
            self.flush();
            tokio::select! {
                () = room => {}
                () = self.0.closed.cancelled() => return Err(OutletClosed),
            }
        }
    }

    /// Adds a frame and sends it, if there is room right now. Says whether there was.
    pub fn offer(&self, frame: &[&[u8]]) -> bool {
        let mut state = self.0.lock();
        let taken = self.gather(&mut state, frame) == Ok(true);
        self.want_flush(&mut state);
        taken
    }

    /// Like [`Outlet::offer`], and does not linger.
    pub fn offer_urgently(&self, frame: &[&[u8]]) -> bool {
        self.0.lock().urgent = true;
        let taken = self.offer(frame);
        self.0.work.notify_one();
        taken
    }

    /// Sends what has gathered. Does not wait for it.
    pub fn flush(&self) {
        self.want_flush(&mut self.0.lock());
    }

    /// Sends what has gathered, waits until it is written, but no longer than `patience`, and ends
    /// the thread. Says whether there is nothing left to wait for.
    pub fn finish(&self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        let mut state = self.0.lock();
        state.stopped = true;
        self.0.work.notify_one();
        while !self.0.closed.is_cancelled() && (state.writing || !state.gathered.is_empty()) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let waited = self.0.idle.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// Why the stream could not be written, if it was not just closed by its reader.
    pub fn failure(&self) -> Option<String> {
        let state = self.0.lock();
        let failure = state.failure.as_ref();
        failure.filter(|error| error.kind() != ErrorKind::BrokenPipe).map(ToString::to_string)
    }

    /// Declares the stream gone, as when its reader is known to have left.
    pub fn close(&self) {
        self.0.close();
    }

    /// Whether the stream is gone.
    pub fn is_closed(&self) -> bool {
        self.0.closed.is_cancelled()
    }

    /// Resolves when the stream is gone.
    pub async fn closed(&self) {
        self.0.closed.cancelled().await;
    }

    fn want_flush(&self, state: &mut State) {
        if !state.gathered.is_empty() && !state.flush_wanted {
            state.flush_wanted = true;
            self.0.work.notify_one();
        }
    }

    fn gather(&self, state: &mut State, frame: &[&[u8]]) -> Result<bool, OutletClosed> {
        if self.0.closed.is_cancelled() {
            return Err(OutletClosed);
        }
        if state.gathered.len() >= self.0.high_water {
            return Ok(false);
        }
        for part in frame {
            state.gathered.extend_from_slice(part);
        }
        Ok(true)
    }
}

impl Shared {
    fn write_all_to(&self, stream: &mut impl Write, linger: Duration) {
        // A single huge frame should not keep its memory for ever.
        const KEPT: usize = 1 << 20;
        let mut batch = Vec::new();
        while self.next_batch(&mut batch, linger) {
            let written = stream.write_all(&batch).and_then(|()| stream.flush());
            if let Err(error) = written {
                self.lock().failure = Some(error);
                self.close();
                return;
            }
            batch.clear();
            batch.shrink_to(KEPT);
            self.lock().writing = false;
            self.idle.notify_all();
        }
    }

    /// Waits for something to write. `false` at the end.
    fn next_batch(&self, batch: &mut Vec<u8>, linger: Duration) -> bool {
        let mut state = self.lock();
        while !state.flush_wanted && !state.stopped {
            state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if !linger.is_zero() && !state.stopped {
            let lingering = |state: &mut State| !state.stopped && !state.urgent;
            let waited = self.work.wait_timeout_while(state, linger, lingering);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        if state.gathered.is_empty() && state.stopped {
            return false;
        }
        state.flush_wanted = false;
        state.urgent = false;
        state.writing = true;
        std::mem::swap(&mut state.gathered, batch);
        drop(state);
        self.room.notify_waiters();
        true
    }

    fn close(&self) {
        self.closed.cancel();
        self.idle.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    /// Hands over each batch when asked for it.
    struct Gated(mpsc::SyncSender<Vec<u8>>);

    impl Write for Gated {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let gone = |_| std::io::Error::from(std::io::ErrorKind::BrokenPipe);
            self.0.send(bytes.to_vec()).map_err(gone)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn frames_come_out_in_order_and_finish_waits_for_the_last() {
        let (sender, receiver) = mpsc::sync_channel(1000);
        let outlet = Outlet::new("test", Gated(sender), 64, Duration::ZERO).expect("starts");
        for number in 0..100 {
            outlet.write(&[format!("{number}").as_bytes(), b"\n"]).await.expect("open");
            outlet.flush();
        }
        assert!(outlet.finish(Duration::from_secs(10)));
        let written: Vec<u8> = receiver.try_iter().flatten().collect();
        let expected: String = (0..100).map(|number| format!("{number}\n")).collect();
        assert_eq!(String::from_utf8(written).expect("text"), expected);
    }

    #[tokio::test]
    async fn a_stuck_reader_leaves_no_room_and_does_not_hold_up_the_end() {
        let (sender, receiver) = mpsc::sync_channel(0);
        let outlet = Outlet::new("test", Gated(sender), 4, Duration::ZERO).expect("starts");
        while outlet.offer(&[b"12345"]) {}
        assert!(!outlet.offer(&[b"x"]));
        assert!(!outlet.finish(Duration::from_millis(10)));
        drop(receiver);
        outlet.closed().await;
        assert_eq!(outlet.write(&[b"x"]).await, Err(OutletClosed));
    }
}
