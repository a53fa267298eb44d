//! The tools that are programs: loaded from their manifests, and loaded again when those change.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use pintle_commands::{CommandTool, Manifest, ParallelLimits, Settled, Workplace};
use pintle_contract::Fault;
use pintle_engine::Engine;
use pintle_process::Spawner;
use pintle_search::Search;
use pintle_tool::{DynTool, Toolset};

use crate::{error::StartError, notices, settings::Workspace};

/// The tools of the manifests, and where their programs run.
pub struct CommandTools {
    folder: PathBuf,
    workplace: Arc<Workplace>,
    manifests: Vec<Manifest>,
    /// The names of all other tools.
    taken: Vec<String>,
    /// What is wrong with manifests, and was said already.
    warned: HashSet<String>,
}

impl CommandTools {
    /// Reads the manifests, if there is a folder for them. `taken` are the names of all other tools.
    pub fn load(
        workspace: &Workspace,
        search: &Arc<Search>,
        taken: Vec<String>,
    ) -> Result<Option<Self>, StartError> {
        let Some(folder) = workspace.tools_dir.clone() else { return Ok(None) };
        workspace.refuse_tools_inside_root()?;
        let manifests = pintle_commands::load(&folder, &workspace.root, &taken)?;
        let search = Arc::clone(search);
        let workplace = Arc::new(Workplace {
            root: workspace.root.clone(),
            spawner: Spawner::new(notices::error),
            limits: ParallelLimits::default(),
            ended: Box::new(move || search.note_all()),
        });
        Ok(Some(Self { folder, workplace, manifests, taken, warned: HashSet::new() }))
    }

    /// One tool for each manifest.
    pub fn tools(&self) -> Result<Vec<Arc<dyn DynTool>>, Fault> {
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
        let reload = move || match engine.upgrade() {
            Some(engine) => self.reload(&engine),
            None => Settled::Yes,
        };
        if let Err(error) = pintle_commands::watch(&folder, reload) {
            notices::warning(&format!(
                "the tools folder {} cannot be watched ({error}); restart the server after a change",
                folder.display()
            ));
        }
    }

    fn reload(&mut self, engine: &Engine) -> Settled {
        let loaded =
            pintle_commands::reload(&self.folder, &self.workplace.root, &self.taken, &self.manifests);
        let loaded = match loaded {
            Ok(loaded) => loaded,
            Err(problem) => {
                self.warn([format!("{problem}; its tools stay as they were")]);
                return Settled::Yes;
            }
        };
        // What is only half written is no error yet; what else has changed does not wait for it.
        let (unfinished, wrong): (Vec<_>, Vec<_>) =
            loaded.problems.into_iter().partition(|problem| is_just_written(&problem.file));
        let mut problems: Vec<String> = wrong.into_iter().map(|problem| problem.error.to_string()).collect();
        problems.extend(self.replace(engine, loaded.manifests).err().map(|error| error.to_string()));
        self.warn(problems.into_iter().map(|problem| format!("a tool stays as it was: {problem}")));
        if unfinished.is_empty() { Settled::Yes } else { Settled::No }
    }

    /// Puts other tools in the place of those that there are.
    fn replace(&mut self, engine: &Engine, manifests: Vec<Manifest>) -> Result<(), StartError> {
        let are_same = manifests.len() == self.manifests.len()
            && manifests.iter().zip(&self.manifests).all(|(new, old)| new.is_same(old));
        if are_same {
            return Ok(());
        }
        let added = Toolset { tools: tools_of(&manifests, &self.workplace)?, is_listed: true };
        let removed: Vec<String> = self.manifests.iter().map(|old| old.name().to_owned()).collect();
        engine.replace_tools(&removed, added)?;
        self.manifests = manifests;
        Ok(())
    }

    /// Says what is wrong, once for as long as it is.
    fn warn(&mut self, problems: impl IntoIterator<Item = String>) {
        let problems: HashSet<String> = problems.into_iter().collect();
        problems.difference(&self.warned).for_each(|problem| notices::warning(problem));
        self.warned = problems;
    }
}

/// Whether a file was written a moment ago, so that whoever writes it may not have finished.
fn is_just_written(file: &Path) -> bool {
    const MOMENT: Duration = Duration::from_millis(200);
    let written = file.metadata().and_then(|there| there.modified());
    written.is_ok_and(|written| written.elapsed().is_ok_and(|age| age < MOMENT))
}

fn tools_of(manifests: &[Manifest], workplace: &Arc<Workplace>) -> Result<Vec<Arc<dyn DynTool>>, Fault> {
    let tools = manifests.iter().map(|manifest| CommandTool::erased(manifest.clone(), Arc::clone(workplace)));
    tools.collect()
}
