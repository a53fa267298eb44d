//! A client of a pipe, and a server for it, in one process.

use std::{
    io::{BufRead, BufReader, Write},
    sync::{Arc, mpsc},
    time::Duration,
};

use pintle_engine::{CallLog, Engine, Options};
use pintle_tool::{Caller, Toolset, erase};
use pintle_wire::{McpHandler, McpOptions, Outlet, Pipe, PipeOptions};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::{
    memory::{Observer, ReadEnd, WriteEnd, byte_stream},
    tools::{Echo, Hold, Holds},
};

/// How long a test waits for what should come at once.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the outlet holds of short replies.
const OUTLET_CAPACITY: usize = 64 << 10;

/// The client's end of a pipe, with the server at its other end.
pub struct Client {
    input: Option<WriteEnd>,
    output: Output,
    pub input_stream: Observer,
    pub output_stream: Observer,
    /// The calls of `hold`.
    pub holds: Holds,
    pipe: Pipe,
    runtime: Runtime,
}

enum Output {
    Unread(Option<ReadEnd>),
    /// Lines, as a thread reads them.
    Read(mpsc::Receiver<Value>),
}

impl Client {
    /// A client that reads all that it gets.
    pub fn start() -> Self {
        Self::start_with(1 << 20).reading()
    }

    /// A client that does not read yet, of a server that takes lines of at most `max_request_bytes`.
    pub fn start_with(max_request_bytes: usize) -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let _guard = runtime.enter();
        let (hold, holds) = Hold::new();
        let tools = Toolset { tools: vec![erase(Echo), erase(hold)], is_listed: true };
        let engine =
            Engine::new(vec![tools], Vec::new(), Options::default(), CallLog::off()).expect("an engine");
        let engine = Arc::new(engine);
        let service = Arc::new(McpHandler::new(Arc::clone(&engine), McpOptions::default()));
        let (input, server_input, input_stream) = byte_stream();
        let (server_output, output, output_stream) = byte_stream();
        let outlet = Outlet::new("test", server_output, OUTLET_CAPACITY, Duration::ZERO).expect("an outlet");
        let options = PipeOptions { max_request_bytes, progress_always: false, write_timeout: PATIENCE };
        let pipe = Pipe::start(engine, Caller::local(), service, server_input, outlet, options);
        let pipe = pipe.expect("a pipe");
        let output = Output::Unread(Some(output));
        Self { input: Some(input), output, input_stream, output_stream, holds, pipe, runtime }
    }

    /// Reads all that it gets from here on.
    pub fn reading(mut self) -> Self {
        self.read();
        self
    }

    /// Reads all that it gets from here on.
    pub fn read(&mut self) {
        if let Output::Unread(end) = &mut self.output {
            let output = BufReader::new(end.take().expect("nobody has taken it"));
            let (sender, receiver) = mpsc::channel();
            std::thread::spawn(move || {
                for line in output.lines() {
                    let line = line.expect("the stream holds");
                    let message = serde_json::from_str(&line).unwrap_or_else(|_| panic!("no JSON: {line}"));
                    if sender.send(message).is_err() {
                        return;
                    }
                }
            });
            self.output = Output::Read(receiver);
        }
    }

    /// Takes the input away, for a thread that writes to it.
    pub fn take_input(&mut self) -> WriteEnd {
        self.input.take().expect("nobody has taken it")
    }

    pub fn send_bytes(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().expect("the input is open");
        input.write_all(bytes).expect("the server reads");
    }

    pub fn send(&mut self, message: &Value) {
        self.send_bytes(format!("{message}\n").as_bytes());
    }

    /// Sends a request.
    pub fn call(&mut self, id: impl Into<Value>, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params}));
    }

    /// The next message; none at the end.
    pub fn next(&mut self) -> Option<Value> {
        let Output::Read(messages) = &self.output else { panic!("the client does not read") };
        match messages.recv_timeout(PATIENCE) {
            Ok(message) => Some(message),
            Err(mpsc::RecvTimeoutError::Disconnected) => None,
            Err(mpsc::RecvTimeoutError::Timeout) => panic!("nothing came within a minute"),
        }
    }

    /// The id of the next message, and its error number, if it is an error.
    pub fn next_reply(&mut self) -> (Value, Option<i64>) {
        let message = self.next().expect("a reply");
        (message["id"].clone(), message["error"]["code"].as_i64())
    }

    /// Ends the input.
    pub fn close_input(&mut self) {
        self.input = None;
    }

    /// Breaks the output.
    pub fn close_output(&mut self) {
        self.output = Output::Unread(None);
    }

    /// Waits until the pipe has ended.
    pub fn until_ended(&mut self) {
        let ended = async { tokio::time::timeout(PATIENCE, self.pipe.ended()).await };
        self.runtime.block_on(ended).expect("the pipe ends");
    }
}
