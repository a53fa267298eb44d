//! The tools and resources of one workspace, and which workspace a caller has.
//!
//! Most servers have one workspace for all callers. A server with **tenants** has one for each caller, and finds it when a
//! call comes.

use std::sync::Arc;

use parking_lot::RwLock;
use pintle_contract::Fault;
use pintle_schema::SchemaRegistry;
use pintle_tool::{Boxed, Caller, Resources, Toolset};
use tokio::sync::watch;

use crate::{
    catalogue::{Catalogue, CatalogueError, Entry},
    read_resource::ReadResource,
};

/// The tools and resources of one workspace.
pub struct Workspace {
    catalogue: RwLock<Arc<Catalogue>>,
    tool_changes: watch::Sender<u64>,
    resources: Arc<[Arc<dyn Resources>]>,
    pub(crate) read_resource: Arc<Entry>,
    recovery: Option<Arc<dyn Recovery>>,
}

/// Undoes what a process that died has left half done in a workspace. No call runs before that.
pub trait Recovery: Send + Sync {
    /// Whether there is something to undo. This is asked before each call, so it is at most a system call.
    fn is_needed(&self) -> bool;

    /// Undoes it, on a blocking thread.
    fn recover(&self);
}

/// The workspaces of tenants.
pub trait Tenants: Send + Sync {
    /// The workspace of a caller. `Err` says why it has none.
    fn workspace<'a>(&'a self, caller: &'a Caller) -> Boxed<'a, Result<Arc<Workspace>, Fault>>;
}

impl Workspace {
    /// A workspace with these tools and resources.
    pub fn new(
        toolsets: Vec<Toolset>,
        resources: Vec<Arc<dyn Resources>>,
        tooling_version: &str,
    ) -> Result<Self, CatalogueError> {
        let registry = SchemaRegistry::default();
        let resources: Arc<[Arc<dyn Resources>]> = resources.into();
        let read_resource = ReadResource::erased(Arc::clone(&resources));
        Ok(Self {
            read_resource: Arc::new(Entry::new(read_resource, false, &registry)),
            resources,
            catalogue: RwLock::new(Arc::new(Catalogue::new(toolsets, &registry, tooling_version)?)),
            tool_changes: watch::Sender::new(0),
            recovery: None,
        })
    }

    /// The same workspace, with a recovery before each call.
    #[must_use]
    pub fn with_recovery(self, recovery: Arc<dyn Recovery>) -> Self {
        Self { recovery: Some(recovery), ..self }
    }

    pub(crate) fn recovery(&self) -> Option<Arc<dyn Recovery>> {
        self.recovery.clone()
    }

    /// The tools that there are now.
    pub fn catalogue(&self) -> Arc<Catalogue> {
        Arc::clone(&self.catalogue.read())
    }

    /// The families of resources.
    pub(crate) fn resources(&self) -> Arc<[Arc<dyn Resources>]> {
        Arc::clone(&self.resources)
    }

    /// Replaces some tools by others. Calls that run go on with the tool that they began with.
    pub(crate) fn replace_tools(&self, removed: &[String], added: Toolset) -> Result<(), CatalogueError> {
        {
            let mut catalogue = self.catalogue.write();
            *catalogue = Arc::new(catalogue.with_replaced(removed, added, &SchemaRegistry::default())?);
        }
        self.tool_changes.send_modify(|count| *count += 1);
        Ok(())
    }

    /// Changes whenever tools are replaced.
    pub(crate) fn tool_changes(&self) -> watch::Receiver<u64> {
        self.tool_changes.subscribe()
    }
}
