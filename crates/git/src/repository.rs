//! A repository, opened: where its parts are, and what its configuration says.

use std::path::Path;

use crate::{
    config::Config,
    directory::GitDirectory,
    discovery::discover,
    gitfile,
    layout::{Layout, WorkTree},
    problem::Problem,
};

/// The largest configuration file that is read.
const CONFIG_LIMIT: u64 = 4 << 20;

/// A repository whose work tree is the root, or has the root in it.
pub(crate) struct Repository {
    pub(crate) config: Config,
    layout: Layout,
}

impl Repository {
    /// The repository that the root belongs to; `None` if there is none.
    pub(crate) fn open(path: &Path) -> Result<Option<Self>, Problem> {
        let Some(layout) = discover(path)? else { return Ok(None) };
        let mut repository = Self { config: Config::default(), layout };
        let text = repository.common_dir().read(b"config", CONFIG_LIMIT)?.unwrap_or_default();
        repository.config.read(&text)?;
        if repository.config.has_worktree_file() {
            let text = repository.git_dir().read(b"config.worktree", CONFIG_LIMIT)?.unwrap_or_default();
            repository.config.read(&text)?;
        }
        repository.config.check()?;
        repository.check_work_tree()?;
        Ok(Some(repository))
    }

    pub(crate) fn work_tree(&self) -> &WorkTree {
        &self.layout.work_tree
    }

    /// Where HEAD and the index of this work tree are.
    pub(crate) fn git_dir(&self) -> &GitDirectory {
        &self.layout.git_dir
    }

    /// Where refs, objects and the configuration are. Linked worktrees share it.
    pub(crate) fn common_dir(&self) -> &GitDirectory {
        self.layout.common_dir.as_ref().unwrap_or(&self.layout.git_dir)
    }

    /// Refuses a configuration that says that the work tree is elsewhere, or that there is none.
    fn check_work_tree(&self) -> Result<(), Problem> {
        let is_linked = self.layout.common_dir.is_some();
        if is_linked && !self.config.has_worktree_file() {
            // As in git, what linked worktrees share says nothing of the work tree of any of them.
            return Ok(());
        }
        let not_used = |reason: &str| Err(Problem::NotUsed(reason.into()));
        if self.config.is_bare {
            return not_used("the repository is bare (core.bare): it has no work tree");
        }
        match &self.config.work_tree {
            Some(path) if !gitfile::is_folder(self.git_dir(), path.as_bytes(), self.work_tree().top()) => {
                not_used(
                    "the repository's configuration names another folder as its work tree (core.worktree)",
                )
            }
            None if self.layout.needs_back_pointer => not_used(
                "`.git` names a git directory outside of this folder, whose configuration does not name this folder in \
                 turn; `git config core.worktree PATH`, with the absolute path of this folder, sets it",
            ),
            _ => Ok(()),
        }
    }
}
