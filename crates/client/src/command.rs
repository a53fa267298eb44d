//! A server that is started and talked to on standard input and output.

use std::{
    collections::VecDeque,
    ffi::OsString,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use pintle_process::{CommandSpec, Conversation, Ended, Keep, Spawner};
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::unix::{OwnedReadHalf, OwnedWriteHalf},
};

use crate::{
    ClientError, LARGEST_MESSAGE, LEAVE, MOST_BYTES, MOST_MESSAGES,
    message::{self, Incoming},
    session::{Connection, ask},
};

/// Starts a server with a shell command and asks for its surface. Each answer may take as long as `timeout`. The whole
/// process tree of the server has ended afterwards.
pub async fn ask_command(spawner: &Spawner, command: &str, timeout: Duration) -> Result<Value, ClientError> {
    let errors = LastLines::default();
    let noted = errors.clone();
    let conversation = spawner
        .converse(specification(command), move |line: &str| noted.push(line))
        .map_err(ClientError::NotStarted)?;
    let Conversation { stream, ended } = conversation;
    let (read, write) = stream.into_split();
    let mut pipe =
        Pipe { read: BufReader::new(read), write, ended: Some(ended), next: 1, received: 0, timeout, errors };
    let surface = ask(&mut pipe, timeout).await;
    // Closing standard input is how a client leaves.
    let _ = pipe.write.shutdown().await;
    pipe.wait_for_end().await;
    surface
}

fn specification(command: &str) -> CommandSpec {
    // The socket is standard output; the shell makes it standard input as well.
    let script = format!("exec 0<&1\n{command}");
    CommandSpec {
        program: PathBuf::from("/bin/sh"),
        arguments: vec![OsString::from("-c"), OsString::from(script)],
        environment: std::env::vars_os().collect(),
        folder: std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/")),
        stdin: None,
        grace: Duration::from_secs(1),
        keep_stdout: Keep::ends(0),
        keep_stderr: Keep::ends(4096),
    }
}

/// The last lines of standard error, to be shown if something goes wrong.
#[derive(Clone, Default)]
struct LastLines(Arc<Mutex<VecDeque<String>>>);

impl LastLines {
    const MOST: usize = 3;

    fn push(&self, line: &str) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == Self::MOST {
            lines.pop_front();
        }
        lines.push_back(line.chars().take(300).collect());
    }

    fn text(&self) -> String {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().map(String::as_str).collect::<Vec<_>>().join(" | ")
    }
}

struct Pipe {
    read: BufReader<OwnedReadHalf>,
    write: OwnedWriteHalf,
    /// None once the server has ended.
    ended: Option<Ended>,
    next: u64,
    /// How many bytes have been read.
    received: usize,
    timeout: Duration,
    errors: LastLines,
}

impl Connection for Pipe {
    async fn request(&mut self, method: &'static str, params: Value) -> Result<Value, ClientError> {
        let (id, timeout) = (self.next, self.timeout);
        self.next += 1;
        let answer = async {
            self.send(&message::request(id, method, params), method).await?;
            self.answer(id, method).await
        };
        match tokio::time::timeout(timeout, answer).await {
            Ok(answer) => answer,
            Err(_) => Err(ClientError::TimedOut { method, timeout, errors: self.errors.text() }),
        }
    }

    async fn notify(&mut self, method: &'static str) -> Result<(), ClientError> {
        let (message, timeout) = (message::notification(method), self.timeout);
        let sent = tokio::time::timeout(timeout, self.send(&message, method)).await;
        sent.unwrap_or_else(|_| Err(ClientError::TimedOut { method, timeout, errors: self.errors.text() }))
    }
}

impl Pipe {
    async fn send(&mut self, message: &Value, method: &'static str) -> Result<(), ClientError> {
        let line = format!("{message}\n");
        let sent = self.write.write_all(line.as_bytes()).await;
        match sent {
            Ok(()) => Ok(()),
            Err(_) => Err(self.ended(method).await),
        }
    }

    async fn answer(&mut self, id: u64, method: &'static str) -> Result<Value, ClientError> {
        for _ in 0..MOST_MESSAGES {
            let line = self.line(method).await?;
            // Some servers write their log to standard output.
            let Some(message) = message::parse(&line, method)? else { continue };
            match message::read(message, id) {
                Incoming::Answer(answer) => return answer.map_err(|error| message::refused(method, error)),
                Incoming::Asked(reply) => self.send(&reply, method).await?,
                Incoming::Other => {}
            }
        }
        Err(ClientError::TooManyMessages(method))
    }

    async fn line(&mut self, method: &'static str) -> Result<Vec<u8>, ClientError> {
        let mut line = Vec::new();
        let mut limited = (&mut self.read).take(LARGEST_MESSAGE as u64 + 1);
        let read = limited.read_until(b'\n', &mut line).await.unwrap_or(0);
        if read > LARGEST_MESSAGE {
            return Err(ClientError::TooLarge);
        }
        if read == 0 {
            return Err(self.ended(method).await);
        }
        self.received += read;
        if self.received > MOST_BYTES {
            return Err(ClientError::TooMuch);
        }
        Ok(line)
    }

    /// The server closed its output. What it wrote to standard error is complete when it has ended.
    async fn ended(&mut self, method: &'static str) -> ClientError {
        self.wait_for_end().await;
        ClientError::Ended { method, errors: self.errors.text() }
    }

    /// Waits until the server ends by itself, and kills it if it does not.
    async fn wait_for_end(&mut self) {
        if let Some(ended) = self.ended.take() {
            let _ = tokio::time::timeout(LEAVE, ended).await;
        }
    }
}
