//! Edits as callers give them.

/// One edit of a file. All numbers and texts mean the version of the file that the caller names, never the result of
/// another edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Replaces lines, or text in them.
    Replace(Replace),
    /// Inserts lines before a line.
    Insert {
        /// That line; negative counts from the end.
        line: i64,
        /// What the line has to be.
        anchor: Option<String>,
        /// The new lines.
        content: String,
    },
    /// Adds lines at the end.
    Append {
        /// The new lines.
        content: String,
    },
}

/// What is replaced: `old`, wherever it is in `lines`; without it the lines themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Replace {
    /// `[start, end)`; without it the whole file.
    pub(crate) lines: Option<[i64; 2]>,
    /// Whole lines, or a text within lines.
    pub(crate) old: Option<String>,
    /// What comes in its place.
    pub(crate) new: String,
    /// Every occurrence; otherwise there must be exactly one.
    pub(crate) all: bool,
    /// `old` and `new` are a text that may be a part of a line.
    pub(crate) within: bool,
}

impl Change {
    /// The text that shows where the edit belongs, if it was given.
    pub(crate) fn guard(&self) -> Option<&str> {
        match self {
            Self::Replace(replace) => replace.old.as_deref(),
            Self::Insert { anchor, .. } => anchor.as_deref(),
            Self::Append { .. } => None,
        }
    }

    /// Whether that text may be a part of a line.
    pub(crate) fn is_within(&self) -> bool {
        matches!(self, Self::Replace(Replace { within: true, .. }))
    }

    /// The numbers of lines that were given, as a range.
    pub(super) fn lines(&self) -> Option<[i64; 2]> {
        match self {
            Self::Replace(Replace { lines, .. }) => *lines,
            // The lines from this one on: only the first is looked at.
            Self::Insert { line, .. } => Some([*line, 0]),
            Self::Append { .. } => None,
        }
    }
}
