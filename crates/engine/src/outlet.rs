//! A byte stream out of the process, written by a thread of its own.
//!
//! Frames are gathered in one buffer while the thread writes another, so a burst of small frames
//! costs few system calls, and a reader that stops reading holds up nothing but its own stream. The
//! buffer is bounded: who writes more waits, or is told that there is no room.
//!
//! Waking a thread takes longer than writing a small frame. Where a stream can tell that it would take one
//! without waiting, and nothing else is on its way, whoever flushes writes it.

use std::{
    io::{ErrorKind, Write},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// What every pipe takes whole, if it takes anything.
const SMALL: usize = 4096;

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
    shortcut: Option<Box<Shortcut>>,
}

/// Writes some bytes, if that can be done at once. Says whether it did.
type Shortcut = dyn Fn(&[u8]) -> std::io::Result<bool> + Send + Sync;

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
        stream: impl Write + Send + 'static,
        high_water: usize,
        linger: Duration,
    ) -> std::io::Result<Self> {
        Self::start(name, stream, high_water, linger, None)
    }

    /// The same for a stream that can take a little without waiting: `shortcut` is given a small frame and writes it,
    /// if that can be done at once. It says whether it did.
    pub fn with_shortcut(
        name: &str,
        stream: impl Write + Send + 'static,
        high_water: usize,
        shortcut: impl Fn(&[u8]) -> std::io::Result<bool> + Send + Sync + 'static,
    ) -> std::io::Result<Self> {
        Self::start(name, stream, high_water, Duration::ZERO, Some(Box::new(shortcut)))
    }

    fn start(
        name: &str,
        mut stream: impl Write + Send + 'static,
        high_water: usize,
        linger: Duration,
        shortcut: Option<Box<Shortcut>>,
    ) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            work: Condvar::new(),
            room: Notify::new(),
            idle: Condvar::new(),
            closed: CancellationToken::new(),
            high_water,
            shortcut,
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
        let mut state = self.0.lock();
        let is_alone = !state.writing && !state.flush_wanted && !state.stopped;
        match &self.0.shortcut {
            Some(shortcut) if is_alone && (1..=SMALL).contains(&state.gathered.len()) => {
                self.0.write_at_once(state, shortcut);
            }
            _ => self.want_flush(&mut state),
        }
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
            // Whoever writes now looks afterwards.
            if !state.writing {
                self.0.work.notify_one();
            }
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
    /// Writes what has gathered without the thread. Nobody else writes meanwhile.
    fn write_at_once(&self, mut state: MutexGuard<'_, State>, shortcut: &Shortcut) {
        let mut batch = std::mem::take(&mut state.gathered);
        state.writing = true;
        drop(state);
        let written = shortcut(&batch);
        let mut state = self.lock();
        state.writing = false;
        match written {
            Ok(true) => {
                batch.clear();
                // The memory is used again.
                if state.gathered.is_empty() {
                    state.gathered = batch;
                }
            }
            Ok(false) => {
                batch.append(&mut state.gathered);
                state.gathered = batch;
                state.flush_wanted = true;
            }
            Err(error) => {
                state.failure = Some(error);
                drop(state);
                return self.close();
            }
        }
        if state.flush_wanted || state.stopped {
            self.work.notify_one();
        }
        drop(state);
        self.idle.notify_all();
    }

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
        while state.writing || (!state.flush_wanted && !state.stopped) {
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

    /// A stream into a list; the shortcut works every other time.
    #[derive(Clone, Default)]
    struct Listed(Arc<Mutex<(Vec<u8>, bool)>>);

    impl Write for Listed {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().expect("unpoisoned").0.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn frames_that_take_the_shortcut_stay_in_order_with_those_that_do_not() {
        let stream = Listed::default();
        let short = stream.clone();
        let outlet = Outlet::with_shortcut("test", stream.clone(), 1 << 20, move |bytes| {
            let mut written = short.0.lock().expect("unpoisoned");
            written.1 = !written.1;
            if written.1 {
                written.0.extend_from_slice(bytes);
            }
            Ok(written.1)
        })
        .expect("starts");
        let expected = std::thread::scope(|scope| {
            let writers = (0..4_u8).map(|writer| {
                let outlet = outlet.clone();
                scope.spawn(move || {
                    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
                    for number in 0..500_u32 {
                        // Some are too large for the shortcut.
                        let filling = vec![b'.'; if number % 50 == 0 { 5000 } else { 5 }];
                        let frame = format!("{writer} {number} {}\n", String::from_utf8_lossy(&filling));
                        runtime.block_on(outlet.write(&[frame.as_bytes()])).expect("open");
                        outlet.flush();
                    }
                })
            });
            let writers: Vec<_> = writers.collect();
            writers.into_iter().for_each(|writer| writer.join().expect("writes"));
            4 * 500
        });
        assert!(outlet.finish(Duration::from_secs(10)));
        let written = stream.0.lock().expect("unpoisoned").0.clone();
        let text = String::from_utf8(written).expect("text");
        let mut next = [0; 4];
        for line in text.lines() {
            let mut words = line.split(' ');
            let writer: usize = words.next().and_then(|word| word.parse().ok()).expect("a writer");
            let number: u32 = words.next().and_then(|word| word.parse().ok()).expect("a number");
            assert_eq!(number, next[writer], "{writer}");
            next[writer] += 1;
        }
        assert_eq!(next.iter().sum::<u32>(), expected);
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
