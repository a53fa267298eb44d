//! Where the next page of a search begins.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

/// The end of a page. It holds nothing that the caller was not told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cursor {
    /// What tells the query that it belongs to from others.
    pub(crate) query: u64,
    /// How many hits came so far.
    pub(crate) count: u64,
    /// The last of them, for those that come in the order of paths.
    pub(crate) path: Vec<u8>,
    pub(crate) line: u64,
}

impl Cursor {
    pub(crate) fn encode(&self) -> String {
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).unwrap_or_default())
    }

    /// Nothing if that is no cursor.
    pub(crate) fn decode(text: &str) -> Option<Self> {
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).ok()?).ok()
    }
}

/// What tells a query from others.
pub(crate) fn fingerprint(query: &impl Serialize) -> u64 {
    xxh3_64(&serde_json::to_vec(query).unwrap_or_default())
}
