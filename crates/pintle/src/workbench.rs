//! The parts of a server, put together: what every command that calls tools stands on.

use std::sync::Arc;

use pintle_assets::{Assets, AssetsConfig, BackendConfig};
use pintle_contract::nearest;
use pintle_engine::{CallLog, Engine, Options};

use crate::{notices, settings::Workspace};

/// Loads the assets and tells what had to be passed over.
pub fn load_assets(workspace: &Workspace) -> Result<Arc<Assets>, String> {
    let backend = workspace
        .backend_url
        .clone()
        .map(|url| BackendConfig { url, assets_path: workspace.backend_assets_path.clone() });
    if let Some(problem) = backend.as_ref().and_then(BackendConfig::problem) {
        return Err(format!("the backend cannot be used: {problem}; mend --backend-url (SYN_BACKEND_URL)"));
    }
    let assets = Assets::load(AssetsConfig {
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

/// The engine with all tools of the workspace.
pub fn build_engine(workspace: &Workspace, options: Options, log: CallLog) -> Result<Engine, String> {
    let assets = load_assets(workspace)?;
    let mut tools = assets.tools();
    if workspace.fixtures {
        tools.extend(pintle_fixtures::tools());
    }
    let named = options.timeouts.by_tool.keys().cloned().collect::<Vec<_>>();
    let engine = Engine::new(tools, assets.resources(), options, log).map_err(|error| error.to_string())?;
    for name in named {
        if !engine.catalogue().names().any(|tool| tool == name) {
            let near = nearest(&name, engine.catalogue().names()).unwrap_or("default");
            return Err(format!(
                "a timeout is set for `{name}`, but there is no such tool; the nearest is `{near}`"
            ));
        }
    }
    Ok(engine)
}
