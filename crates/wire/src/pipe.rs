//! One client's pipe: frames in, replies out, until either end is closed.
//!
//! A thread reads frames. Direct requests go into the lane and are answered one at a time, in order; MCP requests go over the
//! bridge to the SDK and are answered as they finish; cancels act at once, past everything that waits. Every reply goes
//! through the outlet.

use std::{
    future::Future,
    io::{self, Read},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::FutureExt;
use parking_lot::Mutex;
use pintle_contract::{ErrorCode, Fault, Stage};
use pintle_engine::{Engine, Incoming, Outcome, Received, Reply, Target, Transport, unread_replies};
use pintle_rpc::{Dialect, Frame, FrameReader, Opened, Overlong, RequestId};
use pintle_tool::{Caller, CancelReason, ProgressSink};
use rmcp::ErrorData;
use serde_json::json;
use tokio::{runtime::Handle, task::JoinSet};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use crate::{
    calls::{Calls, Registration, id_taken},
    direct,
    json_rpc::{Listener, ReplyFrame},
    lane::{self, LaneReceiver, LaneSender},
    mcp::{self, Bridge, BridgedCalls, Gone, MOST_WAITING, McpService, NotTaken, ReplyTo, Taken, TaskStore},
    outlet::{Outlet, OutletClosed},
};

/// How the log names this transport.
const STDIO: Transport = Transport::named("stdio");

/// How many MCP requests may be under way beyond those that run or wait for a slot: those that wait for the result of a
/// task, lists, and what is being refused. It is more than there can be for long, so that a ping or a cancel is always
/// read.
const SPARE_REQUESTS: usize = MOST_WAITING + 64;

/// How a pipe is served.
#[derive(Clone, Copy, Debug)]
pub struct PipeOptions {
    /// The longest line, in bytes.
    pub max_request_bytes: usize,
    /// Report progress of direct calls also when it is not asked for.
    pub progress_always: bool,
    /// How long the client may take nothing of what is written to it before large replies are evicted.
    pub write_timeout: Duration,
}

/// A pipe that is being served.
pub struct Pipe {
    client: Arc<PipeClient>,
    /// The calls of this client that outlive their requests.
    tasks: JoinSet<()>,
    _evicting: AbortOnDropHandle<()>,
}

/// The client at the other end, and what it has asked for.
struct PipeClient {
    engine: Arc<Engine>,
    caller: Arc<Caller>,
    outlet: Outlet,
    calls: Arc<BridgedCalls<PipeReply>>,
    /// None once no more requests are taken.
    lane: Mutex<Option<Arc<LaneSender<DirectJob>>>>,
    bridge: Arc<Bridge<PipeReply>>,
    mcp_tasks: Arc<TaskStore>,
    /// Every direct request that was taken is answered.
    lane_ended: CancellationToken,
    has_spoken_mcp: AtomicBool,
    stopping: CancellationToken,
    options: PipeOptions,
    runtime: Handle,
}

/// A direct request that is to be answered in its turn.
enum DirectJob {
    Call {
        incoming: Incoming,
        opened: Box<Opened>,
        registration: Option<Registration<mcp::McpCall<PipeReply>>>,
    },
    Refuse {
        incoming: Incoming,
        fault: Fault,
    },
    /// A notification that cannot be acted on is logged, not answered.
    RefuseUnanswered {
        incoming: Incoming,
        fault: Fault,
    },
    /// A cancel that has an id of its own.
    Acknowledge {
        incoming: Incoming,
    },
}

/// Replies of MCP go to the pipe as they come.
#[derive(Clone)]
struct PipeReply(Outlet);

impl ReplyTo for PipeReply {
    const SHOWS_MISSING_SCOPES: bool = false;

    fn reply(
        &self,
        frame: ReplyFrame,
        _: Option<&ErrorData>,
    ) -> impl Future<Output = Result<(), Gone>> + Send + use<> {
        let outlet = self.0.clone();
        async move {
            let written = frame.write_to(&outlet).await;
            outlet.flush();
            written.map_err(|OutletClosed| Gone)
        }
    }

    fn send(&self, frame: String) -> impl Future<Output = Result<(), Gone>> + Send + use<> {
        self.reply(ReplyFrame::short(frame), None)
    }

    fn listener(&self) -> impl Listener {
        self.0.clone()
    }
}

impl Pipe {
    /// Starts serving a caller. `input` is read by a thread of its own; MCP is answered by `service`.
    pub fn start(
        engine: Arc<Engine>,
        caller: Caller,
        service: Arc<dyn McpService>,
        input: impl Read + Send + 'static,
        outlet: Outlet,
        options: PipeOptions,
    ) -> io::Result<Self> {
        let calls = Calls::of_one_client();
        let reply_to = PipeReply(outlet.clone());
        let (bridge, transport) = Bridge::new(Arc::clone(&engine), Arc::clone(&calls), reply_to);
        let (lane, jobs) = lane::lane(Handle::current());
        let client = Arc::new(PipeClient {
            engine,
            caller: Arc::new(caller),
            outlet,
            calls,
            lane: Mutex::new(Some(Arc::new(lane))),
            bridge,
            mcp_tasks: Arc::clone(service.tasks()),
            lane_ended: CancellationToken::new(),
            has_spoken_mcp: AtomicBool::new(false),
            stopping: CancellationToken::new(),
            options,
            runtime: Handle::current(),
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(Arc::clone(&client).work(jobs));
        tasks.spawn(transport.serve(move || service.service()));
        let evicting = evict_when_stalled(client.outlet.clone(), options.write_timeout);
        let evicting = AbortOnDropHandle::new(tokio::spawn(evicting));
        let reader = Arc::clone(&client);
        std::thread::Builder::new().name("pintle-reader".into()).spawn(move || reader.read(input))?;
        Ok(Self { client, tasks, _evicting: evicting })
    }

    /// Resolves when everything that was read has been answered and nothing more can come, or when
    /// nobody reads the replies any more.
    pub async fn ended(&mut self) {
        let caller = self.client.caller.identity();
        let ended = async {
            while self.tasks.join_next().await.is_some() {}
            // Nobody can ask for a task of this pipe any more. While the server drains, tasks may end like any call.
            if !self.client.stopping.is_cancelled() {
                self.client.mcp_tasks.cancel_all_of(caller, CancelReason::Silent);
            }
            self.client.mcp_tasks.all_ended_of(caller).await;
        };
        tokio::select! {
            () = ended => {}
            () = self.client.outlet.closed() => {
                self.client.close();
                self.client.calls.cancel_all(CancelReason::Silent);
                self.client.mcp_tasks.cancel_all_of(caller, CancelReason::Silent);
                // Cancelled work stops at once; waiting for it sees its resources freed.
                while self.tasks.join_next().await.is_some() {}
                self.client.mcp_tasks.all_ended_of(caller).await;
            }
        }
    }

    /// Graceful shutdown: takes no new requests and cancels those that wait. What runs goes on.
    pub fn stop_taking(&self) {
        self.client.stopping.cancel();
        self.client.close();
        self.client.engine.stop_waiting();
    }

    /// Cancels what still runs.
    pub fn cancel_running(&self) {
        self.client.calls.cancel_all(CancelReason::Stopping);
        self.client.mcp_tasks.cancel_all_of(self.client.caller.identity(), CancelReason::Stopping);
    }
}

impl PipeClient {
    fn read(self: &Arc<Self>, input: impl Read) {
        let mut frames = FrameReader::new(input, self.options.max_request_bytes);
        // A stream that cannot be read has ended.
        while let Ok(Some(frame)) = frames.next_frame() {
            // What comes after the server was asked to stop is left unread.
            if self.stopping.is_cancelled() {
                break;
            }
            let taken = match frame {
                Frame::Line(line) if line.trim_ascii().is_empty() => true,
                Frame::Line(line) => self.take(line),
                Frame::TooLong(line) => self.refuse_overlong(&line),
            };
            if !taken {
                break;
            }
        }
        self.close();
    }

    /// Takes no more of either dialect.
    fn close(&self) {
        self.mcp_tasks.leave(self.caller.identity());
        *self.lane.lock() = None;
        self.bridge.close();
    }

    /// Puts a job into the lane. `false` if no more are taken.
    fn push(self: &Arc<Self>, job: DirectJob, weight: usize) -> bool {
        let lane = self.lane.lock().clone();
        let refused = match lane {
            Some(lane) => lane.push(job, weight).err(),
            None => Some(job),
        };
        let Some(job) = refused else { return true };
        match job {
            DirectJob::Call { incoming, .. }
            | DirectJob::Refuse { incoming, .. }
            | DirectJob::Acknowledge { incoming } => self.refuse_late(incoming),
            // It wants no reply.
            DirectJob::RefuseUnanswered { .. } => {}
        }
        false
    }

    /// Answers a request that was read while the pipe was being closed, after all those before it.
    fn refuse_late(self: &Arc<Self>, incoming: Incoming) {
        let client = Arc::clone(self);
        self.answer_beside(async move {
            client.lane_ended.cancelled().await;
            let fault =
                Fault::new(ErrorCode::Cancelled, "the server is stopping; call again once it has restarted");
            client.refuse(incoming, fault).await;
        });
    }

    /// Answers something beside the lane and the SDK. The end of the pipe waits for it.
    fn answer_beside(&self, answer: impl Future<Output = ()> + Send + 'static) {
        let unanswered = self.bridge.count(false);
        self.runtime.spawn(async move {
            answer.await;
            drop(unanswered);
        });
    }

    /// Refuses a request, and writes the reply at once.
    async fn refuse(&self, incoming: Incoming, fault: Fault) {
        let id = incoming.id().cloned();
        let refused = incoming.refuse(fault).await;
        let frame = ReplyFrame::short(direct::reply(id.as_ref(), &refused));
        // A client that is gone needs no reply.
        let _ = frame.write_to(&self.outlet).await;
        self.outlet.flush();
    }

    /// Acts on a frame. `false` if no more are taken.
    fn take(self: &Arc<Self>, frame: &[u8]) -> bool {
        let weight = lane::weight(frame);
        match self.engine.receive(frame, &self.caller, &STDIO) {
            Received::Response(response) => {
                mcp::response(response).is_none_or(|response| self.bridge.send_blocking(response))
            }
            Received::Notification(incoming, opened) => self.notice(incoming, opened, weight),
            Received::Request(incoming, opened) => match opened.dialect {
                Dialect::Direct => self.enter(incoming, opened, weight),
                Dialect::Control if opened.method == "$/cancelRequest" => {
                    self.control(incoming, &opened, weight)
                }
                Dialect::Control => {
                    let fault = Fault::invalid(Stage::Method, "this server does not offer that method")
                        .hint("mcp.discover lists the tools; a tool's name is its method");
                    self.push(DirectJob::Refuse { incoming, fault }, weight)
                }
                Dialect::Mcp => self.enter_mcp(incoming, opened),
            },
            Received::Refused(incoming, fault) => {
                let dialect = incoming.method().map(|method| Dialect::of(method, None));
                match dialect {
                    Some(Dialect::Mcp) => self.refuse_mcp(incoming, fault),
                    None if self.has_spoken_mcp.load(Ordering::Relaxed) => self.refuse_mcp(incoming, fault),
                    _ => self.push(DirectJob::Refuse { incoming, fault }, weight),
                }
            }
        }
    }

    /// Puts a direct call into the lane, unless its id is taken.
    fn enter(self: &Arc<Self>, incoming: Incoming, opened: Opened, weight: usize) -> bool {
        let registration = match &opened.id {
            Some(id) => match self.calls.register(Some(id.clone()), Arc::clone(incoming.cancel())) {
                Some(registration) => Some(registration),
                None => return self.push(DirectJob::Refuse { incoming, fault: id_taken() }, weight),
            },
            None => None,
        };
        self.push(DirectJob::Call { incoming, opened: Box::new(opened), registration }, weight)
    }

    /// Hands an MCP request to the SDK, unless its id is taken.
    fn enter_mcp(self: &Arc<Self>, incoming: Incoming, opened: Opened) -> bool {
        self.has_spoken_mcp.store(true, Ordering::Relaxed);
        if opened.id.is_none() {
            let fault = Fault::invalid(Stage::Envelope, "an MCP request needs an id");
            return self.refuse_mcp(incoming, fault);
        }
        if !self.wait_for_reader() {
            return false;
        }
        match self.bridge.take(incoming, opened, PipeReply(self.outlet.clone()), |_| {}) {
            Ok(Taken { number, message }) => {
                // Too late for the SDK, which takes no more.
                if !self.bridge.send_blocking(message)
                    && let Some(call) = self.bridge.remove(number)
                    && let Some(incoming) = call.answer.and_then(|answer| answer.into_incoming())
                {
                    self.refuse_late(incoming);
                }
                true
            }
            Err(NotTaken::IdTaken(incoming)) => self.refuse_mcp(incoming, id_taken()),
            Err(NotTaken::BadParams(incoming, problem)) => self.refuse_mcp(incoming, problem.into()),
        }
    }

    /// Refuses an MCP request at once: only direct requests are answered in their turn.
    fn refuse_mcp(self: &Arc<Self>, incoming: Incoming, fault: Fault) -> bool {
        if !self.wait_for_reader() {
            return false;
        }
        let client = Arc::clone(self);
        self.answer_beside(async move { client.refuse(incoming, fault).await });
        true
    }

    /// Back-pressure on MCP: takes no further request while the client does not read its replies, or while as many
    /// requests are under way as can be. `false` if the client is gone.
    fn wait_for_reader(&self) -> bool {
        let mut ready = pin!(async {
            self.bridge.until_below(self.engine.capacity() + SPARE_REQUESTS).await;
            self.outlet.has_capacity().await
        });
        let at_once = ready.as_mut().now_or_never();
        at_once.unwrap_or_else(|| self.runtime.block_on(ready)).is_ok()
    }

    /// A notification: a cancel acts, the rest is for the SDK.
    fn notice(self: &Arc<Self>, incoming: Incoming, opened: Opened, weight: usize) -> bool {
        if opened.dialect == Dialect::Control {
            return match self.cancel(&opened) {
                Ok(()) => self.acknowledge(incoming),
                Err(fault) => self.push(DirectJob::RefuseUnanswered { incoming, fault }, weight),
            };
        }
        let message = match &opened.cancels {
            Some(id) => {
                self.calls.cancel(id, CancelReason::Silent);
                // A call in the lane is removed in its turn; one that the SDK had would never be.
                self.bridge.number_of(id).and_then(|number| self.bridge.forget(number, opened.params))
            }
            None => mcp::notification(&opened.method, opened.params),
        };
        self.acknowledge(incoming);
        // The SDK takes no more only if the pipe is closed, which the reader notices by itself.
        message.is_none_or(|message| {
            self.bridge.send_blocking(message);
            true
        })
    }

    /// Logs a message that wants no reply.
    fn acknowledge(&self, incoming: Incoming) -> bool {
        self.runtime.spawn(incoming.acknowledge("notification", 0));
        true
    }

    /// A cancel that has an id of its own is answered, in its turn.
    fn control(self: &Arc<Self>, incoming: Incoming, opened: &Opened, weight: usize) -> bool {
        if opened.id.as_ref().is_some_and(|id| self.calls.contains(id)) {
            return self.push(DirectJob::Refuse { incoming, fault: id_taken() }, weight);
        }
        match self.cancel(opened) {
            Ok(()) => self.push(DirectJob::Acknowledge { incoming }, 0),
            Err(fault) => self.push(DirectJob::Refuse { incoming, fault }, weight),
        }
    }

    fn cancel(&self, opened: &Opened) -> Result<(), Fault> {
        let id = opened.cancels.as_ref().ok_or_else(|| {
            Fault::invalid(Stage::Arguments, "params.id must be the id of the request to cancel")
        })?;
        // A call that has been answered already cannot be cancelled, and need not be.
        self.calls.cancel(id, CancelReason::Asked);
        Ok(())
    }

    fn refuse_overlong(self: &Arc<Self>, line: &Overlong) -> bool {
        let (bytes, limit) = (line.bytes, self.options.max_request_bytes);
        let size = usize::try_from(bytes).unwrap_or(usize::MAX);
        let message = format!("the request has {bytes} bytes; at most {limit} are allowed");
        let fault = |stage| {
            Fault::invalid(stage, message).details(json!({"reason": "payload_too_large", "limit": limit}))
        };
        // The direct dialect answers with a result of its own; MCP has no such result.
        if self.has_spoken_mcp.load(Ordering::Relaxed) {
            let incoming = self.engine.unopened(&self.caller, &STDIO, line.shown_id(), size);
            return self.refuse_mcp(incoming, fault(Stage::Envelope));
        }
        let incoming = self.engine.unopened(&self.caller, &STDIO, None, size);
        self.push(DirectJob::Refuse { incoming, fault: fault(Stage::Size) }, 0)
    }

    /// Answers the jobs of the lane, one at a time.
    async fn work(self: Arc<Self>, mut jobs: LaneReceiver<DirectJob>) {
        // Jobs that never wait would otherwise keep other tasks off this thread.
        const TURN: usize = 64;
        let mut done = 0;
        while let Some(job) = jobs.next().await {
            if flush_when_pending(&self.outlet, self.answer(job)).await.is_err() {
                break;
            }
            if jobs.is_empty() {
                self.outlet.flush();
            }
            done += 1;
            if done % TURN == 0 {
                tokio::task::yield_now().await;
            }
        }
        self.outlet.flush();
        self.lane_ended.cancel();
    }

    async fn answer(self: &Arc<Self>, job: DirectJob) -> Result<(), OutletClosed> {
        let reply = match job {
            DirectJob::Call { incoming, opened, registration } => {
                self.call(incoming, *opened, registration).await
            }
            DirectJob::Refuse { incoming, fault } => {
                let id = incoming.id().cloned();
                let refused = incoming.refuse(fault).await;
                Some(ReplyFrame::short(direct::reply(id.as_ref(), &refused)))
            }
            DirectJob::RefuseUnanswered { incoming, fault } => {
                let _refused = incoming.refuse(fault).await;
                None
            }
            DirectJob::Acknowledge { incoming } => {
                const NOTHING: &str = "{}";
                let id = incoming.id().cloned();
                incoming.acknowledge("notification", NOTHING.len()).await;
                id.map(|id| ReplyFrame::short(direct::result(Some(&id), NOTHING)))
            }
        };
        match reply {
            Some(reply) => reply.write_to(&self.outlet).await,
            None => Ok(()),
        }
    }

    /// The reply of a call, unless nobody wants it any more.
    async fn call(
        self: &Arc<Self>,
        incoming: Incoming,
        mut opened: Opened,
        registration: Option<Registration<mcp::McpCall<PipeReply>>>,
    ) -> Option<ReplyFrame> {
        let cancel = Arc::clone(incoming.cancel());
        if self.stopping.is_cancelled() {
            cancel.cancel(CancelReason::Stopping);
        }
        let id = opened.id;
        if self.options.progress_always && opened.meta.progress_token.is_none() {
            opened.meta.progress_token = Some(json!(id.as_ref().map_or("", RequestId::key)));
        }
        let target = direct::target(opened.method);
        // The token may stand in the invocation's own metadata.
        let may_report = opened.meta.progress_token.is_some() || matches!(target, Target::Invoke);
        let progress = may_report.then(|| -> Arc<dyn ProgressSink> {
            let (engine, listener) = (Arc::clone(&self.engine), self.outlet.clone());
            Arc::new(direct::DirectProgress { engine, listener, id: id.clone() })
        });
        let call = direct::call(target, opened.params, opened.meta, opened.idempotency_key, progress);
        let Reply { outcome, reservation, .. } = incoming.call(call).await;
        // The id is free before anyone can see the reply.
        drop(registration);
        let silent = cancel.reason() == Some(CancelReason::Silent);
        (!silent).then(|| {
            let evicted = || direct::reply(id.as_ref(), &Outcome::Fault(unread_replies()));
            ReplyFrame::large(direct::reply(id.as_ref(), &outcome), reservation, evicted)
        })
    }
}

/// Evicts the large replies that wait whenever the client has taken nothing for the write timeout.
async fn evict_when_stalled(outlet: Outlet, write_timeout: Duration) {
    const CHECK_INTERVAL: Duration = Duration::from_millis(250);
    loop {
        tokio::time::sleep(CHECK_INTERVAL.min(write_timeout)).await;
        if outlet.stalled_for() >= write_timeout {
            outlet.evict_large();
        }
    }
}

/// Flushes the outlet as soon as `work` has to wait: replies that are ready must not wait with it.
async fn flush_when_pending<T>(outlet: &Outlet, work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    let mut flushed = false;
    std::future::poll_fn(|context| {
        let polled = work.as_mut().poll(context);
        if polled.is_pending() && !flushed {
            flushed = true;
            outlet.flush();
        }
        polled
    })
    .await
}
