//! Cursors: where the next page of a search begins.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

/// The end of a page. A cursor has only what the page itself has, so a caller learns nothing from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cursor {
    /// The fingerprint of the query that the cursor belongs to.
    pub(crate) query: u64,
    /// How many hits the pages so far had.
    pub(crate) count: u64,
    /// The last hit of the page, for hits in the order of paths. Ranked hits are counted instead.
    pub(crate) path: Vec<u8>,
    pub(crate) line: u64,
}

impl Cursor {
    pub(crate) fn encode(&self) -> String {
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).unwrap_or_default())
    }

    /// Returns `None` if the text is not a cursor.
    pub(crate) fn decode(text: &str) -> Option<Self> {
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).ok()?).ok()
    }
}

/// A hash that distinguishes queries.
pub(crate) fn fingerprint(query: &impl Serialize) -> u64 {
    xxh3_64(&serde_json::to_vec(query).unwrap_or_default())
}
