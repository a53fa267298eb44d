//! The call log: one JSON line for each call, without anything that the caller's data says.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use pintle_contract::{ErrorCode, Meta, RequestId};
use serde::Serialize;

use crate::{clock::Clock, outlet::Outlet};

/// How grave a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Nothing is written.
    Off,
    /// The server is at fault.
    Error,
    /// The caller is at fault.
    Warn,
    /// All is well.
    Info,
}

/// Writes records.
pub struct CallLog {
    outlet: Option<Outlet>,
    level: Level,
    waits: bool,
    dropped: AtomicU64,
    /// Set if people read it.
    line_format: Option<LineFormat>,
}

/// Writes one call as one line for people, without its line end.
pub type LineFormat = fn(&CallLine<'_>) -> String;

/// What people want to know of a call. The name comes from outside and may hold anything.
#[derive(Clone, Copy, Debug)]
pub struct CallLine<'a> {
    /// How grave it is.
    pub level: Level,
    /// The tool, or the method of a request that is for none; none if it cannot be known.
    pub name: Option<&'a str>,
    /// Why it failed, if it did.
    pub error: Option<ErrorCode>,
    /// How long it took.
    pub duration: Duration,
}

impl CallLog {
    /// Writes to a stream whose reader may be slow or asleep. Rather than stall calls, records that
    /// find no room are dropped, and a line says how many.
    pub fn lossy(outlet: Outlet, level: Level) -> Self {
        Self { outlet: Some(outlet), level, waits: false, dropped: AtomicU64::new(0), line_format: None }
    }

    /// Writes to a stream that takes everything, such as a file: calls wait for it.
    pub fn lossless(outlet: Outlet, level: Level) -> Self {
        Self { outlet: Some(outlet), level, waits: true, dropped: AtomicU64::new(0), line_format: None }
    }

    /// Writes nothing.
    pub fn off() -> Self {
        Self { outlet: None, level: Level::Off, waits: false, dropped: AtomicU64::new(0), line_format: None }
    }

    /// The same log, written for people instead of programs.
    #[must_use]
    pub fn for_people(self, line_format: LineFormat) -> Self {
        Self { line_format: Some(line_format), ..self }
    }

    /// An outlet that suits a log: it gathers records for a moment before it writes them.
    pub fn outlet(stream: impl std::io::Write + Send + 'static) -> std::io::Result<Outlet> {
        const ROOM: usize = 8 << 20;
        const LINGER: Duration = Duration::from_millis(5);
        Outlet::new("pintle-log", stream, ROOM, LINGER)
    }

    /// Writes one record.
    pub(crate) async fn write(&self, record: &Record<'_>) {
        let Some(outlet) = &self.outlet else { return };
        if record.level > self.level {
            return;
        }
        let mut line = match self.line_format {
            Some(line_format) => line_format(&record.line()).into_bytes(),
            None => match serde_json::to_vec(record) {
                Ok(line) => line,
                Err(_) => return,
            },
        };
        line.push(b'\n');
        if self.waits {
            // A log that is gone must not end the calls that it tells of.
            let _ = outlet.write(&[&line]).await;
            outlet.flush();
            return;
        }
        let dropped = self.dropped.swap(0, Ordering::Relaxed);
        let notice = match dropped {
            0 => String::new(),
            count if self.line_format.is_some() => format!("({count} calls are missing here)\n"),
            count => format!("{{\"level\":\"warn\",\"droppedRecords\":{count}}}\n"),
        };
        if !outlet.offer(&[notice.as_bytes(), &line]) {
            self.dropped.fetch_add(dropped + 1, Ordering::Relaxed);
        }
    }
}

/// One call, or one refusal, as the log tells it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Record<'a> {
    ts: String,
    level: Level,
    agent_id: Option<&'a str>,
    trace_id: String,
    span_id: String,
    request_id: Option<&'a str>,
    transport: &'static str,
    route: &'static str,
    method: Option<&'a str>,
    status: &'static str,
    attempt: u32,
    error: Option<ErrorCode>,
    execution: Execution,
    idempotency: Idempotency,
    metadata: Metadata<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    http_request_id: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Execution {
    duration_ms: f64,
    input_bytes: usize,
    output_bytes: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Idempotency {
    cache_hit: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    schema_version: Option<u32>,
    tooling_version: &'a str,
    deterministic: bool,
    tool_id: Option<&'a str>,
    run_id: Option<&'a str>,
    /// Names of arguments that were converted; never their values.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    repaired: &'a [String],
}

/// What is known of a call when it is logged.
pub(crate) struct Told<'a> {
    pub(crate) started: Instant,
    pub(crate) id: Option<&'a RequestId>,
    pub(crate) transport: &'static str,
    /// The `x-request-id` of the HTTP request, with which an operator finds the call in a proxy's log.
    pub(crate) http_request_id: Option<&'a str>,
    pub(crate) route: &'static str,
    pub(crate) method: Option<&'a str>,
    pub(crate) meta: &'a Meta,
    pub(crate) status: &'static str,
    pub(crate) attempt: u32,
    pub(crate) cache_hit: bool,
    pub(crate) error: Option<ErrorCode>,
    pub(crate) input_bytes: usize,
    pub(crate) output_bytes: usize,
    pub(crate) tool_id: Option<&'a str>,
    pub(crate) schema_version: Option<u32>,
    pub(crate) repaired: &'a [String],
}

impl<'a> Record<'a> {
    fn line(&self) -> CallLine<'_> {
        let duration = Duration::from_secs_f64(self.execution.duration_ms / 1000.0);
        CallLine { level: self.level, name: self.method, error: self.error, duration }
    }

    pub(crate) fn new(told: Told<'a>, clock: &Clock, tooling_version: &'a str) -> Self {
        let trace_id = match told.meta.trace() {
            Some((trace, _)) => trace.to_owned(),
            None => clock.random_hex(32),
        };
        let micros = told.started.elapsed().as_micros();
        let duration_ms = if clock.is_deterministic() { 0.0 } else { micros as f64 / 1000.0 };
        Self {
            ts: clock.now(),
            level: match told.error {
                None => Level::Info,
                Some(code) if code.row().http < 500 => Level::Warn,
                Some(_) => Level::Error,
            },
            agent_id: told.meta.agent_id.as_deref().map(head),
            trace_id,
            span_id: clock.random_hex(16),
            request_id: told.id.map(|id| head(id.key())),
            transport: told.transport,
            route: told.route,
            method: told.method.map(head),
            status: told.status,
            attempt: told.attempt,
            error: told.error,
            execution: Execution {
                duration_ms,
                input_bytes: told.input_bytes,
                output_bytes: told.output_bytes,
            },
            idempotency: Idempotency { cache_hit: told.cache_hit },
            metadata: Metadata {
                schema_version: told.schema_version,
                tooling_version,
                deterministic: clock.is_deterministic(),
                tool_id: told.tool_id,
                run_id: told.meta.run_id.as_deref().map(head),
                repaired: told.repaired,
            },
            http_request_id: told.http_request_id,
        }
    }
}

/// Ids and methods come from outside and may be as long as a request.
fn head(text: &str) -> &str {
    const SHOWN: usize = 128;
    if text.len() <= SHOWN {
        return text;
    }
    text.char_indices().nth(SHOWN).map_or(text, |(end, _)| &text[..end])
}
