//! The methods about tasks.

use std::{
    future::Future,
    sync::{Arc, OnceLock},
};

use pintle_contract::{Fault, Stage};
use pintle_rpc::PROTOCOL_VERSION_KEY;
use pintle_tool::{Caller, LARGE, block_in_place_if};
use rmcp::{
    ErrorData, RoleServer,
    model::{
        CustomRequest, CustomResult, DetailedTask, ErrorCode, GetTaskResult, InputResponses, ProtocolVersion,
        Task, TaskPayload,
    },
    service::RequestContext,
};
use serde::Serialize;
use serde_json::{Value, value::RawValue};

use super::{
    calls::unwritable,
    shape::{TaskShape, legacy_error, legacy_list, legacy_result},
    store::TaskStore,
};
use crate::mcp::{
    McpHandler, McpRequest,
    handler::{REPLY_FACTOR, only_page},
    message,
    request::ResultBody,
};

/// How the log names questions about tasks.
const ROUTE: &str = "task";

/// Whether a method is about tasks, in a request that does not name a revision with the extension. The SDK has types for
/// the extension alone, and would ask for it.
pub(crate) fn is_legacy_method(method: &str, params: &Value) -> bool {
    let version = params["_meta"][PROTOCOL_VERSION_KEY].as_str();
    let has_extension = version.is_some_and(|version| version >= ProtocolVersion::V_2026_07_28.as_str());
    method.starts_with("tasks/") && !has_extension
}

impl McpHandler {
    /// `tasks/get` of the extension. The result goes past the SDK.
    pub(crate) async fn get_extension_task(
        &self,
        id: &str,
        context: &RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let caller = caller_of(context)?;
        let ready = async { Ok(self.result_bytes(&caller, id)) };
        self.answer_about_tasks(context, ready, |tasks, caller| {
            written(TaskShape::Extension.detailed(&tasks.get(caller, id)?))
        })
        .await?;
        Ok(GetTaskResult::new(DetailedTask::new(Task::default(), TaskPayload::Working)))
    }

    /// `tasks/update` of the extension.
    pub(crate) async fn update_extension_task(
        &self,
        id: &str,
        answers: InputResponses,
        context: &RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.ask_tasks(context, at_once(), |tasks, caller| tasks.update(caller, id, answers)).await
    }

    /// `tasks/cancel` of the extension: a task that has ended stays as it is.
    pub(crate) async fn cancel_extension_task(
        &self,
        id: &str,
        context: &RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.ask_tasks(context, at_once(), |tasks, caller| tasks.cancel(caller, id).map(|_| ())).await
    }

    /// The methods that the SDK has no types for. The results go past it.
    pub(crate) async fn answer_custom(
        &self,
        request: CustomRequest,
        context: &RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let params = request.params.unwrap_or_default();
        let id = || {
            let id = params["taskId"].as_str();
            id.ok_or_else(|| ErrorData::invalid_params("`taskId` must be the id of a task", None))
        };
        match (TaskShape::of(context), request.method.as_str()) {
            (Some(TaskShape::Legacy), "tasks/get") => {
                let id = id()?;
                self.answer_about_tasks(context, at_once(), |tasks, caller| {
                    written(TaskShape::Legacy.detailed(&tasks.get(caller, id)?))
                })
                .await?;
            }
            (Some(TaskShape::Legacy), "tasks/list") => {
                only_page(params.get("cursor").filter(|cursor| !cursor.is_null()))?;
                self.answer_about_tasks(context, at_once(), |tasks, caller| {
                    written(legacy_list(&tasks.list(caller)))
                })
                .await?;
            }
            (Some(TaskShape::Legacy), "tasks/cancel") => {
                let id = id()?;
                self.answer_about_tasks(context, at_once(), |tasks, caller| {
                    match tasks.cancel(caller, id)? {
                        (task, true) => written(TaskShape::Legacy.detailed(&task)),
                        (_, false) => Err(Fault::invalid(
                            Stage::Arguments,
                            "the task has ended, or is past the point where it could be cancelled",
                        )
                        .hint("tasks/get says how it stands")),
                    }
                })
                .await?;
            }
            (Some(TaskShape::Legacy), "tasks/result") => self.answer_with_result(id()?, context).await?,
            _ => return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None)),
        }
        Ok(CustomResult::new(serde_json::json!({"resultType": "complete"})))
    }

    /// `tasks/result` of 2025-11-25. Waiting for the task occupies no slot.
    async fn answer_with_result(
        &self,
        id: &str,
        context: &RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let caller = caller_of(context)?;
        // A call that failed as the protocol fails: the question for its result fails in the same way.
        let failed = OnceLock::new();
        let ready = async {
            let task = self.tasks().ended(caller.identity(), id).await?;
            match legacy_error(&task) {
                Some(error) => {
                    let fault = message::fault_of(&error);
                    let _ = failed.set(error);
                    Err(fault)
                }
                None => Ok(self.result_bytes(&caller, id)),
            }
        };
        let answered = self
            .answer_about_tasks(context, ready, |tasks, caller| {
                written(legacy_result(&tasks.get(caller, id)?))
            })
            .await;
        failed.into_inner().map_or(answered, Err)
    }

    /// How much memory the reply with the result of a task takes, about; 0 if there is no result.
    fn result_bytes(&self, caller: &Caller, id: &str) -> usize {
        let end = self.tasks().get(caller.identity(), id).ok().and_then(|task| task.end);
        end.map_or(0, |end| REPLY_FACTOR * end.bytes())
    }

    /// Answers a question about a caller's tasks with JSON that goes past the SDK. `ready` waits for what has to be
    /// waited for, and returns how many bytes to reserve.
    async fn answer_about_tasks(
        &self,
        context: &RequestContext<RoleServer>,
        ready: impl Future<Output = Result<usize, Fault>> + Send,
        answer: impl FnOnce(&TaskStore, &str) -> Result<Box<RawValue>, Fault>,
    ) -> Result<(), ErrorData> {
        let body = self.ask_tasks(context, ready, answer).await?;
        McpRequest::of(context)?.hold_body(ResultBody::Whole(body));
        Ok(())
    }

    /// Has the engine answer a question about a caller's tasks.
    async fn ask_tasks<T: Serialize>(
        &self,
        context: &RequestContext<RoleServer>,
        ready: impl Future<Output = Result<usize, Fault>> + Send,
        answer: impl FnOnce(&TaskStore, &str) -> Result<T, Fault>,
    ) -> Result<T, ErrorData> {
        let tasks = self.tasks();
        self.query_after(ROUTE, context, ready, |call, _, bytes| async move {
            block_in_place_if(bytes > LARGE, || answer(tasks, call.caller().identity()))
        })
        .await
    }
}

/// Who sent a request that no handler has taken yet.
fn caller_of(context: &RequestContext<RoleServer>) -> Result<Arc<Caller>, ErrorData> {
    let sender = McpRequest::of(context)?.caller_and_cancel().map(|(caller, _)| caller);
    sender.ok_or_else(|| ErrorData::internal_error("a request that was handled before", None))
}

/// Nothing has to be waited for, and the answer is short.
async fn at_once() -> Result<usize, Fault> {
    Ok(0)
}

fn written(json: Option<Box<RawValue>>) -> Result<Box<RawValue>, Fault> {
    json.ok_or_else(|| Fault::internal(unwritable().message))
}
