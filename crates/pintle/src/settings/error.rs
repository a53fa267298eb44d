//! What can be wrong with settings.

use std::{io, path::PathBuf};

use pintle_commands::NotADuration;
use pintle_contract::GlobError;
use pintle_wire::NotAnIssuer;
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
    #[error("--auth jwks needs --{0} (PINTLE_{upper})", upper = .0.to_uppercase())]
    JwksNeeds(&'static str),
    #[error(
        "--auth jwks on {0} needs --public-url (PINTLE_PUBLIC_URL), the address by which clients reach the server: they \
         are given it to find the authorization server"
    )]
    NoPublicUrl(String),
    #[error("{0}")]
    Issuer(#[from] NotAnIssuer),
    #[error("`{0}` is not an address by which clients reach a server; write it as https://pintle.example")]
    PublicUrl(String),
    #[error(
        "{0} is beyond this machine, and without TLS tokens and files could be read on the way; put a proxy with TLS in \
         front and set --behind-proxy, or serve on an address such as {DEFAULT_HTTP}"
    )]
    BeyondThisMachine(String),
    #[error(
        "`{}` cannot be the root of tenants; write an absolute path with `{{sub}}` once, in the place of a name: /srv/{{sub}}",
        .0.display()
    )]
    RootTemplate(PathBuf),
    #[error("a root with `{{sub}}` needs a state folder; name one with --state-dir (PINTLE_STATE_DIR)")]
    TenantsNeedState,
    #[error("a root with `{{sub}}` needs callers with tokens: --http with --auth local or --auth jwks")]
    TenantsNeedTokens,
    #[error("commands are not offered to tenants; remove --tools (PINTLE_TOOLS), or serve one root")]
    CommandsWithTenants,
    #[error(
        "--scope is for standard input and output and for --auth none; over HTTP the scopes are in the tokens \
         (`pintle token mint --scope …`)"
    )]
    ScopeWithTokens,
    #[error("`{address}` is not an address to serve on ({error}); write it as {DEFAULT_HTTP}")]
    NotAnAddress { address: String, error: io::Error },
    #[error(
        "{0} is not an address of this machine alone; --auth none needs a loopback address, such as {DEFAULT_HTTP}"
    )]
    NotLoopback(String),
    #[error(
        "a pack is in the state folder, and there is none outside the root; name one with --state-dir (PINTLE_STATE_DIR)"
    )]
    PackNeedsState,
    #[error(transparent)]
    Glob(#[from] GlobError),
    /// An origin or a host that no request could have.
    #[error("{0}")]
    NoOrigin(String),
}
