//! The call log: one JSON line for each call, without anything that the caller's data says.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use pintle_contract::ErrorCode;
use serde::Serialize;
use tokio::runtime::Handle;

use crate::{engine::Engine, record::Record};

/// Where log lines go: a byte stream of the process.
pub trait LogSink: Send + Sync {
    /// Adds a line, once there is capacity. A sink that is gone takes nothing.
    fn write<'a>(&'a self, line: &'a [u8]) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

    /// Adds lines if there is capacity for them now. Returns whether there was.
    fn offer(&self, lines: &[&[u8]]) -> bool;
}

/// The severity of a record.
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
    /// What only somebody wants to know who looks for an error. No record of a call is of this level.
    Debug,
}

/// Writes records.
pub struct CallLog {
    sink: Option<Arc<dyn LogSink>>,
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
    /// Its severity.
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
    /// find no capacity are dropped, and a line says how many.
    pub fn lossy(sink: impl LogSink + 'static, level: Level) -> Self {
        Self {
            sink: Some(Arc::new(sink)),
            level,
            waits: false,
            dropped: AtomicU64::new(0),
            line_format: None,
        }
    }

    /// Writes to a stream that takes everything, such as a file: calls wait for it.
    pub fn lossless(sink: impl LogSink + 'static, level: Level) -> Self {
        Self { sink: Some(Arc::new(sink)), level, waits: true, dropped: AtomicU64::new(0), line_format: None }
    }

    /// Writes nothing.
    pub fn off() -> Self {
        Self { sink: None, level: Level::Off, waits: false, dropped: AtomicU64::new(0), line_format: None }
    }

    /// The same log, written for people instead of programs.
    #[must_use]
    pub fn for_people(self, line_format: LineFormat) -> Self {
        Self { line_format: Some(line_format), ..self }
    }

    /// Writes one record.
    pub(crate) async fn write(&self, line: LogLine<'_>) {
        let Some((sink, line)) = self.render(&line) else { return };
        if self.waits {
            sink.write(&line).await;
        } else {
            self.offer(sink, &line);
        }
    }

    /// Writes one record where nobody can wait: that of a message which was dropped.
    pub(crate) fn write_at_once(&self, line: LogLine<'_>) {
        let Some((sink, line)) = self.render(&line) else { return };
        if !self.waits {
            self.offer(sink, &line);
        } else if !sink.offer(&[&line])
            && let Ok(runtime) = Handle::try_current()
        {
            let sink = Arc::clone(sink);
            runtime.spawn(async move { sink.write(&line).await });
        }
    }

    fn offer(&self, sink: &Arc<dyn LogSink>, line: &[u8]) {
        let dropped = self.dropped.swap(0, Ordering::Relaxed);
        let notice = match dropped {
            0 => String::new(),
            count if self.line_format.is_some() => format!("({count} calls are missing here)\n"),
            count => format!("{{\"level\":\"warn\",\"droppedRecords\":{count}}}\n"),
        };
        if !sink.offer(&[notice.as_bytes(), line]) {
            self.dropped.fetch_add(dropped + 1, Ordering::Relaxed);
        }
    }

    /// The bytes of a line that is to be written, and where to.
    fn render(&self, line: &LogLine<'_>) -> Option<(&Arc<dyn LogSink>, Vec<u8>)> {
        let sink = self.sink.as_ref()?;
        if line.level > self.level {
            return None;
        }
        let mut bytes = match self.line_format {
            Some(line_format) => line_format(&line.for_people()).into_bytes(),
            None => serde_json::to_vec(line).ok()?,
        };
        bytes.push(b'\n');
        Some((sink, bytes))
    }
}

/// One call, or one refusal, as a line of the log.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LogLine<'a> {
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
    /// Why a token was refused; nothing of the token.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

impl<'a> LogLine<'a> {
    pub(crate) fn new(
        record: &'a Record,
        status: &'static str,
        error: Option<ErrorCode>,
        output_bytes: usize,
        engine: &'a Engine,
    ) -> Self {
        let (meta, clock) = (&record.meta, engine.clock());
        let trace_id = match meta.trace() {
            Some((trace, _)) => trace.to_owned(),
            None => clock.random_hex(32),
        };
        let micros = record.started.elapsed().as_micros();
        let duration_ms = if clock.is_deterministic() { 0.0 } else { micros as f64 / 1000.0 };
        let tool = record.tool.as_deref();
        let definition = tool.map(|tool| tool.tool.definition());
        let method = definition.map(|definition| definition.name.as_str()).or(record.method.as_deref());
        Self {
            ts: clock.now(),
            level: match error {
                None => Level::Info,
                Some(code) if code.row().http < 500 => Level::Warn,
                Some(_) => Level::Error,
            },
            agent_id: meta.agent_id.as_deref().map(head),
            trace_id,
            span_id: clock.random_hex(16),
            request_id: record.id.as_ref().map(|id| head(id.key())),
            transport: record.transport.name,
            route: record.route,
            method: method.map(head),
            status,
            attempt: record.attempt,
            error,
            execution: Execution { duration_ms, input_bytes: record.input_bytes, output_bytes },
            idempotency: Idempotency { cache_hit: record.cache_hit },
            metadata: Metadata {
                schema_version: definition.map(|definition| definition.schema_version),
                tooling_version: &engine.options.tooling_version,
                deterministic: clock.is_deterministic(),
                tool_id: tool.map(|tool| tool.id.as_str()),
                run_id: meta.run_id.as_deref().map(head),
                repaired: &record.repaired,
                reason: record.refused_token.as_deref(),
            },
            http_request_id: record.transport.http_request_id.as_deref(),
        }
    }

    /// Makes it a line about the envelope of the message alone, whatever became of the message.
    pub(crate) fn restrict_to_envelope(&mut self, frame_bytes: usize) {
        self.route = "envelope";
        self.agent_id = None;
        self.attempt = 1;
        self.idempotency.cache_hit = false;
        self.execution.input_bytes = frame_bytes;
        let Metadata { tooling_version, deterministic, .. } = self.metadata;
        self.metadata = Metadata {
            schema_version: None,
            tooling_version,
            deterministic,
            tool_id: None,
            run_id: None,
            repaired: &[],
            reason: None,
        };
    }

    /// The tool, the transport, the route and the code, as counters have them. Only names of tools that there are: a
    /// caller must not be able to make up labels.
    pub(crate) fn labels(&self) -> [&str; 4] {
        let tool = self.metadata.tool_id.and(self.method).unwrap_or_default();
        [self.transport, self.route, tool, self.error.map_or("OK", |code| code.name())]
    }

    fn for_people(&self) -> CallLine<'_> {
        let duration = Duration::from_secs_f64(self.execution.duration_ms / 1000.0);
        CallLine { level: self.level, name: self.method, error: self.error, duration }
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
