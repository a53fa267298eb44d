//! The state of a git work tree, read without running git.
//!
//! Whoever may write files in a work tree may write `.git/config` as well, and git runs the commands that are named
//! there: monitors, filters, hooks. To run git would be to hand out a shell. So everything is read here: the head, the
//! index, the objects of the head's tree, and the files. No process is started, nothing is written or locked, and no
//! link is followed.
//!
//! The root may be a whole work tree or a folder of one, the main work tree, a linked worktree or a submodule. What may
//! be read outside of it, and on which conditions, is in `docs/design/git.md`.
//!
//! What differs from `git status`:
//!
//! - Only the repository's own configuration counts, without what it includes: not the user's, not the system's.
//! - No filter runs: a file with a `filter`, `ident` or `working-tree-encoding` is compared as it is.
//! - A file whose line endings alone differ, where git would convert them, is unchanged. Git may call it modified until
//!   the index is refreshed.
//! - `.gitignore` and `.gitattributes` are read from the work tree only, with the folders above the root, and no other
//!   file of either kind that the configuration may name.
//! - Submodules are left alone; only what is staged of them is reported. A root within a submodule has its state.

mod attributes;
mod cached_trees;
mod config;
mod content;
mod delta;
mod directory;
mod discovery;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod gitfile;
mod hash;
mod ignored;
mod index;
mod layout;
mod objects;
mod pack;
mod pattern;
mod problem;
mod refs;
mod repository;
mod staged;
mod status;
mod untracked;
mod work_tree;

pub use problem::Problem;
pub use status::{Change, Dirty, GitStatus, LIMIT, status, status_of};
