//! What stops a command before or while it does its work.

use std::{io, net::SocketAddr, path::PathBuf};

use pintle_commands::{FolderError, ManifestError};
use pintle_contract::{Fault, PathProblem, ScopeError};
use pintle_engine::CatalogueError;
use pintle_positions::Located;
use thiserror::Error;

use crate::{
    audit::AuditLogError,
    config::ConfigError,
    secret::SecretFileError,
    settings::{SettingError, ToolsFolderError},
    state::StateError,
};

/// Why a command could not do its work. Its text is what the user reads.
#[derive(Debug, Error)]
pub enum StartError {
    #[error(transparent)]
    Config(#[from] Located<ConfigError>),
    #[error(transparent)]
    Setting(#[from] Located<SettingError>),
    #[error(transparent)]
    State(#[from] Located<StateError>),
    #[error(transparent)]
    ToolsFolder(#[from] Located<ToolsFolderError>),
    #[error(transparent)]
    Manifests(#[from] FolderError),
    #[error(transparent)]
    Manifest(#[from] Located<ManifestError>),
    #[error(transparent)]
    Composition(#[from] Located<CompositionError>),
    #[error("the root {} cannot be opened: {error}", root.display())]
    RootNotOpened { root: PathBuf, error: io::Error },
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    /// A tool refused, or search did.
    #[error(transparent)]
    Fault(#[from] Fault),
    #[error("cannot start: {0}")]
    System(io::Error),
    #[error("cannot serve on {address}: {error}")]
    Http { address: SocketAddr, error: io::Error },
    #[error("cannot serve on standard input and output: {0}")]
    Stdio(io::Error),
    #[error("cannot write to standard output: {0}")]
    Output(io::Error),
    #[error("cannot create {}: {error}", folder.display())]
    NotCreated { folder: PathBuf, error: io::Error },
    #[error("cannot write {}: {error}", file.display())]
    NotWritten { file: PathBuf, error: io::Error },
    #[error("the path cannot be used: {0}")]
    Path(PathProblem),
    #[error("cannot read the arguments: {0}")]
    ArgumentsNotRead(io::Error),
    #[error("the arguments are not JSON: {0}")]
    ArgumentsNotJson(serde_json::Error),
    #[error(transparent)]
    Secret(#[from] SecretFileError),
    #[error("there is no state folder for packs; name one with --state-dir (PINTLE_STATE_DIR)")]
    NoStateForPacks,
    #[error(transparent)]
    Audit(#[from] AuditLogError),
    #[error(transparent)]
    Contract(#[from] ContractError),
    #[error("--scope: {0}")]
    Scope(ScopeError),
    #[error("--sub takes a name of at most 256 bytes without control characters")]
    Subject,
    #[error(
        "this is neither a token's id nor a token that has one (`jti`), so it cannot be revoked; \
         `pintle token rotate` ends all tokens"
    )]
    NoTokenId,
    #[error("INVALID_REQUEST: --kind is for symbols (add --match symbol, or leave it out)")]
    KindWithoutSymbol,
}

/// Why two surfaces cannot be compared.
#[derive(Debug, Error)]
pub enum ContractError {
    #[error("there is no {}; `pintle contract accept` writes one", .0.display())]
    NoLock(PathBuf),
    #[error("give two surfaces (files), or one and --server or --url")]
    TwoSurfaces,
    #[error("give one of these: a file, --server, --url")]
    OneSource,
    #[error("cannot read {}: {error}", file.display())]
    NotRead { file: PathBuf, error: io::Error },
    #[error("{} is larger than {limit} MiB", file.display())]
    TooLarge { file: PathBuf, limit: u64 },
    #[error("{}: {error}", file.display())]
    Document { file: PathBuf, error: pintle_surface::DocumentError },
    #[error("{from}: {error}")]
    Surface { from: String, error: pintle_surface::SurfaceError },
    #[error(transparent)]
    Client(pintle_surface::UnknownClient),
    #[error(transparent)]
    Server(pintle_client::ClientError),
}

/// What fits together badly: a setting with what it names.
#[derive(Debug, Error)]
pub enum CompositionError {
    #[error(transparent)]
    Pack(Fault),
    #[error("the backend cannot be used: {problem}; change {setting}")]
    Backend { problem: String, setting: String },
    #[error("`{0}` is a folder; `{0}/**` binds all files below it")]
    BoundFolder(String),
    /// A schema that is not there, or a glob that cannot be one.
    #[error("{0}")]
    Binding(String),
    #[error(
        "a timeout is set for `{name}`, but there is no such tool; {}",
        near.as_ref().map_or("`pintle tools` lists them".into(), |near| format!("the nearest is `{near}`"))
    )]
    TimeoutWithoutTool { name: String, near: Option<String> },
    #[error("cannot write the log file {}: {error}", file.display())]
    LogFile { file: PathBuf, error: io::Error },
}
