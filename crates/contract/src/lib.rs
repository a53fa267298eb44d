//! The contract: pure data and rules that every other crate uses: error table, paths, scopes, tool definitions.
//!
//! A **tool** is one operation with a name, an input schema and an output schema. A **fault** is the
//! one error type that crosses crates. An **envelope** is the outer object of a request. Nothing in this
//! crate does I/O or is asynchronous, so any other server could use it as it is.

mod access;
mod canonical;
mod definition;
mod deny;
mod envelope;
mod error;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod line_range;
mod meant;
mod nearest;
mod number;
mod path;
mod permission;
mod pointer;
mod root_name;

pub use access::{Access, ScopeError, ScopeProblem, Scopes, Verb};
pub use canonical::{Fingerprint, canonical_json, fingerprint};
pub use definition::{
    Annotations, ClientHints, SURFACE_VERSION, TOOL_ID_PREFIX, ToolDefinition, tool_id, underscore_name,
};
pub use deny::{DenyGlobs, DenyRules, GlobError, NOT_WRITABLE};
pub use envelope::{ENVELOPE_SCHEMA, Meta, TOOL_IO_SCHEMA};
pub use error::{ERROR_TABLE, ErrorCode, ErrorRow, Fault, FaultBody, Retry, Stage};
pub use line_range::reread_lines;
pub use meant::meant_by;
pub use nearest::nearest;
pub use number::{decimal, inexact_number};
pub use path::{PathProblem, WorkspacePath};
pub use permission::{Element, Permission, Permissions, Refusal, missing_scopes};
pub use pointer::pointer_segment;
pub use root_name::RootName;
