//! The engine: the tools of a server, and what all calls share.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use pintle_contract::Fault;
use pintle_schema::{CompiledSchema, SchemaRegistry};
use pintle_tool::{Caller, Resources, Toolset};
use tokio::sync::watch;

use crate::{
    admission::Admission,
    audit::AuditSink,
    budget::ReplyBudget,
    caller_limits::CallerLimits,
    catalogue::{Catalogue, CatalogueError},
    clock::Clock,
    idempotency::IdempotencyStore,
    log::CallLog,
    metrics::Metrics,
    options::Options,
    recent_callers::RecentCallers,
    workspace::{Recovery, Tenants, Workspace},
};

/// The tools of a server, and the only way to them: [`Engine::receive`].
pub struct Engine {
    pub(crate) options: Options,
    /// The workspace of all callers; with tenants, what all their workspaces have in common: the definitions.
    workspace: Workspace,
    tenants: Option<Arc<dyn Tenants>>,
    are_tools_fixed: AtomicBool,
    pub(crate) envelope_schema: Arc<CompiledSchema>,
    pub(crate) tool_io_schema: Arc<CompiledSchema>,
    pub(crate) admission: Admission,
    /// Slots for tools that run a process: other tools never wait behind a command.
    pub(crate) processes: Admission,
    /// Slots for lists, completions and discoveries, which never wait behind tools.
    pub(crate) queries: Admission,
    pub(crate) caller_limits: CallerLimits,
    pub(crate) recent_callers: Arc<RecentCallers>,
    pub(crate) budget: ReplyBudget,
    pub(crate) idempotency: IdempotencyStore,
    pub(crate) clock: Arc<Clock>,
    pub(crate) log: CallLog,
    /// Where permissions are recorded, if they are.
    pub(crate) audit: Option<Arc<dyn AuditSink>>,
    pub(crate) metrics: Metrics,
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
        let recent_callers = Arc::<RecentCallers>::default();
        let admission = || Admission::new(options.running, options.waiting, Arc::clone(&recent_callers));
        Ok(Self {
            workspace: Workspace::new(toolsets, resources, &options.tooling_version)?,
            tenants: None,
            are_tools_fixed: AtomicBool::new(true),
            envelope_schema: registry.load_envelope().map_err(CatalogueError::BadSchema)?,
            tool_io_schema: registry.load_invocation().map_err(CatalogueError::BadSchema)?,
            admission: admission(),
            processes: admission(),
            queries: admission(),
            caller_limits: CallerLimits::new(options.calls_per_caller, options.rate_per_caller),
            recent_callers,
            budget: ReplyBudget::new(options.reply_memory, options.reply_patience),
            idempotency: IdempotencyStore::default(),
            clock: Arc::new(Clock::new(options.deterministic)),
            metrics: Metrics::new(),
            log,
            audit: None,
            options,
        })
    }

    /// The same engine, recording who was allowed to do what.
    #[must_use]
    pub fn with_audit(self, audit: Arc<dyn AuditSink>) -> Self {
        Self { audit: Some(audit), ..self }
    }

    /// The same engine, with a recovery of its workspace before each call.
    #[must_use]
    pub fn with_recovery(self, recovery: Arc<dyn Recovery>) -> Self {
        Self { workspace: self.workspace.with_recovery(recovery), ..self }
    }

    /// The same engine with a workspace for each caller. Its own is for definitions only, and no call reaches it.
    #[must_use]
    pub fn with_tenants(self, tenants: Arc<dyn Tenants>) -> Self {
        Self { tenants: Some(tenants), ..self }
    }

    /// The workspace of a caller.
    pub(crate) async fn in_workspace_of<T>(
        &self,
        caller: &Caller,
        work: impl AsyncFnOnce(&Workspace) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        match &self.tenants {
            None => work(&self.workspace).await,
            Some(tenants) => work(&*tenants.workspace(caller).await?).await,
        }
    }

    /// The tools that there are now.
    pub fn catalogue(&self) -> Arc<Catalogue> {
        self.workspace.catalogue()
    }

    /// Allows tools to be replaced while clients are served. The capabilities then announce `listChanged`.
    pub fn let_tools_change(&self) {
        self.are_tools_fixed.store(false, Ordering::Release);
    }

    /// Whether no tool is ever replaced.
    pub fn are_tools_fixed(&self) -> bool {
        self.are_tools_fixed.load(Ordering::Acquire)
    }

    /// Replaces some tools by others. Calls that run go on with the tool that they began with.
    pub fn replace_tools(&self, removed: &[String], added: Toolset) -> Result<(), CatalogueError> {
        self.workspace.replace_tools(removed, added)
    }

    /// Changes whenever tools are replaced.
    pub fn tool_changes(&self) -> watch::Receiver<u64> {
        self.workspace.tool_changes()
    }

    /// The families of resources that a caller has.
    pub async fn resources_of(&self, caller: &Caller) -> Result<Arc<[Arc<dyn Resources>]>, Fault> {
        self.in_workspace_of(caller, async |workspace| Ok(workspace.resources())).await
    }

    /// Whether somebody else than this caller uses the server at the moment.
    pub fn has_other_callers(&self, caller: &Caller) -> bool {
        self.recent_callers.others_than(caller.identity())
    }

    /// Cancels the calls that wait for a slot: the server is stopping.
    pub fn stop_waiting(&self) {
        self.admission.stop_waiting();
        self.processes.stop_waiting();
        self.queries.stop_waiting();
    }

    /// How many calls can run or wait.
    pub fn capacity(&self) -> usize {
        // Tools, those that run processes, and those that wait for another call with their idempotency key.
        2 * (self.options.running + self.options.waiting) + self.options.waiting
    }

    /// The memory of replies.
    pub fn reply_budget(&self) -> &ReplyBudget {
        &self.budget
    }

    /// The clock of logs and progress.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The counters.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// The counters, in Prometheus' text format.
    pub fn metrics_text(&self) -> String {
        let (tools, processes) = (self.admission.load(), self.processes.load());
        self.metrics.text(tools.0 + processes.0, tools.1 + processes.1)
    }
}
