//! HTTP/1.1 clients, each with one keep-alive connection and one call at a time.
//!
//! One thread drives them all with epoll, so that the driver needs little processor time.

use std::{
    io::{ErrorKind, Read, Write},
    net::{SocketAddr, TcpStream},
    time::{Duration, Instant},
};

use memchr::memmem;
use rustix::{
    event::epoll::{self, CreateFlags, Event, EventData, EventFlags},
    fd::OwnedFd,
};

/// The id in a request that is sent many times. It has eight digits, so that the next one can overwrite the last in place.
pub const FIRST_ID: u64 = 10_000_000;

/// Clients that call the same thing again and again.
pub struct Clients {
    clients: Vec<Client>,
    ready: OwnedFd,
}

/// The end of one call.
pub struct Answer {
    pub latency: Duration,
    /// Whether it is the result that was expected.
    pub is_right: bool,
}

/// One of the clients.
pub struct Client {
    socket: TcpStream,
    request: Vec<u8>,
    /// What every reply must contain.
    expected: &'static [u8],
    /// The offset of the id in the request.
    id_at: usize,
    id: u64,
    reply: Vec<u8>,
    began: Option<Instant>,
}

impl Clients {
    pub fn new(clients: Vec<Client>) -> Self {
        let ready = epoll::create(CreateFlags::CLOEXEC).expect("a poll");
        for (number, client) in clients.iter().enumerate() {
            client.socket.set_nonblocking(true).expect("a socket that does not block");
            epoll::add(&ready, &client.socket, EventData::new_u64(number as u64), EventFlags::IN)
                .expect("a poll that watches");
        }
        Self { clients, ready }
    }

    /// Calls `count` times in all and returns the latencies.
    pub fn call(&mut self, count: usize) -> Vec<Duration> {
        let answers = self.call_while(|sent| sent < count);
        answers.iter().map(|answer| answer.latency).collect()
    }

    /// Calls for some time, and returns how many calls a second were answered as expected.
    pub fn rate(&mut self, duration: Duration) -> f64 {
        let started = Instant::now();
        let answers = self.call_while(|_| started.elapsed() < duration);
        answers.len() as f64 / started.elapsed().as_secs_f64()
    }

    /// Calls while `goes_on` says so of the number of calls so far. Every answer must be the expected one.
    fn call_while(&mut self, goes_on: impl FnMut(usize) -> bool) -> Vec<Answer> {
        let answers = self.flood(goes_on);
        let wrong = self.clients.iter().find(|client| !client.has_expected_reply());
        let shown = wrong.map(|client| String::from_utf8_lossy(&client.reply).into_owned());
        assert!(answers.iter().all(|answer| answer.is_right), "{shown:?}");
        answers
    }

    /// The same, where calls may also be refused.
    pub fn flood(&mut self, mut goes_on: impl FnMut(usize) -> bool) -> Vec<Answer> {
        let mut answers = Vec::new();
        let mut sent = 0;
        for client in &mut self.clients {
            if goes_on(sent) {
                client.send();
                sent += 1;
            }
        }
        let mut events: Vec<Event> = Vec::with_capacity(self.clients.len());
        while answers.len() < sent {
            events.clear();
            epoll::wait(&self.ready, rustix::buffer::spare_capacity(&mut events), None).expect("events");
            for event in &events {
                let client = &mut self.clients[usize::try_from(event.data.u64()).expect("a number of ours")];
                let Some(answer) = client.receive() else { continue };
                // After a wrong answer the client stays as it is, to be shown.
                let is_usable = answer.is_right || client.was_refused();
                answers.push(answer);
                if is_usable && goes_on(sent) {
                    client.send();
                    sent += 1;
                }
            }
        }
        answers
    }
}

impl Client {
    /// Connects a client, which has nothing to call yet.
    pub fn connect(address: SocketAddr) -> Self {
        let socket = TcpStream::connect(address).expect("a connection");
        socket.set_nodelay(true).expect("a socket");
        let (request, reply) = (Vec::new(), Vec::new());
        Self { socket, request, expected: b"", id_at: 0, id: FIRST_ID, reply, began: None }
    }

    /// Makes it call with a request that has the first id, for replies that contain something.
    #[must_use]
    pub fn calling(mut self, request: Vec<u8>, expected: &'static [u8]) -> Self {
        self.id_at = memmem::find(&request, FIRST_ID.to_string().as_bytes()).expect("an id");
        (self.request, self.expected) = (request, expected);
        self
    }

    /// Sends a request and waits for its reply.
    pub fn exchange(&mut self, request: &[u8]) -> String {
        self.socket.write_all(request).expect("the server reads");
        let mut buffer = [0; 1 << 14];
        let mut reply = Vec::new();
        while !is_whole(&reply) {
            let length = self.socket.read(&mut buffer).expect("the server writes");
            assert!(length > 0, "the server left: {}", String::from_utf8_lossy(&reply));
            reply.extend_from_slice(&buffer[..length]);
        }
        let reply = String::from_utf8(reply).expect("text");
        assert!(reply.starts_with("HTTP/1.1 20"), "{reply}");
        reply
    }

    fn send(&mut self) {
        self.id += 1;
        self.request[self.id_at..self.id_at + 8].copy_from_slice(self.id.to_string().as_bytes());
        self.reply.clear();
        self.began = Some(Instant::now());
        // Fits into the socket's empty buffer, so it does not block.
        self.socket.write_all(&self.request).expect("the server reads");
    }

    /// Reads what has arrived; returns the answer at the end of the reply.
    fn receive(&mut self) -> Option<Answer> {
        let mut buffer = [0; 1 << 14];
        match self.socket.read(&mut buffer) {
            Ok(0) => panic!("the server left"),
            Ok(length) => self.reply.extend_from_slice(&buffer[..length]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
            Err(error) => panic!("the connection broke: {error}"),
        }
        if !is_whole(&self.reply) {
            return None;
        }
        let latency = self.began.take().expect("one reply for each call").elapsed();
        Some(Answer { latency, is_right: self.has_expected_reply() })
    }

    fn has_expected_reply(&self) -> bool {
        let id = &self.request[self.id_at..self.id_at + 8];
        self.reply.starts_with(b"HTTP/1.1 200")
            && memmem::find(&self.reply, self.expected).is_some()
            && memmem::find(&self.reply, id).is_some()
    }

    /// Whether the server had no place for the call.
    fn was_refused(&self) -> bool {
        self.reply.starts_with(b"HTTP/1.1 503")
    }
}

/// A request with a JSON body.
pub fn post(address: SocketAddr, path: &str, headers: &str, body: &serde_json::Value) -> Vec<u8> {
    let body = body.to_string();
    format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// Whether a response is complete.
fn is_whole(response: &[u8]) -> bool {
    let Some(head) = memmem::find(response, b"\r\n\r\n") else { return false };
    let body = &response[head + 4..];
    let head = std::str::from_utf8(&response[..head]).expect("a head of text");
    if let Some(length) = header(head, "content-length") {
        return body.len() >= length.parse().expect("a length");
    }
    if header(head, "transfer-encoding").is_some() { has_last_chunk(body) } else { true }
}

fn has_last_chunk(mut body: &[u8]) -> bool {
    loop {
        let Some(line) = memmem::find(body, b"\r\n") else { return false };
        let size = std::str::from_utf8(&body[..line]).expect("a size");
        let size = usize::from_str_radix(size, 16).expect("a size");
        let end = line + 2 + size + 2;
        if body.len() < end {
            return false;
        }
        if size == 0 {
            return true;
        }
        body = &body[end..];
    }
}

/// A header's value; names are compared without case.
pub fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        found.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}
