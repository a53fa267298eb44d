//! The engine: the tools of a server, and what all calls share.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use parking_lot::RwLock;
use pintle_schema::{CompiledSchema, SchemaRegistry};
use pintle_tool::{Resources, Toolset};
use tokio::sync::watch;

use crate::{
    admission::Admission,
    budget::ReplyBudget,
    catalogue::{Catalogue, CatalogueError, Entry},
    clock::Clock,
    idempotency::IdempotencyStore,
    log::CallLog,
    metrics::Metrics,
    options::Options,
    read_resource::ReadResource,
};

/// The tools of a server, and the only way to them: [`Engine::receive`].
pub struct Engine {
    pub(crate) options: Options,
    catalogue: RwLock<Arc<Catalogue>>,
    tool_changes: watch::Sender<u64>,
    are_tools_fixed: AtomicBool,
    resources: Arc<[Arc<dyn Resources>]>,
    pub(crate) read_resource: Arc<Entry>,
    pub(crate) envelope_schema: Arc<CompiledSchema>,
    pub(crate) tool_io_schema: Arc<CompiledSchema>,
    pub(crate) admission: Admission,
    /// Slots for tools that run a process: other tools never wait behind a command.
    pub(crate) processes: Admission,
    /// Slots for lists, completions and discoveries, which never wait behind tools.
    pub(crate) queries: Admission,
    pub(crate) budget: ReplyBudget,
    pub(crate) idempotency: IdempotencyStore,
    clock: Clock,
    pub(crate) log: CallLog,
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
            processes: Admission::new(options.running, options.waiting),
            queries: Admission::new(options.running, options.waiting),
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
        Arc::clone(&self.catalogue.read())
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
        {
            let mut catalogue = self.catalogue.write();
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
    pub(crate) fn resources(&self) -> Arc<[Arc<dyn Resources>]> {
        Arc::clone(&self.resources)
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
