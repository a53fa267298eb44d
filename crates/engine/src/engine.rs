//! One call's life, in one place.

use std::{
    collections::HashMap,
    panic::AssertUnwindSafe,
    pin::pin,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use futures_util::FutureExt;
use pintle_contract::{ErrorCode, Fault, Fingerprint, Meta, RequestId, Stage, fingerprint};
use serde::Serialize;
use serde_json::{
    Value, json,
    value::{RawValue, to_raw_value},
};
use tokio::sync::watch;

use crate::{
    admission::{Admission, Admitted},
    aside::{LARGE, aside_if},
    budget::{ReplyBudget, Reservation},
    cancel::Cancel,
    catalogue::{Catalogue, CatalogueError, Entry},
    clock::Clock,
    context::{CallContext, Caller, result_too_large},
    envelope::{self, EnvelopeMode, Message, Refused},
    idempotency::{IdempotencyStore, Key, Known},
    invoke,
    log::{CallLog, Record, Told},
    metrics::Metrics,
    progress::{Progress, ProgressSink},
    read_resource::ReadResource,
    repair::{Repairs, repair},
    resource::Resources,
    schema::{CompiledSchema, SchemaRegistry},
    tool::{Answer, DynTool, Failure, Prepared, Toolset},
};

/// How a server treats calls.
#[derive(Clone, Debug)]
pub struct Options {
    /// Calls that run at the same time.
    pub running: usize,
    /// Calls that wait for a slot.
    pub waiting: usize,
    /// How long a call may run.
    pub timeouts: Timeouts,
    /// The largest result, in bytes.
    pub max_result_bytes: usize,
    /// The memory that replies may take until they are written, in bytes.
    pub reply_memory: usize,
    /// How long a result may wait for that memory.
    pub reply_patience: Duration,
    /// Whether a wrong envelope is refused.
    pub envelope: EnvelopeMode,
    /// Fixes ids and times in logs and progress.
    pub deterministic: bool,
    /// Which build this is.
    pub tooling_version: String,
}

impl Default for Options {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            running: (2 * cores).max(4),
            waiting: 64,
            timeouts: Timeouts::default(),
            max_result_bytes: 8 << 20,
            reply_memory: 128 << 20,
            reply_patience: Duration::from_secs(60),
            envelope: EnvelopeMode::default(),
            deterministic: false,
            tooling_version: "unknown".into(),
        }
    }
}

/// How long calls may run; zero is for ever.
#[derive(Clone, Debug)]
pub struct Timeouts {
    /// For tools that are not named.
    pub default: Duration,
    /// By the tool's name.
    pub by_tool: HashMap<String, Duration>,
}

impl Timeouts {
    /// What is set for a tool, else what the tool itself says, else what holds for all.
    fn of(&self, tool: &dyn DynTool) -> Duration {
        let set = self.by_tool.get(&tool.definition().name).copied();
        set.or_else(|| tool.timeout()).unwrap_or(self.default)
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { default: Duration::from_secs(120), by_tool: HashMap::new() }
    }
}

/// The way a frame came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Standard input and output.
    Stdio,
    /// HTTP.
    Http {
        /// The `x-request-id` of the request, for the log.
        request_id: Arc<str>,
    },
    /// The command line, in the same process.
    Local,
}

impl Transport {
    fn name(&self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Http { .. } => "http",
            Self::Local => "local",
        }
    }

    /// The `x-request-id` of the HTTP request.
    fn http_request_id(&self) -> Option<&str> {
        match self {
            Self::Http { request_id } => Some(request_id),
            Self::Stdio | Self::Local => None,
        }
    }
}

/// What a request is aimed at.
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

/// A request whose envelope is good.
pub struct CallRequest {
    /// Its id; none only where a wrong envelope was let through.
    pub id: Option<RequestId>,
    /// Who is calling.
    pub caller: Arc<Caller>,
    /// The way it came in.
    pub transport: Transport,
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
    /// Its switch.
    pub cancel: Arc<Cancel>,
    /// Where progress goes, if the caller can be told; it is sent if `meta` has a token.
    pub progress: Option<Arc<dyn ProgressSink>>,
    /// How many bytes the reply takes at most, as a multiple of the result's: what its reservation is made for.
    pub reply_factor: usize,
}

/// The outcome of a call, with the memory that is reserved for its reply until that is written.
pub struct Reply {
    /// How the call ended.
    pub outcome: Outcome,
    /// To be kept until the reply's frame is written or dropped.
    pub reservation: Reservation,
    /// The names of the arguments that had to be converted.
    pub repaired: Vec<String>,
}

/// How a call ended. Results are compact JSON texts: what travels, and many times smaller than values.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// With a result.
    Success(Arc<RawValue>),
    /// With a result that tells of a failure in the toolset's own words.
    Declined(Arc<RawValue>, Failure),
    /// With an error.
    Fault(Fault),
}

impl Outcome {
    /// A success with this object.
    pub fn success(value: &Value) -> Self {
        match to_raw_value(value) {
            Ok(json) => Self::Success(json.into()),
            Err(_) => Self::Fault(unwritable()),
        }
    }

    /// The error code, if it failed.
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Success(_) => None,
            Self::Declined(_, failure) => Some(failure.code),
            Self::Fault(fault) => Some(fault.code),
        }
    }

    /// Whether the same call would end the same way again, or must not happen again.
    pub(crate) fn is_final(&self) -> bool {
        match self {
            Self::Declined(_, failure) if failure.took_effect => true,
            outcome => !outcome.code().is_some_and(ErrorCode::is_retryable),
        }
    }

    /// Whether it takes long to parse or to write.
    pub fn is_large(&self) -> bool {
        match self {
            Self::Success(json) | Self::Declined(json, _) => json.get().len() > LARGE,
            Self::Fault(_) => false,
        }
    }

    /// The size of the result or error object as it travels.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Success(json) | Self::Declined(json, _) => json.get().len(),
            Self::Fault(fault) => json_size(fault),
        }
    }
}

impl Reply {
    fn new(outcome: Outcome, reservation: Reservation) -> Self {
        Self { outcome, reservation, repaired: Vec::new() }
    }

    /// An error is short: it needs no reservation.
    fn fault(fault: Fault) -> Self {
        Self::new(Outcome::Fault(fault), Reservation::default())
    }
}

/// The tools of a server, and the one way to call them.
pub struct Engine {
    options: Options,
    catalogue: RwLock<Arc<Catalogue>>,
    tool_changes: watch::Sender<u64>,
    are_tools_fixed: AtomicBool,
    resources: Arc<[Arc<dyn Resources>]>,
    read_resource: Arc<Entry>,
    envelope_schema: Arc<CompiledSchema>,
    tool_io_schema: Arc<CompiledSchema>,
    admission: Admission,
    budget: ReplyBudget,
    idempotency: IdempotencyStore,
    clock: Clock,
    log: CallLog,
    metrics: Metrics,
}

impl Engine {
    /// An engine for these tools and resources.
    pub fn new(
        toolsets: Vec<Toolset>,
        resources: Vec<Arc<dyn Resources>>,
        options: Options,
        log: CallLog,
    ) -> Result<Self, CatalogueError> {
        let registry = SchemaRegistry::default();
        let resources: Arc<[Arc<dyn Resources>]> = resources.into();
        let read_resource = ReadResource::erased(Arc::clone(&resources));
        Ok(Self {
            read_resource: Arc::new(Entry::new(read_resource, false, &registry)),
            resources,
            catalogue: RwLock::new(Arc::new(Catalogue::new(toolsets, &registry, &options.tooling_version)?)),
            tool_changes: watch::Sender::new(0),
            are_tools_fixed: AtomicBool::new(true),
            envelope_schema: registry.load_envelope().map_err(CatalogueError::BadSchema)?,
            tool_io_schema: registry.load_invocation().map_err(CatalogueError::BadSchema)?,
            admission: Admission::new(options.running, options.waiting),
            budget: ReplyBudget::new(options.reply_memory, options.reply_patience),
            idempotency: IdempotencyStore::default(),
            clock: Clock::new(options.deterministic),
            metrics: Metrics::new(),
            log,
            options,
        })
    }

    /// The tools that there are now.
    pub fn catalogue(&self) -> Arc<Catalogue> {
        Arc::clone(&self.catalogue.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Says that tools may be replaced while clients are served, so that clients are told to listen for it.
    pub fn let_tools_change(&self) {
        self.are_tools_fixed.store(false, Ordering::Release);
    }

    /// Whether no tool is ever replaced.
    pub fn are_tools_fixed(&self) -> bool {
        self.are_tools_fixed.load(Ordering::Acquire)
    }

    /// Puts other tools in the place of some. Calls that run go on with the tool that they began with.
    pub fn replace_tools(&self, removed: &[String], added: Toolset) -> Result<(), CatalogueError> {
        {
            let mut catalogue = self.catalogue.write().unwrap_or_else(PoisonError::into_inner);
            *catalogue = Arc::new(catalogue.with_replaced(removed, added, &SchemaRegistry::default())?);
        }
        self.tool_changes.send_modify(|count| *count += 1);
        Ok(())
    }

    /// Changes whenever tools are replaced.
    pub fn tool_changes(&self) -> watch::Receiver<u64> {
        self.tool_changes.subscribe()
    }

    /// The families of resources.
    pub fn resources(&self) -> &[Arc<dyn Resources>] {
        &self.resources
    }

    /// Cancels the calls that wait for a slot: the server is stopping.
    pub fn stop_waiting(&self) {
        self.admission.stop_waiting();
    }

    /// How many calls can run or wait.
    pub fn capacity(&self) -> usize {
        self.options.running + self.options.waiting
    }

    /// The memory of replies.
    pub fn reply_budget(&self) -> &ReplyBudget {
        &self.budget
    }

    /// The clock of logs and progress.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// What is counted.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// What is counted, in Prometheus' text format.
    pub fn metrics_text(&self) -> String {
        let (running, waiting) = self.admission.load();
        self.metrics.text(running, waiting)
    }

    /// Step 2: opens a frame. What it refuses still has to be answered and given to
    /// [`Engine::log_refusal`]; what was let through only in shadow mode, to [`Engine::log_shadow`].
    pub fn open(&self, frame: &[u8]) -> Result<Message, Refused> {
        envelope::open(frame, &self.envelope_schema, self.options.envelope)
    }

    /// Logs a frame that was refused before it became a call.
    pub async fn log_refusal(&self, refused: &Refused, transport: &Transport, frame_bytes: usize) {
        self.log_envelope(refused, transport, frame_bytes, "error", json_size(&refused.fault)).await;
    }

    /// Logs what would have been refused if wrong envelopes were not let through.
    pub async fn log_shadow(&self, refused: &Refused, transport: &Transport, frame_bytes: usize) {
        self.log_envelope(refused, transport, frame_bytes, "shadow", 0).await;
    }

    async fn log_envelope(
        &self,
        refused: &Refused,
        transport: &Transport,
        input_bytes: usize,
        status: &'static str,
        output_bytes: usize,
    ) {
        let told = Told {
            started: Instant::now(),
            id: refused.id.as_ref(),
            transport: transport.name(),
            http_request_id: transport.http_request_id(),
            route: "envelope",
            method: refused.method.as_deref(),
            meta: &Meta::default(),
            status,
            attempt: 1,
            cache_hit: false,
            error: Some(refused.fault.code),
            input_bytes,
            output_bytes,
            tool_id: None,
            schema_version: None,
            repaired: &[],
        };
        self.write_log(told).await;
    }

    /// Takes a call from its method to its outcome. The caller of this function owes the client the
    /// one reply, unless the call was cancelled silently.
    pub async fn call(&self, request: CallRequest) -> Reply {
        let mut record = CallRecord::new(&request);
        let cancel = Arc::clone(&request.cancel);
        let Reply { outcome, mut reservation, .. } = match self.resolve(request, &mut record) {
            Err(fault) => Reply::fault(fault),
            Ok(Resolved::Discovery(value)) => {
                self.reserved(Outcome::success(&value), record.reply_factor, &cancel).await
            }
            Ok(Resolved::Call(call)) => self.call_tool(call, &mut record).await,
        };
        // From here on it is too late to cancel; if it was cancelled, nothing else may be told.
        let outcome = match cancel.finish() {
            Err(fault) if outcome.code() != Some(ErrorCode::Cancelled) => {
                reservation = Reservation::default();
                Outcome::Fault(fault)
            }
            _ => outcome,
        };
        self.log_call(&record, &outcome).await;
        Reply { outcome, reservation, repaired: record.repaired }
    }

    /// Step 3: the method, and the tool.
    fn resolve(&self, request: CallRequest, record: &mut CallRecord) -> Result<Resolved, Fault> {
        let (tool, arguments) = match &request.target {
            Target::Discover => {
                return self.catalogue().discovery(&request.params).map(Resolved::Discovery);
            }
            Target::Resource => (Arc::clone(&self.read_resource), request.params),
            Target::Tool(name) => (Arc::clone(self.catalogue().require(name)?), request.params),
            Target::Invoke => {
                let call = invoke::read(request.params, &self.tool_io_schema, &self.catalogue())?;
                record.meta = call.meta.or(std::mem::take(&mut record.meta));
                record.input_bytes = json_size(&call.arguments);
                (call.tool, call.arguments)
            }
        };
        record.tool = Some(Arc::clone(&tool));
        Ok(Resolved::Call(ToolCall {
            tool,
            arguments,
            caller: request.caller,
            cancel: request.cancel,
            progress: request.progress,
            idempotency_key: request.idempotency_key,
            argument_reading: request.argument_reading,
        }))
    }

    /// Steps 4 to 9.
    async fn call_tool(&self, call: ToolCall, record: &mut CallRecord) -> Reply {
        let ToolCall { tool, mut arguments, caller, cancel, progress, idempotency_key, argument_reading } =
            call;
        let repairs = match check_arguments(&tool, &mut arguments, argument_reading) {
            Ok(repairs) => repairs,
            Err((repairs, fault)) => {
                record.repaired.extend(repairs.names);
                return Reply::fault(fault);
            }
        };
        record.repaired.extend(repairs.names);
        // The arguments are gone once the work is prepared.
        let key = idempotency_key.map(|key| {
            let key = Key { caller: caller.identity().into(), key: key.as_str().into() };
            (key, fingerprint(&json!([tool.id, arguments])))
        });
        let work = match prepare(&tool, arguments, &caller) {
            Ok(work) => work,
            Err(fault) => return Reply::fault(fault),
        };
        if let Some(progress) = &progress {
            progress.authorized();
        }
        let ticket = match self.look_up(key, &cancel).await {
            Ok(None) => None,
            Ok(Some(Known::Nothing(ticket))) => Some(ticket),
            Ok(Some(Known::Outcome { outcome, attempt })) => {
                record.attempt = attempt;
                record.cache_hit = true;
                return self.reserved(outcome, record.reply_factor, &cancel).await;
            }
            Err(fault) => return Reply::fault(fault),
        };
        let progress =
            Progress::new(progress, record.meta.progress_token.as_ref(), &tool.tool.definition().name);
        let run =
            Run { work, caller, progress, reread: repairs.reread.into(), reply_factor: record.reply_factor };
        let reply = self.run(&tool, run, &cancel).await;
        // What really happened is kept for the key, also when a late cancel hides it from this reply.
        if let Some(ticket) = ticket {
            ticket.finish(&reply.outcome);
        }
        reply
    }

    /// The reply of an outcome that is there already.
    async fn reserved(&self, outcome: Outcome, reply_factor: usize, cancel: &Cancel) -> Reply {
        match self.budget.reserve(reply_factor * outcome.bytes(), cancel).await {
            Ok(reservation) => Reply::new(outcome, reservation),
            Err(fault) => Reply::fault(fault),
        }
    }

    /// Step 6: what an idempotency key knows.
    async fn look_up(
        &self,
        key: Option<(Key, Fingerprint)>,
        cancel: &Cancel,
    ) -> Result<Option<Known<'_>>, Fault> {
        let Some((key, fingerprint)) = key else { return Ok(None) };
        tokio::select! {
            biased;
            () = cancel.token().cancelled() => Err(cancel.cancelled_fault()),
            known = self.idempotency.look_up(key, fingerprint) => known.map(Some),
        }
    }

    /// Steps 7 to 9: waits for a slot, runs the tool and checks what it gives. The deadline is for all of
    /// it: a caller is not kept waiting by those before it either.
    async fn run(&self, tool: &Entry, run: Run<'_>, cancel: &Arc<Cancel>) -> Reply {
        let Run { work, caller, progress, reread, reply_factor } = run;
        let ended = cancel.token().child_token();
        let _ends_with_this_call = ended.clone().drop_guard();
        let work = async {
            let Admitted { slot, result } = self.admission.admit(cancel).await?;
            let context = CallContext {
                caller,
                ended,
                progress: progress.clone(),
                cancel: Arc::clone(cancel),
                _slot: Some(Arc::new(slot)),
                largest_result: self.options.max_result_bytes,
                reread,
            };
            let work = AssertUnwindSafe(async { (work.run)(context).await }).catch_unwind();
            let answer = work.await.unwrap_or_else(|_| Err(panicked()))?;
            Ok((answer, result))
        };
        let mut work = pin!(work);
        let mut deadline = pin!(missed_deadline(self.options.timeouts.of(&*tool.tool)).fuse());
        let (came_to_its_end, result) = loop {
            tokio::select! {
                biased;
                () = cancel.token().cancelled() => break (false, Err(cancel.cancelled_fault())),
                result = &mut work => break (true, result),
                // What cannot be undone any more is told, however late.
                fault = &mut deadline => if cancel.expire() { break (false, Err(fault)) },
            }
        };
        progress.close(came_to_its_end);
        let (answer, result_permit) = match result {
            Ok(finished) => finished,
            Err(fault) => return Reply::fault(fault),
        };
        let size = match aside_if(answer.is_large, || self.check_output(tool, &answer)) {
            Ok(size) => size,
            Err(fault) => return Reply::fault(fault),
        };
        let bytes = reply_factor * size;
        let reserved = match result_permit {
            Some(_) => self.budget.reserve(bytes, cancel).await,
            None => self.budget.reserve_at_once(bytes, cancel).await,
        };
        let reservation = match reserved {
            Ok(reservation) => reservation,
            // What has been done is told, whatever memory that takes.
            Err(_) if cancel.is_committed() || answer.took_effect() => Reservation::default(),
            Err(fault) => return Reply::fault(fault),
        };
        drop(result_permit);
        let outcome = aside_if(answer.is_large, || serialize(answer));
        Reply::new(outcome, reservation)
    }

    /// Step 9: checks a result, and gives the size of its JSON.
    fn check_output(&self, tool: &Entry, answer: &Answer) -> Result<usize, Fault> {
        if !tool.output.accepts(&answer.value) {
            let wrong = tool.output.mismatches(&answer.value, "field");
            let told: Vec<_> = wrong.iter().take(3).map(|m| m.message.as_str()).collect();
            return Err(Fault::new(
                ErrorCode::InvalidOutput,
                format!("the tool broke its own output schema: {}", told.join("; ")),
            ));
        }
        let (size, limit) = (json_size(&answer.value), self.options.max_result_bytes);
        if size > limit {
            return Err(result_too_large(size, limit));
        }
        Ok(size)
    }

    async fn log_call(&self, record: &CallRecord, outcome: &Outcome) {
        let tool = record.tool.as_deref();
        let definition = tool.map(|tool| tool.tool.definition());
        let told = Told {
            started: record.started,
            id: record.id.as_ref(),
            transport: record.transport.name(),
            http_request_id: record.transport.http_request_id(),
            route: record.route,
            method: Some(definition.map_or(&record.method, |definition| &definition.name)),
            meta: &record.meta,
            status: if outcome.code().is_some() { "error" } else { "ok" },
            attempt: record.attempt,
            cache_hit: record.cache_hit,
            error: outcome.code(),
            input_bytes: record.input_bytes,
            output_bytes: outcome.bytes(),
            tool_id: tool.map(|tool| tool.id.as_str()),
            schema_version: definition.map(|definition| definition.schema_version),
            repaired: &record.repaired,
        };
        self.write_log(told).await;
    }

    async fn write_log(&self, told: Told<'_>) {
        self.metrics.count(&told);
        self.log.write(&Record::new(told, &self.clock, &self.options.tooling_version)).await;
    }
}

/// What a request turned out to be.
enum Resolved {
    Discovery(Value),
    Call(ToolCall),
}

/// A request for a tool that there is.
struct ToolCall {
    tool: Arc<Entry>,
    arguments: Value,
    caller: Arc<Caller>,
    cancel: Arc<Cancel>,
    progress: Option<Arc<dyn ProgressSink>>,
    idempotency_key: Option<String>,
    argument_reading: ArgumentReading,
}

/// Work that may run, with what it is given.
struct Run<'a> {
    work: Prepared<'a>,
    caller: Arc<Caller>,
    progress: Progress,
    reread: Arc<[(String, String)]>,
    reply_factor: usize,
}

/// What the log will tell of a call.
struct CallRecord {
    started: Instant,
    id: Option<RequestId>,
    transport: Transport,
    route: &'static str,
    method: String,
    meta: Meta,
    tool: Option<Arc<Entry>>,
    attempt: u32,
    cache_hit: bool,
    input_bytes: usize,
    reply_factor: usize,
    repaired: Vec<String>,
}

impl CallRecord {
    fn new(request: &CallRequest) -> Self {
        let (route, method) = match &request.target {
            Target::Tool(name) => ("tool", name.as_str()),
            Target::Invoke => ("tool", "mcp.tool.invoke"),
            Target::Discover => ("discover", "mcp.discover"),
            Target::Resource => ("resource", "resources/read"),
        };
        Self {
            started: Instant::now(),
            id: request.id.clone(),
            transport: request.transport.clone(),
            route,
            method: method.to_owned(),
            meta: request.meta.clone(),
            tool: None,
            attempt: 1,
            cache_hit: false,
            input_bytes: json_size(&request.params),
            reply_factor: request.reply_factor,
            repaired: request.left_out.clone(),
        }
    }
}

/// Step 4: checks the arguments, after converting those that are not as the schema wants them where that may be done.
fn check_arguments(
    tool: &Entry,
    arguments: &mut Value,
    reading: ArgumentReading,
) -> Result<Repairs, (Repairs, Fault)> {
    let mut is_accepted = tool.input.accepts(arguments);
    let mut repairs = Repairs::default();
    if reading == ArgumentReading::Lenient {
        repairs = repair(arguments, tool.tool.as_ref(), &tool.input, is_accepted);
        is_accepted = is_accepted && repairs.names.is_empty() || tool.input.accepts(arguments);
    }
    if is_accepted {
        return Ok(repairs);
    }
    let definition = tool.tool.definition();
    let subject = format!("the arguments of `{}` do not match", definition.name);
    let fault = tool.input.fault(arguments, Stage::Arguments, &subject, "argument");
    Err((repairs, fault))
}

/// Steps 4 and 5: reads the arguments, and sees whether the caller may do what they ask for.
fn prepare<'a>(tool: &'a Entry, arguments: Value, caller: &Caller) -> Result<Prepared<'a>, Fault> {
    let work = tool.tool.prepare(arguments)?;
    work.access.iter().try_for_each(|access| caller.require(access))?;
    Ok(work)
}

/// Resolves when the time is over, with the fault that says so.
async fn missed_deadline(timeout: Duration) -> Fault {
    if timeout.is_zero() {
        return std::future::pending().await;
    }
    tokio::time::sleep(timeout).await;
    let millis = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
    Fault::new(ErrorCode::ToolTimeout, format!("the call ran for more than {millis} ms"))
        .timeout_ms(millis)
        .hint("ask for less, or raise the tool's timeout in the configuration")
}

fn serialize(answer: Answer) -> Outcome {
    match (to_raw_value(&answer.value), answer.failure) {
        (Ok(json), None) => Outcome::Success(json.into()),
        (Ok(json), Some(failure)) => Outcome::Declined(json.into(), failure),
        (Err(_), _) => Outcome::Fault(unwritable()),
    }
}

fn unwritable() -> Fault {
    Fault::internal("the result could not be written as JSON")
}

fn panicked() -> Fault {
    Fault::internal("the tool failed unexpectedly; the server's error output has the trace")
}

/// The size of a value's compact JSON, without making it.
fn json_size(value: &impl Serialize) -> usize {
    struct Counter(usize);
    impl std::io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    // Counting cannot fail.
    let _ = serde_json::to_writer(&mut counter, value);
    counter.0
}
