//! The wire: bytes in, calls out, replies back.
//!
//! A **frame** is one message as bytes: a line on a pipe. A **pipe** is a pair of byte streams that one
//! client holds the other end of. A **dialect** is how calls and replies are written in frames. What
//! a call does is none of this room's business.

mod direct;
mod frame;
mod http;
mod json_rpc;
mod lane;
mod mcp;
mod pipe;
mod standard;

pub use frame::{Frame, FrameReader};
pub use http::{HttpOptions, HttpServer, Origins, ReplyStream};
pub use mcp::{McpHandler, McpOptions, ResultsSetting, ToolNames};
pub use pipe::{Pipe, PipeOptions};
pub use rmcp::ServerHandler;
pub use standard::{
    PatientFile, on_output_hangup, standard_error, standard_input, standard_output, standard_output_at_once,
};
