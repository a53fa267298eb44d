//! The toolset: a root, its index, and the tools on them.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use pintle_contract::{ErrorCode, Fault, Permissions, RootName, WorkspacePath};
use pintle_root::{
    Root,
    scan::{PassedOver, Within},
    storage_failed,
};
use pintle_tool::{CallContext, DynTool, result_too_large};

use crate::{
    background::{Background, Progress},
    build::{Build, Built, Mode, Observer, TreeLimit, build, threads},
    health::{self, SearchHealth},
    index::Index,
    segment::Torn,
    snapshot::{Refresher, SearchError, Snapshot, Watching},
    store::Store,
    summary::Summary,
    tools::{self, IndexState},
};

/// What is searched, and where the index is stored.
pub struct SearchConfig {
    /// The folder that is searched.
    pub root: PathBuf,
    /// The names by which callers may refer to the root.
    pub root_name: RootName,
    /// The folder for state outside the root. Without one there is no index.
    pub state_dir: Option<PathBuf>,
    /// Files over this size, in bytes, are not searched.
    pub max_file_bytes: u64,
    /// What a search does if there is no index.
    pub indexing: Indexing,
    /// The user's home folder, which is not indexed automatically.
    pub home: Option<PathBuf>,
}

/// What a search does if there is no index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Indexing {
    /// Scan the files, and build an index in the background.
    #[default]
    Auto,
    /// Scan the files and build nothing, because the process ends with the search.
    ScanOnly,
    /// Refuse to search until a caller has asked for an index.
    Manual,
}

/// The default size limit: larger files are not searched.
pub const DEFAULT_MAX_FILE_BYTES: u64 = 128 << 20;
/// The highest size limit that can be set: the blocks of a file are numbered in 16 bits.
pub const LARGEST_MAX_FILE_BYTES: u64 = 256 << 20;

/// The search toolset.
pub struct Search {
    pub(crate) root: Arc<Root>,
    root_name: RootName,
    index: Option<IndexHandle>,
    limit: u64,
    /// Summaries of the current index, for the callers that asked last.
    summaries: Mutex<SummaryCache>,
    indexing: Indexing,
    /// Why this root is not indexed automatically.
    auto_index_refusal: Option<&'static str>,
    background: Arc<Background>,
    /// Whether the index was found to be damaged and no rebuild has started yet.
    is_damaged: AtomicBool,
}

/// The index on disk, and the refresher that returns up-to-date snapshots of it.
struct IndexHandle {
    store: Store,
    refresher: Arc<Refresher>,
}

/// A part of the index that ranked searches need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RankedPart {
    Words,
    Symbols,
}

impl RankedPart {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Words => "words",
            Self::Symbols => "symbols",
        }
    }
}

/// Summaries of one index, so that they are not counted again for each call.
#[derive(Default)]
struct SummaryCache {
    of: Option<Arc<Index>>,
    by_permissions: Vec<(Permissions, Arc<Summary>)>,
    /// The skipped files as they were last counted, and the index that they were counted for.
    skipped: Option<(Arc<Index>, Arc<PassedOver>)>,
}

impl Search {
    /// Opens the root. The index is opened by the first call that needs it.
    pub fn open(config: SearchConfig) -> io::Result<Arc<Self>> {
        let root = Arc::new(Root::open(&config.root)?);
        let limit = config.max_file_bytes.min(LARGEST_MAX_FILE_BYTES);
        let index = config.state_dir.map(|state| {
            let store = Store::new(&state, &config.root);
            IndexHandle { refresher: Arc::new(Refresher::new(Arc::clone(&root), store.clone())), store }
        });
        let auto_index_refusal = auto_index_refusal(&config.root, config.home.as_deref());
        Ok(Arc::new(Self {
            root,
            root_name: config.root_name,
            index,
            limit,
            summaries: Mutex::default(),
            indexing: config.indexing,
            auto_index_refusal,
            background: Arc::default(),
            is_damaged: AtomicBool::new(false),
        }))
    }

    /// The names by which callers may refer to the root.
    pub(crate) fn root_name(&self) -> &RootName {
        &self.root_name
    }

    /// The tools of this toolset.
    pub fn tools(self: &Arc<Self>) -> Vec<Arc<dyn DynTool>> {
        tools::search_tools(self)
    }

    /// The state of the index, limited to what the caller may read.
    pub fn index_state(&self, call: &CallContext) -> Result<IndexState, Fault> {
        tools::index_state(self, call)
    }

    /// Whether each kind of search works, and what to do about those that do not.
    pub fn health(&self, call: &CallContext) -> Result<SearchHealth, Fault> {
        health::check(self, call)
    }

    /// When the index was last built, if there is one.
    pub fn index_built_at(&self) -> Option<std::time::SystemTime> {
        let manifest = self.index.as_ref()?.store.manifest().ok()??;
        std::time::SystemTime::UNIX_EPOCH.checked_add(std::time::Duration::from_millis(manifest.built_at))
    }

    /// Notes that a file was changed through the tools. Every search that begins after this call sees the change.
    pub fn note(&self, path: &WorkspacePath) {
        if let Some(handle) = &self.index {
            handle.refresher.note(path.as_str().trim_start_matches('/').as_bytes());
        }
    }

    /// Notes that any file may have changed, because a command was run. Every search that begins after this call sees
    /// the changes.
    pub fn note_all(&self) {
        if let Some(handle) = &self.index {
            handle.refresher.note_all();
        }
    }

    pub(crate) fn root_path(&self) -> &Path {
        self.root.path()
    }

    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    /// A warning if the index was built with another size limit than the one that is set now.
    pub(crate) fn other_limit(&self, snapshot: &Snapshot) -> Option<String> {
        let (is, should) = (snapshot.manifest.limit, self.limit);
        (is != should).then(|| {
            format!("the index was built for files of up to {is} bytes, but the limit is set to {should}")
        })
    }

    pub(crate) fn watching(&self) -> Watching {
        self.index.as_ref().map_or(Watching::NotYet, |handle| handle.refresher.watching())
    }

    /// A snapshot of the root as it is now.
    pub(crate) fn snapshot(&self, call: &CallContext) -> Result<Snapshot, Fault> {
        let handle = self.index_handle()?;
        self.snapshot_of(handle, call).map_err(|error| self.handle_error(error))
    }

    fn snapshot_of(&self, handle: &IndexHandle, call: &CallContext) -> Result<Snapshot, SearchError> {
        let snapshot = handle.refresher.snapshot(&|| call.has_ended());
        if snapshot.is_ok() && handle.refresher.is_overlay_large() {
            self.refresh_in_background();
        }
        snapshot
    }

    /// A snapshot for a text search: of the index or, without a usable one, of the files alone, which are then
    /// scanned.
    ///
    /// `within` restricts the files that are listed for a scan.
    pub(crate) fn snapshot_or_files(
        &self,
        within: Option<Within>,
        call: &CallContext,
    ) -> Result<Snapshot, Fault> {
        if self.indexing == Indexing::Manual {
            return self.snapshot(call);
        }
        self.check_root()?;
        if let Some(handle) = &self.index {
            match self.snapshot_of(handle, call) {
                Ok(snapshot) => return Ok(snapshot),
                Err(error) if can_be_scanned(&error) => drop(self.handle_error(error)),
                Err(error) => return Err(self.handle_error(error)),
            }
        }
        self.list_files(within, &|| call.has_ended())
    }

    /// A snapshot without an index, for a scan of the root or of a part of it.
    pub(crate) fn list_files(
        &self,
        within: Option<Within>,
        has_ended: &(dyn Fn() -> bool + Sync),
    ) -> Result<Snapshot, Fault> {
        let listing = self.root.list(within, threads(), has_ended);
        listing.map(|listing| Snapshot::of_listing(listing, self.limit)).map_err(|error| match error.kind() {
            io::ErrorKind::Interrupted => self.handle_error(SearchError::Cancelled),
            _ => {
                let message = format!("the files of the root could not be listed: {error}");
                storage_failed(message, &error)
                    .hint("call again; if it fails again, check free memory and the limit on open files")
            }
        })
    }

    /// Starts to build the first index, or the parts that it lacks, in the background.
    pub(crate) fn build_in_background(&self) {
        let Some(handle) = &self.index else { return };
        if self.indexing != Indexing::Auto
            || self.auto_index_refusal.is_some()
            || self.background.is_suspended()
        {
            return;
        }
        self.start_build(handle, Some(TreeLimit::AUTOMATIC), |_| None);
    }

    /// Starts a build in the background, of the paths that `within` returns or of the whole root.
    fn start_build(
        &self,
        handle: &IndexHandle,
        tree_limit: Option<TreeLimit>,
        within: impl FnOnce(&dyn Observer) -> Option<Within> + Send + 'static,
    ) {
        let (root, store, limit) = (Arc::clone(&self.root), handle.store.clone(), self.limit);
        self.background.begin(move |observer| {
            let request = Build {
                root: &root,
                store: &store,
                mode: Mode::Incremental,
                within: within(observer),
                threads: threads(),
                limit,
                tree_limit,
            };
            build(&request, observer)
                .map_err(|error| io::Error::new(error.kind(), failed(&error).message.clone()))
        });
    }

    /// Whether text can be searched without an index.
    pub(crate) fn scans_without_index(&self) -> bool {
        self.indexing != Indexing::Manual && self.check_root().is_ok()
    }

    /// Whether the next search starts to build a missing index.
    pub(crate) fn builds_automatically(&self) -> bool {
        self.indexing == Indexing::Auto && self.check_root().is_ok() && self.why_unindexed().is_none()
    }

    /// Why there is no index and none will be built automatically.
    pub(crate) fn why_unindexed(&self) -> Option<String> {
        match self.indexing {
            Indexing::Manual | Indexing::ScanOnly => None,
            Indexing::Auto => {
                let no_folder = || self.index.is_none().then(|| NO_STATE_FOLDER.to_owned());
                let reason = self.auto_index_refusal.map(str::to_owned).or_else(no_folder);
                reason.or_else(|| self.background.problem())
            }
        }
    }

    /// The progress of the build in the background.
    pub(crate) fn build_progress(&self) -> Option<Progress> {
        self.background.progress()
    }

    /// Waits until a part of the index is built, or the call ends. If no index is built automatically, it returns at
    /// once.
    pub(crate) fn wait_for(&self, part: RankedPart, call: &CallContext) -> Result<(), Fault> {
        /// A build in another process sends no notification, so its manifest is polled.
        const PAUSE: Duration = Duration::from_millis(50);
        if self.indexing != Indexing::Auto {
            return Ok(());
        }
        self.check_root()?;
        let is_there = |handle: &IndexHandle| match handle.store.manifest() {
            Ok(manifest) => manifest.is_some_and(|manifest| match part {
                RankedPart::Words => manifest.has_ranked().0,
                RankedPart::Symbols => manifest.has_ranked().1,
            }),
            // If the manifest cannot be read just now, the search reports that. If it is damaged, the index is
            // rebuilt.
            Err(error) => error.kind() != io::ErrorKind::InvalidData && !is_unusable_folder(&error),
        };
        loop {
            if self.index.as_ref().is_some_and(is_there) {
                return Ok(());
            }
            if call.has_ended() {
                return Err(self.handle_error(SearchError::Cancelled));
            }
            self.build_in_background();
            if self.background.progress().is_none()
                && let Some(reason) = self.why_unindexed()
            {
                let message =
                    format!("the index has no {}, and none are built automatically: {reason}", part.name());
                let hint = match self.index {
                    Some(_) => {
                        "call index_build to build them; literal and regex searches work without an index"
                    }
                    None => {
                        "set one outside the root with --state-dir (PINTLE_STATE_DIR); literal and regex searches work without an index"
                    }
                };
                return Err(Fault::new(ErrorCode::NoIndex, message).hint(hint));
            }
            self.background.wait(PAUSE);
        }
    }

    /// Starts to rebuild the index in the background if a search has found it to be damaged.
    pub(crate) fn rebuild_if_damaged(&self) {
        if self.is_damaged.swap(false, Ordering::AcqRel) {
            self.refresh_in_background();
        }
    }

    /// Starts to merge the overlay into the index, in the background.
    fn refresh_in_background(&self) {
        let Some(handle) = &self.index else { return };
        let refresher = Arc::clone(&handle.refresher);
        // The watcher has reported all changed paths, so the build need not walk the whole root. If the build fails,
        // searches keep using the overlay, and the next one tries again.
        self.start_build(handle, None, move |observer| refresher.changed_paths(&|| observer.has_ended()));
    }

    /// A snapshot of the root as it is now; `None` if there is no index.
    pub(crate) fn snapshot_if_any(&self, call: &CallContext) -> Result<Option<Snapshot>, Fault> {
        let Some(handle) = &self.index else { return Ok(None) };
        match handle.refresher.snapshot(&|| call.has_ended()) {
            Ok(snapshot) => Ok(Some(snapshot)),
            Err(SearchError::NoIndex | SearchError::Damaged) => Ok(None),
            Err(error) if self.scans_without_index() && can_be_scanned(&error) => Ok(None),
            Err(error) => Err(self.handle_error(error)),
        }
    }

    /// Counts the files that a caller may read.
    pub(crate) fn summary(&self, snapshot: &Snapshot, permissions: &Permissions) -> Result<Summary, Fault> {
        let summary = self.summary_of_index(&snapshot.index, permissions);
        let summary =
            summary.and_then(|summary| summary.with(&snapshot.index, &snapshot.overlay, permissions));
        let mut summary = summary.map_err(|torn| self.handle_error(torn.into()))?;
        let skipped = self.summaries.lock().skipped.clone();
        if let Some((_, skipped)) = skipped.filter(|(of, _)| Arc::ptr_eq(of, &snapshot.index)) {
            summary.set_skipped(&skipped, permissions);
        }
        Ok(summary)
    }

    /// The summary of the index without its overlay, cached for each set of permissions.
    fn summary_of_index(&self, index: &Arc<Index>, permissions: &Permissions) -> Result<Arc<Summary>, Torn> {
        let is_same = |of: &Arc<Index>| Arc::ptr_eq(of, index);
        let known = {
            let mut summaries = self.summaries.lock();
            if !summaries.of.as_ref().is_some_and(is_same) {
                *summaries = SummaryCache { of: Some(Arc::clone(index)), ..SummaryCache::default() };
            }
            summaries
                .by_permissions
                .iter()
                .find(|(of, _)| of == permissions)
                .map(|(_, summary)| Arc::clone(summary))
        };
        if let Some(summary) = known {
            return Ok(summary);
        }
        let summary = Arc::new(Summary::of(index, permissions)?);
        let mut summaries = self.summaries.lock();
        if summaries.of.as_ref().is_some_and(is_same) {
            const KEPT: usize = 8;
            summaries.by_permissions.truncate(KEPT - 1);
            summaries.by_permissions.insert(0, (permissions.clone(), Arc::clone(&summary)));
        }
        Ok(summary)
    }

    /// Builds or refreshes the index, of the whole root or of what is at a path.
    pub(crate) fn build(
        &self,
        mode: Mode,
        path: Option<&WorkspacePath>,
        observer: &dyn Observer,
    ) -> Result<Built, Fault> {
        if let Some(path) = path {
            self.refuse_unknown_path(path)?;
            self.refuse_without_index(path)?;
        }
        self.build_within(mode, path.map(below), observer)
    }

    /// Refuses a path that neither exists nor is in the index.
    fn refuse_unknown_path(&self, path: &WorkspacePath) -> Result<(), Fault> {
        let within = below(path);
        let is_there = within.targets().all(|target| self.root.stamp_of(target).is_ok());
        let was_there = |index: &Index| index.live_files_within(&within).map_or(true, |ids| !ids.is_empty());
        let is_known = || match self.index_handle()?.store.open() {
            Ok(opened) => Ok(opened.is_some_and(|generation| was_there(&generation.index))),
            // The build reports what is wrong with the index.
            Err(_) => Ok(true),
        };
        if is_there || is_known()? {
            return Ok(());
        }
        if let Some((_, relative)) = self.root_name.split(path.as_str()) {
            return Err(self.root_name.refuse_absolute(path.as_str(), relative));
        }
        let base = self.root_name.base();
        Err(Fault::new(ErrorCode::NotFound, format!("there is nothing at {path}")).hint(format!(
            "paths are relative to the root, `{base}`, such as `src`; leave `path` out to build all"
        )))
    }

    /// Refuses to refresh a part of an index that does not exist.
    fn refuse_without_index(&self, path: &WorkspacePath) -> Result<(), Fault> {
        match self.index_handle()?.store.manifest() {
            Ok(None) => {
                let message =
                    format!("there is no index of this workspace yet, so {path} cannot be refreshed");
                Err(Fault::new(ErrorCode::NoIndex, message).hint("call index_build without `path` first"))
            }
            // If the manifest cannot be read, the build reports why.
            Ok(Some(_)) | Err(_) => Ok(()),
        }
    }

    /// Counts the files that a walk skips now. No event reports it when these change.
    pub(crate) fn count_skipped(
        &self,
        snapshot: &Snapshot,
        has_ended: &(dyn Fn() -> bool + Sync),
    ) -> io::Result<()> {
        let walk = self.root.walk(None, threads(), &|_| {}, &|_| {}, has_ended)?;
        let skipped = self.root.passed_over(&walk, has_ended);
        let mut summaries = self.summaries.lock();
        summaries.skipped = Some((Arc::clone(&snapshot.index), Arc::new(skipped)));
        Ok(())
    }

    fn build_within(
        &self,
        mode: Mode,
        within: Option<Within>,
        observer: &dyn Observer,
    ) -> Result<Built, Fault> {
        let handle = self.index_handle()?;
        let request = Build {
            root: &self.root,
            store: &handle.store,
            mode,
            within,
            threads: threads(),
            limit: self.limit,
            tree_limit: None,
        };
        build(&request, observer).map_err(|error| self.handle_error(error.into()))
    }

    /// A snapshot of the index on disk. With `is_fresh` the root is walked first, and the snapshot has an overlay.
    pub(crate) fn snapshot_on_disk(&self, is_fresh: bool) -> Result<Snapshot, Fault> {
        let handle = self.index_handle()?;
        self.snapshot_of_disk(handle, is_fresh).map_err(|error| self.handle_error(error))
    }

    fn snapshot_of_disk(&self, handle: &IndexHandle, is_fresh: bool) -> Result<Snapshot, SearchError> {
        match is_fresh {
            true => {
                handle.refresher.do_not_watch("one search only");
                handle.refresher.snapshot(&|| false)
            }
            false => handle.refresher.snapshot_on_disk(),
        }
    }

    /// A snapshot for a text search: of the index on disk or, without a usable one, of the files alone.
    pub(crate) fn snapshot_on_disk_or_files(
        &self,
        within: Option<Within>,
        is_fresh: bool,
    ) -> Result<Snapshot, Fault> {
        if self.indexing == Indexing::Manual {
            return self.snapshot_on_disk(is_fresh);
        }
        self.check_root()?;
        if let Some(handle) = &self.index {
            match self.snapshot_of_disk(handle, is_fresh) {
                Ok(snapshot) => return Ok(snapshot),
                Err(error) if can_be_scanned(&error) => {}
                Err(error) => return Err(self.handle_error(error)),
            }
        }
        self.list_files(within, &|| false)
    }

    fn check_root(&self) -> Result<(), Fault> {
        self.root.check().map_err(|problem| {
            let message = format!("the root, {}, {problem}", self.root.path().display());
            Fault::new(ErrorCode::CapabilityMissing, message)
                .hint("check that it exists and can be read; if it was replaced, restart the server")
        })
    }

    fn index_handle(&self) -> Result<&IndexHandle, Fault> {
        self.check_root()?;
        self.index.as_ref().ok_or_else(|| {
            Fault::new(ErrorCode::CapabilityMissing, NO_STATE_FOLDER)
                .hint("set one outside the root with --state-dir (PINTLE_STATE_DIR)")
        })
    }

    /// Turns an error into the caller's fault. If the index is damaged, this also closes it and marks it for a
    /// rebuild, which `rebuild_if_damaged` starts.
    pub(crate) fn handle_error(&self, error: SearchError) -> Fault {
        let hint = match self.indexing {
            Indexing::Manual => {
                "call index_build, or run `pintle index`; until then read files with text.read"
            }
            Indexing::Auto | Indexing::ScanOnly => {
                "call index_build, or run `pintle index`; literal and regex searches work without one"
            }
        };
        let damaged = "a server rebuilds it automatically: search again later, or call index_build to wait for it; without a server run `pintle index`";
        match error {
            SearchError::NoIndex if self.background.progress().is_some() => {
                Fault::new(ErrorCode::NoIndex, "the index is being built")
                    .hint("search again later, or call index_build to wait for it")
            }
            SearchError::NoIndex => {
                Fault::new(ErrorCode::NoIndex, "there is no index of this workspace yet").hint(hint)
            }
            SearchError::Damaged => {
                if let Some(handle) = &self.index {
                    handle.refresher.close();
                }
                self.is_damaged.store(true, Ordering::Release);
                Fault::new(ErrorCode::NoIndex, "the index is damaged or of another version, and is not used")
                    .hint(damaged)
            }
            SearchError::TooLarge { bytes, limit } => result_too_large(bytes, limit)
                .hint("ask for fewer hits with `top`, or for fewer lines around them with `context`"),
            SearchError::Cancelled => Fault::new(ErrorCode::Cancelled, "the call was ended"),
            SearchError::Io(error) => failed(&error),
        }
    }
}

impl Drop for Search {
    fn drop(&mut self) {
        self.background.stop();
    }
}

const NO_STATE_FOLDER: &str = "there is no state folder to store the index in";

/// Whether a scan of the files can answer instead of the index.
fn can_be_scanned(error: &SearchError) -> bool {
    match error {
        SearchError::NoIndex | SearchError::Damaged => true,
        SearchError::Io(error) => is_unusable_folder(error),
        SearchError::Cancelled | SearchError::TooLarge { .. } => false,
    }
}

/// Whether an error means that the state folder is unusable, rather than that memory, descriptors or disk space ran
/// out.
fn is_unusable_folder(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::PermissionDenied
            | io::ErrorKind::NotFound
            | io::ErrorKind::ReadOnlyFilesystem
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::AlreadyExists
    )
}

/// Why a root is not indexed automatically, if it is not: most of the files there have nothing to do with the work at
/// hand.
fn auto_index_refusal(root: &Path, home: Option<&Path>) -> Option<&'static str> {
    if root.parent().is_none() {
        return Some("the root is `/`");
    }
    let home = home.and_then(|home| home.canonicalize().ok())?;
    home.starts_with(root).then_some("the root is the home folder, or above it")
}

/// The fault for an index that could not be read or written. Such an error says nothing about the content of the
/// index.
fn failed(error: &io::Error) -> Fault {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            storage_failed(format!("the disk is full: the index could not be written ({error})"), error)
                .hint("free space on the disk of the state folder and call again; an older index still answers")
        }
        _ if is_unusable_folder(error) => {
            let message = format!("the state folder cannot be used: {error}");
            Fault::new(ErrorCode::CapabilityMissing, message)
                .hint("set a writable one with --state-dir (PINTLE_STATE_DIR)")
        }
        io::ErrorKind::FileTooLarge => {
            let message = "there is more text under the root than one index can hold";
            Fault::new(ErrorCode::CapabilityMissing, message).hint("serve a part of it with --root")
        }
        _ if error.raw_os_error().is_some() => {
            storage_failed(format!("the index could not be read or written: {error}"), error).hint(
                "call again; if it fails again, check the disk of the state folder, free memory and the limit on open files",
            )
        }
        _ => Fault::new(ErrorCode::Internal, format!("the index could not be used: {error}")),
    }
}

/// A path with everything below it.
fn below(path: &WorkspacePath) -> Within {
    Within::new([path.as_str().trim_start_matches('/').as_bytes().to_vec()])
}
