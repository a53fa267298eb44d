//! The later phases of a build: words, and the symbols that files define.

use std::{
    io::{self, Read},
    path::Path,
    sync::atomic::{AtomicU32, AtomicU64, Ordering},
};

use pintle_ranked::{Definition, NamesBuilder, WordsBuilder};
use pintle_symbols::{Language, Outliner, Symbol};

use super::{Build, Observer, Phase};
use crate::segment::{FileState, PagedWriter, Section, TextSegment};

/// The section of an index file that holds words.
pub(crate) const WORDS: Section = 1;
/// The section of an index file that holds symbol names.
pub(crate) const NAMES: Section = 2;
/// Larger files have no words and no symbols: they are generated, not written by hand.
pub(crate) const RANKED_LIMIT: u64 = 32 << 20;
/// The memory budget of a thread. Beyond it the thread writes a sorted run to disk.
const BUDGET: usize = 40 << 20;

/// Writes the words, or the symbols, of all files of a segment to `out` and returns its seal.
pub(crate) fn write(
    build: &Build<'_>,
    segment: &TextSegment,
    phase: Phase,
    scratch: &Path,
    out: &Path,
    observer: &dyn Observer,
) -> io::Result<u64> {
    let pass = Pass { build, segment, phase, observer, next: AtomicU32::new(0), done: AtomicU64::new(0) };
    let count = segment.files().count();
    let mut file = PagedWriter::create(out)?;
    if phase == Phase::Words {
        let builders = pass.run(
            || WordsBuilder::new(Some(scratch), BUDGET),
            |words, number, _, text| words.add(number, text),
        )?;
        file.begin(WORDS)?;
        WordsBuilder::finish(builders, count, &mut file)?;
    } else {
        let has_ended = || observer.has_ended();
        let builders = pass.run(
            || (NamesBuilder::new(Some(scratch), BUDGET), Outliner::new()),
            |(names, outliner), number, language, text| {
                let Some(language) = language else { return Ok(()) };
                for (name, definition) in definitions(outliner, language, text, &has_ended) {
                    names.add(number, name, definition)?;
                }
                Ok(())
            },
        )?;
        file.begin(NAMES)?;
        let builders = builders.into_iter().map(|(names, _)| names).collect();
        NamesBuilder::finish(builders, count, &mut file)?;
    }
    if observer.has_ended() {
        return Err(io::ErrorKind::Interrupted.into());
    }
    file.finish()
}

/// The symbols that a text defines: each name with its definition.
pub(crate) fn definitions<'a>(
    outliner: &mut Outliner,
    language: Language,
    text: &'a [u8],
    has_ended: &dyn Fn() -> bool,
) -> impl Iterator<Item = (&'a [u8], Definition)> + use<'a> {
    let symbols = outliner.outline(language, text, has_ended).symbols().unwrap_or_default();
    symbols.into_iter().map(|Symbol { name, kind, line, column, end_line }| {
        (&text[name], Definition { kind: kind.id(), line, column, end_line })
    })
}

/// One pass over all files of a segment.
struct Pass<'a> {
    build: &'a Build<'a>,
    segment: &'a TextSegment,
    phase: Phase,
    observer: &'a dyn Observer,
    next: AtomicU32,
    done: AtomicU64,
}

impl Pass<'_> {
    /// Runs threads that take files until none is left. Each thread collects into a value of its own from `make`.
    fn run<T: Send>(
        &self,
        make: impl Fn() -> T + Sync,
        take: impl Fn(&mut T, u32, Option<Language>, &[u8]) -> io::Result<()> + Sync,
    ) -> io::Result<Vec<T>> {
        let total = self.total()?;
        let work = || -> io::Result<T> {
            let mut collected = make();
            let mut text = Vec::new();
            loop {
                let number = self.next.fetch_add(1, Ordering::Relaxed);
                if number >= self.segment.files().count() {
                    return Ok(collected);
                }
                if self.observer.has_ended() {
                    return Err(io::ErrorKind::Interrupted.into());
                }
                if let Some((size, language)) = self.read(number, &mut text)? {
                    take(&mut collected, number, language, &text)?;
                    let done = self.done.fetch_add(size, Ordering::Relaxed) + size;
                    self.observer.step(self.phase, done.min(total), total);
                }
            }
        };
        std::thread::scope(|scope| {
            let count = self.build.threads.clamp(1, self.segment.files().count().max(1) as usize);
            let workers = (0..count).map(|_| scope.spawn(work)).collect::<Vec<_>>();
            let results = workers.into_iter().map(|worker| {
                worker.join().unwrap_or_else(|_| Err(io::Error::other("a thread of the build has failed")))
            });
            // Join all threads before returning the first error.
            results.collect::<Vec<_>>().into_iter().collect()
        })
    }

    fn total(&self) -> io::Result<u64> {
        let mut total = 0;
        for number in 0..self.segment.files().count() {
            let file = self.segment.known(number)?;
            if is_ranked(file.state, file.stamp.size) {
                total += file.stamp.size;
            }
        }
        Ok(total)
    }

    /// Reads a file for words or symbols; `None` if it has none. A file that has changed or is gone is left to the
    /// next build.
    fn read(&self, number: u32, text: &mut Vec<u8>) -> io::Result<Option<(u64, Option<Language>)>> {
        let known = self.segment.known(number)?;
        if !is_ranked(known.state, known.stamp.size) {
            return Ok(None);
        }
        let path = self.segment.path(number)?;
        let Ok(version) = self.build.root.open_version(path) else { return Ok(None) };
        if version.stamp.size > RANKED_LIMIT {
            return Ok(None);
        }
        text.clear();
        if version.file.take(RANKED_LIMIT).read_to_end(text).is_err() {
            text.clear();
        }
        Ok(Some((known.stamp.size, Language::from_id(known.language))))
    }
}

fn is_ranked(state: FileState, size: u64) -> bool {
    state.is_searched() && size <= RANKED_LIMIT
}
