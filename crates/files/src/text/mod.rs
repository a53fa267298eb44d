//! Text: lines, ranges of lines, and edits of whole lines.
//!
//! A **line** ends at `\n`; a `\r` before it belongs to the **terminator**. The last line may have none. An empty
//! file has no lines.

mod edit;
mod find;
mod range;
mod read;
mod survey;

pub(crate) use edit::{Edit, append, insert, replace};
pub(crate) use find::{Finder, Occurrence, is_line, lines_to_find};
pub(crate) use range::RangeError;
pub(crate) use read::{Read, read};
pub(crate) use survey::{Line, LineWindow, survey};
