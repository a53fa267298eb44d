//! `pintle serve`: from ready to the last reply.

mod auth;
pub(super) mod drain;
mod http;
mod log;
mod panel;
mod parent;
pub(super) mod signals;
mod stdio;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use pintle_contract::nearest;
use pintle_engine::{Engine, Level};
use pintle_wire::{McpHandler, McpService, Outlet};

use crate::{
    audit::{self, AuditLog},
    cli::ServeArguments,
    command_tools::CommandTools,
    compose::{self, Composition},
    environment,
    error::StartError,
    notices,
    secret::SecretFolder,
    settings::{Given, Listen, Serve, Workspace},
};

/// Serves until the client leaves or a signal comes.
pub fn run(arguments: ServeArguments) -> Result<ExitCode, StartError> {
    let given = Given::read(arguments.flags)?;
    let mut workspace = Workspace::decide(&given)?;
    workspace.refuse_state_inside_root()?;
    let serve = Serve::decide(&given, arguments.stdio, &workspace)?;
    let audit_head = serve.audit_log.as_deref().map(audit::head_path);
    let own_files =
        serve.log_file.iter().chain(&serve.audit_log).chain(&audit_head).chain([&serve.ready_file]);
    workspace.own_files = own_files.cloned().collect();
    let stderr = notices::through_outlet().map_err(StartError::System)?;
    environment::warn_of_unknown();
    let log = log::Log::open(&serve, stderr)?;
    let Composition { engine, commands } =
        compose::build_engine(&workspace, &serve.toolsets, serve.engine.clone(), log.calls)?;
    let engine = Arc::new(match &serve.audit_log {
        Some(path) => engine.with_audit(Arc::new(open_audit_log(path, &workspace)?)),
        None => engine,
    });
    let running = commands.as_ref().map(CommandTools::spawner);
    if let Some(commands) = commands {
        commands.watch(&engine);
    }
    warn_of_scopes_without_tool(&serve, &engine);
    if serve.log_level >= Level::Debug {
        report_what_is_served(&workspace, &serve);
    }
    let panel =
        panel::is_watched(&serve.listen).then(|| panel::Panel::new(&given, &workspace, &serve, &engine));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        // One thread may compute while another takes cancels and signals.
        .worker_threads(std::thread::available_parallelism().map_or(2, usize::from).max(2))
        .thread_name("pintle-worker")
        .enable_all()
        .build()
        .map_err(StartError::System)?;
    let ended = runtime.block_on(async {
        let ended = serve_all(engine, serve, log.file, panel, &workspace).await;
        if let Some(running) = running {
            drain::end_commands(running).await;
        }
        ended
    });
    // Work that was given up may still compute in threads that nobody waits for.
    runtime.shutdown_background();
    ended
}

fn open_audit_log(path: &Path, workspace: &Workspace) -> Result<AuditLog, StartError> {
    let key = SecretFolder::new(workspace.state_dir.as_deref())?.audit_key_or_create()?;
    Ok(AuditLog::open(path, &key)?)
}

async fn serve_all(
    engine: Arc<Engine>,
    serve: Serve,
    log: Option<Outlet>,
    panel: Option<panel::Panel>,
    workspace: &Workspace,
) -> Result<ExitCode, StartError> {
    let handler = McpHandler::new(Arc::clone(&engine), serve.mcp.clone());
    let service: Arc<dyn McpService> = match workspace.rig {
        Some(rig) => (rig.service)(handler),
        None => Arc::new(handler),
    };
    match serve.listen.clone() {
        Listen::Stdio => stdio::serve(engine, service, serve, log, panel).await,
        Listen::Http(listen) => {
            let secret = SecretFolder::new(workspace.state_dir.as_deref()).ok();
            let authentication = auth::authentication(&serve, &listen, secret, &workspace.denied)?;
            http::serve(engine, service, serve, (listen, authentication), log, panel).await
        }
    }
}

/// A scope that names a command which is not there is most often misspelt; but its manifest may be written later.
fn warn_of_scopes_without_tool(serve: &Serve, engine: &Engine) {
    let catalogue = engine.catalogue();
    let commands = serve.permissions.scopes().named().filter_map(|scope| scope.strip_prefix("run:"));
    for name in commands.filter(|name| !catalogue.names().any(|known| known == *name)) {
        let near = nearest(name, catalogue.names()).map(|near| format!("; the nearest is `{near}`"));
        let near = near.unwrap_or_default();
        notices::warning(&format!("the scope `run:{name}` names no tool that there is{near}"));
    }
}

/// Nothing secret: a backend's address may hold a password.
fn report_what_is_served(workspace: &Workspace, serve: &Serve) {
    let folder =
        |path: &Option<PathBuf>| path.as_ref().map_or("none".into(), |path| path.display().to_string());
    notices::plain(&format!("debug: root {}", workspace.root.display()));
    notices::plain(&format!("debug: state {}", folder(&workspace.state_dir)));
    notices::plain(&format!("debug: schemas {}", folder(&workspace.schemas_dir)));
    notices::plain(&format!("debug: examples {}", folder(&workspace.examples_dir)));
    let backend = if workspace.backend_url.is_some() { "configured" } else { "none" };
    notices::plain(&format!("debug: backend {backend}"));
    notices::plain(&format!("debug: {:?}", serve.engine));
}
