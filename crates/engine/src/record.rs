//! The log record of one message, which is written exactly once.

use std::{fmt, sync::Arc, time::Instant};

use pintle_contract::{ErrorCode, Fault, Meta};
use pintle_rpc::RequestId;

use crate::{
    catalogue::Entry,
    engine::Engine,
    incoming::{Call, Transport},
    log::LogLine,
    outcome::{Outcome, json_size},
};

/// What the log will say of a message. One that is dropped before it was written says that the message was cancelled.
pub(crate) struct Record {
    engine: Arc<Engine>,
    is_written: bool,
    pub(crate) started: Instant,
    pub(crate) id: Option<RequestId>,
    pub(crate) transport: Transport,
    pub(crate) route: &'static str,
    pub(crate) method: Option<String>,
    pub(crate) meta: Meta,
    pub(crate) tool: Option<Arc<Entry>>,
    pub(crate) attempt: u32,
    pub(crate) cache_hit: bool,
    pub(crate) input_bytes: usize,
    pub(crate) repaired: Vec<String>,
    /// Why the envelope would have been refused, had the server's mode not let it through.
    pub(crate) shadowed: Option<Fault>,
    frame_bytes: usize,
}

impl Record {
    pub(crate) fn new(
        engine: Arc<Engine>,
        transport: Transport,
        id: Option<RequestId>,
        frame_bytes: usize,
    ) -> Box<Self> {
        Box::new(Self {
            engine,
            is_written: false,
            started: Instant::now(),
            id,
            transport,
            route: "envelope",
            method: None,
            meta: Meta::default(),
            tool: None,
            attempt: 1,
            cache_hit: false,
            input_bytes: frame_bytes,
            repaired: Vec::new(),
            shadowed: None,
            frame_bytes,
        })
    }

    /// The message has become a call.
    pub(crate) fn begin_call(&mut self, route: &'static str, method: &str, call: &Call) {
        self.route = route;
        self.method = Some(method.to_owned());
        self.meta = call.meta.clone();
        self.input_bytes = json_size(&call.params);
        self.repaired.clone_from(&call.left_out);
    }

    /// Writes the record of an outcome.
    pub(crate) async fn finish(mut self: Box<Self>, outcome: &Outcome) {
        self.write(outcome.code(), outcome.bytes()).await;
    }

    /// The same, under another route.
    pub(crate) async fn finish_as(mut self: Box<Self>, route: &'static str, outcome: &Outcome) {
        self.route = route;
        self.write(outcome.code(), outcome.bytes()).await;
    }

    /// Writes the record of a success.
    pub(crate) async fn finish_ok(mut self: Box<Self>, route: &'static str, output_bytes: usize) {
        self.route = route;
        self.write(None, output_bytes).await;
    }

    async fn write(&mut self, error: Option<ErrorCode>, output_bytes: usize) {
        self.is_written = true;
        let engine = &self.engine;
        if let Some(shadowed) = &self.shadowed {
            engine.log.write(self.shadow_line(shadowed)).await;
        }
        let line = self.line(error, output_bytes);
        engine.metrics.count(&line, self.started.elapsed());
        engine.log.write(line).await;
    }

    fn line(&self, error: Option<ErrorCode>, output_bytes: usize) -> LogLine<'_> {
        let status = if error.is_some() { "error" } else { "ok" };
        LogLine::new(self, status, error, output_bytes, &self.engine)
    }

    /// The line about an envelope that shadow mode let through.
    fn shadow_line(&self, shadowed: &Fault) -> LogLine<'_> {
        let mut line = LogLine::new(self, "shadow", Some(shadowed.code), 0, &self.engine);
        line.is_about_envelope(self.frame_bytes);
        self.engine.metrics.count(&line, self.started.elapsed());
        line
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        if self.is_written {
            return;
        }
        let line = self.line(Some(ErrorCode::Cancelled), 0);
        self.engine.metrics.count(&line, self.started.elapsed());
        self.engine.log.write_at_once(line);
    }
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Record").field("id", &self.id).field("method", &self.method).finish_non_exhaustive()
    }
}
