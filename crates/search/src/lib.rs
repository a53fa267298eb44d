//! The search toolset: a trigram index that returns exactly ripgrep's hits in a fraction of the time.
//!
//! The words that the modules share:
//!
//! - A **trigram** is three bytes in a row within one line. A line that lacks a trigram of the query cannot match.
//! - A **block** is about 8 KiB of a file, cut at line ends. A **posting list** holds the blocks that have one trigram.
//! - A **candidate** is a block, or a file, that has all the trigrams of the query (the intersection of their posting
//!   lists). **Verification** runs ripgrep's own searcher over the candidates, and over nothing else.
//! - A **segment** is an immutable part of the index: files, their posting lists, words and symbols. A later segment
//!   replaces files of earlier ones, and its **tombstones** delete them.
//! - The **manifest** names the segments of one **generation** of the index.
//! - The **overlay** holds what has changed since that generation was built. A **watcher** and the files toolset report
//!   the changes, so that a search sees every edit that was made before it (read-your-writes).
//! - A **snapshot** is one generation with its overlay. A search answers from one snapshot from start to end.

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
mod matches;
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
pub use matches::{LONGEST_LINE, MatchError, MatchFinder, MatchSearch, MatchingFiles};
pub use pattern::Case;
pub use search::{DEFAULT_MAX_FILE_BYTES, Indexing, LARGEST_MAX_FILE_BYTES, Search, SearchConfig};
pub use tools::{IndexState, Match};
