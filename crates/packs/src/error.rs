//! Why an archive is refused.

use std::io;

use pintle_contract::{ErrorCode, Fault};
use thiserror::Error;

/// Why an archive is refused. Nothing of it is installed then.
#[derive(Debug, Error)]
pub enum ArchiveError {
    /// An entry could do harm.
    #[error("the archive is refused: `{entry}` {problem}")]
    UnsafeEntry {
        /// Its name, as far as it can be shown.
        entry: String,
        /// Why.
        problem: String,
    },
    /// The archive could do harm as a whole.
    #[error("the archive is refused: {0}")]
    Unsafe(String),
    /// It exceeds a limit.
    #[error("the archive is too large: {0}")]
    TooLarge(String),
    /// It ends too early, or its own checksums are wrong.
    #[error("the archive is incomplete or damaged: {0}")]
    Damaged(String),
    /// It is of a kind that is not read.
    #[error("{0}")]
    Unsupported(String),
    /// It has no schemas.
    #[error("the archive has no schemas: no file whose name ends in `.json` is where schemas are looked for")]
    NoSchemas,
    /// The code that takes the files could not.
    #[error("a file of the archive cannot be written: {0}")]
    NotWritten(io::Error),
}

impl ArchiveError {
    pub(crate) fn unsafe_entry(entry: &str, problem: impl Into<String>) -> Self {
        // A name with a line break could pass for a message of its own.
        let shown = |character: char| match character.is_control() {
            true => character.escape_default().to_string(),
            false => character.to_string(),
        };
        Self::UnsafeEntry { entry: entry.chars().map(shown).collect(), problem: problem.into() }
    }
}

impl From<ArchiveError> for Fault {
    fn from(error: ArchiveError) -> Self {
        let message = error.to_string();
        let (code, hint) = match &error {
            ArchiveError::UnsafeEntry { .. } | ArchiveError::Unsafe(_) => (
                ErrorCode::ArchiveUnsafe,
                "nothing was installed; get the pack from somebody you trust, or make an archive of plain files and \
                 folders",
            ),
            ArchiveError::TooLarge(_) => (
                ErrorCode::ArchiveTooLarge,
                "nothing was installed; leave out what is neither a schema nor an example, or split the pack",
            ),
            ArchiveError::Damaged(_) => {
                (ErrorCode::DownloadVerifyFailed, "nothing was installed; download the archive again")
            }
            ArchiveError::Unsupported(_) => {
                (ErrorCode::InvalidRequest, "nothing was installed; a pack is a `.tar.gz` or a `.zip`")
            }
            ArchiveError::NoSchemas => (
                ErrorCode::InvalidRequest,
                "nothing was installed; put schemas into `jsonschema/`, examples into `examples/`",
            ),
            ArchiveError::NotWritten(error) => return not_stored("the pack cannot be written", error),
        };
        Self::new(code, message).hint(hint)
    }
}

/// The fault of a disk that failed while something was to be stored.
pub(crate) fn not_stored(what: &str, error: &io::Error) -> Fault {
    let hint = match pintle_root::failure_reason(error) {
        "no_space" => "nothing was changed; free some space, or name another folder with --state-dir",
        _ => "nothing was changed; check the state folder, or name another one with --state-dir",
    };
    pintle_root::storage_failed(format!("{what}: {error}"), error).hint(hint)
}
