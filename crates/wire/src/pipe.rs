//! One client's pipe: frames in, replies out, until either end is closed.
//!
//! A thread reads and opens frames. Direct requests go into the lane and are worked off one at a time;
//! cancels act at once, past everything that waits. Every request's reply goes through the outlet.
//!
//! To wake another thread takes longer than many a call. When nothing else is to be done, in the lane or on the pipe, the
//! reader begins a direct call itself; one that has to wait for something goes on in the lane.

use std::{
    future::Future,
    io::{self, Read},
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use futures_util::FutureExt;

use pintle_contract::{Dialect, Fault, RequestId, Stage};
use pintle_engine::{
    ArgumentReading, CallRequest, Caller, Cancel, CancelReason, Engine, InFlight, Message, Opened, Outlet,
    OutletClosed, ProgressSink, Refused, Reply, Target, Transport, unread_replies,
};
use rmcp::ServerHandler;
use serde_json::json;
use tokio::{runtime::Handle, task::JoinSet};
use tokio_util::task::AbortOnDropHandle;

use crate::{
    direct,
    frame::{Frame, FrameReader, Overlong},
    json_rpc::ReplyFrame,
    lane::{self, Lane},
    mcp::{self, Asked, McpFeed, Origin},
};

/// How many MCP requests may be under way beyond those that run or wait for a slot: lists, and what is being refused.
const SPARE_REQUESTS: usize = 64;

/// How a pipe is served.
#[derive(Clone, Copy, Debug)]
pub struct PipeOptions {
    /// The longest line, in bytes.
    pub max_request_bytes: usize,
    /// Tell progress of direct calls also when it is not asked for.
    pub progress_always: bool,
    /// How long the client may take nothing of what is written to it before large replies are evicted.
    pub write_timeout: Duration,
}

/// A pipe that is being served.
pub struct Pipe {
    shared: Arc<Shared>,
    tasks: JoinSet<()>,
    _evicting: AbortOnDropHandle<()>,
}

struct Shared {
    engine: Arc<Engine>,
    caller: Arc<Caller>,
    outlet: Outlet,
    in_flight: Arc<InFlight>,
    lane: Lane<Job>,
    mcp: McpFeed,
    has_spoken_mcp: AtomicBool,
    options: PipeOptions,
    runtime: Handle,
}

/// Work that has begun elsewhere.
type Begun = Pin<Box<dyn Future<Output = Result<(), OutletClosed>> + Send>>;

/// How large a frame was, and how much it weighs in the lane.
#[derive(Clone, Copy)]
struct FrameSize {
    bytes: usize,
    weight: usize,
    /// Nothing has come after it yet.
    is_last: bool,
}

/// What is to be answered, in its turn.
enum Job {
    Call {
        opened: Box<Opened>,
        cancel: Arc<Cancel>,
    },
    Refuse {
        refused: Refused,
        frame_bytes: usize,
    },
    /// A notification that cannot be acted on is logged, not answered.
    Note {
        refused: Refused,
        frame_bytes: usize,
    },
    /// What would have been refused is logged before it is acted on.
    Shadow {
        refused: Refused,
        frame_bytes: usize,
    },
    Result {
        id: RequestId,
        json: &'static str,
    },
    /// The rest of a call that has begun.
    Begun(Begun),
}

impl Pipe {
    /// Starts serving a caller. `input` is read by a thread of its own; MCP is answered by `handler`.
    pub fn start(
        engine: Arc<Engine>,
        caller: Caller,
        handler: impl ServerHandler + Clone,
        input: impl Read + Send + 'static,
        outlet: Outlet,
        options: PipeOptions,
    ) -> io::Result<Self> {
        let in_flight = Arc::new(InFlight::default());
        let (mcp, route) = mcp::route(Arc::clone(&in_flight), outlet.clone());
        let shared = Arc::new(Shared {
            engine,
            caller: Arc::new(caller),
            outlet,
            in_flight,
            lane: Lane::default(),
            mcp,
            has_spoken_mcp: AtomicBool::new(false),
            options,
            runtime: Handle::current(),
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(Arc::clone(&shared).work());
        tasks.spawn(route.serve(handler));
        let evicting = evict_when_stalled(shared.outlet.clone(), options.write_timeout);
        let evicting = AbortOnDropHandle::new(tokio::spawn(evicting));
        let reader = Arc::clone(&shared);
        std::thread::Builder::new().name("pintle-reader".into()).spawn(move || reader.read(input))?;
        Ok(Self { shared, tasks, _evicting: evicting })
    }

    /// Resolves when everything that was read has been answered and nothing more can come, or when
    /// nobody reads the replies any more.
    pub async fn ended(&mut self) {
        let ended = async { while self.tasks.join_next().await.is_some() {} };
        tokio::select! {
            () = ended => {}
            () = self.shared.outlet.closed() => {
                self.shared.close();
                self.shared.in_flight.cancel_all(CancelReason::Silent);
                // Cancelled work lets go at once; waiting for it sees its resources freed.
                while self.tasks.join_next().await.is_some() {}
            }
        }
    }

    /// Takes no new requests and cancels those that wait. What runs goes on.
    pub fn stop_taking(&self) {
        self.shared.close();
        self.shared.engine.stop_waiting();
        self.shared.lane.for_each_waiting(|job| {
            if let Job::Call { cancel, .. } = job {
                cancel.cancel(CancelReason::Stopping);
            }
        });
    }

    /// Cancels what still runs.
    pub fn cancel_running(&self) {
        self.shared.in_flight.cancel_all(CancelReason::Stopping);
    }
}

impl Shared {
    fn read(self: &Arc<Self>, input: impl Read) {
        let mut frames = FrameReader::new(input, self.options.max_request_bytes);
        // A stream that cannot be read has ended.
        while let Ok(Some((frame, is_last))) = frames.next_frame_at_hand() {
            let taken = match frame {
                Frame::Line(line) if line.trim_ascii().is_empty() => true,
                Frame::Line(line) => self.take(line, is_last),
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
        self.lane.close();
        self.mcp.close();
    }

    /// Acts on a frame. `false` if no more are taken.
    fn take(self: &Arc<Self>, frame: &[u8], is_last: bool) -> bool {
        let size = FrameSize { bytes: frame.len(), weight: lane::weight(frame), is_last };
        let mut message = match self.engine.open(frame) {
            Ok(message) => message,
            Err(refused) => return self.push_refusal(refused, size),
        };
        if let Message::Request(opened) | Message::Notification(opened) = &mut message
            && let Some(fault) = opened.shadowed.take()
        {
            let refused = Refused { id: opened.id.clone(), method: Some(opened.method.clone()), fault };
            self.lane.push(Job::Shadow { refused, frame_bytes: size.bytes }, 0);
        }
        match message {
            Message::Response(response) => {
                self.mcp.response(response);
                true
            }
            Message::Notification(opened) => self.notice(opened, size),
            Message::Request(opened) => match opened.dialect {
                Dialect::Direct => self.enter(opened, size),
                Dialect::Control if opened.method == "$/cancelRequest" => self.control(opened, size),
                Dialect::Control => self.refuse_method(opened, size),
                Dialect::Mcp => self.enter_mcp(opened, size),
            },
        }
    }

    /// Begins a call or puts it into the lane, unless its id is taken.
    fn enter(self: &Arc<Self>, opened: Opened, size: FrameSize) -> bool {
        let entered = match &opened.id {
            Some(id) => self.in_flight.enter(id),
            None => Some(Arc::default()),
        };
        let Some(cancel) = entered else { return self.refuse(opened, id_taken(), size) };
        let job = Job::Call { opened: Box::new(opened), cancel };
        if size.is_last && self.lane.claim() {
            return self.begin(job);
        }
        self.lane.push(job, size.weight)
    }

    /// Begins a job in the place of the lane's worker, and leaves to it what cannot be done at once.
    fn begin(self: &Arc<Self>, job: Job) -> bool {
        let shared = Arc::clone(self);
        let mut work: Begun = Box::pin(async move {
            let answered = shared.answer(job).await;
            shared.outlet.flush();
            answered
        });
        let _runtime = self.runtime.enter();
        // Whoever goes on asks anew to be woken.
        match work.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(answered) => {
                self.lane.release(None);
                answered.is_ok()
            }
            Poll::Pending => {
                self.lane.release(Some(Job::Begun(work)));
                true
            }
        }
    }

    /// Hands an MCP request to the SDK, unless its id is taken.
    fn enter_mcp(&self, opened: Opened, size: FrameSize) -> bool {
        self.has_spoken_mcp.store(true, Ordering::Relaxed);
        let Some(id) = opened.id.clone() else {
            let fault = Fault::invalid(Stage::Envelope, "an MCP request needs an id");
            return self.refuse(opened, fault, size);
        };
        let Some(cancel) = self.in_flight.enter(&id) else {
            return self.refuse(opened, id_taken(), size);
        };
        if !self.wait_for_reader() {
            return false;
        }
        let (engine, listener) = (Arc::clone(&self.engine), self.outlet.clone());
        let progress: Arc<dyn ProgressSink> = Arc::new(mcp::McpProgress { engine, listener, id: id.clone() });
        let origin = Origin {
            id: Some(id.clone()),
            asked: Asked::new(&self.engine, Transport::Stdio, &opened.method, size.bytes),
            caller: Arc::clone(&self.caller),
            transport: Transport::Stdio,
            cancel,
            meta: opened.meta,
            idempotency_key: opened.idempotency_key,
            progress: Some(progress),
            reply_stream: None,
            ticket: None,
        };
        match self.mcp.request(&opened.method, opened.params, id.clone(), origin) {
            Ok(()) => true,
            Err(problem) => {
                self.in_flight.leave(&id);
                let fault = Fault::invalid(Stage::Arguments, problem);
                self.push_refusal(Refused { id: Some(id), method: Some(opened.method), fault }, size)
            }
        }
    }

    /// Back-pressure on MCP: takes no further request while the client does not read its replies, or while as many
    /// requests are under way as can be. `false` if the client is gone.
    fn wait_for_reader(&self) -> bool {
        let mut ready = pin!(async {
            self.mcp.until_below(self.engine.capacity() + SPARE_REQUESTS).await;
            self.outlet.has_capacity().await
        });
        let at_once = ready.as_mut().now_or_never();
        at_once.unwrap_or_else(|| self.runtime.block_on(ready)).is_ok()
    }

    /// A notification: a cancel acts, the rest is for the SDK.
    fn notice(&self, opened: Opened, size: FrameSize) -> bool {
        if opened.dialect != Dialect::Control {
            let Some(id) = &opened.cancels else {
                self.mcp.notification(&opened.method, opened.params);
                return true;
            };
            self.in_flight.cancel(id, CancelReason::Silent);
            // A call in the lane leaves by itself, in its turn; one that the SDK had would never leave.
            if self.mcp.cancelled(opened.params, id) {
                self.in_flight.leave(id);
            }
            return true;
        }
        match self.cancel(&opened) {
            Ok(()) => true,
            Err(fault) => {
                let refused = Refused { id: None, method: Some(opened.method), fault };
                self.lane.push(Job::Note { refused, frame_bytes: size.bytes }, size.weight)
            }
        }
    }

    /// A cancel that has an id of its own is answered, in its turn.
    fn control(&self, opened: Opened, size: FrameSize) -> bool {
        if opened.id.as_ref().is_some_and(|id| self.in_flight.contains(id)) {
            return self.refuse(opened, id_taken(), size);
        }
        match (self.cancel(&opened), opened.id) {
            (Ok(()), Some(id)) => self.lane.push(Job::Result { id, json: "{}" }, 0),
            (Ok(()), None) => true,
            (Err(fault), id) => self.push_refusal(Refused { id, method: Some(opened.method), fault }, size),
        }
    }

    fn cancel(&self, opened: &Opened) -> Result<(), Fault> {
        let id = opened.cancels.as_ref().ok_or_else(|| {
            Fault::invalid(Stage::Arguments, "params.id must be the id of the request to cancel")
        })?;
        // A call that has been answered already cannot be cancelled, and need not be.
        self.in_flight.cancel(id, CancelReason::Asked);
        Ok(())
    }

    fn refuse_method(&self, opened: Opened, size: FrameSize) -> bool {
        let fault = Fault::invalid(Stage::Method, "this server does not offer that method")
            .hint("mcp.discover lists the tools; a tool's name is its method");
        self.refuse(opened, fault, size)
    }

    fn refuse(&self, opened: Opened, fault: Fault, size: FrameSize) -> bool {
        self.push_refusal(Refused { id: opened.id, method: Some(opened.method), fault }, size)
    }

    fn push_refusal(&self, refused: Refused, size: FrameSize) -> bool {
        self.lane.push(Job::Refuse { refused, frame_bytes: size.bytes }, size.weight)
    }

    fn refuse_overlong(&self, line: &Overlong) -> bool {
        let (bytes, limit) = (line.bytes, self.options.max_request_bytes);
        // The direct dialect answers with a result of its own; MCP has no such result.
        let (stage, id) = match self.has_spoken_mcp.load(Ordering::Relaxed) {
            true => (Stage::Envelope, line.shown_id()),
            false => (Stage::Size, None),
        };
        let message = format!("the request has {bytes} bytes; at most {limit} are allowed");
        let fault =
            Fault::invalid(stage, message).details(json!({"reason": "payload_too_large", "limit": limit}));
        let size =
            FrameSize { bytes: usize::try_from(bytes).unwrap_or(usize::MAX), weight: 0, is_last: false };
        self.push_refusal(Refused { id, method: None, fault }, size)
    }

    /// Works the lane off.
    async fn work(self: Arc<Self>) {
        // Jobs that never wait would otherwise keep other tasks off this thread.
        const TURN: usize = 64;
        let mut done = 0;
        while let Some(job) = self.lane.next().await {
            if flush_when_pending(&self.outlet, self.answer(job)).await.is_err() {
                return;
            }
            if self.lane.is_empty() {
                self.outlet.flush();
            }
            done += 1;
            if done % TURN == 0 {
                tokio::task::yield_now().await;
            }
        }
        self.outlet.flush();
    }

    async fn answer(self: &Arc<Self>, job: Job) -> Result<(), OutletClosed> {
        let frame = match job {
            Job::Call { opened, cancel } => match self.call(*opened, cancel).await {
                Some(frame) => return frame.write_to(&self.outlet).await,
                None => return Ok(()),
            },
            Job::Refuse { refused, frame_bytes } => {
                self.engine.log_refusal(&refused, &Transport::Stdio, frame_bytes).await;
                direct::refusal(refused.id.as_ref(), &refused.fault)
            }
            Job::Note { refused, frame_bytes } => {
                self.engine.log_refusal(&refused, &Transport::Stdio, frame_bytes).await;
                return Ok(());
            }
            Job::Shadow { refused, frame_bytes } => {
                self.engine.log_shadow(&refused, &Transport::Stdio, frame_bytes).await;
                return Ok(());
            }
            Job::Result { id, json } => direct::result(Some(&id), json),
            Job::Begun(work) => return work.await,
        };
        self.outlet.write(&[frame.as_bytes()]).await
    }

    /// The reply of a call, unless nobody wants it any more.
    async fn call(self: &Arc<Self>, mut opened: Opened, cancel: Arc<Cancel>) -> Option<ReplyFrame> {
        let id = opened.id.clone();
        if self.options.progress_always && opened.meta.progress_token.is_none() {
            opened.meta.progress_token = Some(json!(id.as_ref().map_or("", RequestId::key)));
        }
        let target = direct::target(opened.method);
        // Where the token may hide in the invocation's metadata, be ready to tell.
        let may_tell = opened.meta.progress_token.is_some() || matches!(target, Target::Invoke);
        let progress = may_tell.then(|| -> Arc<dyn ProgressSink> {
            let (engine, listener) = (Arc::clone(&self.engine), self.outlet.clone());
            Arc::new(direct::DirectProgress { engine, listener, id: id.clone() })
        });
        let request = CallRequest {
            id: opened.id,
            caller: Arc::clone(&self.caller),
            transport: Transport::Stdio,
            target,
            params: opened.params,
            argument_reading: ArgumentReading::Strict,
            left_out: Vec::new(),
            meta: opened.meta,
            idempotency_key: opened.idempotency_key,
            cancel: Arc::clone(&cancel),
            progress,
            reply_factor: direct::REPLY_FACTOR,
        };
        let Reply { outcome, reservation, .. } = self.engine.call(request).await;
        // The id is free before anyone can see the reply.
        if let Some(id) = &id {
            self.in_flight.leave(id);
        }
        let silent = cancel.reason() == Some(CancelReason::Silent);
        (!silent).then(|| {
            let evicted = || direct::refusal(id.as_ref(), &unread_replies());
            ReplyFrame::large(direct::reply(id.as_ref(), &outcome), reservation, evicted)
        })
    }
}

/// Evicts the large replies that wait whenever the client has taken nothing for the write timeout.
async fn evict_when_stalled(outlet: Outlet, write_timeout: Duration) {
    const LOOK: Duration = Duration::from_millis(250);
    loop {
        tokio::time::sleep(LOOK.min(write_timeout)).await;
        if outlet.stalled_for() >= write_timeout {
            outlet.evict_large();
        }
    }
}

pub(crate) fn id_taken() -> Fault {
    Fault::invalid(
        Stage::Envelope,
        "this id belongs to a request that has not been answered yet; use another",
    )
}

/// Sends what has gathered as soon as `work` has to wait: replies that are ready must not wait with it.
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
