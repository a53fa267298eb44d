//! The composition root: puts the toolsets and the engine of a workspace together.

use std::{io, path::Path, sync::Arc};

use pintle_assets::{Assets, AssetsConfig, BackendConfig, Bindings};
use pintle_contract::{WorkspacePath, nearest};
use pintle_engine::{CallLog, Engine, Options, Recovery};
use pintle_files::{Files, LocalFolder, Store};
use pintle_positions::Located;
use pintle_search::{Search, SearchConfig};
use pintle_tool::{DynTool, Resources, Toolset};

use crate::{
    command_tools::CommandTools,
    config::Bind,
    error::{CompositionError, StartError},
    notices,
    rules::WorkspaceRules,
    settings::{PackInUse, Workspace},
    state,
    tenants::TenantWorkspaces,
    text_search::SearchText,
    toolsets::{Offer, Toolsets},
    workspace_tools::workspace_tools,
};

/// Loads the assets and warns of those that cannot be used.
pub fn load_assets(workspace: &Workspace) -> Result<Arc<Assets>, Located<CompositionError>> {
    for PackInUse { packs, name, set_at } in &workspace.packs {
        if !packs.has(name) {
            return Err(set_at.error(CompositionError::Pack(packs.unknown(name.as_str()))));
        }
    }
    let backend = workspace
        .backend_url
        .clone()
        .map(|url| BackendConfig { url, assets_path: workspace.backend_assets_path.clone() });
    if let Some(problem) = backend.as_ref().and_then(BackendConfig::problem) {
        let (problem, setting) = (problem.to_string(), workspace.backend_url_name.clone());
        return Err(workspace.backend_url_set_at.error(CompositionError::Backend { problem, setting }));
    }
    let assets = Assets::load(AssetsConfig {
        root: Some(workspace.root.clone()),
        schemas_dir: workspace.schemas_dir.clone(),
        examples_dir: workspace.examples_dir.clone(),
        backend,
        allow_unvalidated: workspace.allow_unvalidated,
    });
    for warning in assets.warnings() {
        notices::warning(warning);
    }
    Ok(Arc::new(assets))
}

/// The files that are bound to schemas.
pub fn bind(workspace: &Workspace, assets: &Arc<Assets>) -> Result<Bindings, Located<CompositionError>> {
    let is_folder = |bind: &&Bind| {
        let path = bind.path.trim_start_matches('/');
        !path.is_empty() && workspace.root.join(path).is_dir()
    };
    if let Some(bind) = workspace.bindings.iter().find(is_folder) {
        let path = bind.path.trim_end_matches('/').to_owned();
        return Err(bind.path_set_at.error(CompositionError::BoundFolder(path)));
    }
    let globs = workspace.bindings.iter().map(|bind| (bind.path.clone(), bind.schema.clone()));
    Bindings::new(Arc::clone(assets), globs).map_err(|error| {
        let location = workspace.bindings.get(error.index).map(|bind| match error.is_about_schema {
            true => bind.schema_set_at.clone(),
            false => bind.path_set_at.clone(),
        });
        location.unwrap_or_default().error(CompositionError::Binding(error.problem.to_string()))
    })
}

/// Search in the workspace. A state folder inside the root is not used.
pub fn open_search(workspace: &Workspace) -> Result<Arc<Search>, StartError> {
    let state_dir = workspace.state_dir.clone().filter(|_| workspace.refuse_state_inside_root().is_ok());
    if let Some(state_dir) = &state_dir {
        state::protect(state_dir).map_err(Located::nowhere)?;
    }
    let config = SearchConfig {
        root_name: workspace.root_name(),
        root: workspace.root.clone(),
        state_dir,
        max_file_bytes: workspace.max_file_bytes,
        indexing: workspace.indexing,
        home: std::env::home_dir(),
    };
    Search::open(config).map_err(|error| root_not_opened(workspace, error))
}

fn root_not_opened(workspace: &Workspace, error: io::Error) -> StartError {
    StartError::RootNotOpened { root: workspace.root.clone(), error }
}

/// The folder of the workspace, with what a server that died in the middle of a change has left undone.
pub fn open_folder(workspace: &Workspace) -> Result<LocalFolder, StartError> {
    let state_dir = workspace.state_dir.as_ref().filter(|_| workspace.refuse_state_inside_root().is_ok());
    let folder = LocalFolder::open(&workspace.root)
        .map_err(|error| root_not_opened(workspace, error))?
        .with_durability(workspace.durability)
        .with_warnings(notices::warning)
        .with_journals(state_dir.map(|state_dir| state_dir.join("changes")));
    folder.recover();
    Ok(folder)
}

/// Undoes changes of several files that were cut off, before any call.
struct FolderRecovery(Arc<LocalFolder>);

impl Recovery for FolderRecovery {
    fn is_needed(&self) -> bool {
        self.0.needs_recovery()
    }

    fn recover(&self) {
        self.0.recover();
    }
}

/// An engine, and its tools that are programs.
pub struct Composition {
    pub engine: Engine,
    pub commands: Option<CommandTools>,
}

/// The tools and resources of a workspace.
struct Parts {
    tools: Vec<Toolset>,
    resources: Vec<Arc<dyn Resources>>,
    commands: Option<CommandTools>,
    recovery: Arc<FolderRecovery>,
    /// The names of all tools, also of those that are not offered.
    all_names: Vec<String>,
}

fn compose(
    workspace: &Workspace,
    toolsets: &Toolsets,
    options: &Options,
    assets: &Arc<Assets>,
) -> Result<Parts, StartError> {
    let folder = open_folder(workspace)?;
    let search = open_search(workspace)?;
    let note = |search: &Arc<Search>| {
        let search = Arc::clone(search);
        move |path: &WorkspacePath| search.note(path)
    };
    let folder = Arc::new(folder.with_recovered(note(&search)));
    let files = Files::new(
        Arc::clone(&folder) as Arc<dyn Store>,
        Arc::new(WorkspaceRules::new(workspace, bind(workspace, assets)?)),
        SearchText(Arc::clone(&search)),
        workspace.root_name(),
        note(&search),
    );
    let has_assets = workspace.schemas_dir.is_some()
        || workspace.examples_dir.is_some()
        || workspace.backend_url.is_some()
        || !workspace.bindings.is_empty();
    let workspace_tools = workspace_tools(workspace, options, assets, &files, &search);
    let mut offered = vec![
        ("assets", has_assets, assets.tools()),
        ("files", true, files.tools()),
        ("search", true, search.tools()),
    ];
    let taken = offered.iter().flat_map(|(_, _, tools)| tools).chain(&workspace_tools).map(name_of).collect();
    let commands = CommandTools::load(workspace, &search, taken)?;
    if let Some(commands) = &commands {
        offered.push(("commands", true, commands.tools()?));
    }
    let all_names: Vec<String> = offered.iter().flat_map(|(_, _, tools)| tools).map(name_of).collect();
    let mut tools = Vec::new();
    for (name, has_work, own) in offered {
        match toolsets.offer(name, has_work) {
            Offer::Absent => {}
            offer => tools.push(Toolset { tools: own, is_listed: offer == Offer::Listed }),
        }
    }
    tools.push(Toolset { tools: workspace_tools, is_listed: true });
    if let Some(rig) = workspace.rig {
        tools.push(Toolset { tools: (rig.tools)(), is_listed: true });
    }
    let mut resources = Vec::new();
    if toolsets.offer("assets", has_assets) != Offer::Absent {
        resources.extend(assets.resources());
    }
    resources.extend(files.resources());
    let commands = commands.filter(|_| toolsets.offer("commands", true) != Offer::Absent);
    Ok(Parts { tools, resources, commands, recovery: Arc::new(FolderRecovery(folder)), all_names })
}

/// What this program has of its own.
pub struct BuiltIn {
    pub tools: Vec<Arc<dyn DynTool>>,
    pub resources: Vec<Arc<dyn Resources>>,
}

/// The tools and resources that this program has of its own.
pub fn built_in(workspace: &Workspace) -> Result<BuiltIn, StartError> {
    let assets = load_assets(workspace)?;
    let Parts { tools, resources, .. } = compose(workspace, &Toolsets::Auto, &Options::default(), &assets)?;
    Ok(BuiltIn { tools: tools.into_iter().flat_map(|toolset| toolset.tools).collect(), resources })
}

/// The engine with all tools of the workspace; with tenants, of each of theirs.
pub fn build_engine(
    workspace: &Workspace,
    toolsets: &Toolsets,
    options: Options,
    log: CallLog,
) -> Result<Composition, StartError> {
    let assets = load_assets(workspace)?;
    let Parts { tools, resources, commands, recovery, all_names } =
        compose(workspace, toolsets, &options, &assets)?;
    let named = options.timeouts.by_tool.keys().cloned().collect::<Vec<_>>();
    let mut engine = Engine::new(tools, resources, options.clone(), log)?.with_recovery(recovery);
    if let Some(template) = &workspace.tenants {
        let (workspace, toolsets) = (workspace.clone(), toolsets.clone());
        let compose = move |root: &Path| {
            let own = workspace.of_tenant(root)?;
            let Parts { tools, resources, recovery, .. } = compose(&own, &toolsets, &options, &assets)?;
            let workspace = pintle_engine::Workspace::new(tools, resources, &options.tooling_version)?;
            Ok(workspace.with_recovery(recovery))
        };
        engine = engine.with_tenants(Arc::new(TenantWorkspaces::new(template.clone(), compose)));
    }
    let catalogue = engine.catalogue();
    let known = || all_names.iter().map(String::as_str).chain(catalogue.names());
    for name in named {
        if !known().any(|tool| tool == name) {
            let near = nearest(&name, known()).map(str::to_owned);
            let location = workspace.timeouts_set_at.get(&name).cloned().unwrap_or_default();
            return Err(location.error(CompositionError::TimeoutWithoutTool { name, near }).into());
        }
    }
    Ok(Composition { engine, commands })
}

fn name_of(tool: &Arc<dyn DynTool>) -> String {
    tool.definition().name.clone()
}
