//! The names of definitions, found by what is left of them in somebody's memory.

mod block;
mod build;
mod find;
mod letters;
mod matching;
mod order;
mod scan;
mod section;
mod typos;

pub use build::NamesBuilder;
pub use find::{Case, Finding, Found, NameQuery, NamesPart, find};
pub use section::Names;

/// Where something is defined, and what kind of thing it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Definition {
    /// The line of the name. What lines and columns are counted from is the caller's choice.
    pub line: u32,
    /// The column of the name.
    pub column: u32,
    /// The last line of the definition, not before the first.
    pub end_line: u32,
    /// The kind, by a number of the caller's.
    pub kind: u8,
}
