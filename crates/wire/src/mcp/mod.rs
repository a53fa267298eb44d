//! The Model Context Protocol, through the official SDK: every revision, over the same engine.

mod bridge;
mod clients;
mod convert;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod handler;
mod instructions;
mod listing;
mod message;
mod progress;
mod request;
mod service;
mod tasks;

pub(crate) use bridge::{Bridge, BridgedCalls, Gone, McpCall, NotTaken, ReplyTo, Taken};
pub use handler::{McpHandler, McpOptions, ResultsSetting};
pub use instructions::instructions;
pub use listing::{ToolNames, listed_definitions};
pub(crate) use message::{INITIALIZE, LISTEN, notification, response};
pub(crate) use progress::McpProgress;
pub(crate) use request::McpRequest;
pub use service::McpService;
pub(crate) use tasks::MOST_WAITING;
pub use tasks::{TaskInput, TaskStore};
