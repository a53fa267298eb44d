//! A hit, and the budget for all hits of a page.

use bstr::ByteSlice;
use schemars::JsonSchema;
use serde::Serialize;

use crate::snapshot::SearchError;

/// A match, with what an edit needs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub(crate) struct Hit {
    /// The file, relative to the root of the workspace.
    pub(crate) path: String,
    /// The path as bytes, which need not be UTF-8.
    #[serde(skip)]
    pub(crate) raw_path: Vec<u8>,
    /// The line, from 1.
    pub(crate) line: u64,
    /// The first match's column in the line, in bytes from 1.
    pub(crate) column: u64,
    /// The last line: that of a definition for a symbol, otherwise the same line.
    pub(crate) end_line: u64,
    /// The line, or the part of a very long one around the match.
    pub(crate) text: String,
    /// The column at which `text` begins, in bytes from 1, if not 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) text_column: Option<u64>,
    /// The lines before, as many as were asked for.
    pub(crate) before: Vec<String>,
    /// The lines after.
    pub(crate) after: Vec<String>,
    /// The file's hash, for an edit.
    pub(crate) hash: String,
    /// What a symbol is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) kind: Option<&'static str>,
    /// A symbol's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    /// How well the file matches the words (BM25); higher is better.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) score: Option<f32>,
}

impl Hit {
    /// The size of its texts in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let lines = self.before.iter().chain(&self.after);
        self.path.len() + self.text.len() + lines.map(String::len).sum::<usize>()
    }
}

/// A budget for the bytes of all hits of a page.
pub(crate) struct ResultBudget {
    limit: usize,
    taken: usize,
}

impl ResultBudget {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, taken: 0 }
    }

    /// Takes the bytes of a hit from the budget.
    pub(crate) fn charge(&mut self, hit: &Hit) -> Result<(), SearchError> {
        self.taken = self.taken.saturating_add(hit.bytes());
        match self.taken > self.limit {
            true => Err(SearchError::TooLarge { bytes: self.taken, limit: self.limit }),
            false => Ok(()),
        }
    }
}

/// Longer lines are cut.
const LONGEST: usize = 2000;
/// How many bytes before the match are shown of a line that is cut.
const LEAD: usize = 200;

/// The text of a line as a hit shows it, and the column where it begins if the line is cut. `column` is the match's.
pub(crate) fn cut_text(line: &[u8], column: u64) -> (String, Option<u64>) {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.len() <= LONGEST {
        return (line.to_str_lossy().into_owned(), None);
    }
    let offset = usize::try_from(column.saturating_sub(1)).unwrap_or(0).min(line.len());
    let mut start = offset.saturating_sub(LEAD);
    // Do not cut within a UTF-8 character.
    while start > 0 && line[start] & 0xc0 == 0x80 {
        start -= 1;
    }
    let mut end = (start + LONGEST).min(line.len());
    while end < line.len() && end > start && line[end] & 0xc0 == 0x80 {
        end -= 1;
    }
    (line[start..end].to_str_lossy().into_owned(), Some(start as u64 + 1))
}
