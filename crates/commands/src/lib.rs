//! Commands: each **manifest** (`NAME.tool.toml`) turns a program into a tool with a schema, a deadline, progress and a
//! clean end.
//!
//! A manifest has a **template**: the arguments of the program, in which `{field}` stands for a field of the tool's
//! arguments. There is no shell, so what a caller sends is one argument of the program, whatever it holds. How programs
//! are run and ended is `pintle-process`'s.

mod environment;
mod error;
mod folder;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod inside;
mod manifest;
mod outcome;
mod parallel;
mod schemas;
mod starter;
mod template;
mod tool;
mod watch;
mod written;

pub use error::{FolderError, Here, ManifestError, NotADuration};
pub use folder::{Loaded, MANIFEST_SUFFIX, Problem, check_name, load, refuse_folder, reload};
pub use inside::is_within;
pub use manifest::{Manifest, duration};
pub use parallel::ParallelLimits;
pub use starter::starter;
pub use tool::{CommandTool, Workplace};
pub use watch::{Settled, watch};
