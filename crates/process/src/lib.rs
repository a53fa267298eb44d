//! Runs commands and kills their process trees. No other crate of the project starts or kills processes.
//!
//! A **command** is a program with its arguments, environment, working folder and input. Each one runs below a
//! **supervisor**: a process of this same program, started for this one command, which is a *subreaper* and ends when
//! nothing is left of the command. All supervisors of a server are below its **watcher**, one more process of this
//! program, which takes over when a supervisor or the server is killed or stopped. A [`Spawner`] talks to them;
//! [`act_as`] is what they run.
//!
//! `docs/design/process.md` says what is guaranteed and what is not.

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
mod watcher;
#[cfg(unix)]
mod watcher_handle;
#[cfg(windows)]
mod windows;

pub use command::{CommandSpec, DEFAULT_GRACE, Exit, Finished, RunError, StartFailure};
pub use kept::{Keep, Kept};
#[cfg(unix)]
pub use roles::act_as;
#[cfg(unix)]
pub use spawner::{Conversation, Ended, Spawner};
#[cfg(windows)]
pub use windows::{Spawner, act_as};
