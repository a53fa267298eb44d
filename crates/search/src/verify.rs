//! Looking into files: does a line match, really?
//!
//! Blocks that have the trigrams of a pattern are candidates; ripgrep's own searcher decides.

use std::{fs::File, io, ops::Range, os::unix::fs::FileExt};

use grep_matcher::Matcher;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
use memchr::{memchr, memrchr};
use sha2::{Digest, Sha256};

use crate::{
    blocks::{self, BLOCK},
    index::FileId,
    pattern::{Pattern, StepwiseError},
    read::has_utf16_mark,
    segment::{FileRecord, FileState},
};
use pintle_root::{Root, Stamp};

/// A line that matches.
pub(crate) struct Line<'a> {
    /// From 1; 0 if lines are not counted.
    pub(crate) number: u64,
    /// Without its terminator.
    pub(crate) text: &'a [u8],
    /// Where it starts in the file.
    pub(crate) start: u64,
    /// Where its first match begins, in bytes from 1, if that is known already.
    pub(crate) column: Option<u64>,
}

impl Line<'_> {
    /// Where its first match begins, in bytes from 1.
    pub(crate) fn column(&self, pattern: &Pattern) -> u64 {
        self.column.unwrap_or_else(|| column(pattern, self.text))
    }
}

/// Takes the lines that match.
pub(crate) trait LineSink: Send {
    /// A line; false if no more are wanted.
    fn line(&mut self, path: &[u8], line: Line<'_>) -> bool;
    /// A line before or after one that matches.
    fn context_line(&mut self, _path: &[u8], _line: Line<'_>) {}
    /// Lines were left out.
    fn context_break(&mut self) {}
    /// How much was gathered so far.
    fn mark(&self) -> usize;
    /// Whether no more is wanted.
    fn is_full(&self) -> bool;
    /// Whether so much was gathered that it is better taken before more is.
    fn should_flush(&self) -> bool {
        false
    }
    /// Forgets what was gathered since a mark.
    fn roll_back(&mut self, mark: usize);
    /// What a file that was looked into was found to be.
    fn file_verified(&mut self, _looked: Verified) {}
    /// A file could not be read.
    fn file_unreadable(&mut self, _path: &[u8]) {}
    /// The file of the lines since `mark` is done; its hash, if that was asked for.
    fn end_file(&mut self, mark: usize, stamp: Stamp, hash: [u8; 32]);
}

/// What a search needs to know of its hits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VerifyOptions {
    pub(crate) line_numbers: bool,
    pub(crate) hashes: bool,
    /// How many lines before and after each.
    pub(crate) around: usize,
    /// How many lines of one file at most.
    pub(crate) most: u64,
}

/// A file to be looked into.
pub(crate) struct CandidateFile<'a> {
    pub(crate) path: &'a [u8],
    /// Where it is in the index, if it is.
    pub(crate) id: Option<FileId>,
    /// What is known of one that is not.
    pub(crate) record: Option<FileRecord>,
    /// The blocks that may match; `None` for all.
    pub(crate) blocks: Option<Vec<u32>>,
    /// How many blocks must be read.
    pub(crate) weight: usize,
}

/// What the index knows of a file.
pub(crate) struct CandidateBlocks {
    pub(crate) file: FileRecord,
    pub(crate) blocks: u32,
    /// The blocks that may match, counted within the file, as ranges, with the number of the line that each begins with; `None` for all.
    pub(crate) candidates: Option<Vec<(Range<u32>, u32)>>,
}

/// What looking into a file showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verified {
    /// It was as the index knew it.
    AsIndexed,
    /// It has changed or is new.
    Differs(ActualFile),
}

/// What a file that the index does not know was found to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ActualFile {
    Text,
    Binary,
    TooLarge,
    Unreadable,
    Gone,
}

/// How much of a file is held in memory, unless one line is longer.
const WINDOW: usize = 4 << 20;

/// How much is searched between two questions whether to go on, by an expression that may be slow.
const PIECE: usize = 32 << 10;

/// Looks into files, one after the other.
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
        // What is searched block by block was looked at for marks: those within a text are part of it. Slices need no
        // room to be read into.
        let searcher = searcher(options).bom_sniffing(false).heap_limit(Some(1)).build();
        Self { root, pattern, options, limit, searcher, buffer: Vec::new(), has_ended }
    }

    /// Looks into a file. What it has is gathered whole or, if it is no text, not at all.
    pub(crate) fn verify(
        &mut self,
        path: &[u8],
        known: Option<&CandidateBlocks>,
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
        let known = known.filter(|known| known.file.stamp == version.stamp);
        if known.is_some_and(|known| !known.file.state.is_searched()) {
            return Verified::AsIndexed;
        }
        // What lies around a line may lie in other blocks.
        if let Some(known) = known.filter(|_| self.options.around == 0) {
            let verified = self.verify_blocks(path, &version.file, known, sink);
            // A file that changes while it is read is read again, whole.
            let is_same = sink.mark() == mark || version.is_unchanged();
            if verified.is_ok() && is_same {
                sink.end_file(mark, version.stamp, known.file.hash);
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
            let verified = self.scan_file(path, &version.file, stamp.size, sink);
            match verified {
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

    /// Looks at those blocks of an unchanged file that may match.
    fn verify_blocks(
        &mut self,
        path: &[u8],
        file: &File,
        known: &CandidateBlocks,
        sink: &mut dyn LineSink,
    ) -> io::Result<()> {
        let size = known.file.stamp.size;
        if known.file.state == FileState::ScanWhole {
            return self.decode(path, file, sink);
        }
        match &known.candidates {
            None => self.verify_byte_range(path, file, (0..size, size), 0, sink).map(drop),
            Some(candidates) => {
                for (range, line) in candidates {
                    let bytes = blocks::bytes(range.clone(), known.blocks, size);
                    if !self.verify_byte_range(path, file, (bytes, size), (*line).into(), sink)? {
                        break;
                    }
                }
                Ok(())
            }
        }
    }

    /// Looks at the lines that start within some bytes, the first of which has the number `line`. Tells whether more
    /// are wanted.
    fn verify_byte_range(
        &mut self,
        path: &[u8],
        file: &File,
        (bytes, size): (Range<u64>, u64),
        line: u64,
        sink: &mut dyn LineSink,
    ) -> io::Result<bool> {
        // The line that the bytes begin within belongs to the block before. Whether there is one shows one byte more.
        let mut is_within_line = bytes.start > 0;
        let mut offset = bytes.start - u64::from(is_within_line);
        let mut line = line;
        let first_wanted = |offset: u64| {
            // The last line may go on beyond: a part of the next block most often has its end.
            usize::try_from(bytes.end - offset).unwrap_or(usize::MAX).saturating_add(512).min(WINDOW)
        };
        // How many bytes are asked for, and how many of them are held already: all of one unfinished line.
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
            // Up to the end of the last line that starts within the bytes, or of the last one that is held whole.
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
            // A line longer than what is held: more must be.
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

    /// Reads bytes from a offset on, as many as there are, of which the first are held already.
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

    /// Looks at a whole file that the index does not know. Gives its hash, if it has hits and hashes are wanted, or
    /// nothing if it is no text.
    fn scan_file(
        &mut self,
        path: &[u8],
        file: &File,
        size: u64,
        sink: &mut dyn LineSink,
    ) -> io::Result<Option<[u8; 32]>> {
        let mark = sink.mark();
        // A file of the kernel's own may have more than its size says.
        let is_small = (1..WINDOW as u64).contains(&size);
        let length = self.read(file, 0, 0..if is_small { size as usize } else { WINDOW })?;
        if memchr(0, &self.buffer[..length]).is_some() {
            return Ok(None);
        }
        let is_encoded = has_utf16_mark(&self.buffer[..length]);
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
            // What was decoded has left the buffer as it was.
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
        } else if self.options.around > 0 {
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

    /// Reads a large file from a offset on, until its end or until `take` has seen enough. Tells whether it is the end.
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

    /// Looks at a file that ripgrep would decode first.
    fn decode(&mut self, path: &[u8], mut file: &File, sink: &mut dyn LineSink) -> io::Result<()> {
        io::Seek::rewind(&mut file)?;
        let sink = SinkAdapter { path, sink, start: 0, line: 0, more: true };
        let file = CancellableFile { file, has_ended: self.has_ended };
        searcher(self.options).build().search_reader(self.pattern.matcher(), file, sink)
    }

    /// Looks at some lines, the first of which has the number `line`. Tells whether more are wanted.
    fn search(
        &mut self,
        path: &[u8],
        text: &[u8],
        start: u64,
        line: u64,
        sink: &mut dyn LineSink,
    ) -> io::Result<bool> {
        // ripgrep searches what follows the mark, and counts columns from there.
        let (text, start) = match text.strip_prefix(b"\xef\xbb\xbf").filter(|_| start == 0) {
            Some(text) => (text, 3),
            None => (text, start),
        };
        let mut hits = SinkAdapter { path, sink, start, line, more: true };
        if !self.pattern.is_slow || text.len() <= PIECE || self.options.around > 0 {
            self.searcher.search_slice(self.pattern.matcher(), text, &mut hits)?;
            return Ok(hits.more);
        }
        // Whether to go on is asked between pieces, and within a line that is longer than one.
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
        .before_context(options.around)
        .after_context(options.around)
        // The lines after the last one are still shown.
        .max_matches((options.around > 0 && options.most < u64::MAX).then_some(options.most));
    builder
}

/// A file that ends with an error once nobody waits for what is in it.
struct CancellableFile<'a> {
    file: &'a File,
    has_ended: &'a (dyn Fn() -> bool + Sync),
}

impl io::Read for CancellableFile<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // Not `Interrupted`: readers try again after that.
        if (self.has_ended)() { Err(io::ErrorKind::TimedOut.into()) } else { self.file.read(buffer) }
    }
}

/// Hands lines on as the searcher finds them.
struct SinkAdapter<'a> {
    path: &'a [u8],
    sink: &'a mut dyn LineSink,
    /// Where the text starts in the file, in bytes and lines.
    start: u64,
    line: u64,
    more: bool,
}

impl SinkAdapter<'_> {
    /// A line of the text that is searched, as a line of the file.
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

/// The byte of a line, from 1, at which its first match begins.
pub(crate) fn column(pattern: &Pattern, line: &[u8]) -> u64 {
    pattern.matcher().find(line).ok().flatten().map_or(1, |found| found.start() as u64 + 1)
}

fn memchr_from(byte: u8, text: &[u8], from: usize) -> Option<usize> {
    memchr(byte, text.get(from..)?).map(|offset| from + offset)
}

const _: () = assert!(WINDOW as u64 >= 2 * BLOCK);
