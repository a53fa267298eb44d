//! A byte stream out of the process, written by a thread of its own.
//!
//! Short frames are gathered in one buffer while the thread writes another, so a burst of them costs few system calls,
//! and a reader that stops reading holds up nothing but its own stream. The buffer is bounded: whoever writes more waits
//! (back-pressure), or is refused.
//!
//! A large frame is queued as it is, without a copy, and holds its reservation in the reply budget until it is written.
//! Of a client that does not read, the large frames that wait can be evicted: a short frame replaces each of them.
//!
//! Waking a thread takes longer than writing a small frame. Where a stream can say that it would take one
//! without waiting, and nothing else is on its way, whoever flushes writes it.

use std::{
    collections::VecDeque,
    future::Future,
    io::{ErrorKind, Write},
    pin::Pin,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use pintle_engine::{LogSink, Reservation};

/// A pipe that is writable takes this many bytes at once (`PIPE_BUF`).
const SMALL: usize = 4096;
/// How much of a large frame is written at a time, so that a reader's progress is noticed.
const PIECE: usize = 64 << 10;

/// The stream is gone: whoever read it has closed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutletClosed;

/// A handle to the stream; clones share it.
#[derive(Clone)]
pub struct Outlet(Arc<OutletShared>);

/// A frame that is queued as it is.
pub struct LargeFrame {
    /// What is to be written.
    pub frame: String,
    /// The memory that it takes.
    pub reservation: Reservation,
    /// What is written instead if it is evicted.
    pub instead: String,
}

impl LogSink for Outlet {
    fn write<'a>(&'a self, line: &'a [u8]) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        Box::pin(async move {
            // A log that is gone must not end the calls that it is about.
            let _ = Self::write(self, &[line]).await;
            self.flush();
        })
    }

    fn offer(&self, lines: &[&[u8]]) -> bool {
        Self::offer(self, lines)
    }
}

struct OutletShared {
    state: Mutex<OutletState>,
    /// Wakes the thread: there is something to write.
    work: Condvar,
    /// Wakes writers when the buffer has capacity again, and flushers when all is written.
    drained: Notify,
    idle: Condvar,
    closed: CancellationToken,
    high_water: usize,
    shortcut: Option<Box<Shortcut>>,
}

/// Writes some bytes, if that can be done at once. Returns whether it did.
type Shortcut = dyn Fn(&[u8]) -> std::io::Result<bool> + Send + Sync;

#[derive(Default)]
struct OutletState {
    /// What is to be written, in order. Only the last one can be added to, if it is a buffer.
    queue: VecDeque<Chunk>,
    /// How many bytes the buffers in the queue have.
    buffered: usize,
    /// A buffer to be used again.
    spare: Vec<u8>,
    flush_wanted: bool,
    urgent: bool,
    /// Since when the stream has taken nothing, while something is being written.
    writing_since: Option<Instant>,
    stopped: bool,
    failure: Option<std::io::Error>,
}

enum Chunk {
    /// Short frames, one behind the other.
    Buffer(Vec<u8>),
    Large(LargeFrame),
}

impl Chunk {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Buffer(bytes) => bytes,
            Self::Large(large) => large.frame.as_bytes(),
        }
    }
}

impl Outlet {
    /// Starts the thread. Past `high_water` gathered bytes the buffer is full. The thread waits for
    /// `linger` before it writes, so that more can gather.
    pub fn new(
        name: &str,
        stream: impl Write + Send + 'static,
        high_water: usize,
        linger: Duration,
    ) -> std::io::Result<Self> {
        Self::start(name, stream, high_water, linger, None)
    }

    /// Like [`Outlet::new`], for a stream that can take a little without waiting: `shortcut` is given a small frame and writes it,
    /// if that can be done at once. It returns whether it did.
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
        let shared = Arc::new(OutletShared {
            state: Mutex::default(),
            work: Condvar::new(),
            drained: Notify::new(),
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

    /// An outlet that suits a log: it gathers records for a moment before it writes them.
    pub fn for_log(stream: impl Write + Send + 'static) -> std::io::Result<Self> {
        const CAPACITY: usize = 8 << 20;
        const LINGER: Duration = Duration::from_millis(5);
        Self::new("pintle-log", stream, CAPACITY, LINGER)
    }

    /// Adds a frame, once the buffer has capacity. It goes out at the next [`Outlet::flush`].
    pub async fn write(&self, frame: &[&[u8]]) -> Result<(), OutletClosed> {
        while !self.gather(&mut self.0.state.lock(), frame)? {
            self.has_capacity().await?;
        }
        Ok(())
    }

    /// Adds a large frame, whatever else waits: its reservation bounds how many there can be.
    pub fn write_large(&self, frame: LargeFrame) -> Result<(), OutletClosed> {
        if self.is_closed() {
            return Err(OutletClosed);
        }
        self.0.state.lock().queue.push_back(Chunk::Large(frame));
        Ok(())
    }

    /// Resolves when the buffer of short frames is not full. Back-pressure: a pipe waits for it before it reads on.
    pub async fn has_capacity(&self) -> Result<(), OutletClosed> {
        loop {
            let drained = self.0.drained.notified();
            if self.is_closed() {
                return Err(OutletClosed);
            }
            if self.0.state.lock().buffered < self.0.high_water {
                return Ok(());
            }
            self.flush();
            tokio::select! {
                () = drained => {}
                () = self.0.closed.cancelled() => return Err(OutletClosed),
            }
        }
    }

    /// Adds a frame and sends it, if the buffer is not full. Returns whether it was taken.
    pub fn offer(&self, frame: &[&[u8]]) -> bool {
        let mut state = self.0.state.lock();
        let taken = self.gather(&mut state, frame) == Ok(true);
        self.want_flush(&mut state);
        taken
    }

    /// Like [`Outlet::offer`], and does not linger.
    pub fn offer_urgently(&self, frame: &[&[u8]]) -> bool {
        self.0.state.lock().urgent = true;
        let taken = self.offer(frame);
        self.0.work.notify_one();
        taken
    }

    /// Sends what has gathered. Does not wait for it.
    pub fn flush(&self) {
        let mut state = self.0.state.lock();
        let is_alone = state.writing_since.is_none() && !state.flush_wanted && !state.stopped;
        let is_small = state.queue.len() == 1 && (1..=SMALL).contains(&state.buffered);
        match &self.0.shortcut {
            Some(shortcut) if is_alone && is_small => self.0.write_at_once(state, shortcut),
            _ => self.want_flush(&mut state),
        }
    }

    /// Sends what has gathered, waits until it is written, but no longer than `patience`, and ends
    /// the thread. Returns true if everything was written or the stream is closed.
    pub fn finish(&self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        let mut state = self.0.state.lock();
        state.stopped = true;
        self.0.work.notify_one();
        while !self.0.closed.is_cancelled() && (state.writing_since.is_some() || !state.queue.is_empty()) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            self.0.idle.wait_for(&mut state, left);
        }
        true
    }

    /// How long the reader has taken nothing although something is being written to it.
    pub fn stalled_for(&self) -> Duration {
        self.0.state.lock().writing_since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Evicts the large frames that wait: each is dropped and replaced by the short frame that it brought. The one
    /// that is being written has begun, so it stays.
    pub fn evict_large(&self) {
        let mut state = self.0.state.lock();
        if !state.queue.iter().any(|chunk| matches!(chunk, Chunk::Large(_))) {
            return;
        }
        let queue = std::mem::take(&mut state.queue);
        let mut gathered = Vec::new();
        for chunk in queue {
            match chunk {
                Chunk::Buffer(bytes) => gathered.extend_from_slice(&bytes),
                Chunk::Large(large) => gathered.extend_from_slice(large.instead.as_bytes()),
            }
        }
        state.buffered = gathered.len();
        state.queue.push_back(Chunk::Buffer(gathered));
    }

    /// Why the stream could not be written, if it was not just closed by its reader.
    pub fn failure(&self) -> Option<String> {
        let state = self.0.state.lock();
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

    fn want_flush(&self, state: &mut OutletState) {
        if !state.queue.is_empty() && !state.flush_wanted {
            state.flush_wanted = true;
            // Whoever writes now checks for more afterwards.
            if state.writing_since.is_none() {
                self.0.work.notify_one();
            }
        }
    }

    fn gather(&self, state: &mut OutletState, frame: &[&[u8]]) -> Result<bool, OutletClosed> {
        if self.0.closed.is_cancelled() {
            return Err(OutletClosed);
        }
        if state.buffered >= self.0.high_water {
            return Ok(false);
        }
        if !matches!(state.queue.back(), Some(Chunk::Buffer(_))) {
            let buffer = std::mem::take(&mut state.spare);
            state.queue.push_back(Chunk::Buffer(buffer));
        }
        if let Some(Chunk::Buffer(buffer)) = state.queue.back_mut() {
            frame.iter().for_each(|part| buffer.extend_from_slice(part));
            state.buffered += frame.iter().map(|part| part.len()).sum::<usize>();
        }
        Ok(true)
    }
}

impl OutletShared {
    /// Writes what has gathered without the thread. Nobody else writes meanwhile.
    fn write_at_once(&self, mut state: MutexGuard<'_, OutletState>, shortcut: &Shortcut) {
        let Some(chunk) = state.queue.pop_front() else { return };
        let length = chunk.bytes().len();
        state.buffered -= length;
        state.writing_since = Some(Instant::now());
        drop(state);
        let written = shortcut(chunk.bytes());
        let mut state = self.state.lock();
        state.writing_since = None;
        match written {
            Ok(true) => state.keep_spare(chunk),
            Ok(false) => {
                state.buffered += length;
                state.queue.push_front(chunk);
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
        while let Some(chunk) = self.next_chunk(linger) {
            let written = self.write_chunk(stream, chunk.bytes());
            let mut state = self.state.lock();
            if let Err(error) = written {
                state.failure = Some(error);
                // Nobody will read them, so nothing is kept of them.
                state.queue.clear();
                drop(state);
                return self.close();
            }
            state.writing_since = None;
            state.keep_spare(chunk);
            drop(state);
            self.idle.notify_all();
        }
    }

    fn write_chunk(&self, stream: &mut impl Write, mut rest: &[u8]) -> std::io::Result<()> {
        while !rest.is_empty() {
            match stream.write(&rest[..rest.len().min(PIECE)]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => rest = &rest[count..],
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            // The reader takes something: it is not stalled.
            self.state.lock().writing_since = Some(Instant::now());
        }
        stream.flush()
    }

    /// Waits for something to write. `None` at the end.
    fn next_chunk(&self, linger: Duration) -> Option<Chunk> {
        let mut state = self.state.lock();
        while state.writing_since.is_some() || (!state.flush_wanted && !state.stopped) {
            self.work.wait(&mut state);
        }
        if !linger.is_zero() && !state.stopped {
            let lingering = |state: &mut OutletState| !state.stopped && !state.urgent;
            self.work.wait_while_for(&mut state, lingering, linger);
        }
        let chunk = state.queue.pop_front()?;
        if let Chunk::Buffer(bytes) = &chunk {
            state.buffered -= bytes.len();
        }
        state.flush_wanted = !state.queue.is_empty();
        state.urgent &= state.flush_wanted;
        state.writing_since = Some(Instant::now());
        drop(state);
        self.drained.notify_waiters();
        Some(chunk)
    }

    fn close(&self) {
        self.closed.cancel();
        self.idle.notify_all();
    }
}

impl OutletState {
    /// Keeps the memory of a written buffer for the next one, unless it is large.
    fn keep_spare(&mut self, written: Chunk) {
        const KEPT: usize = 1 << 20;
        if let Chunk::Buffer(mut buffer) = written
            && buffer.capacity() <= KEPT
        {
            buffer.clear();
            self.spare = buffer;
        }
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
            self.0.lock().0.extend_from_slice(bytes);
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
            let mut written = short.0.lock();
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
        let written = stream.0.lock().0.clone();
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
    async fn large_frames_keep_their_turn_and_an_evicted_one_is_replaced_by_its_short_frame() {
        let large = |frame: &str, instead: &str| LargeFrame {
            frame: frame.into(),
            reservation: Reservation::default(),
            instead: instead.into(),
        };
        let (sender, receiver) = mpsc::sync_channel(0);
        let outlet = Outlet::new("test", Gated(sender), 64, Duration::ZERO).expect("starts");
        outlet.write_large(large("first ", "?")).expect("open");
        outlet.flush();
        // The thread has the first frame once it says that it is writing.
        while outlet.0.state.lock().writing_since.is_none() {
            tokio::task::yield_now().await;
        }
        outlet.write(&[b"a "]).await.expect("open");
        outlet.write_large(large("second ", "evicted ")).expect("open");
        outlet.write(&[b"b "]).await.expect("open");
        outlet.evict_large();
        outlet.write_large(large("third", "?")).expect("open");
        outlet.flush();
        let reader = std::thread::spawn(move || receiver.iter().flatten().collect::<Vec<u8>>());
        assert!(outlet.finish(Duration::from_secs(10)));
        drop(outlet);
        let written = String::from_utf8(reader.join().expect("reads")).expect("text");
        assert_eq!(written, "first a evicted b third");
    }

    #[tokio::test]
    async fn a_stuck_reader_leaves_no_capacity_and_does_not_hold_up_the_end() {
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
