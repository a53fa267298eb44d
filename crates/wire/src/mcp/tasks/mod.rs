//! Tasks: calls that outlive the request that made them.
//!
//! A **task** is a call whose client was given an id instead of a result, and asks for the result later, over whatever
//! connection. Two revisions of the protocol have tasks in two shapes: 2025-11-25, where the request asks for one, and the
//! extension `io.modelcontextprotocol/tasks` of 2026-07-28, where the server decides. The store knows neither shape.

mod calls;
mod methods;
mod shape;
mod store;

pub(crate) use calls::{TaskCandidate, TaskReply};
pub(crate) use methods::is_legacy_method;
pub(crate) use shape::{TASK_SUPPORT_KEY, TaskShape, legacy_capability};
pub(crate) use store::MOST_WAITING;
pub use store::{TaskInput, TaskStore};
