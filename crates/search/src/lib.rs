//! The search toolset: an index that gives ripgrep's exact results in a fraction of the time.
//!
//! A **segment** is an immutable part of the index on disk. It knows some files and, for each **trigram** (three bytes in
//! a row), in which **blocks** of these files it occurs. A search asks which blocks have all trigrams of its pattern, and
//! looks into those alone, with ripgrep's own searcher. An **index** is a row of segments, of which later ones replace
//! files of earlier ones; a **generation** is one state of it. What has changed since the last generation lies over
//! the index as an **overlay**; a **snapshot** is both together, as one search sees them.

mod background;
mod blocks;
mod build;
mod candidate_files;
mod command;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod health;
mod in_order;
mod index;
mod ordered;
mod pattern;
mod plain_file;
mod plan;
mod query;
mod read;
mod search;
mod segment;
mod snapshot;
mod store;
mod summary;
mod tools;
mod trigrams;
mod verify;

pub use build::{Observer, Phase};
pub use command::{Answer, BuildReport, HitSearch, LineSearch, MatchedLine, PrintedLines, ShownHit};
pub use health::{HealthWarning, SearchHealth, WorkState};
pub use pattern::Case;
pub use search::{DEFAULT_MAX_FILE_BYTES, Indexing, LARGEST_MAX_FILE_BYTES, Search, SearchConfig};
pub use tools::{IndexState, Match};
