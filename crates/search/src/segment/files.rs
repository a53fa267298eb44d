//! The file table of a segment: a record of each file, sorted by path.

use std::{
    io::{self, Write},
    ops::Range,
};

use pintle_root::Stamp;

use super::paged::{PagedFile, PagedWriter, Section, Torn, partition_point};

const RECORDS: Section = 1;
const PATHS: Section = 2;
const FIRST_BLOCKS: Section = 3;
/// The size of a record: hash (32 bytes), size, mtime, inode and ctime (8 each), the offset of the path (4) and its
/// length (2), state and language (1 each).
const RECORD: usize = 72;

/// What the index knows about how a file can be searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum FileState {
    /// Its trigrams are in the posting lists.
    Indexed = 0,
    /// It has no trigrams in the index, so that every search scans it whole: its text is UTF-16, or it may have
    /// changed while it was read.
    ScanWhole = 1,
    /// It has a NUL byte.
    Binary = 2,
    /// It is larger than the size limit.
    TooLarge = 3,
    /// It could not be read.
    Unreadable = 4,
}

impl FileState {
    fn from_number(number: u8) -> Option<Self> {
        [Self::Indexed, Self::ScanWhole, Self::Binary, Self::TooLarge, Self::Unreadable]
            .into_iter()
            .find(|state| *state as u8 == number)
    }

    /// Whether searches return its lines.
    pub(crate) fn is_searched(self) -> bool {
        matches!(self, Self::Indexed | Self::ScanWhole)
    }
}

/// What the index stores about a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileRecord {
    pub(crate) stamp: Stamp,
    pub(crate) hash: [u8; 32],
    pub(crate) state: FileState,
    /// The language's number, or 0 if the language is unknown.
    pub(crate) language: u8,
}

#[derive(Default)]
pub(crate) struct FileTableWriter {
    records: Vec<u8>,
    paths: Vec<u8>,
    first_blocks: Vec<u8>,
}

impl FileTableWriter {
    /// Files must be added in the order of their paths.
    pub(crate) fn add(&mut self, path: &[u8], first_block: u32, file: &FileRecord) {
        self.records.extend(file.hash);
        self.records.extend(file.stamp.size.to_le_bytes());
        self.records.extend(file.stamp.modified.to_le_bytes());
        self.records.extend(file.stamp.inode.to_le_bytes());
        self.records.extend(file.stamp.changed.to_le_bytes());
        self.records.extend((self.paths.len() as u32).to_le_bytes());
        self.records.extend((path.len() as u16).to_le_bytes());
        self.records.extend([file.state as u8, file.language]);
        self.paths.extend(path);
        self.first_blocks.extend(first_block.to_le_bytes());
    }

    pub(crate) fn finish(mut self, blocks: u32, out: &mut PagedWriter) -> io::Result<()> {
        self.first_blocks.extend(blocks.to_le_bytes());
        for (section, bytes) in
            [(RECORDS, self.records), (PATHS, self.paths), (FIRST_BLOCKS, self.first_blocks)]
        {
            out.begin(section)?;
            out.write_all(&bytes)?;
        }
        Ok(())
    }
}

pub(crate) struct FileTable {
    records: Range<usize>,
    paths: Range<usize>,
    first_blocks: Range<usize>,
    count: u32,
    blocks: u32,
}

impl FileTable {
    pub(crate) fn open(file: &PagedFile) -> Result<Self, Torn> {
        let records = file.section(RECORDS);
        let count = u32::try_from(records.len() / RECORD).map_err(|_| Torn)?;
        let first_blocks = file.section(FIRST_BLOCKS);
        if !records.len().is_multiple_of(RECORD) || first_blocks.len() != (count as usize + 1) * 4 {
            return Err(Torn);
        }
        let blocks = file.number(&first_blocks, count as usize)?;
        Ok(Self { records, paths: file.section(PATHS), first_blocks, count, blocks })
    }

    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// The number of blocks of all files together.
    pub(crate) fn blocks(&self) -> u32 {
        self.blocks
    }

    pub(crate) fn path<'a>(&self, file: &'a PagedFile, number: u32) -> Result<&'a [u8], Torn> {
        let record = self.record(file, number)?;
        let start = u32::from_le_bytes(field(record, 64)?) as usize;
        let length = usize::from(u16::from_le_bytes(field(record, 68)?));
        file.part(&self.paths, start..start + length)
    }

    pub(crate) fn file(&self, file: &PagedFile, number: u32) -> Result<FileRecord, Torn> {
        let record = self.record(file, number)?;
        Ok(FileRecord {
            hash: field(record, 0)?,
            stamp: Stamp {
                // The device number is not stored: it changes when the file system is mounted again, and the index
                // must survive that.
                device: 0,
                size: u64::from_le_bytes(field(record, 32)?),
                modified: i64::from_le_bytes(field(record, 40)?),
                inode: u64::from_le_bytes(field(record, 48)?),
                changed: i64::from_le_bytes(field(record, 56)?),
            },
            state: FileState::from_number(record[70]).ok_or(Torn)?,
            language: record[71],
        })
    }

    /// The state and the language of a file, without decoding the rest of its record.
    pub(crate) fn state(&self, file: &PagedFile, number: u32) -> Result<(FileState, u8), Torn> {
        let record = self.record(file, number)?;
        Ok((FileState::from_number(record[70]).ok_or(Torn)?, record[71]))
    }

    fn record<'a>(&self, file: &'a PagedFile, number: u32) -> Result<&'a [u8], Torn> {
        let start = number as usize * RECORD;
        file.part(&self.records, start..start + RECORD)
    }

    pub(crate) fn blocks_of(&self, file: &PagedFile, number: u32) -> Result<Range<u32>, Torn> {
        let start = file.number(&self.first_blocks, number as usize)?;
        let end = file.number(&self.first_blocks, number as usize + 1)?;
        if start <= end { Ok(start..end) } else { Err(Torn) }
    }

    pub(crate) fn file_of_block(&self, file: &PagedFile, block: u32) -> Result<u32, Torn> {
        let all = 0..self.count as usize;
        let found = partition_point(all, |number| Ok(file.number(&self.first_blocks, number + 1)? <= block))?;
        u32::try_from(found).ok().filter(|found| *found < self.count).ok_or(Torn)
    }

    /// The number of the first file whose path is not less than `path`.
    pub(crate) fn lower_bound(&self, file: &PagedFile, path: &[u8]) -> Result<u32, Torn> {
        let all = 0..self.count as usize;
        Ok(partition_point(all, |number| Ok(self.path(file, number as u32)? < path))? as u32)
    }

    /// The number of the file with this path.
    pub(crate) fn find(&self, file: &PagedFile, path: &[u8]) -> Result<Option<u32>, Torn> {
        let number = self.lower_bound(file, path)?;
        Ok((number < self.count && self.path(file, number)? == path).then_some(number))
    }
}

fn field<const SIZE: usize>(record: &[u8], start: usize) -> Result<[u8; SIZE], Torn> {
    record.get(start..start + SIZE).and_then(|bytes| bytes.try_into().ok()).ok_or(Torn)
}
