//! The candidate files of a search, in the order of their paths.
//!
//! They come in batches, from windows of blocks that grow. A search whose page is full after the first batch never
//! reads the rest of the posting lists (early exit).

use std::{collections::VecDeque, iter::Peekable, ops::Range, vec::IntoIter};

use crate::{
    blocks,
    index::{FileId, Segment},
    pattern::Requirement,
    plan::Plan,
    segment::Torn,
    snapshot::Snapshot,
    verify::CandidateFile,
};

/// Decides whether a search covers a path, given the language if that is known.
pub(crate) type Admit<'a> = dyn Fn(&[u8], Option<u8>) -> bool + 'a;

/// The first batch comes from this many blocks, each later one from `WINDOW_GROWTH` times as many as the one before.
const FIRST_WINDOW: u32 = 64;
const WINDOW_GROWTH: u32 = 4;
/// Posting lists of up to this many bytes have so few blocks that one batch takes all of them: every further window
/// would touch pages whose checksums must be verified.
const SMALL_LIST_BYTES: usize = 256;

/// The number of blocks that is assumed for a file of unknown size.
const UNKNOWN_WEIGHT: usize = 2;

/// Iterates over the files that may match.
pub(crate) struct CandidateFiles<'a> {
    /// The first segment has most of the files. It is read window by window.
    first: Option<SegmentCandidates<'a>>,
    window: u32,
    /// The candidates of all later segments and of the overlay, or all files of a scan.
    others: VecDeque<CandidateFile<'a>>,
    snapshot: &'a Snapshot,
    admit: &'a Admit<'a>,
}

impl<'a> CandidateFiles<'a> {
    /// The candidates from the path `from` on.
    pub(crate) fn new(
        snapshot: &'a Snapshot,
        required: &'a Requirement,
        from: &[u8],
        admit: &'a Admit<'a>,
    ) -> Result<Self, Torn> {
        let mut segments = snapshot.index.segments.iter().zip(0..).map(|(segment, number)| {
            let start = if from.is_empty() {
                0
            } else {
                segment.text.files().lower_bound(segment.text.file(), from)?
            };
            SegmentCandidates::new(segment, number, required, start)
        });
        let first = segments.next().transpose()?;
        let has_small_lists = first.as_ref().is_some_and(|first| first.plan.estimate() <= SMALL_LIST_BYTES);
        let window = if has_small_lists { u32::MAX } else { FIRST_WINDOW };
        let mut candidates = Self { first, window, others: VecDeque::new(), snapshot, admit };
        let mut others = Vec::new();
        for segment in segments {
            let mut segment = segment?;
            segment.take(u32::MAX, &|path, language| candidates.is_admitted(path, language), &mut others)?;
        }
        for (path, file) in snapshot.overlay.files() {
            if file.state.is_searched() && path >= from && admit(path, Some(file.language)) {
                let weight = blocks::count(file.stamp.size) as usize;
                others.push(CandidateFile {
                    path,
                    id: None,
                    record: Some(file.clone()),
                    blocks: None,
                    weight,
                });
            }
        }
        others.sort_by(|one, other| one.path.cmp(other.path));
        if let Some(listing) = &snapshot.listing {
            let start = listing.files.partition_point(|path| path.as_slice() < from);
            // The size of a listed file is unknown until it is opened.
            let candidates = listing.files[start..].iter().filter(|path| admit(path, None));
            let weight = UNKNOWN_WEIGHT;
            others.extend(candidates.map(|path| CandidateFile {
                path,
                id: None,
                record: None,
                blocks: None,
                weight,
            }));
        }
        candidates.others = others.into();
        Ok(candidates)
    }

    /// The next batch; empty at the end.
    pub(crate) fn next(&mut self) -> Result<Vec<CandidateFile<'a>>, Torn> {
        let mut batch = Vec::new();
        while batch.is_empty()
            && let Some(mut first) = self.first.take()
        {
            first.take(self.window, &|path, language| self.is_admitted(path, language), &mut batch)?;
            self.window = self.window.saturating_mul(WINDOW_GROWTH);
            let beyond = first.next_path()?;
            let count =
                self.others.partition_point(|candidate| beyond.is_none_or(|beyond| candidate.path < beyond));
            if count > 0 {
                batch.extend(self.others.drain(..count));
                batch.sort_by(|one, other| one.path.cmp(other.path));
            }
            self.first = beyond.map(|_| first);
        }
        if batch.is_empty() {
            // This happens only without any segment, as in a scan.
            batch.extend(self.others.drain(..));
        }
        Ok(batch)
    }

    fn is_admitted(&self, path: &[u8], language: Option<u8>) -> bool {
        !self.snapshot.overlay.contains(path) && (self.admit)(path, language)
    }
}

/// The candidates of one segment.
struct SegmentCandidates<'a> {
    segment: &'a Segment,
    number: u32,
    plan: Plan<'a>,
    /// The files that every search scans whole.
    whole: Peekable<IntoIter<u32>>,
    /// The first file that no batch has covered yet.
    next: u32,
}

impl<'a> SegmentCandidates<'a> {
    fn new(segment: &'a Segment, number: u32, required: &'a Requirement, next: u32) -> Result<Self, Torn> {
        let text = &segment.text;
        let plan = Plan::new(text, required)?;
        let whole = text.scan_whole_files()?.into_iter().peekable();
        let has_no_candidates = plan.estimate() == 0 && whole.len() == 0;
        let next = if has_no_candidates { text.files().count() } else { next };
        Ok(Self { segment, number, plan, whole, next })
    }

    /// The path of the first file that no batch has covered yet.
    fn next_path(&self) -> Result<Option<&'a [u8]>, Torn> {
        let text = &self.segment.text;
        let has_next = self.next < text.files().count();
        has_next.then(|| text.files().path(text.file(), self.next)).transpose()
    }

    /// Appends the candidates among the files of the next `blocks` blocks.
    fn take(&mut self, blocks: u32, admit: &Admit<'_>, out: &mut Vec<CandidateFile<'a>>) -> Result<(), Torn> {
        let text = &self.segment.text;
        let (table, file) = (text.files(), text.file());
        if self.next >= table.count() {
            return Ok(());
        }
        let start = table.blocks_of(file, self.next)?.start;
        let last = start.saturating_add(blocks.max(1) - 1);
        let end = if last < table.blocks() { table.file_of_block(file, last)? + 1 } else { table.count() };
        // The window covers at least one file: a file without blocks may come before the one that has the last block.
        let files = self.next..end.max(self.next + 1);
        self.next = files.end;
        let window = start..table.blocks_of(file, files.end - 1)?.end;
        let Some(candidates) = self.plan.candidates(window)? else {
            return files.into_iter().try_for_each(|file| self.add(file, None, admit, out));
        };
        for (file, blocks) in self.by_file(&candidates)? {
            self.add_whole(files.start..file, admit, out)?;
            let is_whole = self.whole.next_if(|whole| *whole == file).is_some();
            self.add(file, (!is_whole).then_some(blocks), admit, out)?;
        }
        self.add_whole(files, admit, out)
    }

    /// Appends those files of a range that every search scans whole.
    fn add_whole(
        &mut self,
        files: Range<u32>,
        admit: &Admit<'_>,
        out: &mut Vec<CandidateFile<'a>>,
    ) -> Result<(), Torn> {
        while let Some(whole) = self.whole.next_if(|whole| *whole < files.end) {
            if whole >= files.start {
                self.add(whole, None, admit, out)?;
            }
        }
        Ok(())
    }

    fn add(
        &self,
        file: u32,
        blocks: Option<Vec<u32>>,
        admit: &Admit<'_>,
        out: &mut Vec<CandidateFile<'a>>,
    ) -> Result<(), Torn> {
        let text = &self.segment.text;
        let (state, language) = text.files().state(text.file(), file)?;
        let path = text.files().path(text.file(), file)?;
        if state.is_searched() && self.segment.is_live(file) && admit(path, Some(language)) {
            let weight = match &blocks {
                Some(blocks) => blocks.len(),
                None => text.files().blocks_of(text.file(), file)?.len(),
            };
            let id = Some(FileId { segment: self.number, file });
            out.push(CandidateFile { path, id, record: None, blocks, weight });
        }
        Ok(())
    }

    /// Groups blocks by their files.
    fn by_file(&self, blocks: &[u32]) -> Result<Vec<(u32, Vec<u32>)>, Torn> {
        let text = &self.segment.text;
        let mut grouped = Vec::new();
        let mut rest = blocks;
        while let Some(&block) = rest.first() {
            let file = text.files().file_of_block(text.file(), block)?;
            let end = text.files().blocks_of(text.file(), file)?.end;
            let count = rest.partition_point(|block| *block < end);
            let (own, others) = rest.split_at(count.max(1));
            grouped.push((file, own.to_vec()));
            rest = others;
        }
        Ok(grouped)
    }
}
