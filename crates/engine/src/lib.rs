//! The engine: the life of one message, from its frame to its one log record.
//!
//! A **call** is one invocation of one tool by one **caller**. A **query** is a question about the server itself: a list,
//! a completion, a discovery. Both begin with [`Engine::receive`] and go through the same steps in the same order,
//! whatever transport they came by and whatever tool they are for. The engine knows no transport and no tool by name.

mod admission;
mod audit;
mod budget;
mod caller_limits;
mod catalogue;
mod clock;
mod engine;
mod fair_queue;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod idempotency;
mod incoming;
mod invoke;
mod log;
mod metrics;
mod options;
mod outcome;
mod read_resource;
mod recent_callers;
mod record;
mod repair;
mod run;
mod slots;
mod workspace;

pub use audit::{AuditSink, not_recorded};
pub use budget::{ReplyBudget, Reservation, unread_replies};
pub use catalogue::{Catalogue, CatalogueError};
pub use clock::Clock;
pub use engine::Engine;
pub use incoming::{ArgumentReading, Call, Incoming, Received, Target, Transport, Turn};
pub use log::{CallLine, CallLog, Level, LineFormat, LogSink};
pub use metrics::Metrics;
pub use options::{Options, Timeouts};
pub use outcome::{Outcome, Reply};
pub use workspace::{Recovery, Tenants, Workspace};
