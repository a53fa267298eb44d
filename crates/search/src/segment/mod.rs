//! Segments: immutable parts of an index, each in one file.
//!
//! A **segment** knows some files: their paths, stamps and hashes, and in which of their blocks each trigram occurs.

mod files;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod paged;
mod text;

pub(crate) use files::{FileRecord, FileState, FileTableWriter};
pub(crate) use paged::{PagedFile, PagedWriter, Section, Torn};
pub(crate) use text::{SegmentContent, SegmentMetadata, TextSegment, write_text_segment};
