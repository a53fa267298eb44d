//! The wire: bytes in, calls out, replies back.
//!
//! A **pipe** is a pair of byte streams that one client holds the other end of. A **bridge** takes a client's MCP messages
//! to the official SDK and the SDK's messages back. An **outlet** is a byte stream out of the process, written by a
//! thread of its own. What a call does is none of this crate's business.

mod calls;
mod direct;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod http;
mod json_rpc;
mod lane;
mod mcp;
mod outlet;
mod pipe;
mod registry;
mod standard;

pub use http::{
    Authentication, HttpOptions, HttpServer, JwksOptions, JwksTokens, NotAnIssuer, Origins, OriginsError,
    ReplyStream, TokenSource, TokenVerifier, Tokens,
};
pub use mcp::{
    McpHandler, McpOptions, McpService, ResultsSetting, TaskInput, TaskStore, ToolNames, instructions,
    listed_definitions,
};
pub use outlet::{Outlet, OutletClosed};
pub use pipe::{Pipe, PipeOptions};
pub use standard::{
    PatientFile, on_output_hangup, standard_error, standard_input, standard_output, standard_output_at_once,
};
