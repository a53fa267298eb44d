//! The tools that are programs: loaded from their manifests, and loaded again when those change.

use std::{path::PathBuf, sync::Arc};

use pintle_commands::{CommandTool, Manifest, ParallelLimits, Workplace};
use pintle_contract::underscore_name;
use pintle_engine::Engine;
use pintle_process::Spawner;
use pintle_search::Search;
use pintle_tool::{DynTool, Toolset};

use crate::{notices, settings::Workspace};

/// The tools of the manifests, and where their programs run.
pub struct CommandTools {
    folder: PathBuf,
    workplace: Arc<Workplace>,
    manifests: Vec<Manifest>,
    /// The names of all other tools.
    taken: Vec<String>,
}

impl CommandTools {
    /// Reads the manifests, if there is a folder for them. `taken` are the names of all other tools.
    pub fn load(
        workspace: &Workspace,
        search: &Arc<Search>,
        taken: Vec<String>,
    ) -> Result<Option<Self>, String> {
        let Some(folder) = workspace.tools_dir.clone() else { return Ok(None) };
        workspace.refuse_tools_inside_root()?;
        let manifests = pintle_commands::load(&folder, &workspace.root)?;
        refuse_taken_names(&manifests, &taken)?;
        let search = Arc::clone(search);
        let workplace = Arc::new(Workplace {
            root: workspace.root.clone(),
            spawner: Spawner::new(notices::error),
            timeout: workspace.command_timeout,
            limits: ParallelLimits::default(),
            ended: Box::new(move || search.note_all()),
        });
        Ok(Some(Self { folder, workplace, manifests, taken }))
    }

    /// One tool for each manifest.
    pub fn tools(&self) -> Result<Vec<Arc<dyn DynTool>>, String> {
        tools_of(&self.manifests, &self.workplace)
    }

    /// What starts the programs.
    pub fn spawner(&self) -> Spawner {
        self.workplace.spawner.clone()
    }

    /// Follows the changes of the folder for as long as the engine is there.
    pub fn watch(mut self, engine: &Arc<Engine>) {
        engine.let_tools_change();
        let (folder, engine) = (self.folder.clone(), Arc::downgrade(engine));
        let reload = move || {
            let Some(engine) = engine.upgrade() else { return };
            if let Err(problem) = self.reload(&engine) {
                notices::warning(&format!("the tools stay as they were: {problem}"));
            }
        };
        if let Err(error) = pintle_commands::watch(&folder, reload) {
            notices::warning(&format!(
                "the tools folder {} cannot be watched ({error}); restart the server after a change",
                folder.display()
            ));
        }
    }

    fn reload(&mut self, engine: &Engine) -> Result<(), String> {
        let manifests = pintle_commands::load(&self.folder, &self.workplace.root)?;
        let are_same = manifests.len() == self.manifests.len()
            && manifests.iter().zip(&self.manifests).all(|(new, old)| new.is_same(old));
        if are_same {
            return Ok(());
        }
        refuse_taken_names(&manifests, &self.taken)?;
        let added = Toolset { tools: tools_of(&manifests, &self.workplace)?, is_listed: true };
        let removed: Vec<String> = self.manifests.iter().map(|old| old.name().to_owned()).collect();
        engine.replace_tools(&removed, added).map_err(|error| error.to_string())?;
        self.manifests = manifests;
        Ok(())
    }
}

fn tools_of(manifests: &[Manifest], workplace: &Arc<Workplace>) -> Result<Vec<Arc<dyn DynTool>>, String> {
    let tools = manifests.iter().map(|manifest| CommandTool::erased(manifest.clone(), Arc::clone(workplace)));
    tools.collect::<Result<_, _>>().map_err(|fault| fault.to_string())
}

/// Refuses a command whose name is that of another tool, in either spelling.
fn refuse_taken_names(manifests: &[Manifest], others: &[String]) -> Result<(), String> {
    let is_taken = |manifest: &&Manifest| {
        others.iter().any(|other| underscore_name(other) == underscore_name(manifest.name()))
    };
    match manifests.iter().find(is_taken) {
        Some(manifest) => {
            let problem =
                format!("`{}` is the name of a tool that Pintle has; choose another", manifest.name());
            Err(manifest.name_problem(problem))
        }
        None => Ok(()),
    }
}
