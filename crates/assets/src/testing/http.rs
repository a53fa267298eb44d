//! A small HTTP server for tests: sends its replies in order, one a connection, and records the requests. It stops by
//! itself after a while.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

/// The server stops after this time; no test takes longer.
const LIFETIME: Duration = Duration::from_secs(20);

pub(crate) struct Server {
    port: u16,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<String>>,
}

/// A reply. `{port}` in a header stands for the server's own port.
pub(crate) enum Reply {
    Text(String),
    /// The request is read and never answered.
    Never,
    /// The connection is closed without an answer.
    Broken,
}

impl Reply {
    pub(crate) fn json(status: u16, body: &str) -> Self {
        Self::new(status, "Content-Type: application/json\r\n", body)
    }

    pub(crate) fn text(status: u16, body: &str) -> Self {
        Self::new(status, "Content-Type: text/plain\r\n", body)
    }

    pub(crate) fn empty(status: u16) -> Self {
        Self::new(status, "", "")
    }

    pub(crate) fn never() -> Self {
        Self::Never
    }

    pub(crate) fn broken() -> Self {
        Self::Broken
    }

    pub(crate) fn with(self, name: &str, value: &str) -> Self {
        match self {
            Self::Text(text) => Self::Text(text.replacen("\r\n", &format!("\r\n{name}: {value}\r\n"), 1)),
            other => other,
        }
    }

    fn new(status: u16, headers: &str, body: &str) -> Self {
        let length = body.len();
        Self::Text(format!(
            "HTTP/1.1 {status} x\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
        ))
    }
}

impl Server {
    pub(crate) fn start(replies: Vec<Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        listener.set_nonblocking(true).expect("set");
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || serve(&listener, port, replies, &stopped));
        Self { port, stop, thread }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Stops the server and returns the requests it received.
    pub(crate) fn finish(self) -> Vec<String> {
        self.stop.store(true, Ordering::Release);
        self.thread.join().expect("no panic")
    }
}

fn serve(listener: &TcpListener, port: u16, replies: Vec<Reply>, stop: &AtomicBool) -> Vec<String> {
    let end = Instant::now() + LIFETIME;
    let mut requests = Vec::new();
    let mut replies = replies.into_iter();
    while Instant::now() < end && !stop.load(Ordering::Acquire) {
        let Ok((stream, _)) = listener.accept() else {
            std::thread::sleep(Duration::from_millis(2));
            continue;
        };
        let Some(reply) = replies.next() else { break };
        requests.extend(converse(stream, port, reply, stop));
    }
    requests
}

fn converse(mut stream: TcpStream, port: u16, reply: Reply, stop: &AtomicBool) -> Option<String> {
    stream.set_nonblocking(false).ok()?;
    stream.set_read_timeout(Some(LIFETIME)).ok()?;
    let request = read_request(&mut stream)?;
    match reply {
        Reply::Text(text) => {
            // An error is fine: a client that has read enough closes the connection.
            _ = stream.write_all(text.replace("{port}", &port.to_string()).as_bytes());
        }
        Reply::Never => {
            let end = Instant::now() + LIFETIME;
            while Instant::now() < end && !stop.load(Ordering::Acquire) && is_open(&stream) {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        Reply::Broken => {}
    }
    Some(request)
}

fn is_open(stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).is_ok() && !matches!(stream.peek(&mut [0]), Ok(0))
}

fn read_request(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
            });
            if body.len() >= length.unwrap_or(0) {
                return Some(text.into_owned());
            }
        }
        match stream.read(&mut chunk) {
            Ok(0) | Err(_) => return None,
            Ok(count) => bytes.extend_from_slice(&chunk[..count]),
        }
    }
}
