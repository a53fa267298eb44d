//! Sorted runs: what a builder writes out (spills) when its memory budget is used up, to be merged at the end.
//!
//! All runs of one builder are in one file, so that their number costs no file handles: an anonymous
//! file in the scratch folder, which vanishes with its handle, or memory.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::bits::take_varint;

/// A run is written in pieces of about this size.
const PIECE: usize = 256 << 10;
/// A reader has at least this much buffer, and no single thing that it reads is longer than half of it.
const SMALLEST_BUFFER: usize = 4 << 10;
/// More buffer than this makes reading no faster.
const LARGEST_BUFFER: usize = 256 << 10;

enum Storage {
    /// Nothing was written yet; where the file will be.
    Nowhere(Option<PathBuf>),
    Memory(Vec<u8>),
    File(File),
}

/// The runs of one builder.
pub(crate) struct Runs {
    storage: Storage,
    written: u64,
    started_at: u64,
    piece: Vec<u8>,
    segments: Vec<Range<u64>>,
}

impl Runs {
    /// No runs yet. With no folder they stay in memory.
    pub(crate) fn new(scratch: Option<&Path>) -> Self {
        let storage = Storage::Nowhere(scratch.map(Path::to_owned));
        Self { storage, written: 0, started_at: 0, piece: Vec::new(), segments: Vec::new() }
    }

    /// Where the current run is appended to; call [`Runs::write_piece`] now and then.
    pub(crate) fn piece(&mut self) -> &mut Vec<u8> {
        &mut self.piece
    }

    /// Puts the piece away if it has grown large.
    #[inline]
    pub(crate) fn write_piece(&mut self) -> io::Result<()> {
        if self.piece.len() >= PIECE { self.put_away() } else { Ok(()) }
    }

    fn put_away(&mut self) -> io::Result<()> {
        if let Storage::Nowhere(scratch) = &self.storage {
            self.storage = match scratch {
                Some(folder) => Storage::File(tempfile::tempfile_in(folder)?),
                None => Storage::Memory(Vec::new()),
            };
        }
        match &mut self.storage {
            Storage::File(file) => file.write_all(&self.piece)?,
            Storage::Memory(bytes) => bytes.extend_from_slice(&self.piece),
            Storage::Nowhere(_) => {}
        }
        self.written += self.piece.len() as u64;
        self.piece.clear();
        Ok(())
    }

    /// Ends the current run.
    pub(crate) fn end_run(&mut self) -> io::Result<()> {
        self.put_away()?;
        self.segments.push(self.started_at..self.written);
        self.started_at = self.written;
        Ok(())
    }

    /// How many runs there are.
    pub(crate) fn len(&self) -> usize {
        self.segments.len()
    }

    /// A reader for every run, with buffers of this size.
    pub(crate) fn readers(&self, buffer: usize) -> impl Iterator<Item = RunReader<'_>> {
        let size = buffer.clamp(SMALLEST_BUFFER, LARGEST_BUFFER);
        self.segments.iter().map(move |segment| RunReader {
            runs: self,
            rest: segment.clone(),
            buffer: Vec::new(),
            position: 0,
            size: size.min((segment.end - segment.start) as usize),
        })
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        match &self.storage {
            Storage::Nowhere(_) => Err(io::ErrorKind::UnexpectedEof.into()),
            Storage::Memory(bytes) => {
                let start = offset as usize;
                match bytes.get(start..start + into.len()) {
                    Some(bytes) => into.copy_from_slice(bytes),
                    None => return Err(io::ErrorKind::UnexpectedEof.into()),
                }
                Ok(())
            }
            Storage::File(file) => {
                let mut file = file;
                file.seek(SeekFrom::Start(offset))?;
                file.read_exact(into)
            }
        }
    }
}

/// Reads one run from its beginning to its end.
pub(crate) struct RunReader<'a> {
    runs: &'a Runs,
    rest: Range<u64>,
    buffer: Vec<u8>,
    position: usize,
    size: usize,
}

impl RunReader<'_> {
    /// Whether everything was read.
    pub(crate) fn is_done(&self) -> bool {
        self.position == self.buffer.len() && self.rest.is_empty()
    }

    /// Sees to it that this many bytes are in the buffer, if there are so many.
    #[inline]
    fn prepare(&mut self, bytes: usize) -> io::Result<()> {
        if self.buffer.len() - self.position >= bytes || self.rest.is_empty() {
            Ok(())
        } else {
            self.refill()
        }
    }

    fn refill(&mut self) -> io::Result<()> {
        self.buffer.drain(..self.position);
        self.position = 0;
        let kept = self.buffer.len();
        let more = (self.rest.end - self.rest.start).min(self.size.saturating_sub(kept).max(1) as u64);
        self.buffer.resize(kept + more as usize, 0);
        self.runs.read(self.rest.start, &mut self.buffer[kept..])?;
        self.rest.start += more;
        Ok(())
    }

    /// The next number.
    #[inline]
    pub(crate) fn varint(&mut self) -> io::Result<u64> {
        self.prepare(10)?;
        let mut rest = self.buffer.get(self.position..).unwrap_or_default();
        let value = take_varint(&mut rest).ok_or(io::ErrorKind::UnexpectedEof)?;
        self.position = self.buffer.len() - rest.len();
        Ok(value)
    }

    /// The next bytes; not more than half the smallest buffer.
    pub(crate) fn bytes(&mut self, count: usize) -> io::Result<&[u8]> {
        self.prepare(count)?;
        let start = self.position;
        let bytes = self.buffer.get(start..start + count).ok_or(io::ErrorKind::UnexpectedEof)?;
        self.position += count;
        Ok(bytes)
    }

    /// The next byte.
    #[inline]
    pub(crate) fn byte(&mut self) -> io::Result<u8> {
        self.prepare(1)?;
        let byte = *self.buffer.get(self.position).ok_or(io::ErrorKind::UnexpectedEof)?;
        self.position += 1;
        Ok(byte)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::push_varint;

    fn round_trip(scratch: Option<&Path>) {
        let mut runs = Runs::new(scratch);
        for run in 0..3u64 {
            for number in 0..50_000u64 {
                push_varint(runs.piece(), number * (run + 1));
                runs.piece().push(number as u8);
                runs.piece().extend_from_slice(b"some bytes");
                runs.write_piece().expect("written");
            }
            runs.end_run().expect("written");
        }
        assert_eq!(runs.len(), 3);
        let mut readers: Vec<_> = runs.readers(0).collect();
        for number in 0..50_000u64 {
            for (run, reader) in readers.iter_mut().enumerate() {
                assert_eq!(reader.varint().expect("read"), number * (run as u64 + 1));
                assert_eq!(reader.byte().expect("read"), number as u8);
                assert_eq!(reader.bytes(10).expect("read"), b"some bytes");
            }
        }
        assert!(readers.iter_mut().all(|reader| reader.is_done() && reader.byte().is_err()));
    }

    #[test]
    fn runs_are_read_as_they_were_written_from_memory_and_from_a_file() {
        round_trip(None);
        let folder = tempfile::tempdir().expect("a folder");
        round_trip(Some(folder.path()));
        assert_eq!(folder.path().read_dir().expect("listed").count(), 0, "nothing is left");
    }
}
