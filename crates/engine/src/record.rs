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

/// The log record of a message. If it is dropped before it was written, it is written as that of a cancelled message.
pub(crate) struct Record {
    engine: Arc<Engine>,
    /// How the message ended, once it has: its code and the size of what was sent.
    ended: Option<(Option<ErrorCode>, usize)>,
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
    /// Why the caller's token was refused.
    pub(crate) refused_token: Option<String>,
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
            ended: None,
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
            refused_token: None,
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

    /// Writes the line of a message that has come to its end. A log that takes everything may keep this waiting, and
    /// whoever waits may be dropped meanwhile: then the drop writes the line.
    async fn write(&mut self, error: Option<ErrorCode>, output_bytes: usize) {
        self.end(error, output_bytes);
        if let Some(shadowed) = &self.shadowed {
            self.engine.log.write(self.shadow_line(shadowed)).await;
        }
        self.shadowed = None;
        self.engine.log.write(self.line(error, output_bytes)).await;
        self.is_written = true;
    }

    /// Notes how the message ended, and counts it.
    fn end(&mut self, error: Option<ErrorCode>, output_bytes: usize) {
        self.ended = Some((error, output_bytes));
        let metrics = &self.engine.metrics;
        if let Some(shadowed) = &self.shadowed {
            metrics.count(&self.shadow_line(shadowed), self.started.elapsed());
        }
        metrics.count(&self.line(error, output_bytes), self.started.elapsed());
    }

    fn line(&self, error: Option<ErrorCode>, output_bytes: usize) -> LogLine<'_> {
        let status = if error.is_some() { "error" } else { "ok" };
        LogLine::new(self, status, error, output_bytes, &self.engine)
    }

    /// The line about an envelope that shadow mode let through.
    fn shadow_line(&self, shadowed: &Fault) -> LogLine<'_> {
        let mut line = LogLine::new(self, "shadow", Some(shadowed.code), 0, &self.engine);
        line.restrict_to_envelope(self.frame_bytes);
        line
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        if self.is_written {
            return;
        }
        if self.ended.is_none() {
            self.end(Some(ErrorCode::Cancelled), 0);
        }
        let log = &self.engine.log;
        if let Some(shadowed) = &self.shadowed {
            log.write_at_once(self.shadow_line(shadowed));
        }
        if let Some((error, output_bytes)) = self.ended {
            log.write_at_once(self.line(error, output_bytes));
        }
    }
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Record").field("id", &self.id).field("method", &self.method).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::{future::Future, pin::Pin};

    use futures_util::FutureExt;
    use parking_lot::Mutex;
    use pintle_contract::Stage;
    use pintle_tool::Caller;
    use serde_json::Value;

    use super::*;
    use crate::{CallLog, Level, LogSink, Options, Received};

    /// A log that takes no line while anybody waits, and every line that is offered.
    #[derive(Clone, Default)]
    struct SlowLog(Arc<Mutex<Vec<Value>>>);

    impl LogSink for SlowLog {
        fn write<'a>(&'a self, _: &'a [u8]) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
            Box::pin(std::future::pending())
        }

        fn offer(&self, lines: &[&[u8]]) -> bool {
            let mut taken = self.0.lock();
            taken.extend(lines.iter().filter_map(|line| serde_json::from_slice(line).ok()));
            true
        }
    }

    impl SlowLog {
        /// What each line says of how its message ended.
        fn taken(&self) -> Vec<(Value, Value)> {
            let lines = std::mem::take(&mut *self.0.lock());
            lines.iter().map(|line| (line["status"].clone(), line["error"].clone())).collect()
        }
    }

    fn receive(engine: &Arc<Engine>, frame: &str) -> crate::Incoming {
        let caller = Arc::new(Caller::local());
        match engine.receive(frame.as_bytes(), &caller, &Transport::named("test")) {
            Received::Request(incoming, _) => incoming,
            _ => panic!("no request: {frame}"),
        }
    }

    #[tokio::test]
    async fn a_message_that_is_dropped_before_its_end_or_before_its_line_is_written_has_one_record() {
        let log = SlowLog::default();
        let call_log = CallLog::lossless(log.clone(), Level::Info);
        let engine = Engine::new(Vec::new(), Vec::new(), Options::default(), call_log).expect("an engine");
        let engine = Arc::new(engine);
        let frame = r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{}}"#;
        drop(receive(&engine, frame));
        assert_eq!(log.taken(), [("error".into(), "CANCELLED".into())]);
        // Whoever waits for the log is dropped: the record still says how the message ended.
        let refused = receive(&engine, frame).refuse(Fault::invalid(Stage::Method, "no such method"));
        assert!(refused.now_or_never().is_none(), "the log takes its time");
        assert_eq!(log.taken(), [("error".into(), "INVALID_REQUEST".into())]);
        assert!(receive(&engine, frame).acknowledge("notification", 0).now_or_never().is_none());
        assert_eq!(log.taken(), [("ok".into(), Value::Null)]);
    }
}
