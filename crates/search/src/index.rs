//! An index as searches see it: the segments of one generation, without the files that are deleted or replaced.

use std::{
    collections::HashSet,
    fs::File,
    io,
    ops::Range,
    sync::{Arc, OnceLock},
};

use pintle_ranked::{Names, Words};
use pintle_root::scan::{PassedOver, Within};

use crate::{
    build::{NAMES, WORDS},
    segment::{FileRecord, FileState, PagedFile, Section, TextSegment, Torn},
    store::{Manifest, SealedFile, Store},
    verify::{CandidateBlocks, CandidateFile},
};

/// A segment, and which of its files are deleted: those that a later segment replaces, or has a tombstone for.
pub(crate) struct Segment {
    pub(crate) text: TextSegment,
    deleted: HashSet<u32>,
    words: Option<PinnedFile>,
    names: Option<PinnedFile>,
}

/// An open file of the index. Because it stays open, a snapshot can read it after a newer generation has removed it.
/// It is mapped, and its checksums are verified, when it is first needed.
struct PinnedFile {
    file: Arc<File>,
    seal: u64,
    mapped: OnceLock<PagedFile>,
}

impl PinnedFile {
    fn open(store: &Store, part: &SealedFile) -> io::Result<Self> {
        Ok(Self { file: store.open_sealed(part)?, seal: part.seal, mapped: OnceLock::new() })
    }

    /// An error of kind `InvalidData` means that the file is torn or foreign; any other error may be gone at the next
    /// try.
    fn mapped(&self) -> io::Result<&PagedFile> {
        let mapped = match self.mapped.get() {
            Some(mapped) => mapped,
            None => {
                let mapped = PagedFile::map(Arc::clone(&self.file), self.seal)?;
                mapped.verify_checksums()?;
                self.mapped.get_or_init(|| mapped)
            }
        };
        if mapped.is_unmodified()? { Ok(mapped) } else { Err(Torn.into_error()) }
    }

    fn bytes(&self, section: Section) -> io::Result<&[u8]> {
        let mapped = self.mapped()?;
        mapped.bytes(mapped.section(section)).map_err(Torn::into_error)
    }

    fn length(&self) -> u64 {
        self.file.metadata().map_or(0, |metadata| metadata.len())
    }
}

impl Segment {
    /// The words of its files; `None` if they are not built yet.
    pub(crate) fn words(&self) -> io::Result<Option<Words<'_>>> {
        let bytes = self.words.as_ref().map(|words| words.bytes(WORDS)).transpose()?;
        bytes.map(|bytes| Words::open(bytes).map_err(|_| Torn.into_error())).transpose()
    }

    /// The symbols that its files define; `None` if they are not built yet.
    pub(crate) fn names(&self) -> io::Result<Option<Names<'_>>> {
        let bytes = self.names.as_ref().map(|names| names.bytes(NAMES)).transpose()?;
        bytes.map(|bytes| Names::open(bytes).map_err(|_| Torn.into_error())).transpose()
    }

    /// Whether no later segment replaces or deletes any of its files.
    pub(crate) fn has_no_deletions(&self) -> bool {
        self.deleted.is_empty()
    }

    /// Whether a file is neither replaced nor deleted by a later segment.
    pub(crate) fn is_live(&self, file: u32) -> bool {
        !self.deleted.contains(&file)
    }
}

/// The segments of one generation, the oldest first.
pub(crate) struct Index {
    pub(crate) generation: u64,
    pub(crate) segments: Vec<Segment>,
}

/// Identifies a file of the index: the number of its segment, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct FileId {
    pub(crate) segment: u32,
    pub(crate) file: u32,
}

impl Index {
    /// Opens the segments that a manifest names. An error of kind `InvalidData` means that a file is torn or foreign.
    pub(crate) fn open(store: &Store, manifest: &Manifest) -> io::Result<Self> {
        // All files are opened before any is read. From then on the snapshot pins them: it does not matter if a newer
        // generation removes them.
        let mut opened = Vec::with_capacity(manifest.segments.len());
        for parts in &manifest.segments {
            let pin = |part: &Option<SealedFile>| {
                part.as_ref().map(|part| PinnedFile::open(store, part)).transpose()
            };
            opened.push((store.open_sealed(&parts.text)?, pin(&parts.words)?, pin(&parts.names)?));
        }
        let mut index = Self { generation: manifest.generation, segments: Vec::new() };
        for (parts, (text, words, names)) in manifest.segments.iter().zip(opened) {
            let text = TextSegment::map(text, parts.text.seal)?;
            index.add(text, words, names).map_err(Torn::into_error)?;
        }
        Ok(index)
    }

    fn add(
        &mut self,
        text: TextSegment,
        words: Option<PinnedFile>,
        names: Option<PinnedFile>,
    ) -> Result<(), Torn> {
        if !self.segments.is_empty() {
            // Earlier versions of its files are replaced, and the files of its tombstones are gone.
            let tombstones = text.tombstones()?;
            for number in 0..text.files().count() {
                self.mark_deleted(text.files().path(text.file(), number)?)?;
            }
            tombstones.iter().try_for_each(|path| self.mark_deleted(path))?;
        }
        self.segments.push(Segment { text, deleted: HashSet::new(), words, names });
        Ok(())
    }

    fn mark_deleted(&mut self, path: &[u8]) -> Result<(), Torn> {
        for segment in &mut self.segments {
            if let Some(number) = segment.text.files().find(segment.text.file(), path)? {
                segment.deleted.insert(number);
            }
        }
        Ok(())
    }

    /// How many files the last walk of the whole root skipped, by folder and reason.
    pub(crate) fn skipped(&self) -> Result<PassedOver, Torn> {
        let known = self.segments.iter().rev().find_map(|segment| segment.text.skipped().transpose());
        known.unwrap_or_else(|| Ok(PassedOver::new()))
    }

    /// Whether no text file of the index has been truncated or written to since it was mapped.
    pub(crate) fn is_unmodified(&self) -> io::Result<bool> {
        for segment in &self.segments {
            if !segment.text.file().is_unmodified()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Verifies the checksums of all files. An error of kind `InvalidData` means that one does not match.
    pub(crate) fn verify_checksums(&self) -> io::Result<()> {
        for segment in &self.segments {
            segment.text.file().verify_checksums()?;
            for part in [&segment.words, &segment.names].into_iter().flatten() {
                part.mapped()?;
            }
        }
        Ok(())
    }

    /// The size on disk: of the text parts, and of everything.
    pub(crate) fn bytes(&self) -> (u64, u64) {
        let text = self.segments.iter().map(|segment| segment.text.file().length()).sum::<u64>();
        let parts = self.segments.iter().flat_map(|segment| [&segment.words, &segment.names]).flatten();
        (text, text + parts.map(PinnedFile::length).sum::<u64>())
    }

    /// Finds the live file with this path.
    pub(crate) fn find(&self, path: &[u8]) -> Result<Option<FileId>, Torn> {
        // At most one segment has a live file of this path: in all others it is deleted.
        for (segment, number) in self.segments.iter().zip(0..) {
            if let Some(file) = segment.text.files().find(segment.text.file(), path)?
                && !segment.deleted.contains(&file)
            {
                return Ok(Some(FileId { segment: number, file }));
            }
        }
        Ok(None)
    }

    pub(crate) fn segment(&self, id: FileId) -> &Segment {
        &self.segments[id.segment as usize]
    }

    pub(crate) fn path(&self, id: FileId) -> Result<&[u8], Torn> {
        let text = &self.segment(id).text;
        text.files().path(text.file(), id.file)
    }

    pub(crate) fn file(&self, id: FileId) -> Result<FileRecord, Torn> {
        let text = &self.segment(id).text;
        text.files().file(text.file(), id.file)
    }

    /// All live files, segment by segment.
    pub(crate) fn live_files(&self) -> impl Iterator<Item = FileId> {
        self.segments.iter().zip(0..).flat_map(|(segment, number)| {
            let all = 0..segment.text.files().count();
            let alive = all.filter(|file| !segment.deleted.contains(file));
            alive.map(move |file| FileId { segment: number, file })
        })
    }

    /// The live files that are, or are below, one of the target paths.
    pub(crate) fn live_files_within(&self, within: &Within) -> Result<Vec<FileId>, Torn> {
        let mut ids = Vec::new();
        for (segment, number) in self.segments.iter().zip(0..) {
            let (files, file) = (segment.text.files(), segment.text.file());
            for target in within.targets() {
                let below = [target, b"/"].concat();
                // `0` is the byte after `/`, so the subtree of `target` is the range from `target/` to `target0`.
                let beyond = [target, b"0"].concat();
                let below = match target.is_empty() {
                    true => 0..files.count(),
                    false => files.lower_bound(file, &below)?..files.lower_bound(file, &beyond)?,
                };
                let all = files.find(file, target)?.into_iter().chain(below);
                let alive = all.filter(|number| !segment.deleted.contains(number));
                ids.extend(alive.map(|file| FileId { segment: number, file }));
            }
        }
        ids.sort_unstable();
        ids.dedup();
        Ok(ids)
    }

    /// The index record of a candidate file, with the blocks that may match.
    pub(crate) fn candidate_blocks(
        &self,
        candidate: &CandidateFile<'_>,
    ) -> Result<Option<CandidateBlocks>, Torn> {
        let Some(id) = candidate.id else {
            return Ok(candidate.record.clone().map(|file| CandidateBlocks {
                file,
                blocks: 0,
                candidates: None,
            }));
        };
        let text = &self.segment(id).text;
        let all = text.files().blocks_of(text.file(), id.file)?;
        let file = text.files().file(text.file(), id.file)?;
        let candidates = match &candidate.blocks {
            // If every block may match, the file is better read from start to end.
            Some(blocks) if blocks.len() < all.len() && file.state == FileState::Indexed => {
                let mut ranges: Vec<(Range<u32>, u32)> = Vec::new();
                for block in blocks {
                    let own = block - all.start;
                    match ranges.last_mut() {
                        Some((range, _)) if range.end == own => range.end += 1,
                        _ => ranges.push((own..own + 1, text.first_line(*block)?)),
                    }
                }
                Some(ranges)
            }
            _ => None,
        };
        Ok(Some(CandidateBlocks { file, blocks: all.len() as u32, candidates }))
    }
}
