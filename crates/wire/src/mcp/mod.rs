//! The Model Context Protocol, through the official SDK: every revision, over the same engine.

mod clients;
mod convert;
mod handler;
mod instructions;
mod listing;
pub(crate) mod message;
mod origin;
mod pending;
mod progress;
mod stdio;

pub use handler::{McpHandler, McpOptions, ResultsSetting};
pub use listing::ToolNames;
pub(crate) use origin::{Asked, HeldReply, Origin, ToolJson};
pub(crate) use pending::{Pending, Waiting};
pub(crate) use progress::McpProgress;
pub(crate) use stdio::{McpFeed, route};

/// Nobody reads the replies any more.
#[derive(Debug)]
pub(crate) struct Gone;

impl std::fmt::Display for Gone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("nobody reads the replies any more")
    }
}

impl std::error::Error for Gone {}
