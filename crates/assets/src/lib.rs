//! The assets toolset: schemas, examples, validation, diff and publishing.
//!
//! A **schema** is a JSON Schema file, known by its name. An **example** is a JSON file that shows
//! what an asset of some **component** looks like. An **asset** is any JSON value that a caller wants
//! judged, compared or published. A **backend** is the server that published assets go to.
//!
//! Schemas and examples are read once, when [`Assets`] is loaded; after that nothing here touches the
//! disk, and the only network address ever asked is the backend's.

mod assets;
mod backend;
mod bindings;
mod config;
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
mod references;
mod resources;
mod schema;
mod schemas;
mod tools;
mod unlocated;
mod version;
mod warnings;
mod watch;
mod watched;
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
