//! What searches for words and for symbols have in common.

use std::io::{self, Read};

use bstr::ByteSlice;
use pintle_ranked::{Definition, Found, Names, Words};
use pintle_root::Root;
use pintle_symbols::{Language, Outliner};
use sha2::{Digest, Sha256};

use super::{ContextLines, Cursor, Filter, Hit, context, hit::cut_text};
use crate::{
    build::{RANKED_LIMIT, definitions},
    index::{FileId, Index},
    segment::Torn,
    snapshot::{Overlay, OverlayRanked, Snapshot},
};

/// Which page of a ranking is wanted.
pub(crate) struct PageRequest {
    pub(crate) start: usize,
    pub(crate) top: usize,
    pub(crate) around: ContextLines,
    /// The budget for the text of the hits, in bytes.
    pub(crate) most_bytes: usize,
    pub(crate) fingerprint: u64,
}

impl PageRequest {
    pub(super) fn end(&self) -> usize {
        self.start.saturating_add(self.top)
    }

    pub(super) fn next(&self) -> Cursor {
        Cursor { query: self.fingerprint, count: self.end() as u64, path: Vec::new(), line: 0 }
    }
}

/// One of the indexes that a ranked search combines: that of a segment, or that of the overlay.
pub(super) enum RankedSource<'a> {
    Segment { index: &'a Index, number: u32, overlay: &'a Overlay, filter: &'a Filter<'a> },
    Overlay { ranked: &'a OverlayRanked, filter: &'a Filter<'a> },
}

/// The indexes of a snapshot: its segments, then its overlay.
pub(super) fn sources<'a>(
    snapshot: &'a Snapshot,
    ranked: &'a OverlayRanked,
    filter: &'a Filter<'a>,
) -> Vec<RankedSource<'a>> {
    let (index, overlay) = (&*snapshot.index, &*snapshot.overlay);
    let segments = (0..index.segments.len() as u32).map(|number| RankedSource::Segment {
        index,
        number,
        overlay,
        filter,
    });
    segments.chain([RankedSource::Overlay { ranked, filter }]).collect()
}

impl<'a> RankedSource<'a> {
    /// Returns `None` if the words are not built yet.
    pub(super) fn words(&self) -> io::Result<Option<Words<'a>>> {
        match self {
            Self::Segment { index, number, .. } => index.segments[*number as usize].words(),
            Self::Overlay { ranked, .. } => {
                Words::open(&ranked.words).map(Some).map_err(|_| Torn.into_error())
            }
        }
    }

    /// Returns `None` if the symbols are not built yet.
    pub(super) fn names(&self) -> io::Result<Option<Names<'a>>> {
        match self {
            Self::Segment { index, number, .. } => index.segments[*number as usize].names(),
            Self::Overlay { ranked, .. } => {
                Names::open(&ranked.names).map(Some).map_err(|_| Torn.into_error())
            }
        }
    }

    /// A filter for the files that the search covers; `None` if it covers all of them.
    pub(super) fn allowed(&self) -> Option<Box<dyn Fn(u32) -> bool + '_>> {
        match self {
            Self::Segment { index, number, overlay, filter } => {
                let segment = &index.segments[*number as usize];
                if filter.admits_all() && overlay.is_empty() && segment.has_no_deletions() {
                    return None;
                }
                Some(Box::new(move |file| {
                    let id = FileId { segment: *number, file };
                    segment.is_live(file)
                        && index.path(id).is_ok_and(|path| {
                            let language = index.file(id).map_or(0, |file| file.language);
                            !overlay.contains(path) && filter.admits(path, Some(language))
                        })
                }))
            }
            Self::Overlay { ranked, filter } => (!filter.admits_all()).then(|| {
                let admits = move |file: u32| {
                    let file = file as usize;
                    ranked
                        .paths
                        .get(file)
                        .is_some_and(|path| filter.admits(path, Some(ranked.languages[file])))
                };
                Box::new(admits) as Box<dyn Fn(u32) -> bool + '_>
            }),
        }
    }

    pub(super) fn path(&self, file: u32) -> Result<&'a [u8], Torn> {
        match self {
            Self::Segment { index, number, .. } => index.path(FileId { segment: *number, file }),
            Self::Overlay { ranked, .. } => ranked.paths.get(file as usize).map(Vec::as_slice).ok_or(Torn),
        }
    }
}

/// The content of a file.
pub(super) struct FileText {
    pub(super) bytes: Vec<u8>,
    hash: String,
}

/// Reads a file. Returns `None` if it cannot be read.
pub(super) fn read(root: &Root, path: &[u8]) -> Option<FileText> {
    let file = root.open_version(path).ok()?.file;
    let mut bytes = Vec::new();
    file.take(RANKED_LIMIT + 1).read_to_end(&mut bytes).ok()?;
    // A file that has grown beyond the limit since it was indexed has no words any more.
    if bytes.len() as u64 > RANKED_LIMIT {
        return None;
    }
    let hash = base16ct::lower::encode_string(&Sha256::digest(&bytes));
    Some(FileText { bytes, hash })
}

impl FileText {
    /// Where a definition is now, in case the file has changed since it was indexed; `None` if it is gone.
    pub(super) fn current(&self, found: &Found, path: &[u8]) -> Option<Definition> {
        let Definition { line, column, kind, .. } = found.definition;
        let start = self.line_start(line.into()) + column.saturating_sub(1) as usize;
        if self.bytes.get(start..).is_some_and(|rest| rest.starts_with(found.name.as_bytes())) {
            return Some(found.definition);
        }
        let language = Language::of_path(path)?;
        let mut defined = definitions(&mut Outliner::new(), language, &self.bytes, &|| false);
        let same = defined.find(|(name, now)| now.kind == kind && *name == found.name.as_bytes());
        same.map(|(_, definition)| definition)
    }

    /// The offset of a line, or of the last line if there are fewer.
    fn line_start(&self, line: u64) -> usize {
        let mut start = 0;
        for _ in 1..line {
            match memchr::memchr(b'\n', &self.bytes[start..]) {
                Some(end) => start += end + 1,
                None => break,
            }
        }
        start
    }

    /// Makes a hit of a line.
    pub(super) fn hit(&self, path: &[u8], line: u64, column: u64, around: ContextLines) -> Hit {
        let start = self.line_start(line);
        let end = memchr::memchr(b'\n', &self.bytes[start..]).map_or(self.bytes.len(), |end| start + end);
        let (text, text_column) = cut_text(&self.bytes[start..end], column);
        Hit {
            path: path.to_str_lossy().into_owned(),
            raw_path: path.to_owned(),
            line,
            column,
            end_line: line,
            text,
            text_column,
            before: context::lines_before(&self.bytes[..start], around.before),
            after: context::lines_after(&self.bytes[end..], around.after),
            hash: self.hash.clone(),
            kind: None,
            name: None,
            score: None,
        }
    }
}
