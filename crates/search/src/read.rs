//! Reads a file for the index: its hash, its line numbers and its trigrams.

use std::{
    fs::File,
    io::{self, Read},
};

use memchr::{memchr, memchr_iter};
use pintle_root::{Clocks, Root, Sighting, Stamp};
use pintle_symbols::Language;
use sha2::{Digest, Sha256};

use crate::{
    blocks::Cutter,
    segment::{FileRecord, FileState},
    trigrams::Collector,
};

/// Reads files, one after the other, into the same buffer.
pub(crate) struct FileReader {
    buffer: Vec<u8>,
    limit: u64,
    clocks: Clocks,
}

/// A file's record, and when it was first seen in that version.
pub(crate) struct Inspected {
    pub(crate) file: FileRecord,
    pub(crate) seen: Option<Sighting>,
}

/// A file as it goes into a segment.
pub(crate) struct IndexedFile {
    pub(crate) file: FileRecord,
    /// When the version that was read was first seen.
    pub(crate) seen: Option<Sighting>,
    /// The number of each block's first line.
    pub(crate) lines: Vec<u32>,
    /// Whether its trigrams were collected.
    has_trigrams: bool,
}

impl IndexedFile {
    /// Whether the file is racily clean: it may have changed after it was read without getting another stamp.
    pub(crate) fn is_racy(&self) -> bool {
        self.file.stamp.is_unknown() && self.file.state != FileState::Unreadable
    }

    /// Records that the file had the same content later, when it had this stamp. The stamp can then be trusted.
    pub(crate) fn confirm(&mut self, stamp: Stamp) {
        self.file.stamp = stamp;
        if self.has_trigrams {
            self.file.state = FileState::Indexed;
        }
    }
}

/// How much of a file is held in memory at once.
const WINDOW: usize = 1 << 20;

impl FileReader {
    /// Files over `limit` bytes are skipped.
    pub(crate) fn new(limit: u64) -> Self {
        Self { buffer: vec![0; WINDOW], limit, clocks: Clocks::default() }
    }

    /// Reads a file and collects its trigrams. The file had `blocks` blocks when the walk found it, and the first of
    /// them is the span's `first`th.
    pub(crate) fn index(
        &mut self,
        root: &Root,
        path: &[u8],
        found: Sighting,
        (blocks, first): (u32, u16),
        collector: &mut Collector,
    ) -> IndexedFile {
        let mut lines = vec![0; blocks as usize];
        let inspected = self.open_and_read(root, path, Some(found), &mut lines, Some((collector, first)));
        let Inspected { mut file, seen } = inspected;
        let has_trigrams = file.state == FileState::Indexed && (blocks > 0 || file.stamp.size == 0);
        // No trigrams were collected for a file that had no blocks and has grown since, and those of a file that may
        // have changed cannot be trusted. Every search scans such files whole.
        if file.state == FileState::Indexed && (file.stamp.is_unknown() || !has_trigrams) {
            file.state = FileState::ScanWhole;
        }
        IndexedFile { file, seen, lines, has_trigrams }
    }

    /// Reads a file without collecting trigrams. `seen` is when it was seen before, and its stamp then.
    pub(crate) fn inspect(&mut self, root: &Root, path: &[u8], seen: Option<Sighting>) -> Inspected {
        self.open_and_read(root, path, seen, &mut [], None)
    }

    fn open_and_read(
        &mut self,
        root: &Root,
        path: &[u8],
        seen: Option<Sighting>,
        lines: &mut [u32],
        collector: Option<(&mut Collector, u16)>,
    ) -> Inspected {
        let language = Language::of_path(path).map_or(0, Language::id);
        let version = match root.open_version(path) {
            Ok(version) => version,
            Err(_) => {
                let stamp = Stamp::default();
                let file = FileRecord { stamp, hash: [0; 32], state: FileState::Unreadable, language };
                return Inspected { file, seen: None };
            }
        };
        let (stamp, reading) = (version.stamp, self.clocks.reading(&version.file));
        let seen = seen.filter(|seen| seen.stamp == stamp).unwrap_or(Sighting { stamp, at: reading.at });
        let is_too_large = stamp.size > self.limit;
        let outcome = match is_too_large {
            true => Ok((FileState::TooLarge, [0; 32])),
            false => self.read(&version.file, lines, collector),
        };
        let (state, hash) = outcome.unwrap_or((FileState::Unreadable, [0; 32]));
        // Nothing matters about a file that is too large except its size, and that is in the stamp.
        let is_trusted = is_too_large || (stamp.is_settled(reading, Some(seen)) && version.is_unchanged());
        let stamp = if is_trusted { stamp } else { stamp.unknown() };
        Inspected { file: FileRecord { stamp, hash, state, language }, seen: Some(seen) }
    }

    fn read(
        &mut self,
        mut file: &File,
        lines: &mut [u32],
        mut collector: Option<(&mut Collector, u16)>,
    ) -> io::Result<(FileState, [u8; 32])> {
        let mut length = fill(&mut file, &mut self.buffer)?;
        let state = match has_utf16_bom(&self.buffer[..length]) {
            true => FileState::ScanWhole,
            false => FileState::Indexed,
        };
        let is_small = length < WINDOW;
        if has_nul(&self.buffer[..length]) {
            return Ok((FileState::Binary, [0; 32]));
        }
        // A file that does not fit into the buffer is read twice: first to look for a NUL, so that no trigrams of a
        // binary file must be removed again.
        if !is_small {
            while length > 0 {
                length = fill(&mut file, &mut self.buffer)?;
                if has_nul(&self.buffer[..length]) {
                    return Ok((FileState::Binary, [0; 32]));
                }
            }
            io::Seek::rewind(&mut file)?;
            length = fill(&mut file, &mut self.buffer)?;
        }
        // Trigrams are useless for a file that every search scans whole, and impossible without blocks.
        if state == FileState::ScanWhole || lines.is_empty() {
            collector = None;
        }
        let mut hasher = Sha256::new();
        let mut cutter = Cutter::new(lines.len() as u32);
        let (mut block, mut line) = (0_u32, 0_u32);
        while length > 0 {
            let mut text = &self.buffer[..length];
            hasher.update(text);
            while let Some((collector, first)) = collector.as_mut().filter(|_| !text.is_empty()) {
                let cut = cutter.cut(text);
                let (part, rest) = text.split_at(cut.length);
                text = rest;
                collector.add(part);
                line += memchr_iter(b'\n', part).count() as u32;
                if let Some(next) = cut.next {
                    collector.end_block(*first + block as u16);
                    lines[block as usize + 1..=next as usize].fill(line);
                    block = next;
                }
            }
            if is_small {
                break;
            }
            length = fill(&mut file, &mut self.buffer)?;
        }
        if let Some((collector, first)) = collector {
            collector.end_block(first + block as u16);
            lines[block as usize + 1..].fill(line);
        }
        Ok((state, hasher.finalize().into()))
    }
}

/// Whether a text begins with a UTF-16 byte order mark (BOM). ripgrep decodes such files before it searches them.
pub(crate) fn has_utf16_bom(text: &[u8]) -> bool {
    text.starts_with(b"\xff\xfe") || text.starts_with(b"\xfe\xff")
}

fn has_nul(text: &[u8]) -> bool {
    memchr(0, text).is_some()
}

/// Reads until the buffer is full or the file ends.
fn fill(file: &mut &File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while length < buffer.len() {
        match file.read(&mut buffer[length..]) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_with_times_of_another_clock_is_trusted_once_it_was_seen_for_a_step_of_it() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("a"), "one\n").expect("writes");
        let root = Root::open(folder.path()).expect("a root");
        let mut reader = FileReader { clocks: Clocks::of_other_machines(), ..FileReader::new(100) };
        let first = reader.inspect(&root, b"a", None);
        assert!(first.file.stamp.is_unknown());
        let seen = first.seen.expect("it was seen");
        // While the clock that gave the file its time may still show the same time, the stamp proves nothing.
        let just_seen =
            Sighting { at: std::time::Instant::now() + std::time::Duration::from_secs(600), ..seen };
        assert!(reader.inspect(&root, b"a", Some(just_seen)).file.stamp.is_unknown());
        while std::time::Instant::now() < seen.settles_at() {
            std::thread::yield_now();
        }
        let again = reader.inspect(&root, b"a", Some(seen)).file;
        assert_eq!((again.stamp, again.hash), (seen.stamp, first.file.hash));
        // After a change, the new version has to be seen for a step of the clock again.
        std::fs::write(folder.path().join("a"), "three\n").expect("writes");
        let changed = reader.inspect(&root, b"a", Some(seen));
        assert!(changed.file.stamp.is_unknown());
        assert_ne!(changed.seen.map(|seen| seen.stamp), Some(seen.stamp));
    }
}
