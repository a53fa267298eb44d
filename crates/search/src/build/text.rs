//! The first phase of a build: the file table, the blocks and the trigrams of a segment.

use std::{
    io,
    path::Path,
    sync::atomic::{AtomicU64, AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use super::spans;
use parking_lot::Mutex;
use pintle_root::{Root, Sighting, scan::FoundFile};

use crate::{
    read::{FileReader, IndexedFile},
    segment::{FileState, FileTableWriter, SegmentContent, SegmentMetadata, write_text_segment},
    trigrams::{Collector, Run},
};

/// A segment to be built.
pub(crate) struct TextBuild<'a> {
    pub(crate) root: &'a Root,
    /// Sorted by path.
    pub(crate) files: &'a [FoundFile],
    /// When the walk that found them ended.
    pub(crate) found_at: Instant,
    /// A folder for temporary files.
    pub(crate) scratch: &'a Path,
    pub(crate) threads: usize,
    /// Files over this size are not indexed.
    pub(crate) limit: u64,
    pub(crate) metadata: SegmentMetadata<'a>,
}

/// How many bytes of text a thread collects before it writes a sorted run: about 45 MiB of memory for each thread.
const SPAN: u64 = 48 << 20;

/// Writes a segment to `out` and returns its seal. A build that is cancelled returns an error of kind `Interrupted`.
pub(crate) fn build_text(
    build: &TextBuild<'_>,
    out: &Path,
    progress: &(dyn Fn(u64, u64) + Sync),
    has_ended: &(dyn Fn() -> bool + Sync),
) -> io::Result<u64> {
    let (spans, blocks) = spans::spans(build.files, build.limit, SPAN);
    let total = spans.iter().map(|span| span.bytes).sum();
    let (next, done) = (AtomicUsize::new(0), AtomicU64::new(0));
    let finished = Mutex::new(Vec::new());
    let work = || -> io::Result<()> {
        let mut collector = Collector::new();
        let mut reader = FileReader::new(build.limit);
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(span) = spans.get(number) else { return Ok(()) };
            let mut indexed = Vec::with_capacity(span.files.len());
            let mut block = 0;
            for file in &build.files[span.files.clone()] {
                if has_ended() {
                    return Err(io::ErrorKind::Interrupted.into());
                }
                let blocks = spans::blocks_of(file, build.limit);
                let found = Sighting { stamp: file.stamp, at: build.found_at };
                let numbering = (blocks, block as u16);
                indexed.push(reader.index(build.root, &file.path, found, numbering, &mut collector));
                block += blocks;
                if blocks > 0 {
                    let done = done.fetch_add(file.stamp.size, Ordering::Relaxed) + file.stamp.size;
                    progress(done, total);
                }
            }
            let run = collector.write_run(build.scratch.join(format!("run-{number}")), span.first_block)?;
            finished.lock().push((number, indexed, run));
        }
    };
    std::thread::scope(|scope| {
        let workers = (0..build.threads.clamp(1, spans.len().max(1))).map(|_| scope.spawn(work));
        let workers = workers.collect::<Vec<_>>();
        workers.into_iter().try_for_each(|worker| worker.join().unwrap_or(Err(io::ErrorKind::Other.into())))
    })?;
    let mut finished = finished.into_inner();
    finished.sort_unstable_by_key(|(number, ..)| *number);
    recheck_racy_files(build, &mut finished, has_ended)?;
    write_segment(build, finished, blocks, out, has_ended)
}

/// Reads again those files that changed so shortly before they were read that a further change could have left the
/// same stamp ("racily clean" in git). If the content is still the same, the stamp is trusted.
fn recheck_racy_files(
    build: &TextBuild<'_>,
    finished: &mut [(usize, Vec<IndexedFile>, Run)],
    has_ended: &(dyn Fn() -> bool + Sync),
) -> io::Result<()> {
    let mut reader = FileReader::new(build.limit);
    let indexed = finished.iter_mut().flat_map(|(_, indexed, _)| indexed);
    for (one, found) in indexed.zip(build.files).filter(|(one, _)| one.is_racy()) {
        if let Some(seen) = one.seen {
            wait_until(seen.settles_at(), has_ended)?;
        }
        let again = reader.inspect(build.root, &found.path, one.seen).file;
        let is_same =
            again.hash == one.file.hash && again.state.is_searched() == one.file.state.is_searched();
        if is_same && !again.stamp.is_unknown() {
            one.confirm(again.stamp);
        }
    }
    Ok(())
}

/// Waits until the file system's clock has moved on: for a tick, or for two seconds where times are whole seconds.
fn wait_until(time: Instant, has_ended: &(dyn Fn() -> bool + Sync)) -> io::Result<()> {
    loop {
        if has_ended() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let left = time.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        std::thread::sleep(left.min(Duration::from_millis(50)));
    }
}

fn write_segment(
    build: &TextBuild<'_>,
    finished: Vec<(usize, Vec<IndexedFile>, Run)>,
    blocks: u32,
    out: &Path,
    has_ended: &(dyn Fn() -> bool + Sync),
) -> io::Result<u64> {
    let mut table = FileTableWriter::default();
    let mut lines = Vec::with_capacity(blocks as usize);
    let (mut whole, mut runs) = (Vec::new(), Vec::with_capacity(finished.len()));
    let mut files = build.files.iter().zip(0_u32..);
    for (_, indexed, run) in finished {
        runs.push(run);
        for one in indexed {
            let Some((found, number)) = files.next() else { break };
            if one.file.state == FileState::ScanWhole {
                whole.push(number);
            }
            table.add(&found.path, lines.len() as u32, &one.file);
            lines.extend(one.lines);
        }
    }
    let content =
        SegmentContent { files: table, lines: &lines, whole: &whole, metadata: &build.metadata, runs: &runs };
    write_text_segment(out, content, build.threads, has_ended)
}
