//! The engine: one call's life, from a frame to its one reply.
//!
//! A **call** is one invocation of one tool by one **caller**. The engine takes it through the steps
//! in [`Engine::call`], always in the same order, whatever transport it came by and whatever tool it
//! goes to. It knows no transport and no tool by name.

mod admission;
mod aside;
mod budget;
mod cancel;
mod catalogue;
mod clock;
mod context;
mod engine;
mod envelope;
mod idempotency;
mod invoke;
mod log;
mod metrics;
mod outlet;
mod progress;
mod read_resource;
mod repair;
mod resource;
mod schema;
mod tool;

pub use aside::{LARGE, aside_if};
pub use budget::{ReplyBudget, Reservation, unread_replies};
pub use cancel::{Cancel, CancelReason, InFlight};
pub use catalogue::{Catalogue, CatalogueError};
pub use clock::Clock;
pub use context::{CallContext, Caller, result_too_large};
pub use engine::{
    ArgumentReading, CallRequest, Engine, Options, Outcome, Reply, Target, Timeouts, Transport,
};
pub use envelope::{EnvelopeMode, Message, Opened, Refused};
pub use log::{CallLine, CallLog, Level, LineFormat};
pub use metrics::Metrics;
pub use outlet::{LargeFrame, Outlet, OutletClosed};
pub use progress::{Progress, ProgressEvent, ProgressSink, Stream};
pub use resource::{Boxed, ResourceContent, ResourceEntry, Resources, decode_address};
pub use schema::{CompiledSchema, Mismatch, SchemaRegistry, ToolIo};
pub use tool::{Answer, DynTool, Failure, NoArguments, Prepared, Running, Tool, ToolOutput, Toolset, erase};
