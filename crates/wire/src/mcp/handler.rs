//! The protocol's methods, answered from the engine.

use std::{future::Future, pin::pin, sync::Arc, time::Duration};

use futures_util::future::{BoxFuture, OptionFuture};
use parking_lot::Mutex;
use pintle_contract::{Fault, Meta, Stage};
use pintle_engine::{ArgumentReading, Call, Catalogue, Engine, Outcome, Reply, Target};
use pintle_tool::{CallContext, Caller, CancelReason, Resources, block_in_place_if};
use rmcp::{
    ErrorData, Peer, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams, CompleteRequestParams,
        CompleteResult, CompletionInfo, CustomRequest, CustomResult, DiscoverResult, GetTaskParams,
        GetTaskResult, Implementation, InitializeRequestParams, InitializeResult, JsonObject,
        ListPromptsRequestMethod, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
        ListToolsResult, MetaObject, PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse,
        ReadResourceResult, Reference, Resource, ResourceTemplate, ServerCapabilities, ServerConfig,
        SubscriptionFilter, Tool, UpdateTaskParams,
    },
    service::{NotificationContext, RequestContext, SubscriptionContext},
};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::{
    McpRequest, TaskStore,
    clients::{ResultForm, added_arguments, form_for},
    convert,
    instructions::instructions,
    listing::{ListedTool, ToolNames, listing},
    request::{HeldReply, ResultBody},
    tasks::{TASK_SUPPORT_KEY, TaskCandidate, TaskReply, TaskShape},
};

/// A reply carries a tool's result twice, and in the text each of its bytes may need an escape.
pub(super) const REPLY_FACTOR: usize = 3;

/// How tools are shown to MCP clients, and how their calls are read.
#[derive(Clone, Debug, Default)]
pub struct McpOptions {
    /// How names are spelt in lists.
    pub tool_names: ToolNames,
    /// How arguments are read.
    pub argument_reading: ArgumentReading,
    /// How results are sent.
    pub results: ResultsSetting,
}

/// How the results of tools are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResultsSetting {
    /// As structured content and text.
    Json,
    /// As text alone.
    Text,
    /// By the name of the client.
    #[default]
    Auto,
}

/// Serves the engine's tools and resources to one client. Cheap to clone.
#[derive(Clone)]
pub struct McpHandler(Arc<Shared>);

struct Shared {
    engine: Arc<Engine>,
    options: McpOptions,
    tools: Mutex<ToolView>,
    tasks: Arc<TaskStore>,
}

/// How the tools of a catalogue are listed.
#[derive(Clone)]
struct ToolView {
    catalogue: Arc<Catalogue>,
    tools: Arc<[ListedTool]>,
}

impl ToolView {
    fn new(catalogue: Arc<Catalogue>, spelling: ToolNames) -> Self {
        Self { tools: listing(&catalogue, spelling).into(), catalogue }
    }
}

impl McpHandler {
    /// A handler over an engine.
    pub fn new(engine: Arc<Engine>, options: McpOptions) -> Self {
        let catalogue = engine.catalogue();
        let tools = Mutex::new(ToolView::new(catalogue, options.tool_names));
        let tasks_of_callers = TaskStore::new(Arc::clone(&engine));
        Self(Arc::new(Shared { engine, options, tools, tasks: tasks_of_callers }))
    }

    /// The tasks of all clients.
    pub fn tasks(&self) -> &Arc<TaskStore> {
        &self.0.tasks
    }

    /// The tools as they are now.
    fn tools(&self) -> ToolView {
        let now = self.0.engine.catalogue();
        let mut tools = self.0.tools.lock();
        if !Arc::ptr_eq(&tools.catalogue, &now) {
            *tools = ToolView::new(now, self.0.options.tool_names);
        }
        tools.clone()
    }

    /// The instructions for a client, about the tools that it is shown.
    fn instructions_for(&self, caller: &Caller) -> String {
        let catalogue = self.0.engine.catalogue();
        let listed = catalogue.listed(caller.permissions()).map(|tool| tool.name.as_str());
        instructions(&listed.collect())
    }

    /// Takes out the arguments that a client adds by itself, which its model did not mean for the tool.
    fn leave_out_added(
        &self,
        tool: &str,
        arguments: &mut JsonObject,
        context: &RequestContext<RoleServer>,
    ) -> Vec<String> {
        let catalogue = self.0.engine.catalogue();
        let Some(definition) = catalogue
            .definition(tool)
            .filter(|_| self.0.options.argument_reading == ArgumentReading::Lenient)
        else {
            return Vec::new();
        };
        let client = context.client_info();
        let added = added_arguments(client.as_ref().map(|client| client.name.as_str())).iter();
        let is_foreign = |name: &&String| definition.input_schema["properties"].get(name.as_str()).is_none();
        let left_out =
            added.filter(is_foreign).filter(|name| arguments.shift_remove(name.as_str()).is_some());
        left_out.cloned().collect()
    }

    /// How results are sent to the client of a request.
    fn result_form(&self, context: &RequestContext<RoleServer>) -> ResultForm {
        match self.0.options.results {
            ResultsSetting::Json => ResultForm::Json,
            ResultsSetting::Text => ResultForm::Text,
            ResultsSetting::Auto => {
                form_for(context.client_info().as_ref().map(|client| client.name.as_str()))
            }
        }
    }

    /// Has the engine run a call, and keeps what its reply holds for the bridge. The client's cancel, or its leaving,
    /// cancels the call, unless it has become a task by then.
    async fn call(
        &self,
        target: Target,
        (params, left_out): (Value, Vec<String>),
        context: &RequestContext<RoleServer>,
        mut candidate: Option<Box<TaskCandidate>>,
    ) -> Result<Called, ErrorData> {
        let request = McpRequest::of(context)?;
        let incoming = request.take()?;
        let cancel = Arc::clone(incoming.cancel());
        let mut meta = meta(context).or(request.meta().clone());
        let progress = match &candidate {
            // A task shows its progress to whoever asks, so it is always wanted.
            Some(candidate) => {
                meta.progress_token.get_or_insert(Value::Null);
                candidate.progress()
            }
            None => request.progress(),
        };
        let call = Call {
            target,
            params,
            argument_reading: self.0.options.argument_reading,
            left_out,
            meta,
            idempotency_key: request.idempotency_key(),
            progress: Some(progress),
            reply_factor: REPLY_FACTOR,
        };
        // On the heap, because the SDK moves the whole of what it runs several times.
        let mut call: BoxFuture<'static, Reply> = Box::pin(incoming.call(call));
        let mut due = pin!(OptionFuture::from(candidate.as_deref().map(TaskCandidate::due)));
        let mut may_be_task = candidate.is_some();
        let reply = loop {
            tokio::select! {
                biased;
                reply = &mut call => break reply,
                () = context.ct.cancelled() => {
                    cancel.cancel(CancelReason::Silent);
                    break call.await;
                }
                _ = &mut due, if may_be_task => {
                    if let Some(candidate) = &mut candidate
                        && let Some(task) = candidate.task()
                    {
                        return candidate.go_on(task, call, self.result_form(context)).map(Called::Task);
                    }
                    may_be_task = false;
                }
            }
        };
        Ok(Called::Ended(reply, candidate))
    }

    /// Lets the engine answer a question about the server itself.
    pub(super) async fn query<T: Serialize, W: Future<Output = Result<T, Fault>>>(
        &self,
        route: &'static str,
        context: &RequestContext<RoleServer>,
        work: impl FnOnce(CallContext, Arc<[Arc<dyn Resources>]>) -> W,
    ) -> Result<T, ErrorData> {
        self.query_after(route, context, async { Ok(0) }, |call, families, _| work(call, families)).await
    }

    /// The same where the answer has to be waited for, or is large: see [`pintle_engine::Incoming::query_after`].
    pub(super) async fn query_after<T: Serialize, W: Future<Output = Result<T, Fault>>>(
        &self,
        route: &'static str,
        context: &RequestContext<RoleServer>,
        ready: impl Future<Output = Result<usize, Fault>>,
        work: impl FnOnce(CallContext, Arc<[Arc<dyn Resources>]>, usize) -> W,
    ) -> Result<T, ErrorData> {
        let request = McpRequest::of(context)?;
        let incoming = request.take()?;
        let cancel = Arc::clone(incoming.cancel());
        let answer = async |call: CallContext, bytes| {
            let families = self.0.engine.resources_of(call.caller()).await?;
            work(call, families, bytes).await
        };
        let mut query = Box::pin(incoming.query_after(route, ready, answer));
        let answered = tokio::select! {
            answered = &mut query => answered,
            () = context.ct.cancelled() => {
                cancel.cancel(CancelReason::Silent);
                query.await
            }
        };
        let (answer, reservation) = answered.map_err(|fault| convert::error(&fault))?;
        request.hold(HeldReply { body: None, reservation });
        Ok(answer)
    }
}

/// What became of a call.
enum Called {
    /// It has ended. If it was to become a task, that is still to be settled.
    Ended(Reply, Option<Box<TaskCandidate>>),
    /// It goes on as a task.
    Task(TaskReply),
}

/// Names the arguments that were converted, if any were, so that whoever wrote the call can see it.
pub(super) fn repaired(names: &[String]) -> Option<MetaObject> {
    (!names.is_empty()).then(|| {
        let mut meta = MetaObject::new();
        meta.insert("pintle/repaired".into(), json!(names));
        meta
    })
}

/// A result whose JSON goes past the SDK.
fn empty_result() -> CallToolResult {
    let mut result = CallToolResult::success(Vec::new());
    result.is_error = None;
    result
}

/// What the request says about itself in `_meta`.
fn meta(context: &RequestContext<RoleServer>) -> Meta {
    let token = context.meta.get_progress_token().and_then(|token| serde_json::to_value(token).ok());
    Meta {
        progress_token: token,
        traceparent: context.meta.get_traceparent().map(str::to_owned),
        ..Meta::default()
    }
}

/// Every list is one page, so no cursor was ever given out.
pub(super) fn only_page<T>(cursor: Option<T>) -> Result<(), ErrorData> {
    match cursor {
        None => Ok(()),
        Some(_) => Err(ErrorData::invalid_params("the cursor is unknown; this list has one page", None)),
    }
}

/// Notifies a client of a session whenever the list of tools has changed, until it is gone.
async fn notify_of_changes(mut changes: watch::Receiver<u64>, client: Peer<RoleServer>) {
    /// How often it is checked whether the client is gone.
    const CHECK_INTERVAL: Duration = Duration::from_secs(60);
    while !client.is_transport_closed() {
        match tokio::time::timeout(CHECK_INTERVAL, changes.changed()).await {
            // A client that is gone misses nothing.
            Ok(Ok(())) => _ = client.notify_tool_list_changed().await,
            Ok(Err(_)) => return,
            Err(_) => {}
        }
    }
}

impl ServerHandler for McpHandler {
    fn get_info(&self) -> ServerConfig {
        let mut capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_completions()
            .enable_tasks()
            .build();
        if !self.0.engine.are_tools_fixed() {
            capabilities.tools.get_or_insert_default().list_changed = Some(true);
        }
        let catalogue = self.0.engine.catalogue();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("pintle", catalogue.tooling_version()).with_title("Pintle"))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        let ToolView { catalogue, tools } = self.tools();
        let canonical = &catalogue.definition(name)?.name;
        tools.iter().find(|tool| tool.name == *canonical).map(|tool| tool.in_form(ResultForm::Json).clone())
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        if !self.0.engine.are_tools_fixed() {
            tokio::spawn(notify_of_changes(self.0.engine.tool_changes(), context.peer));
        }
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        if self.0.engine.are_tools_fixed() {
            return None;
        }
        // Nothing else changes.
        let mut accepted = SubscriptionFilter::default();
        accepted.tools_list_changed = requested.tools_list_changed;
        Some(accepted)
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        // It ends with its client, which is no failure; so it is logged when it begins.
        if let Some(incoming) =
            McpRequest::of(subscription.request_context()).ok().and_then(|request| request.take_unanswered())
        {
            incoming.acknowledge("subscription", 0).await;
        }
        let mut changes = self.0.engine.tool_changes();
        loop {
            tokio::select! {
                () = subscription.cancelled() => return Ok(()),
                changed = changes.changed() => if changed.is_err() { return Ok(()) },
            }
            // The sink refuses what the client did not ask for, and that is as it should be.
            let _ = subscription.sink().notify_tool_list_changed().await;
        }
    }

    async fn ping(&self, context: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.query("ping", &context, |_, _| async { Ok(()) }).await
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        context.peer.set_peer_info(request.clone());
        let info = self.negotiate_initialize(&request)?;
        let caller = McpRequest::of(&context)?.caller_and_cancel().map(|(caller, _)| caller);
        Ok(match caller {
            Some(caller) => info.with_instructions(self.instructions_for(&caller)),
            None => info,
        })
    }

    async fn discover(&self, context: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let versions = self.supported_protocol_versions().into_owned();
        self.query("discover", &context, |call, _| async move {
            let info = self.get_info().with_instructions(self.instructions_for(call.caller()));
            Ok(DiscoverResult::from_server_info(versions, info))
        })
        .await
    }

    async fn list_tools(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        only_page(page.and_then(|page| page.cursor))?;
        let form = self.result_form(&context);
        let names_task_support = TaskShape::of(&context) == Some(TaskShape::Legacy);
        self.query("discover", &context, |call, _| async move {
            let ToolView { catalogue, tools } = self.tools();
            let listed = catalogue.listed(call.caller().permissions()).filter_map(|definition| {
                let tool = tools.iter().find(|tool| tool.name == definition.name)?;
                let mut tool = tool.in_form(form).clone();
                if names_task_support && catalogue.may_be_task(&definition.name) {
                    tool.meta.get_or_insert_default().insert(TASK_SUPPORT_KEY.into(), json!("optional"));
                }
                Some(tool)
            });
            // What a client gets depends on its name and its permissions, and is `private` to caches unless that is said.
            Ok(ListToolsResult::with_all_items(listed.collect()))
        })
        .await
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let travelling = McpRequest::of(&context)?;
        let catalogue = self.0.engine.catalogue();
        let may_be_task = catalogue.definition(&request.name).map(|_| catalogue.may_be_task(&request.name));
        let candidate = match TaskCandidate::new(self.tasks(), &context, &travelling, may_be_task) {
            Ok(candidate) => candidate,
            Err(fault) => {
                let error = convert::error(&fault);
                let _refused = travelling.take()?.refuse(fault).await;
                return Err(error);
            }
        };
        let mut arguments = request.arguments.unwrap_or_default();
        let left_out = self.leave_out_added(&request.name, &mut arguments, &context);
        let params = (Value::Object(arguments), left_out);
        let target = Target::Tool(request.name.into_owned());
        let (reply, candidate) = match self.call(target, params, &context, candidate).await? {
            Called::Ended(reply, candidate) => (reply, candidate),
            Called::Task(TaskReply::Extension(created)) => return Ok(CallToolResponse::Task(*created)),
            Called::Task(TaskReply::Legacy(created)) => {
                travelling.hold_body(ResultBody::Whole(created));
                return Ok(empty_result().into());
            }
        };
        let Reply { outcome, reservation, repaired: names } = reply;
        if let Outcome::Fault(fault) = &outcome
            && travelling.shows_missing_scopes()
            && convert::is_missing_scope(fault)
        {
            return Err(convert::error(fault));
        }
        let json = match &outcome {
            Outcome::Success(json) => Some((Arc::clone(json), self.result_form(&context))),
            _ => None,
        };
        let mut result = block_in_place_if(outcome.is_large(), || convert::tool_result(outcome))?;
        result.meta = repaired(&names);
        if let Some(candidate) = candidate.filter(|candidate| candidate.is_due()) {
            travelling.hold_body(ResultBody::Whole(candidate.end(result, json)?));
            return Ok(empty_result().into());
        }
        let body = json.map(|(json, form)| ResultBody::Tool(json, form));
        travelling.hold(HeldReply { body, reservation });
        Ok(result.into())
    }

    async fn list_resources(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        only_page(page.and_then(|page| page.cursor))?;
        self.query("list", &context, |call, families| async move {
            let mut listed = Vec::new();
            for family in families.iter() {
                let entries = family.list(&call).await?.into_iter();
                listed.extend(
                    entries.map(|entry| Resource::new(entry.uri, entry.name).with_mime_type(entry.mime_type)),
                );
            }
            Ok(ListResourcesResult::with_all_items(listed))
        })
        .await
    }

    async fn list_resource_templates(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        only_page(page.and_then(|page| page.cursor))?;
        self.query("list", &context, |_, families| async move {
            let templates = families
                .iter()
                .filter_map(|family| Some(ResourceTemplate::new(family.template()?, family.scheme())))
                .collect();
            Ok(ListResourceTemplatesResult::with_all_items(templates))
        })
        .await
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let params = (json!({"uri": request.uri}), Vec::new());
        let Called::Ended(reply, _) = self.call(Target::Resource, params, &context, None).await? else {
            return Err(ErrorData::internal_error("only tools can be tasks", None));
        };
        let body = match reply.outcome {
            Outcome::Success(json) => Some(ResultBody::Resource(json)),
            Outcome::Declined(..) => None,
            Outcome::Fault(fault) => return Err(convert::resource_error(&fault, &request.uri)),
        };
        McpRequest::of(&context)?.hold(HeldReply { body, reservation: reply.reservation });
        // The content goes past the SDK.
        Ok(ReadResourceResult::new(Vec::new()).into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let Reference::Resource(reference) = &request.r#ref else {
            return Err(ErrorData::invalid_params("only resources can be completed", None));
        };
        let scheme = reference.uri.split_once("://").map(|(scheme, _)| scheme.to_owned());
        let argument = request.argument;
        self.query("completion", &context, |call, families| async move {
            let family = families.iter().find(|family| Some(family.scheme()) == scheme.as_deref());
            let Some(family) = family else {
                return Err(Fault::invalid(Stage::Arguments, "there is no such resource template"));
            };
            let variable = family.template().and_then(|template| template.split(['{', '}']).nth(1));
            if variable.map(|variable| variable.trim_start_matches('+')) != Some(argument.name.as_str()) {
                return Err(Fault::invalid(Stage::Arguments, "the resource template has no such variable"));
            }
            let mut values = family.complete(&call, &argument.value).await;
            let total = u32::try_from(values.len()).ok();
            let has_more = values.len() > CompletionInfo::MAX_VALUES;
            values.truncate(CompletionInfo::MAX_VALUES);
            CompletionInfo::with_pagination(values, total, has_more)
                .map(CompleteResult::new)
                .map_err(Fault::internal)
        })
        .await
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        self.answer_custom(request, &context).await
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        self.get_extension_task(&request.task_id, &context).await
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.update_extension_task(&request.task_id, request.input_responses, &context).await
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.cancel_extension_task(&request.task_id, &context).await
    }

    /// Not offered, so it must not look as if the list were empty.
    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListPromptsRequestMethod>())
    }
}
