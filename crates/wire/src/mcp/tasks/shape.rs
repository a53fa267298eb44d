//! Tasks as each revision of the protocol writes them.

use pintle_engine::Outcome;
use rmcp::{
    ErrorData, RoleServer,
    model::{CallToolResult, InputRequests, MetaObject, ProtocolVersion, ResultType, Task, TaskStatus},
    service::RequestContext,
};
use serde::Serialize;
use serde_json::{
    Value, json,
    value::{RawValue, to_raw_value},
};

use super::store::{TaskEnd, TaskResult, TaskSnapshot};
use crate::mcp::{
    clients::ResultForm,
    convert,
    message::{self, ToolResult},
};

/// The member of a listed tool's `_meta` that becomes its `execution.taskSupport`, for which the SDK has no field.
pub(crate) const TASK_SUPPORT_KEY: &str = "pintle/taskSupport";
const RELATED_TASK_KEY: &str = "io.modelcontextprotocol/related-task";
/// How often a client is asked to poll a task.
const POLL_INTERVAL_MS: u64 = 1000;

/// How a revision writes tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskShape {
    /// 2025-11-25: a part of the protocol.
    Legacy,
    /// 2026-07-28: an extension.
    Extension,
}

/// What the result of a handshake of 2025-11-25 says about tasks.
pub(crate) fn legacy_capability() -> Value {
    json!({"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}})
}

impl TaskShape {
    /// The shape of a request's revision, if that has tasks.
    pub(crate) fn of(context: &RequestContext<RoleServer>) -> Option<Self> {
        let version = context.protocol_version()?;
        if version >= ProtocolVersion::V_2026_07_28 {
            Some(Self::Extension)
        } else {
            (version >= ProtocolVersion::V_2025_11_25).then_some(Self::Legacy)
        }
    }

    /// The result of `tasks/get`.
    pub(crate) fn detailed(self, task: &TaskSnapshot) -> Option<Box<RawValue>> {
        let mut body = self.body(task);
        if self == Self::Extension {
            body.result_type = Some(ResultType::COMPLETE);
            match (task.status, task.end.as_deref()) {
                (TaskStatus::InputRequired, _) => body.input_requests = Some(&task.questions),
                (TaskStatus::Completed, Some(TaskEnd::Result(result, meta))) => {
                    body.result = Some(written(result, meta.clone(), Some(ResultType::COMPLETE)));
                }
                (TaskStatus::Failed, Some(TaskEnd::Error(error))) => {
                    body.error = Some(message::error_object(error));
                }
                _ => {}
            }
        }
        to_raw_value(&body).ok()
    }

    fn body(self, task: &TaskSnapshot) -> TaskBody<'_> {
        let life = u64::try_from(task.life.as_millis()).unwrap_or(u64::MAX);
        let (legacy, extension) = match self {
            Self::Legacy => (Some((life, POLL_INTERVAL_MS)), None),
            Self::Extension => (None, Some((life, POLL_INTERVAL_MS))),
        };
        TaskBody {
            result_type: None,
            task_id: &task.id,
            status: self.status(task),
            status_message: task.message.as_deref(),
            created_at: &task.created_at,
            last_updated_at: &task.updated_at,
            ttl: legacy.map(|(life, _)| life),
            poll_interval: legacy.map(|(_, poll)| poll),
            ttl_ms: extension.map(|(life, _)| life),
            poll_interval_ms: extension.map(|(_, poll)| poll),
            input_requests: None,
            result: None,
            error: None,
        }
    }

    /// In 2025-11-25 a tool's own failure is a failure of the task, too.
    fn status(self, task: &TaskSnapshot) -> TaskStatus {
        let is_failure = |end: &TaskEnd| match end {
            TaskEnd::Result(TaskResult::Sdk(result), _) => result.is_error == Some(true),
            TaskEnd::Result(TaskResult::Tool(..), _) => false,
            TaskEnd::Error(_) => true,
        };
        match (self, task.status) {
            (Self::Legacy, TaskStatus::Completed) if task.end.as_deref().is_some_and(is_failure) => {
                TaskStatus::Failed
            }
            (_, status) => status,
        }
    }
}

/// The SDK's form of a new task.
pub(super) fn sdk_task(task: &TaskSnapshot) -> Task {
    let life = u64::try_from(task.life.as_millis()).unwrap_or(u64::MAX);
    let mut sdk =
        Task::new(task.id.as_ref(), task.status, task.created_at.as_str(), task.updated_at.as_str())
            .with_ttl_ms(life)
            .with_poll_interval_ms(POLL_INTERVAL_MS);
    sdk.status_message.clone_from(&task.message);
    sdk
}

/// The result that makes a task known in 2025-11-25.
pub(super) fn legacy_created(task: &TaskSnapshot) -> Option<Box<RawValue>> {
    #[derive(Serialize)]
    struct Created<'a> {
        task: TaskBody<'a>,
    }
    to_raw_value(&Created { task: TaskShape::Legacy.body(task) }).ok()
}

/// The result of `tasks/list`, which has one page.
pub(super) fn legacy_list(tasks: &[TaskSnapshot]) -> Option<Box<RawValue>> {
    #[derive(Serialize)]
    struct List<'a> {
        tasks: Vec<TaskBody<'a>>,
    }
    to_raw_value(&List { tasks: tasks.iter().map(|task| TaskShape::Legacy.body(task)).collect() }).ok()
}

/// The result of `tasks/result`: what the call would have been answered with, and the task that it belongs to.
pub(super) fn legacy_result(task: &TaskSnapshot) -> Option<Box<RawValue>> {
    let TaskEnd::Result(result, meta) = task.end.as_deref()? else { return None };
    let mut meta = meta.clone().unwrap_or_default();
    meta.insert(RELATED_TASK_KEY.into(), json!({"taskId": *task.id}));
    to_raw_value(&written(result, Some(meta), None)).ok()
}

/// The error of the protocol that the call of a task ended with, if it did.
pub(super) fn legacy_error(task: &TaskSnapshot) -> Option<ErrorData> {
    match task.end.as_deref()? {
        TaskEnd::Error(error) => Some(error.clone()),
        TaskEnd::Result(..) => None,
    }
}

impl TaskEnd {
    /// How a call has ended, as a task keeps it.
    pub(super) fn of(outcome: Outcome, form: ResultForm, meta: Option<MetaObject>) -> Self {
        if let Outcome::Success(json) = outcome {
            return Self::Result(TaskResult::Tool(json, form), meta);
        }
        match convert::tool_result(outcome) {
            Ok(result) => Self::Result(TaskResult::Sdk(Box::new(result)), meta),
            Err(error) => Self::Error(error),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TaskBody<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    result_type: Option<ResultType>,
    task_id: &'a str,
    status: TaskStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    status_message: Option<&'a str>,
    created_at: &'a str,
    last_updated_at: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    poll_interval: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    poll_interval_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_requests: Option<&'a InputRequests>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<WrittenResult<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Value>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum WrittenResult<'a> {
    Tool(ToolResult<'a>),
    Sdk(Box<CallToolResult>),
}

fn written(
    result: &TaskResult,
    meta: Option<MetaObject>,
    result_type: Option<ResultType>,
) -> WrittenResult<'_> {
    match result {
        TaskResult::Tool(json, form) => WrittenResult::Tool(ToolResult::new(json, *form, result_type, meta)),
        TaskResult::Sdk(result) => {
            let mut result = result.clone();
            result.result_type = result_type;
            result.meta = meta;
            WrittenResult::Sdk(result)
        }
    }
}
