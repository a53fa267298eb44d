//! A small HTTP client that can also misbehave: it sends any bytes and can disconnect at any time.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{Shutdown, SocketAddr, TcpStream},
};

use serde_json::{Value, json};

use super::{Server, TEST_TIMEOUT};

/// The revision without sessions.
pub const MODERN: &str = "2026-07-28";

/// One connection to a server.
pub struct Client {
    stream: BufReader<TcpStream>,
    /// Sent with every request.
    headers: Vec<(String, String)>,
}

/// A response whose body has not been read yet.
pub struct Response {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    is_chunked: bool,
    left: Option<usize>,
    /// Text that has been read but is not yet parsed into events.
    events: String,
}

/// A response with its body.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

/// One event of a stream.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Event {
    pub id: Option<String>,
    pub retry: Option<u64>,
    pub data: String,
}

impl Server {
    /// The address of a server that serves HTTP.
    pub fn address(&self) -> SocketAddr {
        let stderr = self.stderr();
        let address = stderr.split("mcp:ready mode=http addr=").nth(1).and_then(|rest| rest.lines().next());
        address.and_then(|address| address.parse().ok()).unwrap_or_else(|| panic!("no address: {stderr}"))
    }

    /// A new connection.
    pub fn connect(&self) -> Client {
        Client::connect(self.address())
    }

    /// A connection that has opened a session of this revision.
    pub fn session(&self, version: &str) -> Client {
        Client::session(self.address(), version)
    }

    /// One value of `/metrics`.
    pub fn metric(&self, name: &str) -> u64 {
        let text = self.connect().get("/metrics").body;
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("no {name}: {text}"))
    }
}

/// The request that opens a session.
pub fn initialize(version: &str) -> Value {
    let client = json!({"name": "test", "version": "1"});
    let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": client});
    json!({"jsonrpc": "2.0", "id": "init", "method": "initialize", "params": params})
}

impl Client {
    pub fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("the server listens");
        stream.set_read_timeout(Some(TEST_TIMEOUT)).expect("a timeout");
        stream.set_write_timeout(Some(TEST_TIMEOUT)).expect("a timeout");
        stream.set_nodelay(true).expect("no delay");
        let accept = "application/json, text/event-stream";
        let headers = [("host", address.to_string()), ("accept", accept.to_owned())];
        let headers = headers.map(|(name, value)| (name.to_owned(), value)).into();
        Self { stream: BufReader::new(stream), headers }
    }

    /// A connection that has opened a session of this revision.
    pub fn session(address: SocketAddr, version: &str) -> Self {
        let mut client = Self::connect(address);
        client.open_session(version);
        client
    }

    /// Opens a session of this revision, with the headers that this connection has.
    pub fn open_session(&mut self, version: &str) -> &mut Self {
        let answer = self.post("/mcp", &initialize(version));
        assert_eq!(answer.status, 200, "{answer:?}");
        let id = answer.header("mcp-session-id").expect("a session").to_owned();
        self.set("mcp-session-id", &id);
        self.set("mcp-protocol-version", version);
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(self.post("/mcp", &initialized).status, 202);
        self
    }

    /// The value of a header that is sent with every request.
    pub fn sent(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Sends a token with every request.
    pub fn bearing(mut self, token: &str) -> Self {
        self.set("authorization", &format!("Bearer {token}"));
        self
    }

    /// Another connection with the same headers.
    pub fn another_connection(&self) -> Self {
        let address = self.stream.get_ref().peer_addr().expect("connected");
        Self { headers: self.headers.clone(), ..Self::connect(address) }
    }

    /// Sets a header for all later requests.
    pub fn set(&mut self, name: &str, value: &str) -> &mut Self {
        self.unset(name);
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn unset(&mut self, name: &str) -> &mut Self {
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self
    }

    /// Sends bytes unchanged.
    pub fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    /// Sends a request and does not wait for the response.
    pub fn send(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) {
        let mut head = format!("{method} {path} HTTP/1.1\r\n");
        let own = self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        for (name, value) in own.chain(headers.iter().copied()) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if method == "POST" {
            head.push_str(&format!("content-length: {}\r\n", body.len()));
            if !head.to_ascii_lowercase().contains("\ncontent-type:") {
                head.push_str("content-type: application/json\r\n");
            }
        }
        head.push_str("\r\n");
        let request = [head.as_bytes(), body].concat();
        self.write(&request).expect("the server reads");
    }

    /// The head of the next response.
    pub fn response(&mut self) -> Response {
        let mut line = String::new();
        self.stream.read_line(&mut line).expect("a response");
        let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.unwrap_or_else(|| panic!("not a response: {line:?}"));
        let mut headers = Vec::new();
        loop {
            line.clear();
            self.stream.read_line(&mut line).expect("a header");
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let header = |name: &str| headers.iter().find(|(known, _)| known == name).map(|(_, value)| value);
        let left = header("content-length").and_then(|length| length.parse().ok());
        let is_chunked = header("transfer-encoding").is_some_and(|encoding| encoding == "chunked");
        let left = left.or((!is_chunked).then_some(0));
        Response { status, headers, is_chunked, left, events: String::new() }
    }

    /// The next part of a body; none after the last.
    pub fn piece(&mut self, response: &mut Response) -> Option<Vec<u8>> {
        let length = match response.is_chunked {
            false => response.left.take().unwrap_or(0),
            true => {
                let mut line = String::new();
                self.stream.read_line(&mut line).ok()?;
                usize::from_str_radix(line.trim(), 16).ok()?
            }
        };
        let mut bytes = vec![0; length];
        self.stream.read_exact(&mut bytes).ok()?;
        if response.is_chunked {
            self.stream.read_exact(&mut [0; 2]).ok()?;
        }
        (length > 0).then_some(bytes)
    }

    /// The next event of a stream, without comments; none after the last.
    pub fn event(&mut self, response: &mut Response) -> Option<Event> {
        // The server writes complete events; several may arrive in one part.
        loop {
            if let Some(event) = response.next_parsed() {
                return Some(event);
            }
            let piece = self.piece(response)?;
            response.events.push_str(std::str::from_utf8(&piece).expect("text"));
        }
    }

    /// The rest of a response.
    pub fn answer(&mut self) -> Answer {
        let mut response = self.response();
        let mut body = Vec::new();
        while let Some(piece) = self.piece(&mut response) {
            body.extend(piece);
        }
        let body = String::from_utf8(body).expect("text");
        Answer { status: response.status, headers: response.headers, body }
    }

    pub fn get(&mut self, path: &str) -> Answer {
        self.send("GET", path, &[], b"");
        self.answer()
    }

    pub fn post(&mut self, path: &str, message: &Value) -> Answer {
        self.post_bytes(path, message.to_string().as_bytes())
    }

    pub fn post_bytes(&mut self, path: &str, body: &[u8]) -> Answer {
        self.send("POST", path, &[], body);
        self.answer()
    }

    /// Sends a request and reads the head of its response. Returns whether the server is still there.
    pub fn try_post(&mut self, path: &str, body: &[u8]) -> bool {
        let mut head = format!("POST {path} HTTP/1.1\r\ncontent-type: application/json\r\n");
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&format!("content-length: {}\r\n\r\n", body.len()));
        let mut length = 0;
        let mut line = String::new();
        if self.write(&[head.as_bytes(), body].concat()).is_err() {
            return false;
        }
        while line != "\r\n" {
            line.clear();
            if !self.stream.read_line(&mut line).is_ok_and(|count| count > 0) {
                return false;
            }
            let (name, value) = line.split_once(':').unwrap_or((&line, ""));
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse().expect("a length");
            }
        }
        self.stream.read_exact(&mut vec![0; length]).is_ok()
    }

    /// Sends an MCP request of the revision without sessions and does not wait for the response.
    pub fn send_modern(&mut self, id: Value, method: &str, params: Value) {
        let message = modern(id, method, params);
        let name = ["name", "uri", "taskId"].iter().find_map(|member| message["params"][*member].as_str());
        let mut headers = vec![("mcp-protocol-version", MODERN), ("mcp-method", method)];
        headers.extend(name.map(|name| ("mcp-name", name)));
        self.send("POST", "/mcp", &headers, message.to_string().as_bytes());
    }

    /// An MCP request of the revision without sessions.
    pub fn modern(&mut self, id: Value, method: &str, params: Value) -> Answer {
        self.send_modern(id, method, params);
        self.answer()
    }

    /// An MCP request in this connection's session.
    pub fn call(&mut self, id: Value, method: &str, params: Value) -> Answer {
        self.post("/mcp", &json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
    }

    /// Closes the write side of the connection. Reading still works.
    pub fn close_write(&self) {
        self.stream.get_ref().shutdown(Shutdown::Write).expect("connected");
    }

    /// Closes the connection without notice.
    pub fn disconnect(self) {
        let _ = self.stream.get_ref().shutdown(Shutdown::Both);
    }

    /// Whether the server has closed the connection; waits for it.
    pub fn is_closed(&mut self) -> bool {
        matches!(self.stream.read(&mut [0; 1]), Ok(0) | Err(_))
    }
}

/// A request of the revision without sessions.
pub fn modern(id: Value, method: &str, mut params: Value) -> Value {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(MODERN);
    let capabilities = &mut params["_meta"]["io.modelcontextprotocol/clientCapabilities"];
    if capabilities.is_null() {
        *capabilities = json!({});
    }
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

impl Response {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    fn next_parsed(&mut self) -> Option<Event> {
        loop {
            let end = self.events.find("\n\n")?;
            let block: String = self.events.drain(..end + 2).collect();
            if block.starts_with(':') {
                continue;
            }
            let mut event = Event::default();
            for line in block.lines().filter(|line| !line.is_empty()) {
                match line.split_once(": ").unwrap_or((line, "")) {
                    ("id", value) => event.id = Some(value.to_owned()),
                    ("retry", value) => event.retry = value.parse().ok(),
                    ("data", value) => event.data.push_str(value),
                    _ => panic!("not an event: {block:?}"),
                }
            }
            return Some(event);
        }
    }
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The only message of the body, as JSON or as the last event.
    pub fn message(&self) -> Value {
        let text = match self.header("content-type") {
            Some("text/event-stream") => {
                let last = self.body.lines().rfind(|line| line.starts_with("data: "));
                last.and_then(|line| line.strip_prefix("data: ")).unwrap_or_default()
            }
            _ => &self.body,
        };
        serde_json::from_str(text).unwrap_or_else(|error| panic!("not JSON ({error}): {self:?}"))
    }

    pub fn result(&self) -> Value {
        let message = self.message();
        message.get("result").cloned().unwrap_or_else(|| panic!("not a result: {self:?}"))
    }

    /// The status and the error code.
    pub fn refusal(&self) -> (u16, i64) {
        (self.status, self.message()["error"]["code"].as_i64().unwrap_or_else(|| panic!("{self:?}")))
    }
}
