//! `check_status`: reports the health of the server.

use std::sync::Arc;

use pintle_contract::{Annotations, Fault, Permission};
use pintle_git::Problem;
use pintle_tool::{CallContext, NoArguments, Tool, ToolOutput};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    config::WorkspaceConfig,
    health::{Capability, CapabilityState, Health, Warning},
    search_reporter::SearchReporter,
};

pub(crate) struct CheckStatus<S> {
    pub(crate) config: Arc<WorkspaceConfig>,
    pub(crate) search: Arc<S>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Output {
    /// Whether nothing is broken.
    ok: bool,
    /// Each capability of the server, and whether it works now.
    capabilities: Vec<Capability>,
    /// Problems that an operator should fix.
    warnings: Vec<Warning>,
}

impl ToolOutput for Output {}

impl<S: SearchReporter> Tool for CheckStatus<S> {
    type Input = NoArguments;
    type Output = Output;

    const NAME: &'static str = "check_status";
    const TITLE: &'static str = "Check health";
    const DESCRIPTION: &'static str =
        "Reports whether each capability of the server works, and each warning with its remedy.";
    const ANNOTATIONS: Annotations = Annotations::READ_ONLY;
    const PERMISSIONS: &'static [Permission] = &[Permission::AnyCaller];

    async fn run(&self, _: NoArguments, call: CallContext) -> Result<Output, Fault> {
        let (config, search) = (Arc::clone(&self.config), Arc::clone(&self.search));
        let health = call.compute(move |call| check(&config, search.as_ref(), call)).await??;
        Ok(Output { ok: health.is_good(), capabilities: health.capabilities, warnings: health.warnings })
    }
}

fn check(
    config: &WorkspaceConfig,
    search: &impl SearchReporter,
    call: &CallContext,
) -> Result<Health, Fault> {
    let mut health = Health::default();
    check_root(config, &mut health);
    health.append(search.health(call)?);
    check_git(config, call, &mut health);
    health.add("schemas", works_if(!config.schemas.is_empty()));
    health.add("backend", works_if(config.has_backend));
    for warning in &config.warnings {
        health.warn(warning, "fix it and restart the server");
    }
    Ok(health)
}

fn check_root(config: &WorkspaceConfig, health: &mut Health) {
    match std::fs::read_dir(&config.root) {
        Ok(_) => health.add("files", CapabilityState::Works),
        Err(error) => {
            health.add("files", CapabilityState::Broken);
            health.warn(format!("the root cannot be read: {error}"), "check that it exists and is readable");
        }
    }
}

fn check_git(config: &WorkspaceConfig, call: &CallContext, health: &mut Health) {
    let state = match pintle_git::status(&config.root, &|| call.has_ended()) {
        Ok(Some(_)) => CapabilityState::Works,
        Ok(None) => CapabilityState::Off,
        Err(problem) => {
            // The message may name files out of the caller's scope; workspace_status checks that.
            health.warn(
                "the state of the git repository is not available",
                "see `gitProblem` in the result of workspace_status",
            );
            match problem {
                Problem::NotUsed(_) => CapabilityState::Off,
                _ => CapabilityState::Broken,
            }
        }
    };
    health.add("git", state);
}

/// The state of a capability that has to be configured and cannot break.
fn works_if(is_set_up: bool) -> CapabilityState {
    match is_set_up {
        true => CapabilityState::Works,
        false => CapabilityState::Off,
    }
}
