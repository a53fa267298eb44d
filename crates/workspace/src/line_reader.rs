//! The interface that `show_file` needs of the files toolset.

use pintle_contract::Fault;
use pintle_tool::CallContext;

/// Reads lines of files.
pub trait LineReader: Send + Sync + 'static {
    /// The lines `[start, end)` of a file, counted from 1 or, negative, from the end; 0 is open. The caller's scopes are
    /// checked against the resolved path.
    fn read_lines(
        &self,
        call: &CallContext,
        path: &str,
        lines: [i64; 2],
    ) -> impl Future<Output = Result<Lines, Fault>> + Send;
}

/// Some lines of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lines {
    /// The lines, with their terminators.
    pub content: String,
    /// The hash of the whole file.
    pub hash: String,
    /// How many lines the file has.
    pub total_lines: u64,
    /// The number of the first line of `content`.
    pub first_line: u64,
}
