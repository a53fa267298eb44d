//! Answering searches from a snapshot.

mod context;
mod cursor;
mod filter;
mod hit;
mod names;
pub(crate) mod ranked;
mod text;
mod words;

pub(crate) use cursor::{Cursor, fingerprint};
pub(crate) use filter::{Filter, may_read};
pub(crate) use hit::Hit;
pub(crate) use names::find_names;
pub(crate) use text::{TextQuery, search_text};
pub(crate) use words::find_words;

/// A page of hits.
#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) hits: Vec<Hit>,
    /// How many there are, at least.
    pub(crate) total: u64,
    /// Whether there are more after this page.
    pub(crate) has_more: bool,
    /// Where the next page begins.
    pub(crate) next: Option<Cursor>,
}
