//! Asks any MCP server for its tool surface.
//!
//! The other side is not trusted: it may answer slowly, never, without end, or with nonsense. Every answer has a
//! timeout and a size limit, and a server that was started is ended with its whole process tree.

mod command;
mod http;
mod message;
mod session;

pub use command::ask_command;
pub use http::{Header, ask_url, causes, client_builder};

use std::time::Duration;

use pintle_surface::DocumentError;

/// How many times as long as one answer all of them together may take.
const TOTAL_TIMEOUTS: u32 = 4;
/// The largest message that is read.
pub const LARGEST_MESSAGE: usize = 32 << 20;
/// How much is read of one server.
const MOST_BYTES: usize = 2 * LARGEST_MESSAGE;
/// How long a server gets to end, or to end its session.
const LEAVE: Duration = Duration::from_secs(2);
/// The most pages of a list that are read.
const MOST_PAGES: usize = 200;
/// The most tools that are read.
const MOST_TOOLS: usize = 10_000;
/// The most messages that are read while waiting for one answer.
const MOST_MESSAGES: usize = 10_000;

/// Why a server could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The program could not be started, or could not be talked to.
    #[error("the server cannot be started: {0}")]
    NotStarted(std::io::Error),
    /// The program ended.
    #[error("the server ended before it answered `{method}`{}", quoted(.errors))]
    Ended {
        /// What it was asked.
        method: &'static str,
        /// What it wrote to standard error last.
        errors: String,
    },
    /// No answer came in time.
    #[error("the server did not answer `{method}` within {timeout:?}; --timeout gives it longer{}", quoted(.errors))]
    TimedOut {
        /// What it was asked.
        method: &'static str,
        /// How long was waited.
        timeout: Duration,
        /// What it wrote to standard error last.
        errors: String,
    },
    /// Messages came, but not the answer.
    #[error("the server sent {MOST_MESSAGES} other messages instead of an answer to `{0}`")]
    TooManyMessages(&'static str),
    /// A message was over the limit.
    #[error("the server sent a message of more than {} MiB", LARGEST_MESSAGE >> 20)]
    TooLarge,
    /// All messages together were over the limit.
    #[error("the server sent more than {} MiB", MOST_BYTES >> 20)]
    TooMuch,
    /// A message is nested too deep.
    #[error("the server's answer to `{0}` cannot be read: {1}")]
    TooDeep(&'static str, DocumentError),
    /// A list had no end.
    #[error("the server's list of tools has no end: stopped after {0}")]
    Endless(&'static str),
    /// The server refused.
    #[error("the server answered `{method}` with error {code}: {message}")]
    Refused {
        /// What it was asked.
        method: &'static str,
        /// The JSON-RPC number.
        code: i64,
        /// Its message.
        message: String,
    },
    /// The answer is not one of the protocol.
    #[error("the server's answer to `{0}` is not one of MCP: {1}")]
    Nonsense(&'static str, &'static str),
    /// HTTP answered with a status that says no.
    #[error("the server answered `{method}` with HTTP status {status}{}", advice(*.status))]
    Status {
        /// What it was asked.
        method: &'static str,
        /// The status.
        status: u16,
    },
    /// HTTP failed.
    #[error("the server cannot be reached: {0}")]
    Http(String),
    /// The address or a header cannot be used.
    #[error("{0}")]
    Address(String),
}

fn quoted(errors: &str) -> String {
    match errors.trim() {
        "" => String::new(),
        errors => format!("; it wrote: {errors}"),
    }
}

fn advice(status: u16) -> &'static str {
    match status {
        401 | 403 => "; give a token with --header 'Authorization: Bearer …'",
        404 | 405 => "; is this the address of its MCP endpoint, such as http://127.0.0.1:9999/mcp?",
        _ => "",
    }
}
