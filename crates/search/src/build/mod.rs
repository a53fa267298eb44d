//! Building: from files to a new generation of the index.
//!
//! A build has phases: first the trigrams of the text, then words, then symbols. The first build publishes each part
//! when it is done, so that text searches need not wait for the symbols. A later build is published as a whole.
//! However a build ends, the generation that was published last remains usable.

mod changes;
mod ranked;
mod spans;
mod text;

use std::{
    fs, io,
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

pub(crate) use changes::{Changes, changes};
pub(crate) use ranked::{NAMES, RANKED_LIMIT, WORDS, definitions};

use pintle_root::{
    Root,
    scan::{FoundFile, PassedOver, Walk, Within},
};

use crate::{
    index::Index,
    segment::{SegmentMetadata, TextSegment, Torn},
    store::{BuildLock, Manifest, SealedFile, SegmentFiles, Store},
};
use text::{TextBuild, build_text};

/// How much a build reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Only what has changed.
    Incremental,
    /// Everything.
    Full,
}

/// A phase of a build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Waiting for another build of this root to end.
    Waiting,
    /// Listing the files.
    Walk,
    /// Reading files for text searches.
    Text,
    /// Indexing words for ranked (BM25) searches.
    Words,
    /// Indexing the symbols that files define.
    Symbols,
}

impl Phase {
    /// The name of the phase in progress reports.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Waiting => "wait",
            Self::Walk => "walk",
            Self::Text => "text",
            Self::Words => "words",
            Self::Symbols => "symbols",
        }
    }
}

/// Receives the progress of a build, and can end it.
pub trait Observer: Sync {
    /// Reports progress: `done` of `total` bytes, or of files in phases that count files.
    fn step(&self, phase: Phase, done: u64, total: u64);
    /// A phase has ended, and the searches that need it can be answered.
    fn ready(&self, _phase: Phase) {}
    /// Whether the build should stop.
    fn has_ended(&self) -> bool;
}

/// A request to build or refresh an index.
pub(crate) struct Build<'a> {
    pub(crate) root: &'a Root,
    pub(crate) store: &'a Store,
    pub(crate) mode: Mode,
    /// Only files at or below these paths are compared and read.
    pub(crate) within: Option<Within>,
    pub(crate) threads: usize,
    /// Files over this size are not indexed.
    pub(crate) limit: u64,
    /// The largest tree of which a first index is built automatically. `None` if a caller asked for the build.
    pub(crate) tree_limit: Option<TreeLimit>,
}

/// The largest size of a tree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TreeLimit {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
}

impl TreeLimit {
    /// The limit for an index that no caller asked for.
    pub(crate) const AUTOMATIC: Self = Self { files: 200_000, bytes: 5_000_000_000 };
}

/// The outcome of a build.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Built {
    pub(crate) generation: u64,
    /// How many files were read, and how many were removed from the index.
    pub(crate) read: u64,
    pub(crate) removed: u64,
    /// Why everything was read although only changes were asked for.
    pub(crate) rebuilt: Option<&'static str>,
    /// Why nothing was built.
    pub(crate) declined: Option<String>,
}

/// A refresh of an index that has this many segments compacts it first.
const MAX_SEGMENTS: usize = 6;

/// Builds or refreshes the index of a root. A build that is cancelled returns an error of kind `Interrupted`.
pub(crate) fn build(build: &Build<'_>, observer: &dyn Observer) -> io::Result<Built> {
    observer.step(Phase::Waiting, 0, 0);
    let has_ended = || observer.has_ended();
    let lock = build.store.lock(&has_ended)?;
    let outcome = build_locked(build, &lock, observer);
    if outcome.is_err() {
        // Remove the unfinished files of this build now instead of at the next one. If the manifest cannot be read,
        // nothing is removed: the manifest may be good, and the files that it names must stay.
        let _ = build.store.manifest().and_then(|manifest| build.store.clean(&lock, manifest.as_ref()));
    }
    outcome
}

fn build_locked(build: &Build<'_>, lock: &BuildLock, observer: &dyn Observer) -> io::Result<Built> {
    let has_ended = || observer.has_ended();
    let is_damaged = |error: &io::Error| error.kind() == io::ErrorKind::InvalidData;
    let (current, mut rebuilt) = match build.store.open() {
        Ok(None) => (None, None),
        Ok(Some(generation)) => match generation.index.verify_checksums() {
            Ok(()) => (Some((generation.index, generation.manifest)), None),
            Err(error) if is_damaged(&error) => (None, Some("the index was damaged")),
            Err(error) => return Err(error),
        },
        Err(error) if is_damaged(&error) => (None, Some("the index was damaged or of another version")),
        Err(error) => return Err(error),
    };
    // A damaged index has a generation number, too. The next index must have another one, or readers would not see
    // that it is new.
    let old_generation = match build.store.manifest() {
        Ok(manifest) => manifest.map_or(0, |manifest| manifest.generation),
        Err(error) if is_damaged(&error) => 0,
        Err(error) => return Err(error),
    };
    build.store.clean(lock, current.as_ref().map(|(_, manifest)| manifest))?;
    let current = current.filter(|(_, manifest)| {
        let same = manifest.limit == build.limit;
        if !same {
            rebuilt = Some("the size limit for files has changed");
        }
        same
    });
    observer.step(Phase::Walk, 0, 0);
    // A restricted build needs an index that it can add to.
    let within = build.within.as_ref().filter(|_| current.is_some());
    let tree_limit = build.tree_limit.filter(|_| current.is_none());
    let (files, bytes) = (AtomicU64::new(0), AtomicU64::new(0));
    let found = |size: u64| {
        files.fetch_add(1, Ordering::Relaxed);
        bytes.fetch_add(if size > build.limit { 0 } else { size }, Ordering::Relaxed);
    };
    let is_too_large = || {
        tree_limit.is_some_and(|tree_limit| {
            files.load(Ordering::Relaxed) > tree_limit.files
                || bytes.load(Ordering::Relaxed) > tree_limit.bytes
        })
    };
    let walk = build.root.walk(within, build.threads, &|_| {}, &found, &|| has_ended() || is_too_large());
    if let Some(TreeLimit { files, bytes }) = tree_limit.filter(|_| is_too_large()) {
        let gigabytes = bytes as f64 / 1e9;
        let reason = format!("the root has more than {files} files or {gigabytes} GB of text");
        return Ok(Built { generation: old_generation, declined: Some(reason), ..Built::default() });
    }
    let walk = walk?;
    let skipped = within.is_none().then(|| build.root.passed_over(&walk, &has_ended));
    observer.step(Phase::Walk, walk.files.len() as u64, walk.files.len() as u64);

    // A complete index keeps answering until the next one is complete, with the changes in its overlay. A first index
    // is published phase by phase, because until then there is nothing to answer from.
    let in_phases = current.as_ref().is_none_or(|(_, manifest)| manifest.has_ranked() != (true, true));
    let mut built = Built { generation: old_generation, rebuilt, ..Built::default() };
    let mut manifest;
    match current {
        Some((index, old)) if build.mode == Mode::Incremental || within.is_some() => {
            let total = index.live_files().count();
            let changes = match build.mode {
                Mode::Incremental => changes(&index, &walk, within)?,
                Mode::Full => Changes { changed: walk.files.clone(), ..changes(&index, &walk, within)? },
            };
            built.read = changes.changed.len() as u64;
            built.removed = changes.removed.len() as u64;
            manifest = old;
            // If most of the tree is new, a full rebuild is better than a second large segment.
            let is_mostly_new = within.is_none() && changes.changed.len() > 64 + total / 3;
            if is_mostly_new {
                built.read = walk.files.len() as u64;
                manifest.segments.clear();
                add_segment(build, lock, &mut manifest, &walk.files, &[], skipped.as_ref(), observer)?;
            } else if !changes.is_empty() {
                let changes = compact(build, &index, &mut manifest, changes, &has_ended)?;
                built.read = changes.changed.len() as u64;
                let Changes { changed, removed } = &changes;
                add_segment(build, lock, &mut manifest, changed, removed, skipped.as_ref(), observer)?;
            }
        }
        _ => {
            manifest = build.store.empty_manifest(build.limit);
            manifest.generation = old_generation;
            built.read = walk.files.len() as u64;
            add_segment(build, lock, &mut manifest, &walk.files, &[], skipped.as_ref(), observer)?;
        }
    }
    let mut is_published = manifest.generation == old_generation;
    if in_phases {
        build.store.publish(lock, &mut manifest)?;
        is_published = true;
    }
    observer.ready(Phase::Text);
    built.generation = manifest.generation;
    for phase in [Phase::Words, Phase::Symbols] {
        for number in 0..manifest.segments.len() {
            let parts = &manifest.segments[number];
            let (is_there, name) = match phase {
                Phase::Words => (parts.words.is_some(), parts.text.name.replace("text", "words")),
                _ => (parts.names.is_some(), parts.text.name.replace("text", "names")),
            };
            if is_there {
                continue;
            }
            let segment = TextSegment::map(build.store.open_sealed(&parts.text)?, parts.text.seal)?;
            let scratch = build.store.scratch(lock)?;
            let unfinished = scratch.join("ranked");
            let seal = ranked::write(build, &segment, phase, &scratch, &unfinished, observer)?;
            fs::rename(&unfinished, build.store.path(&name))?;
            let parts = &mut manifest.segments[number];
            *(if phase == Phase::Words { &mut parts.words } else { &mut parts.names }) =
                Some(SealedFile { name, seal });
            is_published = false;
            if in_phases {
                build.store.publish(lock, &mut manifest)?;
                is_published = true;
            }
        }
        observer.ready(phase);
    }
    if !is_published {
        build.store.publish(lock, &mut manifest)?;
    }
    Ok(built)
}

/// Writes a segment and adds it to the manifest, which the caller publishes.
fn add_segment(
    build: &Build<'_>,
    lock: &BuildLock,
    manifest: &mut Manifest,
    files: &[FoundFile],
    removed: &[Vec<u8>],
    skipped: Option<&PassedOver>,
    observer: &dyn Observer,
) -> io::Result<()> {
    let scratch = build.store.scratch(lock)?;
    let parts = TextBuild {
        root: build.root,
        files,
        found_at: Instant::now(),
        scratch: &scratch,
        threads: build.threads,
        limit: build.limit,
        metadata: SegmentMetadata { tombstones: removed, skipped },
    };
    let unfinished = scratch.join("text");
    let seal =
        build_text(&parts, &unfinished, &|done, total| observer.step(Phase::Text, done, total), &|| {
            observer.has_ended()
        })?;
    if observer.has_ended() {
        return Err(io::ErrorKind::Interrupted.into());
    }
    manifest.generation += 1;
    let name = format!("{}-text", manifest.generation);
    fs::rename(&unfinished, build.store.path(&name))?;
    manifest.segments.push(SegmentFiles { text: SealedFile { name, seal }, words: None, names: None });
    Ok(())
}

/// Compaction: if there are many segments, moves the files of all but the first into `changes`, so that the next
/// segment replaces them, and leaves only the first segment in the manifest.
fn compact(
    build: &Build<'_>,
    index: &Index,
    manifest: &mut Manifest,
    mut changes: Changes,
    has_ended: &(dyn Fn() -> bool + Sync),
) -> io::Result<Changes> {
    if manifest.segments.len() < MAX_SEGMENTS {
        return Ok(changes);
    }
    let mut paths = Vec::new();
    for id in index.live_files().filter(|id| id.segment > 0) {
        paths.push(index.path(id).map_err(Torn::into_error)?.to_vec());
    }
    for segment in &index.segments[1..] {
        paths.extend(segment.text.tombstones().map_err(Torn::into_error)?);
    }
    paths.extend(changes.changed.iter().map(|found| found.path.clone()));
    paths.append(&mut changes.removed);
    paths.sort_unstable();
    paths.dedup();
    manifest.segments.truncate(1);
    let within = Within::new(paths.iter().cloned());
    let mut walk: Walk = build.root.walk(Some(&within), 1, &|_| {}, &|_| {}, has_ended)?;
    walk.files.retain(|found| paths.binary_search(&found.path).is_ok());
    let is_found = |path: &Vec<u8>| walk.files.binary_search_by(|found| found.path.cmp(path)).is_ok();
    let removed = paths.into_iter().filter(|path| !is_found(path)).collect();
    Ok(Changes { changed: walk.files, removed })
}

/// How many threads a build or a search uses.
pub(crate) fn threads() -> usize {
    // Cached, because the system reads several files to answer.
    static THREADS: OnceLock<usize> = OnceLock::new();
    *THREADS.get_or_init(|| std::thread::available_parallelism().map_or(2, usize::from).clamp(1, 8))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An observer that ignores progress and never ends the build.
    struct Unobserved;

    impl Observer for Unobserved {
        fn step(&self, _: Phase, _: u64, _: u64) {}

        fn has_ended(&self) -> bool {
            false
        }
    }

    #[test]
    fn no_index_is_built_automatically_of_a_tree_that_is_too_large() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("root");
        fs::create_dir(&path).expect("a root");
        for name in ["a", "b", "c"] {
            fs::write(path.join(name), "text\n").expect("writes");
        }
        fs::write(path.join("large"), "x".repeat(100)).expect("writes");
        let root = Root::open(&path).expect("a root");
        let store = Store::new(&folder.path().join("state"), &path);
        let built = |tree_limit| {
            let request = Build {
                root: &root,
                store: &store,
                mode: Mode::Incremental,
                within: None,
                threads: 2,
                limit: 50,
                tree_limit,
            };
            build(&request, &Unobserved).expect("builds")
        };
        for tree_limit in [TreeLimit { files: 3, bytes: 1000 }, TreeLimit { files: 10, bytes: 14 }] {
            let declined = built(Some(tree_limit)).declined;
            assert!(declined.is_some_and(|reason| reason.contains("more than")), "{tree_limit:?}");
            assert!(store.manifest().expect("readable").is_none(), "{tree_limit:?}");
        }
        // A file over the size limit is not searched, so its bytes do not count.
        assert_eq!(built(Some(TreeLimit { files: 4, bytes: 15 })).declined, None);
        // An index that exists is refreshed, however large the tree has become.
        fs::write(path.join("d"), "more\n").expect("writes");
        let refreshed = built(Some(TreeLimit { files: 1, bytes: 1 }));
        assert_eq!((refreshed.declined, refreshed.read), (None, 1));
    }
}
