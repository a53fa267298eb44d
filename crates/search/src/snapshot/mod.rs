//! How searches stay fresh: the index, and over it what has changed since it was built.
//!
//! Changes come from two sides. The files toolset **notes** each path that it changes, before it replies; the kernel
//! tells of all other changes. Nobody waits for them: when a search begins, it takes in what has happened until then,
//! and answers from the **snapshot** that this gives.

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

/// What one search answers from.
#[derive(Clone)]
pub(crate) struct Snapshot {
    pub(crate) index: Arc<Index>,
    pub(crate) overlay: Arc<Overlay>,
    pub(crate) manifest: Arc<Manifest>,
    /// The files of the root, where there is no index: each of them is looked into.
    pub(crate) listing: Option<Arc<Listing>>,
}

impl Snapshot {
    /// All files that a walk has found, with nothing known of them. Files over `limit` bytes are not searched.
    pub(crate) fn of_listing(listing: Listing, limit: u64) -> Self {
        Self {
            index: Arc::new(Index { generation: 0, segments: Vec::new() }),
            overlay: Arc::default(),
            manifest: Arc::new(Manifest::empty(Vec::new(), limit)),
            listing: Some(Arc::new(listing)),
        }
    }

    /// Hands out the path of each file, in no particular order, until that is enough. What cannot be read of an index is
    /// left out.
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

    /// Whether an index answers.
    pub(crate) fn is_indexed(&self) -> bool {
        self.listing.is_none()
    }
}

/// Why there is no snapshot.
#[derive(Debug)]
pub(crate) enum SearchError {
    /// There is no index.
    NoIndex,
    /// There is one that cannot be trusted.
    Damaged,
    /// Nobody waits any more.
    Cancelled,
    /// The answer would be larger than is allowed: it would have so many bytes at least, and may have `most`.
    TooLarge { bytes: usize, limit: usize },
    /// Something else went wrong.
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

/// How changes from outside are seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Watching {
    /// Nobody has searched yet.
    NotYet,
    /// By the kernel's events.
    Events,
    /// By walking the root before a search; the reason why.
    Walking(String),
}

/// Keeps a view of a root fresh.
pub(crate) struct Refresher {
    root: Arc<Root>,
    store: Store,
    state: Mutex<RefresherState>,
    /// Paths that were changed through the tools.
    noted: Mutex<HashSet<Vec<u8>>>,
    /// Anything may have been changed, so where nobody watches the root has to be walked.
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
    /// The generation that was last opened, and when it was built.
    generation: Option<(u64, u64)>,
}

impl RefresherState {
    /// The largest file that is searched: what has changed is judged as what has not.
    fn limit(&self) -> u64 {
        self.opened.as_ref().map_or(0, |opened| opened.manifest.limit)
    }
}

struct OpenGeneration {
    index: Arc<Index>,
    manifest: Arc<Manifest>,
    source: ManifestFile,
}

/// Changes beyond this are better in a segment: each search reads them whole.
const MAX_OVERLAY_FILES: usize = 500;
const MAX_OVERLAY_BYTES: u64 = 32 << 20;
/// Without events, a walk is trusted for this long.
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

    /// A path was changed: the next snapshot has it.
    pub(crate) fn note(&self, path: &[u8]) {
        self.noted.lock().insert(path.to_owned());
    }

    /// Anything may have changed. A watch has seen what did.
    pub(crate) fn note_all(&self) {
        self.is_all_noted.store(true, Ordering::Release);
    }

    /// Whether so much has changed since the index was built that searches are slowed down by it.
    pub(crate) fn is_overlay_large(&self) -> bool {
        let state = self.state.lock();
        state.opened.is_some()
            && (state.overlay.len() > MAX_OVERLAY_FILES || state.overlay.bytes() > MAX_OVERLAY_BYTES)
    }

    /// How changes from outside are seen.
    pub(crate) fn watching(&self) -> Watching {
        let state = self.state.lock();
        match (&state.watcher, &state.problem) {
            (Some(_), _) => Watching::Events,
            (None, Some(problem)) => Watching::Walking(problem.clone()),
            (None, None) => Watching::NotYet,
        }
    }

    /// The root as it is now.
    pub(crate) fn snapshot(&self, has_ended: &(dyn Fn() -> bool + Sync)) -> Result<Snapshot, SearchError> {
        let mut state = self.state.lock();
        let outcome = self.refresh(&mut state, has_ended);
        if let Err(SearchError::Damaged) = outcome {
            state.opened = None;
        }
        outcome
    }

    /// The index as it lies on disk.
    pub(crate) fn snapshot_on_disk(&self) -> Result<Snapshot, SearchError> {
        let Generation { index, manifest, .. } = self.store.open()?.ok_or(SearchError::NoIndex)?;
        Ok(Snapshot {
            index: Arc::new(index),
            overlay: Arc::default(),
            manifest: Arc::new(manifest),
            listing: None,
        })
    }

    /// Changes from outside are to be seen by walking.
    pub(crate) fn do_not_watch(&self, reason: &str) {
        self.state.lock().problem = Some(reason.to_owned());
    }

    /// The paths that differ from the index on disk, if the kernel's events tell them all.
    pub(crate) fn changed_paths(&self, has_ended: &(dyn Fn() -> bool + Sync)) -> Option<Within> {
        let snapshot = self.snapshot(has_ended).ok()?;
        let are_all = self.state.lock().watcher.is_some();
        are_all.then(|| Within::new(snapshot.overlay.paths().map(<[u8]>::to_vec)))
    }

    /// What a search has found to be damaged is not used again.
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
        // Whatever is noted from here on belongs to the next snapshot.
        let noted = std::mem::take(&mut *self.noted.lock());
        let outcome = self.apply_changes(state, &index, noted.iter().cloned().collect(), has_ended);
        if outcome.is_err() {
            self.noted.lock().extend(noted);
            // What events have told is lost with the search that took them.
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

    /// Opens the present generation if it is not the one that is open.
    fn reopen(&self, state: &mut RefresherState) -> Result<(), SearchError> {
        if let Some(opened) = &state.opened
            && self.store.is_current(&opened.source)
            && opened.index.is_unmodified()?
        {
            return Ok(());
        }
        state.opened = None;
        let Some(Generation { index, manifest, source }) = self.store.open()? else {
            // Without an index nothing is kept fresh.
            *state = RefresherState::default();
            return Ok(());
        };
        let mut overlay = Overlay::clone(&state.overlay);
        overlay.prune(&index)?;
        state.overlay = Arc::new(overlay);
        // Files may have changed after the build had read them, and before their events, which are gone by now, were
        // taken for another generation.
        let generation = (manifest.generation, manifest.built_at);
        if state.generation.replace(generation) != Some(generation) {
            state.walked_at = None;
        }
        let (index, manifest) = (Arc::new(index), Arc::new(manifest));
        state.opened = Some(OpenGeneration { index, manifest, source });
        Ok(())
    }

    /// Takes in all that has happened.
    fn apply_changes(
        &self,
        state: &mut RefresherState,
        index: &Index,
        mut paths: Vec<Vec<u8>>,
        has_ended: &(dyn Fn() -> bool + Sync),
    ) -> Result<(), SearchError> {
        let mut is_lost = state.walked_at.is_none();
        match &state.watcher {
            Some(watcher) if !is_lost => {
                let events = watcher.take()?;
                is_lost = events.are_lost;
                paths.extend(events.paths);
            }
            Some(_) => {}
            None => {
                is_lost |= self.is_all_noted.swap(false, Ordering::AcqRel)
                    || state.walked_at.is_some_and(|walked| walked.elapsed() > WALK_VALID_FOR);
            }
        }
        // What git keeps is not searched.
        paths.retain(|path| is_rule(path) || !path.split(|byte| *byte == b'/').any(|name| name == b".git"));
        // New rules may hide or show anything.
        is_lost |= paths.iter().any(|path| is_rule(path));
        if is_lost {
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

    /// Walks, and watches each folder before it is read, so that nothing is missed in between.
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
            // A file that is known is not ignored, whatever it holds now.
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

    /// Lays what a walk found over the index.
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
