//! The workspaces of tenants: a root, an index and tools for each subject, loaded when it calls and unloaded when it does
//! not call for a while.

use std::{
    collections::HashMap,
    path::Path,
    sync::{Arc, Weak},
    time::Duration,
};

use parking_lot::Mutex;
use pintle_contract::{ErrorCode, Fault, Stage};
use pintle_engine::{Tenants, Workspace};
use pintle_tool::{Boxed, Caller};
use tokio::time::Instant;

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
    loaded: Mutex<LoadedWorkspaces>,
}

#[derive(Default)]
struct LoadedWorkspaces {
    by_subject: HashMap<String, Loaded>,
    /// Whether a task waits for one of them to be idle.
    is_watched: bool,
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
        let loaded = all.by_subject.get_mut(subject)?;
        loaded.last_used = Instant::now();
        Some(Arc::clone(&loaded.workspace))
    }

    fn load(self: &Arc<Self>, subject: &str) -> Result<Arc<Workspace>, Fault> {
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
        let (workspace, unloaded) = self.loaded.lock().insert(subject, workspace);
        // Whatever of them is in use is dropped by who uses it.
        drop(unloaded);
        self.watch();
        Ok(workspace)
    }

    /// Starts the task that unloads what is idle, unless it runs.
    fn watch(self: &Arc<Self>) {
        if !std::mem::replace(&mut self.loaded.lock().is_watched, true) {
            tokio::spawn(unload_idle(Arc::downgrade(self)));
        }
    }
}

/// Unloads workspaces when they have been idle for long, until none is loaded.
async fn unload_idle(shared: Weak<Shared>) {
    while let Some(shared) = shared.upgrade() {
        let (unloaded, next) = shared.loaded.lock().take_idle();
        // Closing an index may take a moment.
        let _ = tokio::task::spawn_blocking(move || drop((unloaded, shared))).await;
        match next {
            Some(next) => tokio::time::sleep_until(next).await,
            None => return,
        }
    }
}

impl LoadedWorkspaces {
    /// Adds a workspace, and takes out those that are then too many. Another call may have loaded the same meanwhile: both
    /// must work on one.
    fn insert(&mut self, subject: &str, workspace: Workspace) -> (Arc<Workspace>, Vec<Loaded>) {
        let new = || Loaded { workspace: Arc::new(workspace), last_used: Instant::now() };
        let loaded = self.by_subject.entry(subject.to_owned()).or_insert_with(new);
        loaded.last_used = Instant::now();
        let workspace = Arc::clone(&loaded.workspace);
        let mut unloaded = Vec::new();
        while self.by_subject.len() > MOST {
            let longest = self.by_subject.iter().min_by_key(|(_, loaded)| loaded.last_used);
            let longest = longest.map(|(name, _)| name.clone());
            unloaded.extend(longest.and_then(|name| self.by_subject.remove(&name)));
        }
        (workspace, unloaded)
    }

    /// Takes out the workspaces that nobody has called for a while, and says when the next one may be idle so long.
    /// If there is none, nobody watches any more.
    fn take_idle(&mut self) -> (Vec<Loaded>, Option<Instant>) {
        let now = Instant::now();
        let is_idle = |_: &String, loaded: &mut Loaded| now >= loaded.last_used + IDLE;
        let unloaded = self.by_subject.extract_if(is_idle).map(|(_, loaded)| loaded).collect();
        let next = self.by_subject.values().map(|loaded| loaded.last_used + IDLE).min();
        self.is_watched = next.is_some();
        (unloaded, next)
    }
}

/// Says the same whatever the reason, so that nobody learns which tenants there are.
fn no_workspace() -> Fault {
    Fault::new(ErrorCode::Forbidden, "this server has no workspace for the subject of the token")
        .at(Stage::Authorize)
        .hint("ask whoever runs the server to create it")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tenants `a` and `b`.
    fn tenants(folder: &Path) -> TenantWorkspaces {
        for name in ["a", "b"] {
            std::fs::create_dir(folder.join(name)).expect("a folder");
        }
        let template =
            RootTemplate::parse(&folder.join("{sub}")).expect("a template").expect("has a subject");
        TenantWorkspaces::new(template, |_| Ok(Workspace::new(Vec::new(), Vec::new(), "0")?))
    }

    async fn call(tenants: &TenantWorkspaces, subject: &str) -> Weak<Workspace> {
        let caller = Caller::known_as(subject).with_subject(subject);
        Arc::downgrade(&tenants.workspace(&caller).await.expect("a workspace"))
    }

    #[tokio::test(start_paused = true)]
    async fn a_workspace_is_unloaded_when_it_was_idle_for_long_although_nobody_calls() {
        let folder = tempfile::tempdir().expect("a folder");
        let tenants = tenants(folder.path());
        let moment = Duration::from_secs(1);
        let (idle, used) = (call(&tenants, "a").await, call(&tenants, "b").await);
        tokio::time::sleep(IDLE - moment).await;
        assert!(call(&tenants, "b").await.ptr_eq(&used) && idle.strong_count() == 1);
        tokio::time::sleep(2 * moment).await;
        assert_eq!((idle.strong_count(), used.strong_count()), (0, 1));
        tokio::time::sleep(IDLE).await;
        assert_eq!(used.strong_count(), 0);
        // What is loaded after all were unloaded is watched, too.
        let again = call(&tenants, "a").await;
        assert_eq!(again.strong_count(), 1);
        tokio::time::sleep(IDLE + moment).await;
        assert_eq!(again.strong_count(), 0);
    }
}
