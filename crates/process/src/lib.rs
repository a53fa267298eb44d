//! Running commands: the only place of the project that starts processes and kills them.
//!
//! A **command** is a program with its arguments, environment, working folder and input. Each one runs below a
//! **supervisor**: a process of this same program, started for this one command, that outlives nothing and lets nothing
//! outlive it. A [`Spawner`] starts supervisors and talks to them; [`supervise`] is what a supervisor does.
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
mod spawner;
#[cfg(unix)]
mod supervisor;
#[cfg(unix)]
mod tree;
#[cfg(windows)]
mod windows;

pub use command::{CommandSpec, DEFAULT_GRACE, Exit, Finished, RunError, StartFailure};
pub use kept::{Keep, Kept};
#[cfg(unix)]
pub use spawner::{SUPERVISOR_ARGUMENT, Spawner};
#[cfg(unix)]
pub use supervisor::supervise;
#[cfg(windows)]
pub use windows::Spawner;
