//! The interfaces that a toolset implements: tools, resources, and the context of a call.
//!
//! A **tool** is one operation with typed input and output ([`Tool`]). A family of **resources** is what one URI scheme
//! addresses ([`Resources`]). Both get the context of a call ([`CallContext`]): the caller, cancellation, the deadline
//! and a way to report progress. Nothing here knows a transport, a queue or a log: the engine does.

mod blocking;
mod cancel;
mod context;
mod progress;
mod resource;
mod schema_of;
mod tool;

pub use blocking::{LARGE, block_in_place_if};
pub use cancel::{Cancel, CancelReason, CleanupGuard};
pub use context::{Authorizer, CallContext, CallParts, Caller, result_too_large};
pub use progress::{Progress, ProgressEvent, ProgressSink, Stream};
pub use resource::{Boxed, ResourceContent, ResourceEntry, Resources, decode_address};
pub use tool::{
    Answer, ArgumentProblem, DynTool, Failure, NoArguments, Prepared, Running, Tool, ToolOutput, ToolTimeout,
    Toolset, erase,
};
