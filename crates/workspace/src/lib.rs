//! The workspace toolset: the state of the workspace, the health of the server, and files with line numbers.
//!
//! Its tools report on other toolsets without depending on them. It needs two small traits, [`LineReader`] and
//! [`SearchReporter`], which the binary implements, and a [`WorkspaceConfig`] with facts that do not change while the
//! server runs.

mod config;
mod health;
mod line_reader;
mod search_reporter;
mod tools;

pub use config::{Binding, Limits, WorkspaceConfig};
pub use health::{Capability, CapabilityState, Health, Warning};
pub use line_reader::{LineReader, Lines};
pub use search_reporter::SearchReporter;
pub use tools::tools;
