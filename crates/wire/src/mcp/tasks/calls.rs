//! How a call becomes a task.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use pintle_contract::{ErrorCode, Fault, Stage};
use pintle_engine::Reply;
use pintle_tool::{Cancel, ProgressEvent, ProgressSink};
use rmcp::{
    ErrorData, RoleServer,
    model::{CallToolResponse, CallToolResult, ClientCapabilities, CreateTaskResult},
    service::RequestContext,
};
use serde_json::{Value, value::RawValue};
use tokio::sync::Notify;

use super::{
    shape::{TaskShape, legacy_created, sdk_task},
    store::{LONGEST_LIFE, TaskEnd, TaskInput, TaskResult, TaskSnapshot, TaskStore},
};
use crate::mcp::{McpRequest, clients::ResultForm, convert, handler::repaired};

/// How long a call runs before the server makes it a task.
const PROMOTED_AFTER: Duration = Duration::from_secs(2);

/// A call that may become a task.
pub(crate) struct TaskCandidate {
    store: Arc<TaskStore>,
    caller: Arc<str>,
    cancel: Arc<Cancel>,
    progress: Arc<TaskProgress>,
    /// The task that the request asked for. It is there from the start, so that there is one when the call needs it.
    asked_for: Option<AskedTask>,
}

/// A task that a request asked for, discarded with the request unless its call goes on.
struct AskedTask {
    store: Arc<TaskStore>,
    task: TaskSnapshot,
    is_kept: bool,
}

impl AskedTask {
    fn keep(mut self, caller: &str) -> TaskSnapshot {
        self.is_kept = true;
        self.store.evict_excess(caller);
        self.task.clone()
    }
}

impl Drop for AskedTask {
    fn drop(&mut self) {
        if !self.is_kept {
            self.store.discard(&self.task.id);
        }
    }
}

/// What a client gets in place of a result.
pub(crate) enum TaskReply {
    /// 2025-11-25.
    Legacy(Box<RawValue>),
    /// 2026-07-28.
    Extension(Box<CreateTaskResult>),
}

impl TaskCandidate {
    /// A candidate, if the client's revision and the client itself know tasks. A fault if the request asks for a task
    /// that cannot be.
    pub(crate) fn new(
        store: &Arc<TaskStore>,
        context: &RequestContext<RoleServer>,
        request: &McpRequest,
        may_be_task: Option<bool>,
    ) -> Result<Option<Box<Self>>, Fault> {
        // A tool that is not there is refused like any other call of it.
        let Some(may_be_task) = may_be_task else { return Ok(None) };
        let asked_for = match (TaskShape::of(context), request.task()) {
            (Some(TaskShape::Extension), _) if may_be_task && declares_tasks(context) => None,
            (Some(TaskShape::Legacy), Some(task)) if may_be_task => Some(life(task)?),
            (Some(TaskShape::Legacy), Some(_)) => {
                let fault = Fault::invalid(Stage::Method, "this tool cannot be called as a task");
                return Err(fault.hint("call it without `task`; `tools/list` says which tools can be tasks"));
            }
            _ => return Ok(None),
        };
        let Some((caller, cancel)) = request.caller_and_cancel() else { return Ok(None) };
        let caller: Arc<str> = caller.identity().into();
        let asked_for = match asked_for {
            Some(life) => {
                let task = store.create(&caller, Arc::clone(&cancel), life).ok_or_else(too_many_tasks)?;
                Some(AskedTask { store: Arc::clone(store), task, is_kept: false })
            }
            None => None,
        };
        let progress = Arc::new(TaskProgress {
            listener: request.progress(),
            is_wanted: context.meta.get_progress_token().is_some(),
            state: Mutex::default(),
            is_authorized: AtomicBool::new(false),
            authorized: Notify::new(),
        });
        Ok(Some(Box::new(Self { store: Arc::clone(store), caller, cancel, progress, asked_for })))
    }

    /// Where the call reports its progress.
    pub(crate) fn progress(&self) -> Arc<dyn ProgressSink> {
        Arc::clone(&self.progress) as Arc<dyn ProgressSink>
    }

    /// Resolves when the call is to become a task.
    pub(crate) fn due(&self) -> impl Future<Output = ()> + use<> {
        let (progress, is_asked_for) = (Arc::clone(&self.progress), self.asked_for.is_some());
        async move {
            match is_asked_for {
                // What is refused before is answered as a refusal.
                true => progress.authorized.notified().await,
                false => tokio::time::sleep(PROMOTED_AFTER).await,
            }
        }
    }

    /// Makes the call a task. `None` if the caller has too many of them: then it stays a call.
    pub(crate) fn task(&self) -> Option<TaskSnapshot> {
        match &self.asked_for {
            Some(asked) => Some(asked.task.clone()),
            None => self.store.promote(&self.caller, Arc::clone(&self.cancel)),
        }
    }

    /// Lets the call go on as a task.
    pub(crate) fn go_on(
        &mut self,
        mut task: TaskSnapshot,
        call: BoxFuture<'static, Reply>,
        form: ResultForm,
    ) -> Result<TaskReply, ErrorData> {
        task.message = self.progress.follow(&self.store, &task.id);
        self.store.run(&task, Arc::clone(&self.cancel), async move {
            let reply = call.await;
            TaskEnd::of(reply.outcome, form, repaired(&reply.repaired))
        });
        match self.asked_for.take().map(|asked| asked.keep(&self.caller)) {
            Some(_) => legacy_created(&task).map(TaskReply::Legacy).ok_or_else(unwritable),
            None => Ok(TaskReply::Extension(Box::new(CreateTaskResult::new(sdk_task(&task))))),
        }
    }

    /// Whether the request asked for a task, and its arguments and scopes allow the call. What is refused before is
    /// answered as a refusal.
    pub(crate) fn is_due(&self) -> bool {
        self.asked_for.is_some() && self.progress.is_authorized.load(Ordering::Acquire)
    }

    /// The call has ended before it became the task that was asked for, which has ended with it.
    pub(crate) fn end(
        self,
        mut result: CallToolResult,
        json: Option<(Arc<RawValue>, ResultForm)>,
    ) -> Result<Box<RawValue>, ErrorData> {
        let task = self.asked_for.ok_or_else(unwritable)?.keep(&self.caller);
        let meta = result.meta.take();
        let result = match json {
            Some((json, form)) => TaskResult::Tool(json, form),
            None => TaskResult::Sdk(Box::new(result)),
        };
        let ended = self.store.finish(&task.id, TaskEnd::Result(result, meta)).unwrap_or(task);
        legacy_created(&ended).ok_or_else(unwritable)
    }
}

impl TaskStore {
    /// Does work as a task of the client that a request comes from, for calls that do not go through the engine. Only
    /// clients of 2026-07-28 that declared the extension can have it.
    pub fn start<W>(
        self: &Arc<Self>,
        context: &RequestContext<RoleServer>,
        work: impl FnOnce(TaskInput) -> W,
    ) -> Result<CallToolResponse, ErrorData>
    where
        W: Future<Output = Result<CallToolResult, ErrorData>> + Send + 'static,
    {
        if TaskShape::of(context) != Some(TaskShape::Extension) || !declares_tasks(context) {
            return Err(undeclared());
        }
        let request = McpRequest::of(context)?;
        let Some((caller, _)) = request.caller_and_cancel() else {
            return Err(ErrorData::internal_error("a request that was handled before", None));
        };
        let cancel = Arc::new(Cancel::default());
        let created = self.promote(caller.identity(), Arc::clone(&cancel));
        let task = created.ok_or_else(|| convert::error(&too_many_tasks()))?;
        let work = work(TaskInput::new(Arc::clone(self), Arc::clone(&task.id)));
        let ended = Arc::clone(&cancel);
        self.run(&task, cancel, async move {
            let result = tokio::select! {
                result = work => result,
                () = ended.token().cancelled() => Err(convert::error(&ended.cancelled_fault())),
            };
            match result {
                Ok(result) => TaskEnd::Result(TaskResult::Sdk(Box::new(result)), None),
                Err(error) => TaskEnd::Error(error),
            }
        });
        Ok(CallToolResponse::Task(CreateTaskResult::new(sdk_task(&task))))
    }
}

/// Whether a client has declared the extension.
pub(super) fn declares_tasks(context: &RequestContext<RoleServer>) -> bool {
    context.client_capabilities().is_some_and(|client| client.supports_tasks())
}

/// The error for a client that has not declared the extension.
pub(super) fn undeclared() -> ErrorData {
    let missing = ClientCapabilities::builder().enable_tasks().build();
    ErrorData::missing_required_client_capability(missing)
}

/// How long a task that a request asks for is kept.
fn life(task: &Value) -> Result<Duration, Fault> {
    let wrong = || Fault::invalid(Stage::Arguments, "`task` must be an object, its `ttl` whole milliseconds");
    match task.as_object().ok_or_else(wrong)?.get("ttl") {
        None | Some(Value::Null) => Ok(LONGEST_LIFE),
        Some(ttl) => Ok(Duration::from_millis(ttl.as_u64().ok_or_else(wrong)?).min(LONGEST_LIFE)),
    }
}

fn too_many_tasks() -> Fault {
    Fault::new(
        ErrorCode::QueueOverloaded,
        "this caller has as many tasks as it may have, and all of them run",
    )
    .hint("wait until one has ended, or cancel one with tasks/cancel")
}

pub(super) fn unwritable() -> ErrorData {
    ErrorData::internal_error("the task could not be written as JSON", None)
}

/// The progress of a call that may become a task: its client is notified until then; afterwards the task shows it.
struct TaskProgress {
    listener: Arc<dyn ProgressSink>,
    /// Whether the client asked to be notified.
    is_wanted: bool,
    state: Mutex<ProgressState>,
    is_authorized: AtomicBool,
    authorized: Notify,
}

#[derive(Default)]
struct ProgressState {
    latest: Option<String>,
    task: Option<(Arc<TaskStore>, Arc<str>)>,
}

impl TaskProgress {
    /// Reports to a task from here on. Returns the latest message.
    fn follow(&self, store: &Arc<TaskStore>, id: &Arc<str>) -> Option<String> {
        let mut state = self.state.lock();
        state.task = Some((Arc::clone(store), Arc::clone(id)));
        let latest = state.latest.take();
        if let Some(message) = &latest {
            store.report(id, message);
        }
        latest
    }
}

impl ProgressSink for TaskProgress {
    fn emit(&self, token: &Value, tool: &str, event: &ProgressEvent) {
        let mut state = self.state.lock();
        match &state.task {
            Some((store, id)) => store.report(id, &event.message),
            None => {
                state.latest = Some(event.message.clone());
                if self.is_wanted {
                    self.listener.emit(token, tool, event);
                }
            }
        }
    }

    fn authorized(&self) {
        self.listener.authorized();
        self.is_authorized.store(true, Ordering::Release);
        self.authorized.notify_one();
    }
}
