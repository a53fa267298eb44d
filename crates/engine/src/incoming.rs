//! A client's message, from the moment it was received until its record is in the log.
//!
//! [`Engine::receive`] opens a frame and hands out an [`Incoming`]. Whatever is to become of the message is a method
//! that consumes it: a call, a query, a refusal, an acknowledgement. Each of them writes the one log record. A message
//! that is dropped instead is logged as cancelled, so no transport can leave one unlogged.

use std::{fmt, future::Future, panic::AssertUnwindSafe, sync::Arc};

use futures_util::FutureExt;
use pintle_contract::{ErrorCode, Fault, Meta, Stage};
use pintle_rpc::{Message, Opened, Refused, RequestId, open};
use pintle_tool::{CallContext, CallParts, Caller, Cancel, Progress, ProgressSink};
use serde::Serialize;
use serde_json::Value;

use crate::{
    admission::Admitted,
    budget::Reservation,
    engine::Engine,
    outcome::{Outcome, Reply, json_size},
    record::Record,
    run::{Deadline, panicked, until_ended},
};

/// The transport that a message came by, as the log names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transport {
    /// The name of the transport.
    pub name: &'static str,
    /// The `x-request-id` of an HTTP request, with which an operator finds the call in a proxy's log.
    pub http_request_id: Option<Arc<str>>,
}

impl Transport {
    /// A transport without a request id of its own.
    pub const fn named(name: &'static str) -> Self {
        Self { name, http_request_id: None }
    }
}

/// What a frame turned out to be.
pub enum Received {
    /// It wants one reply.
    Request(Incoming, Opened),
    /// It wants no reply.
    Notification(Incoming, Opened),
    /// It answers something that the server asked; it is no message to be logged.
    Response(Value),
    /// It cannot be acted on, and says why. To be given to [`Incoming::refuse`].
    Refused(Incoming, Fault),
}

impl Received {
    /// The same, holding a turn. A response needs none.
    #[must_use]
    pub fn holding(self, turn: Option<Turn>) -> Self {
        match self {
            Self::Request(incoming, opened) => Self::Request(incoming.holding(turn), opened),
            Self::Notification(incoming, opened) => Self::Notification(incoming.holding(turn), opened),
            Self::Refused(incoming, fault) => Self::Refused(incoming.holding(turn), fault),
            Self::Response(response) => Self::Response(response),
        }
    }
}

/// What a call is aimed at.
#[derive(Clone, Debug)]
pub enum Target {
    /// A tool, by name; the params are its arguments.
    Tool(String),
    /// `mcp.tool.invoke`: the params name the tool.
    Invoke,
    /// `mcp.discover`: the list of tools.
    Discover,
    /// A resource; the params name its address.
    Resource,
}

/// How arguments are read that do not match their schema as they stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ArgumentReading {
    /// They are refused.
    #[default]
    Strict,
    /// What a client wrote as a JSON text is converted where the schema leaves no doubt.
    Lenient,
}

/// What is to be called, and how.
pub struct Call {
    /// What it is aimed at.
    pub target: Target,
    /// The arguments.
    pub params: Value,
    /// How the arguments are read.
    pub argument_reading: ArgumentReading,
    /// The names of arguments that were left out before: the client had added them to what its model wrote.
    pub left_out: Vec<String>,
    /// What it says about itself.
    pub meta: Meta,
    /// The key under which its outcome is to be kept.
    pub idempotency_key: Option<String>,
    /// Where progress goes, if the caller can receive any; it is sent if `meta` has a token.
    pub progress: Option<Arc<dyn ProgressSink>>,
    /// How many bytes the reply takes at most, as a multiple of the result's: what its reservation is made for.
    pub reply_factor: usize,
}

/// A received message that is neither answered nor logged yet.
#[must_use = "a message that is dropped is logged as cancelled"]
pub struct Incoming {
    pub(crate) engine: Arc<Engine>,
    pub(crate) caller: Arc<Caller>,
    pub(crate) cancel: Arc<Cancel>,
    pub(crate) record: Box<Record>,
    turn: Option<Turn>,
}

/// What a transport holds for a message until its arguments are checked, so that the large messages of one caller are read
/// and checked one after the other. It is released by being dropped.
pub type Turn = Box<dyn Send + Sync>;

impl fmt::Debug for Incoming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Incoming").field("record", &self.record).finish_non_exhaustive()
    }
}

impl Engine {
    /// Step 2: opens a frame.
    pub fn receive(self: &Arc<Self>, frame: &[u8], caller: &Arc<Caller>, transport: &Transport) -> Received {
        self.recent_callers.saw(caller.identity());
        let judge = |fields: &Value| {
            self.envelope_schema.check(fields, Stage::Envelope, "the envelope is wrong", "field")
        };
        let incoming = |id, method| {
            let mut incoming = self.unopened(caller, transport, id, frame.len());
            incoming.record.method = method;
            incoming
        };
        match open(frame, judge, self.options.envelope) {
            Ok(Message::Response(response)) => Received::Response(response),
            Ok(Message::Request(mut opened)) => {
                let mut incoming = incoming(opened.id.clone(), Some(opened.method.clone()));
                incoming.record.shadowed = opened.shadowed.take();
                Received::Request(incoming, opened)
            }
            Ok(Message::Notification(mut opened)) => {
                let mut incoming = incoming(opened.id.clone(), Some(opened.method.clone()));
                incoming.record.shadowed = opened.shadowed.take();
                Received::Notification(incoming, opened)
            }
            Err(Refused { id, method, fault }) => Received::Refused(incoming(id, method), fault),
        }
    }

    /// A message that was not opened, for those who refuse it by its size or its head, or make it in this process.
    pub fn unopened(
        self: &Arc<Self>,
        caller: &Arc<Caller>,
        transport: &Transport,
        id: Option<RequestId>,
        bytes: usize,
    ) -> Incoming {
        Incoming {
            engine: Arc::clone(self),
            caller: Arc::clone(caller),
            cancel: Arc::default(),
            record: Record::new(Arc::clone(self), transport.clone(), id, bytes),
            turn: None,
        }
    }
}

impl Incoming {
    /// The same message, which holds a turn until its arguments are checked.
    pub fn holding(self, turn: Option<Turn>) -> Self {
        Self { turn, ..self }
    }

    /// The id of the request, if it has one.
    pub fn id(&self) -> Option<&RequestId> {
        self.record.id.as_ref()
    }

    /// The method, if the frame shows one.
    pub fn method(&self) -> Option<&str> {
        self.record.method.as_deref()
    }

    /// The switch that cancels whatever becomes of the message.
    pub fn cancel(&self) -> &Arc<Cancel> {
        &self.cancel
    }

    /// Who sent it.
    pub fn caller(&self) -> &Arc<Caller> {
        &self.caller
    }

    /// The way by which it came.
    pub fn transport(&self) -> &Transport {
        &self.record.transport
    }

    /// Refuses it before it becomes a call.
    pub async fn refuse(mut self, fault: Fault) -> Outcome {
        if fault.code == ErrorCode::Unauthorized {
            // Its message is one of a fixed list and quotes nothing of the token.
            self.record.refused_token = Some(fault.message.clone());
        }
        let outcome = Outcome::Fault(fault);
        self.record.finish_as("envelope", &outcome).await;
        outcome
    }

    /// Notes that it was acted on, where there is nothing to run: a notification, or a handshake that the protocol's
    /// SDK answers. It occupies no slot.
    pub async fn acknowledge(self, route: &'static str, output_bytes: usize) {
        self.record.finish_ok(route, output_bytes).await;
    }

    /// Steps 3 to 10: takes a call to its outcome. The caller of this function owes the client the one reply, unless
    /// the call was cancelled silently.
    pub async fn call(self, call: Call) -> Reply {
        let Self { engine, caller, cancel, mut record, turn } = self;
        let (route, method) = match &call.target {
            Target::Tool(name) => ("tool", name.as_str()),
            Target::Invoke => ("tool", "mcp.tool.invoke"),
            Target::Discover => ("discover", "mcp.discover"),
            Target::Resource => ("resource", "resources/read"),
        };
        record.begin_call(route, method, &call);
        let Reply { outcome, mut reservation, .. } =
            engine.run_call(call, caller, &cancel, &mut record, turn).await;
        // From here on it is too late to cancel; if it was cancelled, nothing else may be reported.
        let outcome = match cancel.finish() {
            Err(fault) if outcome.code() != Some(ErrorCode::Cancelled) => {
                reservation = Reservation::default();
                Outcome::Fault(fault)
            }
            _ => outcome,
        };
        let repaired = record.repaired.clone();
        record.finish(&outcome).await;
        Reply { outcome, reservation, repaired }
    }

    /// Answers a question about the server itself: a list, a completion, a discovery, a ping. Such questions have slots
    /// of their own, so that they never wait behind tools, and a deadline and a cancel like any call.
    pub async fn query<T: Serialize, W: Future<Output = Result<T, Fault>>>(
        self,
        route: &'static str,
        work: impl FnOnce(CallContext) -> W,
    ) -> Result<(T, Reservation), Fault> {
        self.query_after(route, async { Ok(0) }, |context, _| work(context)).await
    }

    /// The same for a question whose answer has to be waited for, or is large. `ready` waits without a slot and returns
    /// about how many bytes the answer has: they are reserved before the work builds it, so that many such questions at
    /// once do not take more memory than replies may.
    pub async fn query_after<T: Serialize, W: Future<Output = Result<T, Fault>>>(
        self,
        route: &'static str,
        ready: impl Future<Output = Result<usize, Fault>>,
        work: impl FnOnce(CallContext, usize) -> W,
    ) -> Result<(T, Reservation), Fault> {
        let Self { engine, caller, cancel, record, turn } = self;
        // A question has no arguments that take long.
        drop(turn);
        let ended = cancel.token().child_token();
        let _ends_with_this_call = ended.clone().drop_guard();
        let run = async {
            let expected = ready.await?;
            let reserved = engine.budget.reserve(expected, &cancel).await?;
            let Admitted { slot, .. } = engine.queries.admit(caller.identity(), &cancel, None).await?;
            let context = CallContext::new(CallParts {
                caller,
                authorizer: None,
                ended,
                progress: Progress::silent(),
                cancel: Arc::clone(&cancel),
                slot: Some(Box::new(slot)),
                largest_result: engine.options.max_result_bytes,
                reread: Vec::new(),
            });
            let work = AssertUnwindSafe(async { work(context, expected).await }).catch_unwind();
            let answer = work.await.unwrap_or_else(|_| Err(panicked()))?;
            let bytes = json_size(&answer);
            let reservation = match expected {
                0 => engine.budget.reserve(bytes, &cancel).await?,
                _ => reserved,
            };
            Ok((answer, bytes, reservation))
        };
        let deadline = Deadline::after(engine.options.timeouts.general());
        let (_, result) = until_ended(run, &cancel, deadline).await;
        let result = cancel.finish().and(result);
        match result {
            Ok((answer, bytes, reservation)) => {
                record.finish_ok(route, bytes).await;
                Ok((answer, reservation))
            }
            Err(fault) => {
                record.finish_as(route, &Outcome::Fault(fault.clone())).await;
                Err(fault)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use futures_util::FutureExt;

    use super::*;
    use crate::{CallLog, Options};

    fn receive(engine: &Arc<Engine>) -> Incoming {
        let frame = br#"{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{}}"#;
        match engine.receive(frame, &Arc::new(Caller::local()), &Transport::named("test")) {
            Received::Request(incoming, _) => incoming,
            _ => panic!("no request"),
        }
    }

    #[tokio::test]
    async fn a_large_answer_is_built_only_once_its_memory_is_reserved() {
        const LARGE: usize = 8 << 20;
        let options = Options { reply_memory: 2 * LARGE, ..Options::default() };
        let engine = Engine::new(Vec::new(), Vec::new(), options, CallLog::off()).expect("an engine");
        let engine = Arc::new(engine);
        let built = Cell::new(0);
        let query = || {
            let work = |_, _| async {
                built.set(built.get() + 1);
                Ok("an answer")
            };
            receive(&engine).query_after("task", async { Ok(LARGE) }, work)
        };
        let (_, unread) = query().await.expect("the first has all the memory that it needs");
        let mut second = Box::pin(query());
        assert!((&mut second).now_or_never().is_none());
        assert_eq!(built.get(), 1);
        drop(unread);
        second.await.expect("the first was read");
        assert_eq!(built.get(), 2);
    }
}
