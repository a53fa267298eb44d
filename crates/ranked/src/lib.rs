//! Two small immutable indexes that rank: [`Words`], the words of files by BM25, and [`Names`], the names
//! of definitions.
//!
//! An index is a flat section of bytes, little-endian, which the caller keeps wherever it likes and maps
//! into memory. Files are known by their numbers only. Several indexes are searched together, as parts.
//!
//! Whoever searches says which files may be read. Whatever is not allowed has no influence on any result.
//!
//! No bytes make reading an index panic or run on; whether they are the right ones is for a checksum to
//! say, which is the caller's.

pub mod bits;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod malformed;
mod names;
mod runs;
mod words;

pub use malformed::Malformed;
pub use names::{Case, Definition, Finding, Found, NameQuery, Names, NamesBuilder, NamesPart, find};
pub use words::{BestLine, Ranked, Words, WordsBuilder, WordsPart, best_line, rank, term_weights};
