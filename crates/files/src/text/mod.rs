//! Text: lines, ranges of lines, and edits of whole lines.
//!
//! A **line** ends at `\n`; a `\r` before it belongs to the **terminator**. The last line may have none. An empty
//! file has no lines.

mod change;
mod find;
mod pieces;
mod plan;
mod range;
mod read;
mod substitute;
mod survey;
mod template;
mod within;

pub(crate) use change::{Change, Replace};
pub(crate) use find::{Finder, is_line, lines_to_find};
pub(crate) use plan::{FileEdit, MAX_INSERTED, Planned, Problem, Used, plan};
pub(crate) use range::RangeError;
pub(crate) use read::{Read, read};
pub(crate) use substitute::{PlannedSubstitution, Substitution, Tally, substitute};
pub(crate) use survey::{Line, LineWindow, Observer, survey_with};
pub(crate) use template::Template;
pub(crate) use within::TextFinder;
