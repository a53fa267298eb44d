//! Why bytes are no index.

use std::fmt;

/// Why bytes are no index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// There are fewer bytes than the smallest index has.
    TooShort,
    /// They do not end like an index of this kind and version.
    OtherFormat,
    /// What the end says about the rest cannot be.
    Outline,
}

impl fmt::Display for Malformed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::TooShort => "the index is too short to be one; build it again",
            Self::OtherFormat => "the index is of another kind or version; build it again",
            Self::Outline => "the parts of the index are not where its end says; build it again",
        })
    }
}

impl std::error::Error for Malformed {}
