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
    #[error("{name}: {error}")]
    Meaningless { name: String, error: Meaningless },
    #[error("{error}")]
    MeaninglessElement { error: Meaningless },
    #[error("{name} is {found}; it must be {bounds}")]
    OutOfBounds { name: String, found: String, bounds: String },
    #[error("{name} of {tool}: {error}")]
    Timeout { name: String, tool: String, error: NotADuration },
    #[error("the root {} cannot be opened: {error}", root.display())]
    RootNotOpened { root: PathBuf, error: io::Error },
    #[error("the root {} is not a folder; the root must be one", .0.display())]
    RootNotAFolder(PathBuf),
    #[error(
        "over HTTP every program on this machine could call the tools; allow that with --auth none (`auth`)"
    )]
    NoAuth,
    #[error("`{address}` is not an address to serve on ({error}); write it as {DEFAULT_HTTP}")]
    NotAnAddress { address: String, error: io::Error },
    #[error(
        "{0} is not an address of this machine alone; --auth none needs a loopback address, such as {DEFAULT_HTTP}"
    )]
    NotLoopback(String),
    /// An origin or a host that no request could have.
    #[error("{0}")]
    NoOrigin(String),
}
