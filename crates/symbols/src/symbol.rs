//! One definition.

use crate::Kind;
use std::ops::Range;

/// Longer names are a sign of something that was parsed wrongly.
const LONGEST_NAME: usize = 1024;

/// One thing that a text defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Where its name is, in bytes of the text.
    pub name: Range<usize>,
    /// What it is.
    pub kind: Kind,
    /// The line of its name, from 1.
    pub line: u32,
    /// The column of its name, in bytes from 1.
    pub column: u32,
    /// The last line of its definition.
    pub end_line: u32,
}

/// A definition whose lines are not known yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Definition {
    /// Where its name is, in bytes of the text.
    pub name: Range<usize>,
    /// What it is.
    pub kind: Kind,
    /// The byte after its last one.
    pub end: usize,
}

/// Whether a text can be a name at all, and not a placeholder or something parsed wrongly.
pub(crate) fn is_a_name(text: &[u8]) -> bool {
    !text.is_empty() && text != b"_" && text.len() <= LONGEST_NAME && !text.contains(&b'\n')
}
