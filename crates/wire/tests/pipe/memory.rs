//! A byte stream within the process: what is written at one end is read at the other. It holds a bounded number of bytes,
//! as a pipe of the system does, and says who waits for whom.

use std::{
    collections::VecDeque,
    io::{self, ErrorKind, Read, Write},
    sync::{Arc, Condvar, Mutex, MutexGuard},
};

const CAPACITY: usize = 64 << 10;

#[derive(Default)]
struct State {
    bytes: VecDeque<u8>,
    /// How many bytes have been read.
    read: usize,
    writer_waits: bool,
    is_reader_gone: bool,
    is_writer_gone: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no end of the stream has panicked")
    }
}

/// The end that bytes are written to. Dropped, it ends the stream.
pub struct WriteEnd(Arc<Shared>);

/// The end that bytes are read from. Dropped, it breaks the stream.
pub struct ReadEnd(Arc<Shared>);

/// Looks at a stream without being an end of it.
#[derive(Clone)]
pub struct Observer(Arc<Shared>);

/// Both ends of a stream.
pub fn byte_stream() -> (WriteEnd, ReadEnd, Observer) {
    let shared = Arc::new(Shared::default());
    (WriteEnd(Arc::clone(&shared)), ReadEnd(Arc::clone(&shared)), Observer(shared))
}

impl Observer {
    /// Whether the writer waits because the stream is full.
    pub fn writer_waits(&self) -> bool {
        self.0.lock().writer_waits
    }

    /// How many bytes have been read.
    pub fn read(&self) -> usize {
        self.0.lock().read
    }

    /// Waits until the writer has ended the stream, or waits because it is full.
    pub fn until_full_or_ended(&self) {
        let state = self.0.lock();
        let moves = |state: &mut State| !state.writer_waits && !state.is_writer_gone;
        drop(self.0.changed.wait_while(state, moves).expect("no end of the stream has panicked"));
    }
}

impl Write for WriteEnd {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.0.lock();
        while state.bytes.len() >= CAPACITY && !state.is_reader_gone {
            state.writer_waits = true;
            self.0.changed.notify_all();
            state = self.0.changed.wait(state).expect("no end of the stream has panicked");
        }
        state.writer_waits = false;
        if state.is_reader_gone {
            return Err(ErrorKind::BrokenPipe.into());
        }
        let count = bytes.len().min(CAPACITY - state.bytes.len());
        state.bytes.extend(&bytes[..count]);
        self.0.changed.notify_all();
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for ReadEnd {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut state = self.0.lock();
        while state.bytes.is_empty() && !state.is_writer_gone {
            state = self.0.changed.wait(state).expect("no end of the stream has panicked");
        }
        let count = buffer.len().min(state.bytes.len());
        for (slot, byte) in buffer.iter_mut().zip(state.bytes.drain(..count)) {
            *slot = byte;
        }
        state.read += count;
        self.0.changed.notify_all();
        Ok(count)
    }
}

impl Drop for WriteEnd {
    fn drop(&mut self) {
        self.0.lock().is_writer_gone = true;
        self.0.changed.notify_all();
    }
}

impl Drop for ReadEnd {
    fn drop(&mut self) {
        self.0.lock().is_reader_gone = true;
        self.0.changed.notify_all();
    }
}
