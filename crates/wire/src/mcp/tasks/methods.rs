//! The methods about tasks.

use pintle_contract::{Fault, Stage};
use pintle_rpc::PROTOCOL_VERSION_KEY;
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
    calls::{declares_tasks, undeclared, unwritable},
    shape::{TaskShape, legacy_list, legacy_result},
    store::TaskStore,
};
use crate::mcp::{McpHandler, McpRequest, handler::only_page, message, request::ResultBody};

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
        self.answer_about_tasks(context, |tasks, caller| {
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
        self.ask_tasks(context, |tasks, caller| tasks.update(caller, id, answers)).await
    }

    /// `tasks/cancel` of the extension: a task that has ended stays as it is.
    pub(crate) async fn cancel_extension_task(
        &self,
        id: &str,
        context: &RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.ask_tasks(context, |tasks, caller| tasks.cancel(caller, id).map(|_| ())).await
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
                self.answer_about_tasks(context, |tasks, caller| {
                    written(TaskShape::Legacy.detailed(&tasks.get(caller, id)?))
                })
                .await?;
            }
            (Some(TaskShape::Legacy), "tasks/list") => {
                only_page(params.get("cursor").filter(|cursor| !cursor.is_null()))?;
                self.answer_about_tasks(context, |tasks, caller| written(legacy_list(&tasks.list(caller))))
                    .await?;
            }
            (Some(TaskShape::Legacy), "tasks/cancel") => {
                let id = id()?;
                self.answer_about_tasks(context, |tasks, caller| match tasks.cancel(caller, id)? {
                    (task, true) => written(TaskShape::Legacy.detailed(&task)),
                    (_, false) => Err(Fault::invalid(
                        Stage::Arguments,
                        "the task has ended, or is past the point where it could be cancelled",
                    )
                    .hint("tasks/get says how it stands")),
                })
                .await?;
            }
            (Some(TaskShape::Legacy), "tasks/result") => self.answer_with_result(id()?, context).await?,
            // A client whose handshake agreed on the revision of the extension need not name it in each request.
            (Some(TaskShape::Extension), "tasks/get" | "tasks/update" | "tasks/cancel")
                if !declares_tasks(context) =>
            {
                return Err(undeclared());
            }
            (Some(TaskShape::Extension), "tasks/get") => {
                self.get_extension_task(id()?, context).await?;
            }
            (Some(TaskShape::Extension), "tasks/update") => {
                let answers = serde_json::from_value(params["inputResponses"].clone());
                let answers = answers
                    .map_err(|_| ErrorData::invalid_params("`inputResponses` must be an object", None))?;
                self.update_extension_task(id()?, answers, context).await?;
            }
            (Some(TaskShape::Extension), "tasks/cancel") => {
                self.cancel_extension_task(id()?, context).await?
            }
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
        let request = McpRequest::of(context)?;
        let ended = match request.caller_and_cancel() {
            Some((caller, _)) => tokio::select! {
                ended = self.tasks().ended(caller.identity(), id) => ended.ok(),
                // Nobody wants the reply.
                () = context.ct.cancelled() => None,
            },
            None => None,
        };
        if let Some(Err(error)) = ended.as_ref().and_then(legacy_result) {
            // The call failed as the protocol fails, and so does the question for its result.
            if let Some(incoming) = request.take_unanswered() {
                let _refused = incoming.refuse(message::fault_of(error)).await;
            }
            return Err(error.clone());
        }
        self.answer_about_tasks(context, |tasks, caller| match legacy_result(&tasks.get(caller, id)?) {
            Some(Ok(result)) => Ok(result),
            _ => Err(Fault::internal("the task has no result")),
        })
        .await
    }

    /// Answers a question about a caller's tasks with JSON that goes past the SDK.
    async fn answer_about_tasks(
        &self,
        context: &RequestContext<RoleServer>,
        answer: impl FnOnce(&TaskStore, &str) -> Result<Box<RawValue>, Fault>,
    ) -> Result<(), ErrorData> {
        let body = self.ask_tasks(context, answer).await?;
        McpRequest::of(context)?.hold_body(ResultBody::Whole(body));
        Ok(())
    }

    /// Has the engine answer a question about a caller's tasks.
    async fn ask_tasks<T: Serialize>(
        &self,
        context: &RequestContext<RoleServer>,
        answer: impl FnOnce(&TaskStore, &str) -> Result<T, Fault>,
    ) -> Result<T, ErrorData> {
        let tasks = self.tasks();
        self.query(ROUTE, context, |call, _| async move { answer(tasks, call.caller().identity()) }).await
    }
}

fn written(json: Option<Box<RawValue>>) -> Result<Box<RawValue>, Fault> {
    json.ok_or_else(|| Fault::internal(unwritable().message))
}
