//! The Model Context Protocol, through the official SDK: every revision, over the same engine.

mod convert;
mod handler;
mod origin;
mod progress;
mod stdio;

pub use handler::McpHandler;
pub(crate) use origin::Origin;
pub(crate) use progress::PipeProgress;
pub(crate) use stdio::{McpFeed, route};
