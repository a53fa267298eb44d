//! Segments: the immutable parts of an index.
//!
//! A segment holds a table of files (paths, stamps, hashes), a posting list for each trigram in them, and the
//! **tombstones** of files that earlier segments know and that are gone.

mod files;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod paged;
mod text;

pub(crate) use files::{FileRecord, FileState, FileTableWriter};
pub(crate) use paged::{PagedFile, PagedWriter, Section, Torn};
pub(crate) use text::{SegmentContent, SegmentMetadata, TextSegment, write_text_segment};
