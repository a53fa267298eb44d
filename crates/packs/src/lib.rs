//! A **pack** is an archive of JSON Schemas and examples that is installed by its name. An **entry** is a file or folder in
//! an archive.
//!
//! - [`read`] reads a `.tar.gz` or a `.zip`, checks every entry, and hands out the files. An archive that is unsafe, too
//!   large or damaged is refused as a whole ([`ArchiveError`]).
//! - `layout.rs` decides which of the files are schemas and which are examples.
//! - [`Packs`] is the folder of installed packs. A pack is unpacked in a [`Staging`] folder beside the others and comes
//!   into being by one rename, so it is installed completely or not at all.
//!
//! Nothing here uses the network: whoever downloads an archive writes it into a [`Spool`].

mod archive;
mod error;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod layout;
mod limits;
mod manifest;
mod name;
mod paths;
mod spool;
mod staging;
mod store;
mod tree;

pub use archive::read;
pub use error::ArchiveError;
pub use limits::Limits;
pub use manifest::Manifest;
pub use name::{NotAPackName, PackName};
pub use spool::{NotAChecksum, Sha256Sum, Spool, Spooled};
pub use staging::Staging;
pub use store::{Added, Packs, Request};
