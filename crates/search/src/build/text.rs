//! The first phase: files, blocks and trigrams.

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

/// What is built, of what and how.
pub(crate) struct TextBuild<'a> {
    pub(crate) root: &'a Root,
    /// In the order of their paths.
    pub(crate) files: &'a [FoundFile],
    /// When the last of them was found.
    pub(crate) found_at: Instant,
    /// A folder for what is only needed meanwhile.
    pub(crate) scratch: &'a Path,
    pub(crate) threads: usize,
    /// The largest file that is indexed.
    pub(crate) limit: u64,
    pub(crate) metadata: SegmentMetadata<'a>,
}

/// How much text is collected before it is written out as a run: some 45 MiB of memory for each thread.
const SPAN: u64 = 48 << 20;

/// Writes a segment of the files to `out`. Interrupted, it gives an error of that kind.
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
                let blocks_and_first = (blocks, block as u16);
                indexed.push(reader.index(build.root, &file.path, found, blocks_and_first, &mut collector));
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

/// Looks again at files that were changed so shortly before they were read that another change could have gone unseen. If
/// one still has the same content now, it is what its stamp says.
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

/// Waits until the clock by which files are stamped has moved on: a tick, or two seconds where it counts seconds.
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
