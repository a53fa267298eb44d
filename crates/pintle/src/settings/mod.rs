//! Settings, in two steps.
//!
//! Each setting is defined once, in `table`. [`Given`] is what somebody set: on the command line, in the environment, in
//! the file. [`Workspace`] and [`Serve`] are what is meant: typed, complete, checked.

mod asset_folders;
mod definition;
mod error;
mod given;
mod serve;
mod table;
#[cfg(test)]
mod tests;
mod value;
mod words;
mod workspace;

pub use asset_folders::PackInUse;
pub use definition::AnySetting;
pub use error::SettingError;
pub use given::{Flags, Given, ServeFlags, problem_of_empty};
pub use serve::{HttpAuth, Listen, ListenHttp, Serve};
pub use table::{
    ARGUMENTS, HTTP, INDEX, MAX_REQUEST_BYTES, MAX_RESULT_BYTES, RESULTS, SCOPE, STATE_DIR, TIMEOUT,
    TOOL_NAMES, TOOLSETS, all as all_settings,
};
pub use value::{Raw, WrongValue, word};
pub use workspace::{RootTemplate, ToolsFolderError, Workspace, state_dir};

/// SemVer and commit: which build this is.
pub const PROGRAM_VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "+", env!("PINTLE_COMMIT"));
