//! Index files: named sections, with a checksum for each page.
//!
//! A file is a sequence of sections, then a directory of them, then one checksum for each page of all that, then a
//! footer. A page is checked once, when it is first touched. So a torn (half-written), corrupt or foreign file is
//! never trusted, and a lookup need not read the whole file to be sure of that.

use std::{
    fs::File,
    io::{self, BufWriter, Write},
    ops::Range,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::SystemTime,
};

use memmap2::Mmap;
use xxhash_rust::xxh3::xxh3_64;

use crate::plain_file::create_private;

#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;

const PAGE: usize = 1 << 14;
/// The format's version: it changes with every change of the layout, so that files of other versions are refused.
const MAGIC: [u8; 8] = *b"PINTLE\x00\x01";
const FOOTER: usize = 32;

/// The number that identifies a section.
pub(crate) type Section = u32;

/// The file is torn, corrupt or foreign: its bytes are not those that a build wrote for this index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the index is torn or foreign")]
pub(crate) struct Torn;

impl Torn {
    pub(crate) fn into_error(self) -> io::Error {
        io::Error::new(io::ErrorKind::InvalidData, self)
    }
}

/// Writes an index file.
pub(crate) struct PagedWriter {
    out: BufWriter<File>,
    page: Vec<u8>,
    checksums: Vec<u8>,
    written: u64,
    sections: Vec<(Section, Range<u64>)>,
    /// The section that is being written, and the offset of its start.
    open: Option<(Section, u64)>,
}

impl PagedWriter {
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let out = BufWriter::with_capacity(1 << 18, create_private(path)?);
        Ok(Self {
            out,
            page: Vec::with_capacity(PAGE),
            checksums: Vec::new(),
            written: 0,
            sections: Vec::new(),
            open: None,
        })
    }

    /// Begins a section. Everything that is written from now on belongs to it.
    pub(crate) fn begin(&mut self, section: Section) -> io::Result<()> {
        self.end_section();
        // Sections are aligned to eight bytes.
        let padding = self.written.next_multiple_of(8) - self.written;
        self.write_all(&[0; 8][..padding as usize])?;
        self.open = Some((section, self.written));
        Ok(())
    }

    fn end_section(&mut self) {
        if let Some((section, start)) = self.open.take() {
            self.sections.push((section, start..self.written));
        }
    }

    /// How many bytes the current section has so far.
    pub(crate) fn section_length(&self) -> u64 {
        self.open.map_or(0, |(_, start)| self.written - start)
    }

    /// Ends the file and returns its **seal**: the checksum of all page checksums, which identifies the file.
    pub(crate) fn finish(mut self) -> io::Result<u64> {
        self.end_section();
        let directory = self.written;
        for (section, range) in std::mem::take(&mut self.sections) {
            self.write_all(&u64::from(section).to_le_bytes())?;
            self.write_all(&range.start.to_le_bytes())?;
            self.write_all(&range.end.to_le_bytes())?;
        }
        self.end_page()?;
        let mut tail = std::mem::take(&mut self.checksums);
        tail.extend(MAGIC);
        tail.extend(directory.to_le_bytes());
        tail.extend(self.written.to_le_bytes());
        let seal = xxh3_64(&tail);
        tail.extend(seal.to_le_bytes());
        self.out.write_all(&tail)?;
        self.out.flush()?;
        Ok(seal)
    }

    fn end_page(&mut self) -> io::Result<()> {
        if !self.page.is_empty() {
            self.checksums.extend(xxh3_64(&self.page).to_le_bytes());
            self.out.write_all(&self.page)?;
            self.page.clear();
        }
        Ok(())
    }
}

impl Write for PagedWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(PAGE - self.page.len());
        self.page.extend_from_slice(&bytes[..count]);
        self.written += count as u64;
        if self.page.len() == PAGE {
            self.end_page()?;
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Binary search: the first number within a range for which `holds` is false. It must be true for all numbers before
/// that one and false for all after it.
pub(crate) fn partition_point(
    within: Range<usize>,
    holds: impl Fn(usize) -> Result<bool, Torn>,
) -> Result<usize, Torn> {
    let (mut low, mut high) = (within.start, within.end);
    while low < high {
        let middle = low.midpoint(high);
        if holds(middle)? {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Ok(low)
}

/// An index file, memory-mapped.
pub(crate) struct PagedFile {
    map: Mmap,
    file: Arc<File>,
    /// The length and modification time at the time of mapping.
    written: (u64, Option<SystemTime>),
    sections: Vec<(Section, Range<usize>)>,
    /// The length of all pages together.
    data: usize,
    /// A bitmap of the pages whose checksum was verified.
    checked: Vec<AtomicU64>,
}

impl PagedFile {
    /// Maps an open file, whose seal must be `seal`. An error of kind `InvalidData` means that the file is torn or
    /// foreign; any other error says nothing about its content.
    pub(crate) fn map(file: Arc<File>, seal: u64) -> io::Result<Self> {
        let metadata = file.metadata()?;
        let written = (metadata.len(), metadata.modified().ok());
        // SAFETY: index files are private to the state folder, written once under another name and never changed in
        // place by this program. If another program changes one, `is_unmodified` reports it before the next use.
        #[allow(unsafe_code)]
        let map = unsafe { Mmap::map(&*file)? };
        Self::check(map, file, written, seal).map_err(Torn::into_error)
    }

    fn check(
        map: Mmap,
        file: Arc<File>,
        written: (u64, Option<SystemTime>),
        seal: u64,
    ) -> Result<Self, Torn> {
        let body = map.len().checked_sub(FOOTER).ok_or(Torn)?;
        let number = |offset: usize| -> Result<usize, Torn> {
            let bytes = map.get(offset..offset + 8).and_then(|bytes| bytes.try_into().ok()).ok_or(Torn)?;
            usize::try_from(u64::from_le_bytes(bytes)).map_err(|_| Torn)
        };
        if map[body..body + 8] != MAGIC {
            return Err(Torn);
        }
        let (directory, data) = (number(body + 8)?, number(body + 16)?);
        if data.div_ceil(PAGE).checked_mul(8).and_then(|table| table.checked_add(data)) != Some(body) {
            return Err(Torn);
        }
        // The seal shows whether this is the very file that the manifest names.
        if number(body + 24)? as u64 != seal || xxh3_64(&map[data..body + 24]) != seal {
            return Err(Torn);
        }
        let pages = data.div_ceil(PAGE);
        let checked = (0..pages.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        let mut opened = Self { map, file, written, sections: Vec::new(), data, checked };
        let mut sections = Vec::new();
        for entry in opened.bytes(directory..data)?.chunks(24) {
            let number = |offset: usize| -> Result<usize, Torn> {
                let bytes =
                    entry.get(offset..offset + 8).and_then(|bytes| bytes.try_into().ok()).ok_or(Torn)?;
                usize::try_from(u64::from_le_bytes(bytes)).map_err(|_| Torn)
            };
            let range = number(8)?..number(16)?;
            if range.start > range.end || range.end > directory {
                return Err(Torn);
            }
            let section = Section::try_from(number(0)?).map_err(|_| Torn)?;
            sections.push((section, range));
        }
        opened.sections = sections;
        Ok(opened)
    }

    /// Whether the file has neither been truncated nor written to since it was mapped. Callers must ask before each
    /// search: reading a map beyond the end of its file raises SIGBUS, and a page's checksum is verified only once.
    pub(crate) fn is_unmodified(&self) -> io::Result<bool> {
        let metadata = self.file.metadata()?;
        Ok((metadata.len(), metadata.modified().ok()) == self.written)
    }

    /// Verifies the checksum of every page. An error of kind `InvalidData` means that one does not match.
    pub(crate) fn verify_checksums(&self) -> io::Result<()> {
        if !self.is_unmodified()? {
            return Err(Torn.into_error());
        }
        self.bytes(0..self.data).map(drop).map_err(Torn::into_error)
    }

    pub(crate) fn length(&self) -> u64 {
        self.written.0
    }

    /// The range of a section, or an empty range if the file has no such section.
    pub(crate) fn section(&self, section: Section) -> Range<usize> {
        self.sections.iter().find(|(name, _)| *name == section).map_or(0..0, |(_, range)| range.clone())
    }

    /// Returns the bytes of a range after verifying the checksums of its pages.
    pub(crate) fn bytes(&self, range: Range<usize>) -> Result<&[u8], Torn> {
        if range.start > range.end || range.end > self.data {
            return Err(Torn);
        }
        for page in range.start / PAGE..range.end.div_ceil(PAGE) {
            let (word, bit) = (&self.checked[page / 64], 1 << (page % 64));
            if word.load(Ordering::Relaxed) & bit == 0 {
                let content = &self.map[page * PAGE..((page + 1) * PAGE).min(self.data)];
                let offset = self.data + page * 8;
                if self.map[offset..offset + 8] != xxh3_64(content).to_le_bytes() {
                    return Err(Torn);
                }
                word.fetch_or(bit, Ordering::Relaxed);
            }
        }
        Ok(&self.map[range])
    }

    /// A range within a section.
    pub(crate) fn part(&self, section: &Range<usize>, part: Range<usize>) -> Result<&[u8], Torn> {
        let start = section.start.checked_add(part.start).ok_or(Torn)?;
        let end = section.start.checked_add(part.end).ok_or(Torn)?;
        if end > section.end {
            return Err(Torn);
        }
        self.bytes(start..end)
    }

    pub(crate) fn number(&self, section: &Range<usize>, index: usize) -> Result<u32, Torn> {
        let start = index.checked_mul(4).ok_or(Torn)?;
        let bytes = self.part(section, start..start + 4)?;
        Ok(u32::from_le_bytes(bytes.try_into().map_err(|_| Torn)?))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn open(path: &Path, seal: u64) -> io::Result<PagedFile> {
        PagedFile::map(Arc::new(File::open(path)?), seal)
    }

    fn written(folder: &Path, sections: &[(Section, Vec<u8>)]) -> (std::path::PathBuf, u64) {
        let path = folder.join("file");
        let mut writer = PagedWriter::create(&path).expect("a file");
        for (section, bytes) in sections {
            writer.begin(*section).expect("a section");
            writer.write_all(bytes).expect("written");
        }
        let seal = writer.finish().expect("finished");
        (path, seal)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
        #[test]
        fn sections_come_back_and_no_change_goes_unseen(
            lengths in prop::collection::vec(0_usize..40_000, 1..5),
            offset in any::<prop::sample::Index>(),
            flip in 1_u8..=255,
            keep in any::<prop::sample::Index>(),
        ) {
            let folder = tempfile::tempdir().expect("a folder");
            let sections = lengths.iter().zip(1..).map(|(length, name): (&usize, Section)| {
                (name, (0..*length).map(|byte| (byte as u32 * name) as u8).collect())
            });
            let sections = sections.collect::<Vec<(Section, Vec<u8>)>>();
            let (path, seal) = written(folder.path(), &sections);
            let file = open(&path, seal).expect("it opens");
            for (name, bytes) in &sections {
                prop_assert_eq!(file.bytes(file.section(*name)), Ok(bytes.as_slice()));
            }
            drop(file);

            let good = std::fs::read(&path).expect("bytes");
            let mut flipped = good.clone();
            flipped[offset.index(good.len())] ^= flip;
            std::fs::remove_file(&path).expect("removed");
            std::fs::write(&path, &flipped).expect("written");
            prop_assert!(open(&path, seal).and_then(|file| file.verify_checksums()).is_err());
            std::fs::write(&path, &good[..keep.index(good.len())]).expect("written");
            prop_assert!(open(&path, seal).and_then(|file| file.verify_checksums()).is_err());
        }
    }
}
