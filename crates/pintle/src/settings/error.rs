//! What can be wrong with settings.

use std::{io, path::PathBuf};

use pintle_commands::NotADuration;
use thiserror::Error;

use super::{
    table::DEFAULT_HTTP,
    value::{Meaningless, WrongValue},
};

/// Why a setting cannot be used.
#[derive(Debug, Error)]
pub enum SettingError {
    #[error("{key} {wrong}")]
    WrongValue { key: &'static str, wrong: WrongValue },
    #[error("{}{error}", prefix(key, error))]
    Meaningless { key: &'static str, error: Meaningless },
    #[error("{key} is {found}; it must be {bounds}")]
    OutOfBounds { key: &'static str, found: String, bounds: String },
    #[error("timeout of {tool}: {error}")]
    Timeout { tool: String, error: NotADuration },
    #[error("the root {} cannot be opened: {error}", root.display())]
    RootNotOpened { root: PathBuf, error: io::Error },
    #[error("the root {} is not a folder; --root takes a folder", .0.display())]
    RootNotAFolder(PathBuf),
    #[error("over HTTP every program on this machine could call the tools; allow that with --auth none")]
    NoAuth,
    #[error("`{address}` is not an address to serve on ({error}); write it as {DEFAULT_HTTP}")]
    NotAnAddress { address: String, error: io::Error },
    #[error(
        "{0} is not an address of this machine alone; with --auth none only such as {DEFAULT_HTTP} can be served"
    )]
    NotLoopback(String),
    /// An origin or a host that no request could have.
    #[error("{0}")]
    NoOrigin(String),
}

/// A duration does not say which setting it is about; an element of a list is quoted.
fn prefix(key: &str, error: &Meaningless) -> String {
    match error {
        Meaningless::Duration(_) => format!("{key}: "),
        Meaningless::Scope { .. } | Meaningless::Toolsets { .. } => String::new(),
    }
}
