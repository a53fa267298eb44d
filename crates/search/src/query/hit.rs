//! One hit.

use bstr::ByteSlice;
use schemars::JsonSchema;
use serde::Serialize;

use crate::snapshot::SearchError;

/// A place that matches, ready for an edit.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub(crate) struct Hit {
    /// The file, relative to the root of the workspace.
    pub(crate) path: String,
    /// The path as it is, which may be no text.
    #[serde(skip)]
    pub(crate) raw_path: Vec<u8>,
    /// The line, from 1.
    pub(crate) line: u64,
    /// Where the first match begins in the line, in bytes from 1.
    pub(crate) column: u64,
    /// The last line: that of a definition for a symbol, otherwise the same line.
    pub(crate) end_line: u64,
    /// The line, or the part of a very long one around the match.
    pub(crate) text: String,
    /// The byte of the line, from 1, at which `text` begins, if that is not its start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) text_column: Option<u64>,
    /// The lines before, as many as were asked for.
    pub(crate) before: Vec<String>,
    /// The lines after.
    pub(crate) after: Vec<String>,
    /// The file's hash, which an edit takes.
    pub(crate) hash: String,
    /// What a symbol is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) kind: Option<&'static str>,
    /// A symbol's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    /// How well the file of a hit for words matches; higher is better.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) score: Option<f32>,
}

impl Hit {
    /// How many bytes its texts have.
    pub(crate) fn bytes(&self) -> usize {
        let lines = self.before.iter().chain(&self.after);
        self.path.len() + self.text.len() + lines.map(String::len).sum::<usize>()
    }
}

/// Keeps what is gathered within bounds.
pub(crate) struct ResultBudget {
    limit: usize,
    taken: usize,
}

impl ResultBudget {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, taken: 0 }
    }

    /// Makes room for a hit.
    pub(crate) fn charge(&mut self, hit: &Hit) -> Result<(), SearchError> {
        self.taken = self.taken.saturating_add(hit.bytes());
        match self.taken > self.limit {
            true => Err(SearchError::TooLarge { bytes: self.taken, limit: self.limit }),
            false => Ok(()),
        }
    }
}

/// Lines up to this length are shown whole.
const LONGEST: usize = 2000;
/// How much of a longer one is shown before the match.
const LEAD: usize = 200;

/// The text of a line as a hit shows it, and where it begins if that is not the start. `column` is the match's.
pub(crate) fn cut_text(line: &[u8], column: u64) -> (String, Option<u64>) {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.len() <= LONGEST {
        return (line.to_str_lossy().into_owned(), None);
    }
    let offset = usize::try_from(column.saturating_sub(1)).unwrap_or(0).min(line.len());
    let mut start = offset.saturating_sub(LEAD);
    // Not in the middle of a character.
    while start > 0 && line[start] & 0xc0 == 0x80 {
        start -= 1;
    }
    let mut end = (start + LONGEST).min(line.len());
    while end < line.len() && end > start && line[end] & 0xc0 == 0x80 {
        end -= 1;
    }
    (line[start..end].to_str_lossy().into_owned(), Some(start as u64 + 1))
}
