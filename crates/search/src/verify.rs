//! Candidate verification: does a line really match?
//!
//! A block that has all trigrams of the pattern is only a candidate. ripgrep's own searcher runs over the candidates
//! and decides, so the hits are exactly ripgrep's. Without an index the same code scans whole files.

use std::{fs::File, io, ops::Range, os::unix::fs::FileExt};

use grep_matcher::Matcher;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
use memchr::{memchr, memrchr};
use sha2::{Digest, Sha256};

use crate::{
    blocks::{self, BLOCK},
    index::FileId,
    pattern::{Pattern, StepwiseError},
    read::has_utf16_bom,
    segment::{FileRecord, FileState},
};
use pintle_root::{Root, Stamp};

/// A line that matches.
pub(crate) struct Line<'a> {
    /// From 1, or 0 if lines are not counted.
    pub(crate) number: u64,
    /// Without its line terminator.
    pub(crate) text: &'a [u8],
    /// The offset of the line in the file.
    pub(crate) start: u64,
    /// The column of the first match, in bytes from 1, if it is known already.
    pub(crate) column: Option<u64>,
}

impl Line<'_> {
    /// The column of the first match, in bytes from 1.
    pub(crate) fn column(&self, pattern: &Pattern) -> u64 {
        self.column.unwrap_or_else(|| column(pattern, self.text))
    }
}

/// Receives the lines that match.
pub(crate) trait LineSink: Send {
    /// Takes a matching line. Returns false if no more are wanted.
    fn line(&mut self, path: &[u8], line: Line<'_>) -> bool;
    /// Takes a context line: one before or after a matching line.
    fn context_line(&mut self, _path: &[u8], _line: Line<'_>) {}
    /// Called where lines between two groups of context lines are left out.
    fn context_break(&mut self) {}
    /// The current position, which `roll_back` takes.
    fn mark(&self) -> usize;
    /// Whether no more lines are wanted.
    fn is_full(&self) -> bool;
    /// Whether the sink holds so much that it should be handed over before the next file.
    fn should_flush(&self) -> bool {
        false
    }
    /// Drops everything that was taken since `mark`: the file changed while it was read, or is not text.
    fn roll_back(&mut self, mark: usize);
    /// Called for each file with the outcome of its verification.
    fn file_verified(&mut self, _outcome: Verified) {}
    /// Called for a file that could not be read.
    fn file_unreadable(&mut self, _path: &[u8]) {}
    /// Ends a file, whose lines were taken since `mark`. The hash is right only if it was asked for.
    fn end_file(&mut self, mark: usize, stamp: Stamp, hash: [u8; 32]);
}

/// What a search needs to know of its hits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VerifyOptions {
    pub(crate) line_numbers: bool,
    pub(crate) hashes: bool,
    /// The number of context lines before and after each match.
    pub(crate) context: usize,
    /// The most matching lines of one file.
    pub(crate) max_lines: u64,
}

/// A file that may match.
pub(crate) struct CandidateFile<'a> {
    pub(crate) path: &'a [u8],
    /// Its number in the index, if it is there.
    pub(crate) id: Option<FileId>,
    /// Its record, if it is in the overlay instead.
    pub(crate) record: Option<FileRecord>,
    /// The blocks that may match; `None` for all.
    pub(crate) blocks: Option<Vec<u32>>,
    /// How many blocks must be read.
    pub(crate) weight: usize,
}

/// A file's record in the index, and which of its blocks may match.
pub(crate) struct CandidateBlocks {
    pub(crate) file: FileRecord,
    pub(crate) blocks: u32,
    /// Ranges of blocks that may match, counted within the file, each with the number of its first line; `None` for
    /// all blocks.
    pub(crate) candidates: Option<Vec<(Range<u32>, u32)>>,
}

/// The outcome of verifying a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verified {
    /// The file is as the index has it.
    AsIndexed,
    /// The file has changed since it was indexed, or is not in the index.
    Differs(ActualFile),
}

/// What a file that differs from the index really is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ActualFile {
    Text,
    Binary,
    TooLarge,
    Unreadable,
    Gone,
}

/// How much of a file is held in memory at once, unless one line is longer.
const WINDOW: usize = 4 << 20;

/// How many bytes are searched between two checks for cancellation, if the pattern may be slow.
const PIECE: usize = 32 << 10;

/// Verifies files, one after the other, with one buffer.
pub(crate) struct Verifier<'a> {
    root: &'a Root,
    pattern: &'a Pattern,
    options: VerifyOptions,
    limit: u64,
    searcher: Searcher,
    buffer: Vec<u8>,
    has_ended: &'a (dyn Fn() -> bool + Sync),
}

impl<'a> Verifier<'a> {
    pub(crate) fn new(
        root: &'a Root,
        pattern: &'a Pattern,
        options: VerifyOptions,
        limit: u64,
        has_ended: &'a (dyn Fn() -> bool + Sync),
    ) -> Self {
        // BOM sniffing is off: these slices are parts of files, and a BOM in the middle of a text is text. A slice
        // needs no heap buffer either.
        let searcher = searcher(options).bom_sniffing(false).heap_limit(Some(1)).build();
        Self { root, pattern, options, limit, searcher, buffer: Vec::new(), has_ended }
    }

    /// Verifies a file. The sink receives all of its matching lines or, if the file is not text, none.
    pub(crate) fn verify(
        &mut self,
        path: &[u8],
        indexed: Option<&CandidateBlocks>,
        sink: &mut dyn LineSink,
    ) -> Verified {
        let version = match self.root.open_version(path) {
            Ok(version) => version,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Verified::Differs(ActualFile::Gone);
            }
            Err(_) => return Verified::Differs(ActualFile::Unreadable),
        };
        let mark = sink.mark();
        let indexed = indexed.filter(|indexed| indexed.file.stamp == version.stamp);
        if indexed.is_some_and(|indexed| !indexed.file.state.is_searched()) {
            return Verified::AsIndexed;
        }
        // Context lines may lie in other blocks, so with context the whole file is scanned.
        if let Some(indexed) = indexed.filter(|_| self.options.context == 0) {
            let outcome = self.verify_blocks(path, &version.file, indexed, sink);
            // A file that changes while it is read is scanned again as a whole.
            let is_same = sink.mark() == mark || version.is_unchanged();
            if outcome.is_ok() && is_same {
                sink.end_file(mark, version.stamp, indexed.file.hash);
                return Verified::AsIndexed;
            }
            sink.roll_back(mark);
        }
        let mut stamp = version.stamp;
        for round in 0..3 {
            if (self.has_ended)() {
                break;
            }
            if round > 0 {
                let Ok(now) = version.stamp_now() else { break };
                stamp = now;
            }
            if stamp.size > self.limit {
                return Verified::Differs(ActualFile::TooLarge);
            }
            let outcome = self.scan_file(path, &version.file, stamp.size, sink);
            match outcome {
                Ok(Some(hash)) if version.stamp_now().is_ok_and(|now| now == stamp) => {
                    sink.end_file(mark, stamp, hash);
                    return Verified::Differs(ActualFile::Text);
                }
                Ok(None) => {
                    sink.roll_back(mark);
                    return Verified::Differs(ActualFile::Binary);
                }
                _ => sink.roll_back(mark),
            }
        }
        Verified::Differs(ActualFile::Unreadable)
    }

    /// Searches whole lines of a text that begin at an offset of their file. Fails only if the call has ended.
    pub(crate) fn search_lines(
        &mut self,
        text: &[u8],
        start: u64,
        sink: &mut dyn LineSink,
    ) -> io::Result<bool> {
        self.search(b"", text, start, 0, sink)
    }

    /// Searches the candidate blocks of a file that is unchanged since it was indexed.
    fn verify_blocks(
        &mut self,
        path: &[u8],
        file: &File,
        indexed: &CandidateBlocks,
        sink: &mut dyn LineSink,
    ) -> io::Result<()> {
        let size = indexed.file.stamp.size;
        if indexed.file.state == FileState::ScanWhole {
            return self.decode(path, file, sink);
        }
        match &indexed.candidates {
            None => self.verify_byte_range(path, file, (0..size, size), 0, sink).map(drop),
            Some(candidates) => {
                for (range, line) in candidates {
                    let bytes = blocks::bytes(range.clone(), indexed.blocks, size);
                    if !self.verify_byte_range(path, file, (bytes, size), (*line).into(), sink)? {
                        break;
                    }
                }
                Ok(())
            }
        }
    }

    /// Searches the lines that start within a byte range. The first of them has the number `line`. Returns whether
    /// more lines are wanted.
    fn verify_byte_range(
        &mut self,
        path: &[u8],
        file: &File,
        (bytes, size): (Range<u64>, u64),
        line: u64,
        sink: &mut dyn LineSink,
    ) -> io::Result<bool> {
        // A line that begins before the range belongs to the block before. One byte more, in front of the range,
        // shows whether there is such a line.
        let mut is_within_line = bytes.start > 0;
        let mut offset = bytes.start - u64::from(is_within_line);
        let mut line = line;
        let first_wanted = |offset: u64| {
            // The last line may end beyond the range. The extra bytes nearly always contain its end.
            usize::try_from(bytes.end - offset).unwrap_or(usize::MAX).saturating_add(512).min(WINDOW)
        };
        // How many bytes to read, and how many of them the buffer holds already, all of one unfinished line.
        let (mut wanted, mut held) = (first_wanted(offset), 0);
        while offset < bytes.end {
            if (self.has_ended)() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let length = self.read(file, offset, held..wanted)?;
            let is_end = length < wanted || offset + length as u64 >= size;
            let mut text = std::mem::take(&mut self.buffer);
            let mut start = 0;
            if is_within_line {
                match memchr(b'\n', &text[..length]) {
                    Some(end) => start = end + 1,
                    None => start = length,
                }
                is_within_line = start == length && text[..length].last() != Some(&b'\n');
            }
            let limit = usize::try_from(bytes.end - offset).unwrap_or(usize::MAX);
            // Search up to the end of the last line that starts within the range or, if that was not read, of the
            // last complete line.
            let last_byte = (start < limit).then(|| held.max(limit - 1));
            let end = match last_byte.and_then(|last| memchr_from(b'\n', &text[..length], last)) {
                Some(end) => end + 1,
                None if is_end || start == length => length,
                None => memrchr(b'\n', &text[start.max(held)..length])
                    .map_or(start, |end| start.max(held) + end + 1),
            };
            let slice = &text[start.min(end)..end];
            let is_searched = start < limit && !slice.is_empty();
            let more = !is_searched || self.search(path, slice, offset + start as u64, line, sink)?;
            if self.options.line_numbers {
                line += memchr::memchr_iter(b'\n', slice).count() as u64;
            }
            if text.len() > 4 * WINDOW && end > start {
                text = Vec::new();
            }
            self.buffer = text;
            if !more || is_end || start >= limit {
                return Ok(more);
            }
            offset += end as u64;
            // The line is longer than the buffer: grow it and read on.
            let is_unfinished = end == start;
            held = if is_unfinished { length - end } else { 0 };
            if is_unfinished {
                self.buffer.copy_within(end..length, 0);
            }
            wanted = match is_unfinished {
                true => held.saturating_mul(4).max(first_wanted(offset.min(bytes.end))),
                false => first_wanted(offset.min(bytes.end)),
            };
        }
        Ok(true)
    }

    /// Fills the buffer from `offset` on, up to the end of the file. The first `wanted.start` bytes are there
    /// already.
    fn read(&mut self, file: &File, offset: u64, wanted: Range<usize>) -> io::Result<usize> {
        if self.buffer.len() < wanted.end {
            self.buffer.resize(wanted.end, 0);
        }
        let mut length = wanted.start;
        while length < wanted.end {
            match file.read_at(&mut self.buffer[length..wanted.end], offset + length as u64) {
                Ok(0) => break,
                Ok(count) => length += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(length)
    }

    /// Scans a whole file that the index does not know. Returns `None` if it is not text, and otherwise its hash, or
    /// zeros if it has no hits or hashes are not wanted.
    fn scan_file(
        &mut self,
        path: &[u8],
        file: &File,
        size: u64,
        sink: &mut dyn LineSink,
    ) -> io::Result<Option<[u8; 32]>> {
        let mark = sink.mark();
        // A file of a virtual file system such as /proc may have more bytes than its size says.
        let is_small = (1..WINDOW as u64).contains(&size);
        let length = self.read(file, 0, 0..if is_small { size as usize } else { WINDOW })?;
        if memchr(0, &self.buffer[..length]).is_some() {
            return Ok(None);
        }
        let is_encoded = has_utf16_bom(&self.buffer[..length]);
        if is_small || length < WINDOW {
            if is_encoded {
                self.decode(path, file, sink)?;
            } else {
                let text = std::mem::take(&mut self.buffer);
                let searched = self.search(path, &text[..length], 0, 0, sink);
                self.buffer = text;
                searched?;
            }
            let is_hashed = self.options.hashes && sink.mark() > mark;
            // Decoding does not use the buffer, so it still holds the file's raw bytes.
            let hash = if is_hashed { Sha256::digest(&self.buffer[..length]).into() } else { [0; 32] };
            return Ok(Some(hash));
        }
        let mut offset = length as u64;
        let is_text = self.each_window(file, &mut offset, &mut |text| memchr(0, text).is_none())?;
        if !is_text {
            return Ok(None);
        }
        if is_encoded {
            self.decode(path, file, sink)?;
        } else if self.options.context > 0 {
            let length = self.read(file, 0, 0..usize::try_from(offset).unwrap_or(usize::MAX))?;
            let text = std::mem::take(&mut self.buffer);
            self.search(path, &text[..length], 0, 0, sink)?;
        } else {
            self.verify_byte_range(path, file, (0..offset, offset), 0, sink)?;
        }
        if !self.options.hashes || sink.mark() == mark {
            return Ok(Some([0; 32]));
        }
        let mut hasher = Sha256::new();
        self.each_window(file, &mut 0, &mut |text| {
            hasher.update(text);
            true
        })?;
        Ok(Some(hasher.finalize().into()))
    }

    /// Reads a large file window by window, until its end or until `take` returns false. Returns whether the end was
    /// reached.
    fn each_window(
        &mut self,
        file: &File,
        offset: &mut u64,
        take: &mut dyn FnMut(&[u8]) -> bool,
    ) -> io::Result<bool> {
        loop {
            if (self.has_ended)() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let length = self.read(file, *offset, 0..WINDOW)?;
            if !take(&self.buffer[..length]) {
                return Ok(false);
            }
            *offset += length as u64;
            if length < WINDOW {
                return Ok(true);
            }
        }
    }

    /// Scans a file that ripgrep would decode first, because it starts with a UTF-16 BOM.
    fn decode(&mut self, path: &[u8], mut file: &File, sink: &mut dyn LineSink) -> io::Result<()> {
        io::Seek::rewind(&mut file)?;
        let sink = SinkAdapter { path, sink, start: 0, line: 0, more: true };
        let file = CancellableFile { file, has_ended: self.has_ended };
        searcher(self.options).build().search_reader(self.pattern.matcher(), file, sink)
    }

    /// Searches some whole lines, the first of which has the number `line`. Returns whether more lines are wanted.
    fn search(
        &mut self,
        path: &[u8],
        text: &[u8],
        start: u64,
        line: u64,
        sink: &mut dyn LineSink,
    ) -> io::Result<bool> {
        // As ripgrep does, skip a UTF-8 BOM and count columns from the byte after it.
        let (text, start) = match text.strip_prefix(b"\xef\xbb\xbf").filter(|_| start == 0) {
            Some(text) => (text, 3),
            None => (text, start),
        };
        let mut hits = SinkAdapter { path, sink, start, line, more: true };
        if !self.pattern.is_slow || text.len() <= PIECE || self.options.context > 0 {
            self.searcher.search_slice(self.pattern.matcher(), text, &mut hits)?;
            return Ok(hits.more);
        }
        // Cancellation is checked between pieces and, where one line is longer than a piece, within the line.
        let mut rest = text;
        while !rest.is_empty() && hits.more {
            if (self.has_ended)() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let end = match memrchr(b'\n', &rest[..rest.len().min(PIECE)]) {
                Some(end) => end + 1,
                None => memchr(b'\n', rest).map_or(rest.len(), |end| end + 1),
            };
            let (piece, after) = rest.split_at(end);
            self.search_piece(piece, &mut hits)?;
            hits.start += piece.len() as u64;
            if self.options.line_numbers {
                hits.line += memchr::memchr_iter(b'\n', piece).count() as u64;
            }
            rest = after;
        }
        Ok(hits.more)
    }

    fn search_piece(&mut self, piece: &[u8], hits: &mut SinkAdapter<'_>) -> io::Result<()> {
        if piece.len() > PIECE {
            let line = piece.strip_suffix(b"\n").unwrap_or(piece);
            match self.pattern.find(line, self.has_ended) {
                Ok(None) => return Ok(()),
                Ok(Some(offset)) => {
                    hits.more = hits.sink.line(
                        hits.path,
                        Line {
                            number: if self.options.line_numbers { hits.line + 1 } else { 0 },
                            text: line,
                            start: hits.start,
                            column: Some(offset as u64 + 1),
                        },
                    );
                    return Ok(());
                }
                Err(StepwiseError::Cancelled) => return Err(io::ErrorKind::Interrupted.into()),
                Err(StepwiseError::Unsupported) => {}
            }
        }
        self.searcher.search_slice(self.pattern.matcher(), piece, hits)
    }
}

fn searcher(options: VerifyOptions) -> SearcherBuilder {
    let mut builder = SearcherBuilder::new();
    builder
        .line_number(options.line_numbers)
        .binary_detection(BinaryDetection::none())
        .before_context(options.context)
        .after_context(options.context)
        // With context the searcher itself counts the matches, so that it still returns the lines after the last one.
        .max_matches((options.context > 0 && options.max_lines < u64::MAX).then_some(options.max_lines));
    builder
}

/// A file whose reads fail once the call has ended.
struct CancellableFile<'a> {
    file: &'a File,
    has_ended: &'a (dyn Fn() -> bool + Sync),
}

impl io::Read for CancellableFile<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // Not `Interrupted`, after which readers try again.
        if (self.has_ended)() { Err(io::ErrorKind::TimedOut.into()) } else { self.file.read(buffer) }
    }
}

/// Passes the searcher's matches on to a `LineSink`.
struct SinkAdapter<'a> {
    path: &'a [u8],
    sink: &'a mut dyn LineSink,
    /// The offset and line number of the searched text in the file.
    start: u64,
    line: u64,
    more: bool,
}

impl SinkAdapter<'_> {
    /// Converts a line of the searched text into a line of the file.
    fn line<'a>(&self, number: Option<u64>, offset: u64, text: &'a [u8]) -> Line<'a> {
        Line {
            number: number.map_or(0, |number| number + self.line),
            text: text.strip_suffix(b"\n").unwrap_or(text),
            start: self.start + offset,
            column: None,
        }
    }
}

impl Sink for SinkAdapter<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        let line = self.line(found.line_number(), found.absolute_byte_offset(), found.bytes());
        self.more = self.sink.line(self.path, line);
        Ok(self.more)
    }

    fn context(&mut self, _: &Searcher, found: &SinkContext<'_>) -> io::Result<bool> {
        let line = self.line(found.line_number(), found.absolute_byte_offset(), found.bytes());
        self.sink.context_line(self.path, line);
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        self.sink.context_break();
        Ok(true)
    }
}

/// The column of the first match in a line, in bytes from 1.
pub(crate) fn column(pattern: &Pattern, line: &[u8]) -> u64 {
    pattern.matcher().find(line).ok().flatten().map_or(1, |found| found.start() as u64 + 1)
}

fn memchr_from(byte: u8, text: &[u8], from: usize) -> Option<usize> {
    memchr(byte, text.get(from..)?).map(|offset| from + offset)
}

const _: () = assert!(WINDOW as u64 >= 2 * BLOCK);
