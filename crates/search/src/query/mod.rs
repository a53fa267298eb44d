//! Answers searches from a snapshot.

mod context;
mod count;
mod cursor;
mod filter;
mod hit;
mod names;
pub(crate) mod ranked;
mod text;
mod words;

pub(crate) use context::ContextLines;
pub(crate) use count::{Counts, count_lines};
pub(crate) use cursor::{Cursor, fingerprint};
pub(crate) use filter::{Filter, glob_prefixes};
pub(crate) use hit::Hit;
pub(crate) use names::find_names;
pub(crate) use text::{TextQuery, search_text};
pub(crate) use words::find_words;

use crate::summary::ScanCounts;

/// A page of hits.
#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) hits: Vec<Hit>,
    /// The number of hits or, unless `is_total_exact`, a lower bound.
    pub(crate) total: u64,
    pub(crate) is_total_exact: bool,
    /// Whether there are hits after this page.
    pub(crate) has_more: bool,
    /// Where the next page begins.
    pub(crate) next: Option<Cursor>,
    /// Counts of the files that were read, by outcome.
    pub(crate) scanned: ScanCounts,
}
