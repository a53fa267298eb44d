//! The protocol's methods, answered from the engine.

use std::{
    sync::{Arc, Mutex, PoisonError, atomic::Ordering},
    time::Duration,
};

use pintle_auth::Scopes;
use pintle_contract::Meta;
use pintle_engine::{
    ArgumentReading, CallRequest, CancelReason, Catalogue, Engine, LARGE, Outcome, Resources, Target,
    Transport, aside_if,
};
use rmcp::{
    ErrorData, Peer, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult, CompletionInfo,
        Implementation, JsonObject, ListPromptsRequestMethod, ListPromptsResult, ListResourceTemplatesResult,
        ListResourcesResult, ListToolsResult, MetaObject, PaginatedRequestParams, ReadResourceRequestParams,
        ReadResourceResponse, ReadResourceResult, Reference, Resource, ResourceContents, ResourceTemplate,
        ServerCapabilities, ServerConfig, SubscriptionFilter, Tool,
    },
    service::{NotificationContext, RequestContext, SubscriptionContext},
};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::{
    HeldReply, Origin, ToolJson,
    clients::{ResultForm, added_arguments, form_for},
    convert,
    instructions::instructions,
    listing::{ListedTool, ToolNames, listing},
};

/// A reply carries a tool's result twice, and in the text each of its bytes may need an escape.
const REPLY_FACTOR: usize = 3;

/// How tools are shown to MCP clients, and how their calls are read.
#[derive(Clone, Debug, Default)]
pub struct McpOptions {
    /// How names are spelt in lists.
    pub tool_names: ToolNames,
    /// How arguments are read.
    pub argument_reading: ArgumentReading,
    /// How results are sent.
    pub results: ResultsSetting,
    /// What clients may do, as far as it is known before they come.
    pub scopes: Option<Scopes>,
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
pub struct McpHandler {
    engine: Arc<Engine>,
    options: McpOptions,
    tools: Arc<Mutex<ToolView>>,
    instructions: Arc<str>,
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
        let scopes = options.scopes.clone().unwrap_or_else(Scopes::everything);
        let listed = catalogue.listed(&scopes).map(|tool| tool.name.as_str()).collect();
        let instructions = instructions(&listed).into();
        let tools = ToolView::new(catalogue, options.tool_names);
        Self { engine, options, tools: Arc::new(Mutex::new(tools)), instructions }
    }

    /// The tools as they are now.
    fn tools(&self) -> ToolView {
        let now = self.engine.catalogue();
        let mut tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        if !Arc::ptr_eq(&tools.catalogue, &now) {
            *tools = ToolView::new(now, self.options.tool_names);
        }
        tools.clone()
    }

    /// Takes out the arguments that a client adds by itself, which its model did not mean for the tool.
    fn leave_out_added(
        &self,
        tool: &str,
        arguments: &mut JsonObject,
        context: &RequestContext<RoleServer>,
    ) -> Vec<String> {
        let catalogue = self.engine.catalogue();
        let Some(definition) =
            catalogue.definition(tool).filter(|_| self.options.argument_reading == ArgumentReading::Lenient)
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
        match self.options.results {
            ResultsSetting::Json => ResultForm::Json,
            ResultsSetting::Text => ResultForm::Text,
            ResultsSetting::Auto => {
                form_for(context.client_info().as_ref().map(|client| client.name.as_str()))
            }
        }
    }

    /// Takes a request through the engine. The client's cancel, or its leaving, cancels the call.
    async fn call(
        &self,
        target: Target,
        (params, left_out): (Value, Vec<String>),
        context: &RequestContext<RoleServer>,
    ) -> Result<(Outcome, Option<MetaObject>), ErrorData> {
        let origin = context.extensions.get::<Origin>().cloned();
        let origin = origin.ok_or_else(|| ErrorData::internal_error("a request without an origin", None))?;
        let asked = origin.asked;
        asked.is_call.store(true, Ordering::Relaxed);
        let cancel = Arc::clone(&origin.cancel);
        let is_tool = matches!(target, Target::Tool(_));
        let request = CallRequest {
            id: origin.id,
            caller: origin.caller,
            transport: origin.transport,
            target,
            params,
            argument_reading: self.options.argument_reading,
            left_out,
            meta: meta(context).or(origin.meta),
            idempotency_key: origin.idempotency_key,
            cancel: origin.cancel,
            progress: origin.progress,
            reply_factor: REPLY_FACTOR,
        };
        // On the heap, because the SDK moves the whole of what it runs several times.
        let mut call = Box::pin(self.engine.call(request));
        let reply = tokio::select! {
            reply = &mut call => reply,
            () = context.ct.cancelled() => {
                cancel.cancel(CancelReason::Silent);
                call.await
            }
        };
        let result = match &reply.outcome {
            Outcome::Success(json) if is_tool => {
                Some(ToolJson { json: Arc::clone(json), form: self.result_form(context) })
            }
            _ => None,
        };
        asked.hold(HeldReply { result, reservation: reply.reservation });
        let repaired = (!reply.repaired.is_empty()).then(|| repaired(&reply.repaired));
        Ok((reply.outcome, repaired))
    }

    fn family(&self, uri: &str) -> Option<&Arc<dyn Resources>> {
        let scheme = uri.split_once("://")?.0;
        self.engine.resources().iter().find(|family| family.scheme() == scheme)
    }
}

/// Names the arguments that were converted, so that whoever wrote the call can see it.
fn repaired(names: &[String]) -> MetaObject {
    let mut meta = MetaObject::new();
    meta.insert("pintle/repaired".into(), json!(names));
    meta
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

/// Over HTTP a missing scope shows in the status, and the body of such a response is an error of the protocol.
fn is_http(context: &RequestContext<RoleServer>) -> bool {
    let origin = context.extensions.get::<Origin>();
    origin.is_some_and(|origin| matches!(origin.transport, Transport::Http { .. }))
}

/// Every list is told whole, so no cursor was ever given out.
fn only_page(page: Option<PaginatedRequestParams>) -> Result<(), ErrorData> {
    match page.and_then(|page| page.cursor) {
        None => Ok(()),
        Some(_) => Err(ErrorData::invalid_params("the cursor is unknown; this list has one page", None)),
    }
}

/// Tells a client of a session whenever the list of tools has changed, until it is gone.
async fn notify_of_changes(mut changes: watch::Receiver<u64>, client: Peer<RoleServer>) {
    /// How often a client that is gone is looked for.
    const LOOK: Duration = Duration::from_secs(60);
    while !client.is_transport_closed() {
        match tokio::time::timeout(LOOK, changes.changed()).await {
            // A client that is gone misses nothing.
            Ok(Ok(())) => _ = client.notify_tool_list_changed().await,
            Ok(Err(_)) => return,
            Err(_) => {}
        }
    }
}

impl ServerHandler for McpHandler {
    fn get_info(&self) -> ServerConfig {
        let mut capabilities =
            ServerCapabilities::builder().enable_tools().enable_resources().enable_completions().build();
        if !self.engine.are_tools_fixed() {
            capabilities.tools.get_or_insert_default().list_changed = Some(true);
        }
        let catalogue = self.engine.catalogue();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("pintle", catalogue.tooling_version()).with_title("Pintle"))
            .with_instructions(self.instructions.as_ref())
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        let ToolView { catalogue, tools } = self.tools();
        let canonical = &catalogue.definition(name)?.name;
        tools.iter().find(|tool| tool.name == *canonical).map(|tool| tool.in_form(ResultForm::Json).clone())
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        if !self.engine.are_tools_fixed() {
            tokio::spawn(notify_of_changes(self.engine.tool_changes(), context.peer));
        }
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        if self.engine.are_tools_fixed() {
            return None;
        }
        // Nothing else changes.
        let mut accepted = SubscriptionFilter::default();
        accepted.tools_list_changed = requested.tools_list_changed;
        Some(accepted)
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.engine.tool_changes();
        loop {
            tokio::select! {
                () = subscription.cancelled() => return Ok(()),
                changed = changes.changed() => if changed.is_err() { return Ok(()) },
            }
            // The sink refuses what the client did not ask for, and that is as it should be.
            let _ = subscription.sink().notify_tool_list_changed().await;
        }
    }

    async fn list_tools(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        only_page(page)?;
        // The same step of a client as `mcp.discover`, so it goes the same way and leaves the same record.
        if let (Outcome::Fault(fault), _) =
            self.call(Target::Discover, (json!({}), Vec::new()), &context).await?
        {
            return Err(convert::error(&fault));
        }
        let form = self.result_form(&context);
        let everything = Scopes::everything();
        let origin = context.extensions.get::<Origin>();
        let scopes = origin.map_or(&everything, |origin| origin.caller.scopes());
        let ToolView { catalogue, tools } = self.tools();
        let listed = catalogue.listed(scopes).filter_map(|definition| {
            let tool = tools.iter().find(|tool| tool.name == definition.name)?;
            Some(tool.in_form(form).clone())
        });
        // What a client gets depends on its name and its scopes, and is `private` to caches unless that is said.
        Ok(ListToolsResult::with_all_items(listed.collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let mut arguments = request.arguments.unwrap_or_default();
        let left_out = self.leave_out_added(&request.name, &mut arguments, &context);
        let params = (Value::Object(arguments), left_out);
        let (outcome, meta) = self.call(Target::Tool(request.name.into_owned()), params, &context).await?;
        if let Outcome::Fault(fault) = &outcome
            && is_http(&context)
            && convert::is_missing_scope(fault)
        {
            return Err(convert::error(fault));
        }
        let mut result = aside_if(outcome.is_large(), || convert::tool_result(outcome))?;
        result.meta = meta;
        Ok(result.into())
    }

    async fn list_resources(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        only_page(page)?;
        let mut listed = Vec::new();
        if let Some(origin) = context.extensions.get::<Origin>() {
            for family in self.engine.resources() {
                let entries = family.list(&origin.caller).await.map_err(|fault| convert::error(&fault))?;
                listed.extend(
                    entries
                        .into_iter()
                        .map(|entry| Resource::new(entry.uri, entry.name).with_mime_type(entry.mime_type)),
                );
            }
        }
        Ok(ListResourcesResult::with_all_items(listed))
    }

    async fn list_resource_templates(
        &self,
        page: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        only_page(page)?;
        let families = self.engine.resources().iter();
        let templates = families
            .filter_map(|family| Some(ResourceTemplate::new(family.template()?, family.scheme())))
            .collect();
        Ok(ListResourceTemplatesResult::with_all_items(templates))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let (outcome, _) =
            self.call(Target::Resource, (json!({"uri": request.uri}), Vec::new()), &context).await?;
        let json = match outcome {
            Outcome::Success(json) | Outcome::Declined(json, _) => json,
            Outcome::Fault(fault) => return Err(convert::resource_error(&fault, &request.uri)),
        };
        let parsed = aside_if(json.get().len() > LARGE, || serde_json::from_str(json.get()));
        let mut content: Value = parsed.unwrap_or_default();
        let text = content["text"].as_str().unwrap_or_default().to_owned();
        let mime_type = content["mimeType"].take();
        let contents = ResourceContents::text(text, request.uri)
            .with_mime_type(mime_type.as_str().unwrap_or("application/json"));
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let (Reference::Resource(reference), Some(origin)) =
            (&request.r#ref, context.extensions.get::<Origin>())
        else {
            return Err(ErrorData::invalid_params("only resources can be completed", None));
        };
        let Some(family) = self.family(&reference.uri) else {
            return Err(ErrorData::invalid_params("there is no such resource template", None));
        };
        let variable = family.template().and_then(|template| template.split(['{', '}']).nth(1));
        if variable.map(|variable| variable.trim_start_matches('+')) != Some(request.argument.name.as_str()) {
            return Err(ErrorData::invalid_params("the resource template has no such variable", None));
        }
        let mut values = family.complete(&origin.caller, &request.argument.value).await;
        let total = u32::try_from(values.len()).ok();
        let has_more = values.len() > CompletionInfo::MAX_VALUES;
        values.truncate(CompletionInfo::MAX_VALUES);
        CompletionInfo::with_pagination(values, total, has_more)
            .map(CompleteResult::new)
            .map_err(|problem| ErrorData::internal_error(problem, None))
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
