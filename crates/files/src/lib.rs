//! The files toolset: reading and editing, with a hash that guards every change and paths that cannot leave the
//! root.

mod fault;
mod files;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod globs;
mod hash;
mod listing;
mod local;
mod resources;
mod store;
mod teach;
mod text;
mod tools;

pub use files::{Files, Lines};
pub use globs::Globs;
pub use hash::{Hash, Hasher};
pub use local::{Durability, LocalFolder};
pub use store::{Entry, Found, Kind, NoRules, Plan, Rules, Source, Splice, Store, StoreError, Terms, Wanted};
