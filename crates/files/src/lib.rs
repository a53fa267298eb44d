//! The files toolset: reads and edits files. Every change is a compare-and-swap on the file's hash, every write is
//! atomic, and no path can leave the root.

mod batch;
mod diff;
mod fault;
mod files;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod globs;
mod hash;
mod listing;
mod local;
mod planning;
mod resources;
mod store;
mod substitution;
mod teach;
mod text;
mod text_search;
mod together;
mod tools;

pub use files::{Files, Lines};
pub use globs::Globs;
pub use hash::{Hash, Hasher, Tag};
pub use local::{Checkpoint, Durability, LocalFolder};
pub use store::{
    ChangeKind, ChangeSetError, Entry, FileChange, Kind, NoRules, Plan, Planner, Rules, Source, Splice,
    Store, StoreError, Terms, TreeEntries, TreeFilter,
};
pub use text_search::{Case, Groups, LineMatcher, MatchError, MatchingFiles, TextQuery, TextSearch};
