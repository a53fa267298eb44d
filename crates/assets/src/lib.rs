//! The assets toolset: schemas, examples, validation, diff and publishing.
//!
//! A **schema** is a JSON Schema file, known by its name. An **example** is a JSON file that shows
//! what an asset of some **component** looks like. An **asset** is any JSON value that a caller wants
//! validated, compared or published. A **backend** is the server that published assets go to.
//!
//! Schemas and examples are read once, when [`Assets`] is loaded; after that nothing here touches the
//! disk, and the backend is the only server that is ever contacted.

mod assets;
mod backend;
mod bindings;
mod config;
mod counted_json;
mod declared;
mod diff;
mod document;
mod examples;
mod folder;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod issue;
mod locate;
mod names;
mod output;
mod quoting;
mod redact;
mod references;
mod resources;
mod schema;
mod schemas;
mod step_budget;
mod tools;
mod version;
mod warnings;
mod weight;

#[cfg(test)]
mod testing;

pub use assets::Assets;
pub use bindings::{BindError, Bindings};
pub use config::{AssetsConfig, BackendConfig};
pub use diff::{PatchOperation, diff};
pub use document::{LocatedIssue, Reason, Report};
pub use issue::Issue;
pub use locate::locate;
