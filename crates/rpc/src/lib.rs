//! JSON-RPC as bytes and values, without I/O of its own.
//!
//! A **frame** is one message as bytes: a line on a pipe, a body over HTTP. An **envelope** is the outer object of a
//! message. [`open`] checks a frame's envelope and takes it apart, or says why it is refused. A **dialect** is how a
//! call is written in a message: direct, where the method is the tool's name, or MCP. A [`RequestId`] goes back byte
//! for byte and is compared by its meaning.

mod dialect;
mod envelope;
mod frame;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod id;

pub use dialect::{Dialect, PROTOCOL_VERSION_KEY};
pub use envelope::{EnvelopeMode, Message, Opened, Refused, open};
pub use frame::{Frame, FrameReader, Overlong};
pub use id::RequestId;
pub use pintle_contract::inexact_number;
