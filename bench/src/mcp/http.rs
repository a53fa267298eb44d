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
use serde_json::Value;

use super::{ECHOED, LEGACY, call, initialize, initialized};

/// Ids have eight digits, so that the next one can overwrite the last in place.
const FIRST_ID: u64 = 10_000_000;

pub struct Clients {
    clients: Vec<Client>,
    ready: OwnedFd,
}

struct Client {
    socket: TcpStream,
    request: Vec<u8>,
    /// The offset of the id in the request.
    id_at: usize,
    id: u64,
    reply: Vec<u8>,
    began: Option<Instant>,
}

impl Clients {
    /// Opens the connections. In a revision that has sessions, each has a session of its own.
    pub fn connect(address: SocketAddr, revision: &str, count: usize) -> Self {
        let ready = epoll::create(CreateFlags::CLOEXEC).expect("a poll");
        let clients: Vec<_> = (0..count).map(|_| Client::connect(address, revision)).collect();
        for (number, client) in clients.iter().enumerate() {
            client.socket.set_nonblocking(true).expect("a socket that does not block");
            epoll::add(&ready, &client.socket, EventData::new_u64(number as u64), EventFlags::IN)
                .expect("a poll that watches");
        }
        Self { clients, ready }
    }

    /// Calls `count` times in all and returns the latencies.
    pub fn call(&mut self, count: usize) -> Vec<Duration> {
        let mut latencies = Vec::with_capacity(count);
        let mut sent = 0;
        for client in self.clients.iter_mut().take(count) {
            client.send();
            sent += 1;
        }
        let mut events: Vec<Event> = Vec::with_capacity(self.clients.len());
        while latencies.len() < count {
            events.clear();
            epoll::wait(&self.ready, rustix::buffer::spare_capacity(&mut events), None).expect("events");
            for event in &events {
                let client = &mut self.clients[usize::try_from(event.data.u64()).expect("a number of ours")];
                let Some(latency) = client.receive() else { continue };
                latencies.push(latency);
                if sent < count {
                    client.send();
                    sent += 1;
                }
            }
        }
        latencies
    }
}

impl Client {
    fn connect(address: SocketAddr, revision: &str) -> Self {
        let socket = TcpStream::connect(address).expect("a connection");
        socket.set_nodelay(true).expect("a socket");
        let mut headers = format!("MCP-Protocol-Version: {revision}\r\n");
        let mut client =
            Self { socket, request: Vec::new(), id_at: 0, id: FIRST_ID, reply: Vec::new(), began: None };
        if revision == LEGACY {
            let reply = client.exchange(&post(address, "", &initialize()));
            let session = header(&reply, "mcp-session-id").expect("a session").to_owned();
            headers += &format!("Mcp-Session-Id: {session}\r\n");
            client.exchange(&post(address, &headers, &initialized()));
        } else {
            headers += "Mcp-Method: tools/call\r\nMcp-Name: test_echo\r\n";
        }
        client.request = post(address, &headers, &call(FIRST_ID, revision));
        client.id_at = memmem::find(&client.request, FIRST_ID.to_string().as_bytes()).expect("an id");
        client
    }

    /// Sends a request and waits for its reply.
    fn exchange(&mut self, request: &[u8]) -> String {
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

    /// Reads what has arrived; returns the latency at the end of the reply.
    fn receive(&mut self) -> Option<Duration> {
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
        let id = &self.request[self.id_at..self.id_at + 8];
        let is_right = self.reply.starts_with(b"HTTP/1.1 200")
            && memmem::find(&self.reply, ECHOED).is_some()
            && memmem::find(&self.reply, id).is_some();
        assert!(is_right, "{}", String::from_utf8_lossy(&self.reply));
        Some(latency)
    }
}

fn post(address: SocketAddr, headers: &str, body: &Value) -> Vec<u8> {
    let body = body.to_string();
    format!(
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
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
fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        found.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}
