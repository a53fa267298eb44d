//! A client on a pipe, of either dialect, that keeps a number of calls in flight.

use std::{
    io::{Read, Write},
    ops::Range,
    process::{ChildStdin, ChildStdout},
    time::{Duration, Instant},
};

use memchr::{memchr, memmem};
use serde_json::Value;

use crate::server::Server;

pub struct Client {
    stdin: ChildStdin,
    stdout: ChildStdout,
    last_id: u64,
    buffer: Vec<u8>,
    /// The bytes that were received and not returned yet.
    fresh: Range<usize>,
    /// How many of them were already searched for a newline.
    searched: usize,
}

/// Serialized requests, prepared before the clock starts.
pub struct Requests {
    first_id: u64,
    lines: Vec<u8>,
    /// The offset of each, and of the end of the last one.
    ends: Vec<usize>,
}

impl Requests {
    fn count(&self) -> usize {
        self.ends.len() - 1
    }
}

impl Client {
    /// Connects to the pipes of a server.
    pub fn connect(server: &mut Server) -> Self {
        let stdin = server.child.stdin.take().expect("stdin");
        let stdout = server.child.stdout.take().expect("stdout");
        Self { stdin, stdout, last_id: 0, buffer: vec![0; 1 << 18], fresh: 0..0, searched: 0 }
    }

    /// Prepares a number of requests, each from its id.
    pub fn prepare(&mut self, count: usize, request: impl Fn(u64) -> Value) -> Requests {
        let first_id = self.last_id + 1;
        let mut requests = Requests { first_id, lines: Vec::new(), ends: vec![0] };
        for id in first_id..first_id + count as u64 {
            requests.lines.extend_from_slice(format!("{}\n", request(id)).as_bytes());
            requests.ends.push(requests.lines.len());
        }
        self.last_id += count as u64;
        requests
    }

    /// Sends the requests and returns the latencies. Each answered call is followed by the next one; `check` gets each
    /// reply.
    pub fn call(&mut self, requests: &Requests, in_flight: usize, check: impl Fn(&[u8])) -> Vec<Duration> {
        let (count, ends) = (requests.count(), &requests.ends);
        let mut sent_at: Vec<Option<Instant>> = vec![None; count];
        let mut latencies = Vec::with_capacity(count);
        let mut sent = 0;
        while latencies.len() < count {
            let until = (latencies.len() + in_flight).min(count);
            if until > sent {
                sent_at[sent..until].fill(Some(Instant::now()));
                self.send(&requests.lines[ends[sent]..ends[until]]);
                sent = until;
            }
            self.receive();
            let now = Instant::now();
            while let Some(line) = self.next_line() {
                let line = &self.buffer[line];
                check(line);
                let index = usize::try_from(id(line) - requests.first_id).expect("an id of ours");
                let began = sent_at[index].take().expect("one reply for each call");
                latencies.push(now - began);
            }
        }
        latencies
    }

    /// Sends one line and waits for the reply.
    pub fn ask(&mut self, line: &[u8]) -> &[u8] {
        self.send(line);
        loop {
            if let Some(line) = self.next_line() {
                return &self.buffer[line];
            }
            self.receive();
        }
    }

    /// Sends bytes without waiting for a reply.
    pub fn send(&mut self, bytes: &[u8]) {
        self.stdin.write_all(bytes).expect("the server reads");
    }

    /// Waits for more bytes.
    fn receive(&mut self) {
        if self.fresh.start > 0 {
            self.buffer.copy_within(self.fresh.clone(), 0);
            self.fresh = 0..self.fresh.len();
        }
        if self.fresh.end == self.buffer.len() {
            self.buffer.resize(2 * self.buffer.len(), 0);
        }
        let length = self.stdout.read(&mut self.buffer[self.fresh.end..]).expect("the server writes");
        assert!(length > 0, "the server left");
        self.fresh.end += length;
    }

    /// The next complete line, without its newline.
    fn next_line(&mut self) -> Option<Range<usize>> {
        let from = self.fresh.start + self.searched;
        let Some(length) = memchr(b'\n', &self.buffer[from..self.fresh.end]) else {
            self.searched = self.fresh.len();
            return None;
        };
        let line = self.fresh.start..from + length;
        self.fresh.start = line.end + 1;
        self.searched = 0;
        Some(line)
    }
}

fn id(line: &[u8]) -> u64 {
    let start = memmem::find(line, b"\"id\":").expect("an id") + 5;
    line[start..]
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .fold(0, |id, digit| id * 10 + u64::from(digit - b'0'))
}
