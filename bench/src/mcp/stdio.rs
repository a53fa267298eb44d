//! A client on a pipe that keeps a number of calls in flight.

use std::{
    io::{Read, Write},
    process::{ChildStdin, ChildStdout},
    time::{Duration, Instant},
};

use memchr::{memchr, memmem};

use super::{ECHOED, LEGACY, Server, call, initialize, initialized};

pub struct Client {
    stdin: ChildStdin,
    stdout: ChildStdout,
    last_id: u64,
}

impl Client {
    pub fn connect(server: &mut Server) -> Self {
        let stdin = server.child.stdin.take().expect("stdin");
        let stdout = server.child.stdout.take().expect("stdout");
        let mut client = Self { stdin, stdout, last_id: 0 };
        client.write(format!("{}\n", initialize()).as_bytes());
        let mut reply = [0; 1 << 14];
        let length = client.stdout.read(&mut reply).expect("a reply");
        assert!(reply[..length].ends_with(b"\n"), "the reply to initialize is not whole");
        client.write(format!("{}\n", initialized()).as_bytes());
        client
    }

    /// Calls `count` times and gives the latencies. A call that is answered is followed by the next.
    pub fn call(&mut self, count: usize, in_flight: usize) -> Vec<Duration> {
        let first = self.last_id + 1;
        let mut requests = Vec::new();
        let mut ends = Vec::with_capacity(count + 1);
        ends.push(0);
        for id in first..first + count as u64 {
            requests.extend_from_slice(format!("{}\n", call(id, LEGACY)).as_bytes());
            ends.push(requests.len());
        }
        self.last_id += count as u64;

        let mut sent_at: Vec<Option<Instant>> = vec![None; count];
        let mut latencies = Vec::with_capacity(count);
        let mut sent = 0;
        let mut free = in_flight;
        let mut buffer = vec![0; 1 << 18];
        let mut filled = 0;
        while latencies.len() < count {
            let until = (sent + free).min(count);
            if until > sent {
                sent_at[sent..until].fill(Some(Instant::now()));
                self.write(&requests[ends[sent]..ends[until]]);
                sent = until;
            }
            let length = self.stdout.read(&mut buffer[filled..]).expect("the server writes");
            assert!(length > 0, "the server left");
            let now = Instant::now();
            filled += length;
            let mut start = 0;
            free = 0;
            while let Some(length) = memchr(b'\n', &buffer[start..filled]) {
                let line = &buffer[start..start + length];
                let index = usize::try_from(id(line) - first).expect("an id of ours");
                let began = sent_at[index].take().expect("one reply for each call");
                latencies.push(now - began);
                free += 1;
                start += length + 1;
            }
            buffer.copy_within(start..filled, 0);
            filled -= start;
        }
        latencies
    }

    fn write(&mut self, bytes: &[u8]) {
        self.stdin.write_all(bytes).expect("the server reads");
    }
}

/// The id of a reply, which must be the right one.
fn id(line: &[u8]) -> u64 {
    assert!(memmem::find(line, ECHOED).is_some(), "{}", String::from_utf8_lossy(line));
    let start = memmem::find(line, b"\"id\":").expect("an id") + 5;
    line[start..]
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .fold(0, |id, digit| id * 10 + u64::from(digit - b'0'))
}
