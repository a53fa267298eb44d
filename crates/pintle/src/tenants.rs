//! The workspaces of tenants: a root, an index and tools for each subject, loaded when it calls and unloaded when it does
//! not call for a while.

use std::{
    collections::HashMap,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use pintle_contract::{ErrorCode, Fault, Stage};
use pintle_engine::{Tenants, Workspace};
use pintle_tool::{Boxed, Caller};

use crate::{error::StartError, notices, settings::RootTemplate};

/// How many workspaces are loaded; for the next one, the one that was idle longest is unloaded.
const MOST: usize = 64;
/// How long a workspace stays loaded without a call.
const IDLE: Duration = Duration::from_secs(10 * 60);

type Compose = dyn Fn(&Path) -> Result<Workspace, StartError> + Send + Sync;

/// The workspaces of tenants.
pub struct TenantWorkspaces(Arc<Shared>);

struct Shared {
    template: RootTemplate,
    compose: Box<Compose>,
    loaded: Mutex<HashMap<String, Loaded>>,
}

struct Loaded {
    workspace: Arc<Workspace>,
    last_used: Instant,
}

impl TenantWorkspaces {
    pub fn new(
        template: RootTemplate,
        compose: impl Fn(&Path) -> Result<Workspace, StartError> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(Shared { template, compose: Box::new(compose), loaded: Mutex::default() }))
    }
}

impl Tenants for TenantWorkspaces {
    fn workspace<'a>(&'a self, caller: &'a Caller) -> Boxed<'a, Result<Arc<Workspace>, Fault>> {
        Box::pin(async move {
            let subject = caller.subject().ok_or_else(no_workspace)?;
            if let Some(workspace) = self.0.loaded(subject) {
                return Ok(workspace);
            }
            let (shared, subject) = (Arc::clone(&self.0), subject.to_owned());
            let load = tokio::task::spawn_blocking(move || shared.load(&subject));
            load.await.map_err(|_| Fault::internal("the workspace could not be loaded"))?
        })
    }
}

impl Shared {
    /// The workspace of a subject, if it is loaded.
    fn loaded(&self, subject: &str) -> Option<Arc<Workspace>> {
        let mut all = self.loaded.lock();
        let now = Instant::now();
        let unloaded = take_idle(&mut all, now);
        let found = all.get_mut(subject).map(|loaded| {
            loaded.last_used = now;
            Arc::clone(&loaded.workspace)
        });
        drop(all);
        // Whatever of them is in use is dropped by who uses it.
        drop(unloaded);
        found
    }

    fn load(&self, subject: &str) -> Result<Arc<Workspace>, Fault> {
        let root = self.template.root_of(subject).ok_or_else(no_workspace)?;
        // A root is never created: who has none is no tenant.
        if !root.is_dir() {
            return Err(no_workspace());
        }
        let workspace = (self.compose)(&root).map_err(|error| {
            notices::warning(&format!("the workspace of a tenant cannot be loaded: {error}"));
            Fault::new(
                ErrorCode::Internal,
                "the workspace cannot be loaded; the server's error output says why",
            )
        })?;
        let mut all = self.loaded.lock();
        // Another call may have loaded it meanwhile: both must work on the same.
        let workspace = match all.get(subject) {
            Some(loaded) => Arc::clone(&loaded.workspace),
            None => Arc::new(workspace),
        };
        let last_used = Instant::now();
        all.insert(subject.to_owned(), Loaded { workspace: Arc::clone(&workspace), last_used });
        let mut unloaded = Vec::new();
        while all.len() > MOST {
            let longest = all.iter().min_by_key(|(_, loaded)| loaded.last_used).map(|(name, _)| name.clone());
            unloaded.extend(longest.and_then(|name| all.remove(&name)));
        }
        drop(all);
        drop(unloaded);
        Ok(workspace)
    }
}

/// Takes out the workspaces that nobody has called for a while.
fn take_idle(all: &mut HashMap<String, Loaded>, now: Instant) -> Vec<Loaded> {
    let is_idle = |loaded: &Loaded| now.duration_since(loaded.last_used) > IDLE;
    if !all.values().any(is_idle) {
        return Vec::new();
    }
    all.extract_if(|_, loaded| is_idle(loaded)).map(|(_, loaded)| loaded).collect()
}

/// Says the same whatever the reason, so that nobody learns which tenants there are.
fn no_workspace() -> Fault {
    Fault::new(ErrorCode::Forbidden, "this server has no workspace for the subject of the token")
        .at(Stage::Authorize)
        .hint("ask whoever runs the server to create it")
}
