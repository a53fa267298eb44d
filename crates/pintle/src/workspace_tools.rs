//! The tools of the workspace toolset, connected with the toolsets that they report on.

use std::sync::Arc;

use pintle_assets::Assets;
use pintle_contract::Fault;
use pintle_engine::Options;
use pintle_files::Files;
use pintle_search::{HealthWarning, IndexState, Search, SearchHealth, WorkState};
use pintle_tool::{CallContext, DynTool};
use pintle_workspace::{
    Binding, Capability, CapabilityState, Health, Limits, LineReader, Lines, SearchReporter, Warning,
    WorkspaceConfig,
};

use crate::settings::Workspace;

/// The tools that show the workspace and the health of the server.
pub fn workspace_tools(
    workspace: &Workspace,
    options: &Options,
    assets: &Assets,
    files: &Arc<Files>,
    search: &Arc<Search>,
) -> Vec<Arc<dyn DynTool>> {
    let bindings = workspace.bindings.iter();
    let bindings = bindings.map(|bind| Binding { path: bind.path.clone(), schema: bind.schema.clone() });
    let config = WorkspaceConfig {
        root: workspace.root.clone(),
        schemas: assets.schema_names(),
        bindings: bindings.collect(),
        limits: Limits {
            max_result_bytes: options.max_result_bytes as u64,
            max_file_bytes: workspace.max_file_bytes,
            running: options.running as u64,
            waiting: options.waiting as u64,
            timeout_ms: options.timeouts.general().as_millis() as u64,
        },
        has_backend: workspace.backend_url.is_some(),
        warnings: assets.warnings().to_vec(),
    };
    pintle_workspace::tools(
        config,
        FilesLines(Arc::clone(files)),
        Reports { files: Arc::clone(files), search: Arc::clone(search) },
    )
}

/// Lines as the files toolset reads them.
struct FilesLines(Arc<Files>);

impl LineReader for FilesLines {
    async fn read_lines(&self, call: &CallContext, path: &str, lines: [i64; 2]) -> Result<Lines, Fault> {
        let pintle_files::Lines { content, hash, total_lines, first_line } =
            self.0.read_lines(call, path, lines).await?;
        Ok(Lines { content, hash: hash.to_string(), total_lines, first_line })
    }
}

/// Reports of the files and search toolsets.
struct Reports {
    files: Arc<Files>,
    search: Arc<Search>,
}

impl SearchReporter for Reports {
    type IndexState = IndexState;

    fn index_state(&self, call: &CallContext) -> Result<IndexState, Fault> {
        self.search.index_state(call)
    }

    fn health(&self, call: &CallContext) -> Result<Health, Fault> {
        let SearchHealth { capabilities, warnings } = self.search.health(call)?;
        let capabilities = capabilities.into_iter().map(|(name, state)| {
            let state = match state {
                WorkState::Works => CapabilityState::Works,
                WorkState::Off => CapabilityState::Off,
                WorkState::Broken => CapabilityState::Broken,
            };
            Capability { name, state }
        });
        let warnings =
            warnings.into_iter().map(|HealthWarning { message, remedy }| Warning { message, remedy });
        let unfinished = self.files.unfinished_changes(call).into_iter().map(|change| {
            let files = change.files.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            let of = if files.is_empty() { String::new() } else { format!(" (it changed {files})") };
            Warning {
                message: format!(
                    "a change of several files was cut off, and something is left to do{of}: {}",
                    change.reason
                ),
                remedy: change.remedy,
            }
        });
        let one_at_a_time = (!self.files.can_change_several()).then(|| Warning {
            message:
                "several files cannot be changed in one call, because the state folder cannot be written to"
                    .into(),
            remedy: "make it writable, or restart the server with --state-dir (PINTLE_STATE_DIR)".into(),
        });
        let warnings = unfinished.chain(one_at_a_time).chain(warnings).collect();
        Ok(Health { capabilities: capabilities.collect(), warnings })
    }
}
