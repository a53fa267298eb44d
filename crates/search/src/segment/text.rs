//! The part of a segment that answers text searches: the file table, the blocks and the posting lists.

use std::{
    fs::File,
    io::{self, Write},
    ops::Range,
    path::Path,
    sync::Arc,
};

use super::{
    files::{FileRecord, FileTable, FileTableWriter},
    paged::{PagedFile, PagedWriter, Section, Torn, partition_point},
};
use crate::trigrams::{Run, Trigram, codec::PostingList, merge};
use pintle_root::scan::{Passed, PassedOver};

const LINES: Section = 10;
const POSTING_LISTS: Section = 11;
/// Each trigram with the offset of its posting list, four bytes each, and at the end the offset where the last list
/// ends. Both numbers are in the same record, so that a lookup touches (and verifies) one page for them.
const TRIGRAMS: Section = 12;
/// Every 512th trigram. A lookup does a binary search here first, and then touches one page of `TRIGRAMS`.
const SAMPLES: Section = 17;
const SAMPLE_INTERVAL: usize = 512;
/// The files that every search scans whole.
const SCAN_WHOLE: Section = 14;

/// The paths of files that earlier segments know and that are gone.
const TOMBSTONES: Section = 15;
/// How many files the walk skipped, by folder and reason.
const SKIPPED: Section = 16;

/// What a segment stores besides its files.
#[derive(Default)]
pub(crate) struct SegmentMetadata<'a> {
    pub(crate) tombstones: &'a [Vec<u8>],
    pub(crate) skipped: Option<&'a PassedOver>,
}

/// What a segment is written from.
pub(crate) struct SegmentContent<'a> {
    pub(crate) files: FileTableWriter,
    /// The number of each block's first line.
    pub(crate) lines: &'a [u32],
    /// The files that every search scans whole.
    pub(crate) whole: &'a [u32],
    pub(crate) metadata: &'a SegmentMetadata<'a>,
    /// The postings, as sorted runs.
    pub(crate) runs: &'a [Run],
}

/// Writes a segment and returns its seal.
pub(crate) fn write_text_segment(
    path: &Path,
    content: SegmentContent<'_>,
    threads: usize,
    has_ended: &(dyn Fn() -> bool + Sync),
) -> io::Result<u64> {
    let SegmentContent { files, lines, whole, metadata, runs } = content;
    let mut out = PagedWriter::create(path)?;
    let blocks = lines.len() as u32;
    files.finish(blocks, &mut out)?;
    for (section, numbers) in [(LINES, lines), (SCAN_WHOLE, whole)] {
        out.begin(section)?;
        write_numbers(numbers.iter().copied(), &mut out)?;
    }
    out.begin(TOMBSTONES)?;
    for path in metadata.tombstones {
        out.write_all(path)?;
        // A NUL ends the path: no path contains one.
        out.write_all(&[0])?;
    }
    if let Some(skipped) = metadata.skipped {
        out.begin(SKIPPED)?;
        for (folder, counts) in skipped {
            for (reason, count) in counts {
                out.write_all(&[*reason as u8])?;
                out.write_all(&count.to_le_bytes())?;
                out.write_all(folder)?;
                out.write_all(&[0])?;
            }
        }
        out.write_all(&[0])?;
    }
    out.begin(POSTING_LISTS)?;
    let mut trigrams = Vec::new();
    merge(runs, blocks, threads, has_ended, |merged| {
        let start = u32::try_from(out.section_length()).map_err(|_| io::ErrorKind::FileTooLarge)?;
        for (trigram, offset) in merged.trigrams {
            trigrams.push([trigram, start.checked_add(offset).ok_or(io::ErrorKind::FileTooLarge)?]);
        }
        out.write_all(&merged.posting_lists)
    })?;
    let end = u32::try_from(out.section_length()).map_err(|_| io::ErrorKind::FileTooLarge)?;
    out.begin(SAMPLES)?;
    write_numbers(trigrams.iter().step_by(SAMPLE_INTERVAL).map(|[trigram, _]| *trigram), &mut out)?;
    out.begin(TRIGRAMS)?;
    write_numbers(trigrams.into_iter().flatten().chain([Trigram::MAX, end]), &mut out)?;
    out.finish()
}

fn write_numbers(numbers: impl Iterator<Item = u32>, out: &mut PagedWriter) -> io::Result<()> {
    for number in numbers {
        out.write_all(&number.to_le_bytes())?;
    }
    Ok(())
}

/// A segment that is open for reading.
pub(crate) struct TextSegment {
    file: PagedFile,
    files: FileTable,
    lines: Range<usize>,
    posting_lists: Range<usize>,
    samples: Range<usize>,
    trigrams: Range<usize>,
    whole: Range<usize>,
}

impl TextSegment {
    pub(crate) fn map(file: Arc<File>, seal: u64) -> io::Result<Self> {
        let file = PagedFile::map(file, seal)?;
        let files = FileTable::open(&file).map_err(Torn::into_error)?;
        let [lines, posting_lists, samples, trigrams, whole] =
            [LINES, POSTING_LISTS, SAMPLES, TRIGRAMS, SCAN_WHOLE].map(|section| file.section(section));
        let count = (trigrams.len() / 8).checked_sub(1);
        let are_sampled = count.is_some_and(|count| samples.len() / 4 == count.div_ceil(SAMPLE_INTERVAL));
        if lines.len() != files.blocks() as usize * 4 || !are_sampled {
            return Err(Torn.into_error());
        }
        Ok(Self { file, files, lines, posting_lists, samples, trigrams, whole })
    }

    pub(crate) fn file(&self) -> &PagedFile {
        &self.file
    }

    pub(crate) fn files(&self) -> &FileTable {
        &self.files
    }

    pub(crate) fn known(&self, number: u32) -> io::Result<FileRecord> {
        self.files.file(&self.file, number).map_err(Torn::into_error)
    }

    pub(crate) fn path(&self, number: u32) -> io::Result<&[u8]> {
        self.files.path(&self.file, number).map_err(Torn::into_error)
    }

    /// The number of a block's first line, from 0.
    pub(crate) fn first_line(&self, block: u32) -> Result<u32, Torn> {
        self.file.number(&self.lines, block as usize)
    }

    /// The files that every search scans whole.
    pub(crate) fn scan_whole_files(&self) -> Result<Vec<u32>, Torn> {
        (0..self.whole.len() / 4).map(|index| self.file.number(&self.whole, index)).collect()
    }

    /// The paths of files that earlier segments know and that are gone.
    pub(crate) fn tombstones(&self) -> Result<Vec<Vec<u8>>, Torn> {
        let bytes = self.file.bytes(self.file.section(TOMBSTONES))?;
        Ok(bytes.split_inclusive(|byte| *byte == 0).map(|path| path[..path.len() - 1].to_vec()).collect())
    }

    /// How many files the walk skipped; `None` if the walk did not cover the whole root.
    pub(crate) fn skipped(&self) -> Result<Option<PassedOver>, Torn> {
        let section = self.file.section(SKIPPED);
        let Some((_, mut rest)) = self.file.bytes(section)?.split_last() else { return Ok(None) };
        let mut skipped = PassedOver::new();
        while let Some((&reason, after)) = rest.split_first() {
            let (count, after) = after.split_first_chunk::<8>().ok_or(Torn)?;
            let end = memchr::memchr(0, after).ok_or(Torn)?;
            let reason = Passed::from_number(reason).ok_or(Torn)?;
            skipped.entry(after[..end].to_vec()).or_default().insert(reason, u64::from_le_bytes(*count));
            rest = &after[end + 1..];
        }
        Ok(Some(skipped))
    }

    /// The range of a trigram's posting list; `None` if no block contains the trigram.
    pub(crate) fn find_postings(&self, trigram: Trigram) -> Result<Option<Range<usize>>, Torn> {
        // The samples narrow the search to one page of trigrams, because the checksum of every page that is touched
        // must be verified.
        let samples = 0..self.samples.len() / 4;
        let sample =
            partition_point(samples, |sample| Ok(self.file.number(&self.samples, sample)? <= trigram))?;
        let Some(sample) = sample.checked_sub(1) else { return Ok(None) };
        let known = |record: usize| self.file.number(&self.trigrams, record * 2);
        let begins = |record: usize| self.file.number(&self.trigrams, record * 2 + 1);
        let count = self.trigrams.len() / 8 - 1;
        let near = sample * SAMPLE_INTERVAL..((sample + 1) * SAMPLE_INTERVAL).min(count);
        let record = partition_point(near.clone(), |record| Ok(known(record)? < trigram))?;
        if record == near.end || known(record)? != trigram {
            return Ok(None);
        }
        let (start, end) = (begins(record)? as usize, begins(record + 1)? as usize);
        if start < end { Ok(Some(start..end)) } else { Err(Torn) }
    }

    /// Opens the posting list at a range that `find_postings` returned.
    pub(crate) fn posting_list(&self, range: Range<usize>) -> Result<PostingList<'_>, Torn> {
        PostingList::read(self.file.part(&self.posting_lists, range)?, self.files.blocks()).ok_or(Torn)
    }
}
