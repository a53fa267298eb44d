//! Running commands: the only place of the project that starts processes and kills them.
//!
//! A **command** is a program with its arguments, environment, working folder and input. Each one runs below a
//! **supervisor**: a process of this same program, started for this one command, that outlives nothing and lets nothing
//! outlive it. All supervisors of a server are below its **watcher**, one more process of this program, that does the
//! work of a supervisor or a server that is put out of action. A [`Spawner`] talks to them; [`act_as`] is what they do.
//!
//! What is promised, and what is not, is in `docs/design/process.md`.

mod command;
mod kept;
mod lines;
#[cfg(unix)]
mod message;
#[cfg(unix)]
mod reaper;
#[cfg(unix)]
mod roles;
#[cfg(unix)]
mod spawner;
#[cfg(unix)]
mod supervisor;
#[cfg(unix)]
mod tree;
#[cfg(unix)]
mod watched;
#[cfg(unix)]
mod watcher;
#[cfg(windows)]
mod windows;

pub use command::{CommandSpec, DEFAULT_GRACE, Exit, Finished, RunError, StartFailure};
pub use kept::{Keep, Kept};
#[cfg(unix)]
pub use roles::act_as;
#[cfg(unix)]
pub use spawner::Spawner;
#[cfg(windows)]
pub use windows::{Spawner, act_as};
