//! Why the state of a work tree is not known.

use std::io;

/// Why the state of a work tree is not known.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// Whoever asked does not wait any more.
    #[error("the call has ended")]
    Ended,
    /// Something that has to be there cannot be read.
    #[error("{what} cannot be read: {reason}")]
    Unreadable {
        /// What it is, by its path in the root.
        what: String,
        /// What the system said.
        reason: io::Error,
    },
    /// Something is not what it should be.
    #[error("{what} is damaged: {reason}")]
    Damaged {
        /// What it is.
        what: String,
        /// What was found.
        reason: String,
    },
    /// Something is larger than what is read.
    #[error("{what} is too large: more than {limit} {unit}")]
    TooLarge {
        /// What it is.
        what: String,
        /// How much would have been read.
        limit: u64,
        /// What the limit counts.
        unit: &'static str,
    },
    /// The repository uses a feature of git that is not supported.
    #[error("the repository uses {what}, which is not supported{}", remedy.map(|remedy| format!("; {remedy}")).unwrap_or_default())]
    Unsupported {
        /// The feature.
        what: String,
        /// How to do without it.
        remedy: Option<&'static str>,
    },
    /// There is a repository, but it is deliberately not read.
    #[error("{0}")]
    NotUsed(String),
    /// An object is not in the repository.
    #[error("the object {0} is not in the repository; `git fsck` lists what is missing")]
    MissingObject(String),
}

impl Problem {
    pub(crate) fn damaged(what: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Damaged { what: what.into(), reason: reason.into() }
    }

    pub(crate) fn unreadable(what: impl Into<String>, reason: impl Into<io::Error>) -> Self {
        Self::Unreadable { what: what.into(), reason: reason.into() }
    }

    pub(crate) fn unsupported(what: impl Into<String>) -> Self {
        Self::Unsupported { what: what.into(), remedy: None }
    }

    pub(crate) fn too_many_bytes(what: impl Into<String>, limit: u64) -> Self {
        Self::TooLarge { what: what.into(), limit, unit: "bytes" }
    }
}

/// Asked now and then: whether nobody waits for the answer any more.
pub(crate) type HasEnded<'a> = &'a (dyn Fn() -> bool + Sync);

/// An error once nobody waits any more.
pub(crate) fn go_on(has_ended: HasEnded<'_>) -> Result<(), Problem> {
    if has_ended() { Err(Problem::Ended) } else { Ok(()) }
}
