//! Snapshots: a generation of the index, with an overlay of what has changed since it was built.
//!
//! Changes are reported from two sides. The files toolset **notes** each path that it changes before it replies; a
//! **watcher** (inotify) queues events for all other changes. No thread handles events as they arrive. When a search
//! begins, it first applies everything that is queued, so that it sees every edit made before it (read-your-writes),
//! and then answers from the snapshot that results.

mod overlay;
mod overlay_ranked;

use std::{
    collections::HashSet,
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

pub(crate) use overlay::Overlay;
pub(crate) use overlay_ranked::OverlayRanked;

use parking_lot::Mutex;
use pintle_root::{
    Root,
    scan::{Listing, Walk, Watcher, Within, is_rule},
};

use crate::{
    build::{changes, threads},
    index::Index,
    read::FileReader,
    segment::Torn,
    store::{Generation, Manifest, ManifestFile, Store},
};

/// What one search answers from. It does not change while the search runs.
#[derive(Clone)]
pub(crate) struct Snapshot {
    pub(crate) index: Arc<Index>,
    pub(crate) overlay: Arc<Overlay>,
    pub(crate) manifest: Arc<Manifest>,
    /// Where there is no index: all files of the root, which the search scans.
    pub(crate) listing: Option<Arc<Listing>>,
}

impl Snapshot {
    /// A snapshot without an index: all files that a walk has found. Files over `limit` bytes are skipped.
    pub(crate) fn of_listing(listing: Listing, limit: u64) -> Self {
        Self {
            index: Arc::new(Index { generation: 0, segments: Vec::new() }),
            overlay: Arc::default(),
            manifest: Arc::new(Manifest::empty(Vec::new(), limit)),
            listing: Some(Arc::new(listing)),
        }
    }

    /// Calls `take` with the path of each file, in no particular order, until it returns false. Paths that cannot be
    /// read from a damaged index are left out.
    pub(crate) fn each_path(&self, take: &mut dyn FnMut(&[u8]) -> bool) {
        if let Some(listing) = &self.listing {
            let _ = listing.files.iter().all(|path| take(path));
            return;
        }
        let indexed = self.index.live_files().filter_map(|id| self.index.path(id).ok());
        let indexed = indexed.filter(|path| !self.overlay.contains(path));
        let changed = self.overlay.files().map(|(path, _)| path);
        let _ = indexed.chain(changed).all(take);
    }

    /// Whether an index answers. Otherwise files are scanned.
    pub(crate) fn is_indexed(&self) -> bool {
        self.listing.is_none()
    }
}

/// Why a search, or a snapshot for it, failed.
#[derive(Debug)]
pub(crate) enum SearchError {
    /// No index has been built.
    NoIndex,
    /// The index is torn, corrupt or of another version.
    Damaged,
    /// The call was cancelled, or its deadline has passed.
    Cancelled,
    /// The result would have at least `bytes` bytes, and may have at most `limit`.
    TooLarge { bytes: usize, limit: usize },
    /// Reading or writing failed, which says nothing about the content of the index.
    Io(io::Error),
}

impl From<io::Error> for SearchError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::InvalidData => Self::Damaged,
            io::ErrorKind::Interrupted => Self::Cancelled,
            _ => Self::Io(error),
        }
    }
}

impl From<Torn> for SearchError {
    fn from(_: Torn) -> Self {
        Self::Damaged
    }
}

/// How changes from outside are detected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Watching {
    /// Nothing has been searched yet.
    NotYet,
    /// By inotify events.
    Events,
    /// By walking the root before a search, for this reason.
    Walking(String),
}

/// Keeps the overlay up to date and returns snapshots.
pub(crate) struct Refresher {
    root: Arc<Root>,
    store: Store,
    state: Mutex<RefresherState>,
    /// Paths that were changed through the tools, and are not applied to the overlay yet.
    noted: Mutex<HashSet<Vec<u8>>>,
    /// Any file may have been changed, so that without a watcher the root must be walked.
    is_all_noted: AtomicBool,
}

#[derive(Default)]
struct RefresherState {
    opened: Option<OpenGeneration>,
    overlay: Arc<Overlay>,
    watcher: Option<Watcher>,
    /// Why there is no watcher.
    problem: Option<String>,
    walked_at: Option<Instant>,
    /// The number of the generation that was opened last, and when it was built.
    generation: Option<(u64, u64)>,
}

impl RefresherState {
    /// The size limit of the open generation. The overlay must use the same one.
    fn limit(&self) -> u64 {
        self.opened.as_ref().map_or(0, |opened| opened.manifest.limit)
    }
}

struct OpenGeneration {
    index: Arc<Index>,
    manifest: Arc<Manifest>,
    source: ManifestFile,
}

/// A larger overlay is merged into the index in the background, because each search scans its files whole.
const MAX_OVERLAY_FILES: usize = 500;
const MAX_OVERLAY_BYTES: u64 = 32 << 20;
/// Without a watcher, the result of a walk is used for this long.
const WALK_VALID_FOR: Duration = Duration::from_millis(500);

impl Refresher {
    pub(crate) fn new(root: Arc<Root>, store: Store) -> Self {
        Self {
            root,
            store,
            state: Mutex::default(),
            noted: Mutex::default(),
            is_all_noted: AtomicBool::new(false),
        }
    }

    /// A path was changed: the next snapshot contains the change.
    pub(crate) fn note(&self, path: &[u8]) {
        self.noted.lock().insert(path.to_owned());
    }

    /// Any file may have changed. Where there is a watcher, it has events for those that did.
    pub(crate) fn note_all(&self) {
        self.is_all_noted.store(true, Ordering::Release);
    }

    /// Whether the overlay is so large that it slows searches down.
    pub(crate) fn is_overlay_large(&self) -> bool {
        let state = self.state.lock();
        state.opened.is_some()
            && (state.overlay.len() > MAX_OVERLAY_FILES || state.overlay.bytes() > MAX_OVERLAY_BYTES)
    }

    pub(crate) fn watching(&self) -> Watching {
        let state = self.state.lock();
        match (&state.watcher, &state.problem) {
            (Some(_), _) => Watching::Events,
            (None, Some(problem)) => Watching::Walking(problem.clone()),
            (None, None) => Watching::NotYet,
        }
    }

    /// Applies all changes until now and returns a snapshot.
    pub(crate) fn snapshot(&self, has_ended: &(dyn Fn() -> bool + Sync)) -> Result<Snapshot, SearchError> {
        let mut state = self.state.lock();
        let outcome = self.refresh(&mut state, has_ended);
        if let Err(SearchError::Damaged) = outcome {
            state.opened = None;
        }
        outcome
    }

    /// A snapshot of the index on disk, without an overlay.
    pub(crate) fn snapshot_on_disk(&self) -> Result<Snapshot, SearchError> {
        let Generation { index, manifest, .. } = self.store.open()?.ok_or(SearchError::NoIndex)?;
        Ok(Snapshot {
            index: Arc::new(index),
            overlay: Arc::default(),
            manifest: Arc::new(manifest),
            listing: None,
        })
    }

    /// Detect changes by walking, for this reason.
    pub(crate) fn do_not_watch(&self, reason: &str) {
        self.state.lock().problem = Some(reason.to_owned());
    }

    /// The paths that differ from the index on disk; `None` if there is no watcher to report them all.
    pub(crate) fn changed_paths(&self, has_ended: &(dyn Fn() -> bool + Sync)) -> Option<Within> {
        let snapshot = self.snapshot(has_ended).ok()?;
        let are_all = self.state.lock().watcher.is_some();
        are_all.then(|| Within::new(snapshot.overlay.paths().map(<[u8]>::to_vec)))
    }

    /// Closes the open generation, because it was found to be damaged.
    pub(crate) fn close(&self) {
        self.state.lock().opened = None;
    }

    fn refresh(
        &self,
        state: &mut RefresherState,
        has_ended: &(dyn Fn() -> bool + Sync),
    ) -> Result<Snapshot, SearchError> {
        self.reopen(state)?;
        let Some(opened) = &state.opened else { return Err(SearchError::NoIndex) };
        let index = Arc::clone(&opened.index);
        // Paths that are noted from here on belong to the next snapshot.
        let noted = std::mem::take(&mut *self.noted.lock());
        let outcome = self.apply_changes(state, &index, noted.iter().cloned().collect(), has_ended);
        if outcome.is_err() {
            self.noted.lock().extend(noted);
            // The events that were taken from the queue are lost with this search, so the next one must walk.
            state.walked_at = None;
        }
        outcome?;
        let Some(opened) = &state.opened else { return Err(SearchError::NoIndex) };
        Ok(Snapshot {
            index,
            overlay: Arc::clone(&state.overlay),
            manifest: Arc::clone(&opened.manifest),
            listing: None,
        })
    }

    /// Opens the current generation unless it is open already.
    fn reopen(&self, state: &mut RefresherState) -> Result<(), SearchError> {
        if let Some(opened) = &state.opened
            && self.store.is_current(&opened.source)
            && opened.index.is_unmodified()?
        {
            return Ok(());
        }
        state.opened = None;
        let Some(Generation { index, manifest, source }) = self.store.open()? else {
            // Without an index there is no overlay to keep up to date.
            *state = RefresherState::default();
            return Ok(());
        };
        let mut overlay = Overlay::clone(&state.overlay);
        overlay.prune(&index)?;
        state.overlay = Arc::new(overlay);
        // A file may have changed after the build had read it, and its event may have been applied to the generation
        // before. Only a walk finds such files.
        let generation = (manifest.generation, manifest.built_at);
        if state.generation.replace(generation) != Some(generation) {
            state.walked_at = None;
        }
        let (index, manifest) = (Arc::new(index), Arc::new(manifest));
        state.opened = Some(OpenGeneration { index, manifest, source });
        Ok(())
    }

    /// Applies all queued changes to the overlay.
    fn apply_changes(
        &self,
        state: &mut RefresherState,
        index: &Index,
        mut paths: Vec<Vec<u8>>,
        has_ended: &(dyn Fn() -> bool + Sync),
    ) -> Result<(), SearchError> {
        let mut must_walk_all = state.walked_at.is_none();
        match &state.watcher {
            Some(watcher) if !must_walk_all => {
                let events = watcher.take()?;
                must_walk_all = events.are_lost;
                paths.extend(events.paths);
            }
            Some(_) => {}
            None => {
                must_walk_all |= self.is_all_noted.swap(false, Ordering::AcqRel)
                    || state.walked_at.is_some_and(|walked| walked.elapsed() > WALK_VALID_FOR);
            }
        }
        // Files inside `.git` are not searched.
        paths.retain(|path| is_rule(path) || !path.split(|byte| *byte == b'/').any(|name| name == b".git"));
        // A changed ignore rule may hide or reveal any file.
        must_walk_all |= paths.iter().any(|path| is_rule(path));
        if must_walk_all {
            return self.walk_all(state, index, has_ended);
        }
        if paths.is_empty() {
            return Ok(());
        }
        self.walk_paths(state, index, paths, has_ended)
    }

    fn walk_all(
        &self,
        state: &mut RefresherState,
        index: &Index,
        has_ended: &(dyn Fn() -> bool + Sync),
    ) -> Result<(), SearchError> {
        let begun = Instant::now();
        let watcher = match &state.problem {
            None => self.root.watcher().map_err(|error| error.to_string()),
            Some(problem) => Err(problem.clone()),
        };
        let (walk, problem) = self.walk(watcher.as_ref().ok(), None, has_ended)?;
        match problem.map_or(watcher, Err) {
            Ok(watcher) => state.watcher = Some(watcher),
            Err(problem) => (state.watcher, state.problem) = (None, Some(problem)),
        }
        self.update_overlay(state, index, walk, None, has_ended)?;
        state.walked_at = Some(begun);
        Ok(())
    }

    /// Walks the root. Each folder is watched before it is read, so that no change in between is missed.
    fn walk(
        &self,
        watcher: Option<&Watcher>,
        within: Option<&Within>,
        has_ended: &(dyn Fn() -> bool + Sync),
    ) -> Result<(Walk, Option<String>), SearchError> {
        let problem = Mutex::new(None);
        let enter = |folder: &[u8]| {
            let Some(watcher) = watcher else { return };
            if let Err(error) = watcher.add(folder) {
                *problem.lock() = Some(error.to_string());
            }
        };
        let walk = self.root.walk(within, threads(), &enter, &|_| {}, has_ended)?;
        Ok((walk, problem.into_inner()))
    }

    fn walk_paths(
        &self,
        state: &mut RefresherState,
        index: &Index,
        paths: Vec<Vec<u8>>,
        has_ended: &(dyn Fn() -> bool + Sync),
    ) -> Result<(), SearchError> {
        let mut reader = FileReader::new(state.limit());
        let mut overlay = Overlay::clone(&state.overlay);
        let mut unclear = Vec::new();
        for path in paths.into_iter().collect::<HashSet<_>>() {
            // A path that is in the index or the overlay was not ignored, so it need not be checked against the
            // ignore rules.
            let known = match overlay.get(&path) {
                Some(file) => file.is_some(),
                None => index.find(&path)?.is_some(),
            };
            match self.root.stamp_of(&path) {
                Ok(Some(_)) if known => {
                    let file = reader.inspect(&self.root, &path, None);
                    overlay.touch(&path, file);
                }
                _ => unclear.push(path),
            }
        }
        state.overlay = Arc::new(overlay);
        if unclear.is_empty() {
            return Ok(());
        }
        let within = Within::new(unclear);
        let (walk, problem) = self.walk(state.watcher.as_ref(), Some(&within), has_ended)?;
        if problem.is_some() {
            (state.watcher, state.problem) = (None, problem);
        }
        self.update_overlay(state, index, walk, Some(&within), has_ended)
    }

    /// Updates the overlay with what a walk found.
    fn update_overlay(
        &self,
        state: &mut RefresherState,
        index: &Index,
        walk: Walk,
        within: Option<&Within>,
        has_ended: &dyn Fn() -> bool,
    ) -> Result<(), SearchError> {
        let changes = changes(index, &walk, within)?;
        let mut overlay = Overlay::clone(&state.overlay);
        let mut reader = FileReader::new(state.limit());
        overlay.replace(changes, within, &self.root, &mut reader, has_ended)?;
        state.overlay = Arc::new(overlay);
        Ok(())
    }
}
