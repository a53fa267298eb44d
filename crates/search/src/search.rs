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
use pintle_contract::{ErrorCode, Fault, RootName, Scopes, WorkspacePath};
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

/// What is searched, and where its index is kept.
pub struct SearchConfig {
    /// The root.
    pub root: PathBuf,
    /// What callers may call the root by.
    pub root_name: RootName,
    /// The state folder. Without one there is no index.
    pub state_dir: Option<PathBuf>,
    /// The largest file that is searched, in bytes.
    pub max_file_bytes: u64,
    /// What happens where there is no index.
    pub indexing: Indexing,
    /// The user's home folder: it is not indexed unasked.
    pub home: Option<PathBuf>,
}

/// What a search does where there is no index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Indexing {
    /// It scans the files, and begins to build one in the background.
    #[default]
    Auto,
    /// It scans the files, and builds nothing: the process ends with the search.
    ScanOnly,
    /// It is refused until somebody has asked for an index.
    Manual,
}

/// Files are searched up to this size unless it is set otherwise.
pub const DEFAULT_MAX_FILE_BYTES: u64 = 128 << 20;
/// No larger limit can be set: blocks are counted in 16 bits.
pub const LARGEST_MAX_FILE_BYTES: u64 = 256 << 20;

/// The search toolset.
pub struct Search {
    pub(crate) root: Arc<Root>,
    root_name: RootName,
    index: Option<IndexHandle>,
    limit: u64,
    /// The account of the index for callers that asked last.
    summaries: Mutex<SummaryCache>,
    indexing: Indexing,
    /// Why this root is not indexed unasked.
    auto_index_refusal: Option<&'static str>,
    background: Arc<Background>,
    /// Whether the index was found to be damaged, and nothing was done about it yet.
    is_damaged: AtomicBool,
}

struct IndexHandle {
    store: Store,
    refresher: Arc<Refresher>,
}

/// A part of the index besides its text.
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

#[derive(Default)]
struct SummaryCache {
    of: Option<Arc<Index>>,
    by_scopes: Vec<(Scopes, Arc<Summary>)>,
    /// What was passed over when it was last counted, for an index.
    skipped: Option<(Arc<Index>, Arc<PassedOver>)>,
}

impl Search {
    /// Gets ready to search. No index is opened before somebody asks for something.
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

    /// What callers may call the root by.
    pub(crate) fn root_name(&self) -> &RootName {
        &self.root_name
    }

    /// The tools of search.
    pub fn tools(self: &Arc<Self>) -> Vec<Arc<dyn DynTool>> {
        tools::search_tools(self)
    }

    /// The state of the index, for what the caller may read.
    pub fn index_state(&self, call: &CallContext) -> Result<IndexState, Fault> {
        tools::index_state(self, call)
    }

    /// Whether each kind of search works, and what is wrong with those that do not.
    pub fn health(&self, call: &CallContext) -> Result<SearchHealth, Fault> {
        health::check(self, call)
    }

    /// When the index was last built, if there is one.
    pub fn index_built_at(&self) -> Option<std::time::SystemTime> {
        let manifest = self.index.as_ref()?.store.manifest().ok()??;
        std::time::SystemTime::UNIX_EPOCH.checked_add(std::time::Duration::from_millis(manifest.built_at))
    }

    /// A file was changed through the tools: searches that begin from now on see it.
    pub fn note(&self, path: &WorkspacePath) {
        if let Some(handle) = &self.index {
            handle.refresher.note(path.as_str().trim_start_matches('/').as_bytes());
        }
    }

    /// Anything may have changed, by a command that was run: searches that begin from now on see it.
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

    /// The warning that an index was built with another limit on the size of files than is set now.
    pub(crate) fn other_limit(&self, snapshot: &Snapshot) -> Option<String> {
        let (is, should) = (snapshot.manifest.limit, self.limit);
        (is != should)
            .then(|| format!("the index was built for files of up to {is} bytes, not {should} as is set"))
    }

    pub(crate) fn watching(&self) -> Watching {
        self.index.as_ref().map_or(Watching::NotYet, |handle| handle.refresher.watching())
    }

    /// The root as it is now.
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

    /// What a search for text answers from: the index or, where there is none that can be used, the files alone.
    ///
    /// `within` is where the files lie that are searched.
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

    /// The files of the root, or of a part of it, to be looked into one by one.
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
                    .hint("call again; if it stays, check free memory and the limit on open files")
            }
        })
    }

    /// Begins to build the first index behind the calls, or the parts that it lacks.
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

    /// Begins a build behind the calls, of what `within` tells or of the whole root.
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

    /// Whether text can be searched where there is no index.
    pub(crate) fn scans_without_index(&self) -> bool {
        self.indexing != Indexing::Manual && self.check_root().is_ok()
    }

    /// Whether an index that is missing is built by the next search.
    pub(crate) fn builds_by_itself(&self) -> bool {
        self.indexing == Indexing::Auto && self.check_root().is_ok() && self.why_unindexed().is_none()
    }

    /// Why there is no index, and none will come by itself.
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

    /// The build that is going on behind the calls.
    pub(crate) fn build_progress(&self) -> Option<Progress> {
        self.background.progress()
    }

    /// Waits until the index has a part, for as long as the caller does. Where no index is built by itself, nothing is
    /// waited for.
    pub(crate) fn wait_for(&self, part: RankedPart, call: &CallContext) -> Result<(), Fault> {
        /// A build of another process gives no sign.
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
            // What cannot be read just now is told by the search; what is damaged is built anew.
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
                    format!("the index has no {}, and none is built by itself: {reason}", part.name());
                let hint = match self.index {
                    Some(_) => {
                        "call index_build to build it all the same; literal and regex searches answer without it"
                    }
                    None => {
                        "name one outside the root with --state-dir (PINTLE_STATE_DIR); literal and regex searches answer without an index"
                    }
                };
                return Err(Fault::new(ErrorCode::NoIndex, message).hint(hint));
            }
            self.background.wait(PAUSE);
        }
    }

    /// Builds an index that was found to be damaged anew, while calls go on.
    pub(crate) fn rebuild_if_damaged(&self) {
        if self.is_damaged.swap(false, Ordering::AcqRel) {
            self.refresh_in_background();
        }
    }

    /// Brings what has changed into the index on disk, while searches go on.
    fn refresh_in_background(&self) {
        let Some(handle) = &self.index else { return };
        let refresher = Arc::clone(&handle.refresher);
        // What the kernel has told of need not be looked for. If the build fails, searches stay as slow as they are, and
        // the next one tries again.
        self.start_build(handle, None, move |observer| refresher.changed_paths(&|| observer.has_ended()));
    }

    /// The same, or nothing if there is no index.
    pub(crate) fn snapshot_if_any(&self, call: &CallContext) -> Result<Option<Snapshot>, Fault> {
        let Some(handle) = &self.index else { return Ok(None) };
        match handle.refresher.snapshot(&|| call.has_ended()) {
            Ok(snapshot) => Ok(Some(snapshot)),
            Err(SearchError::NoIndex | SearchError::Damaged) => Ok(None),
            Err(error) if self.scans_without_index() && can_be_scanned(&error) => Ok(None),
            Err(error) => Err(self.handle_error(error)),
        }
    }

    /// The account of what a caller may read.
    pub(crate) fn summary(&self, snapshot: &Snapshot, scopes: &Scopes) -> Result<Summary, Fault> {
        let summary = self.summary_of_index(&snapshot.index, scopes);
        let summary = summary.and_then(|summary| summary.with(&snapshot.index, &snapshot.overlay, scopes));
        let mut summary = summary.map_err(|torn| self.handle_error(torn.into()))?;
        let passed = self.summaries.lock().skipped.clone();
        if let Some((_, passed)) = passed.filter(|(of, _)| Arc::ptr_eq(of, &snapshot.index)) {
            summary.set_skipped(&passed, scopes);
        }
        Ok(summary)
    }

    /// The account of the index alone, which is counted once for each kind of caller.
    fn summary_of_index(&self, index: &Arc<Index>, scopes: &Scopes) -> Result<Arc<Summary>, Torn> {
        let is_same = |of: &Arc<Index>| Arc::ptr_eq(of, index);
        let known = {
            let mut summaries = self.summaries.lock();
            if !summaries.of.as_ref().is_some_and(is_same) {
                *summaries = SummaryCache { of: Some(Arc::clone(index)), ..SummaryCache::default() };
            }
            summaries.by_scopes.iter().find(|(of, _)| of == scopes).map(|(_, summary)| Arc::clone(summary))
        };
        if let Some(summary) = known {
            return Ok(summary);
        }
        let summary = Arc::new(Summary::of(index, scopes)?);
        let mut summaries = self.summaries.lock();
        if summaries.of.as_ref().is_some_and(is_same) {
            const KEPT: usize = 8;
            summaries.by_scopes.truncate(KEPT - 1);
            summaries.by_scopes.insert(0, (scopes.clone(), Arc::clone(&summary)));
        }
        Ok(summary)
    }

    /// Builds or refreshes the index, of the whole root or of what lies at a path.
    pub(crate) fn build(
        &self,
        mode: Mode,
        path: Option<&WorkspacePath>,
        observer: &dyn Observer,
    ) -> Result<Built, Fault> {
        if let Some(path) = path {
            self.refuse_nowhere(path)?;
            self.refuse_part_of_nothing(path)?;
        }
        self.build_within(mode, path.map(below), observer)
    }

    /// Refuses a path at which there is nothing and was nothing.
    fn refuse_nowhere(&self, path: &WorkspacePath) -> Result<(), Fault> {
        let within = below(path);
        let is_there = within.targets().all(|target| self.root.stamp_of(target).is_ok());
        let was_there = |index: &Index| index.live_files_within(&within).map_or(true, |ids| !ids.is_empty());
        let is_known = || match self.index_handle()?.store.open() {
            Ok(opened) => Ok(opened.is_some_and(|generation| was_there(&generation.index))),
            // The build tells what is wrong with it.
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

    /// Refuses to refresh a part where there is no index that it could be a part of.
    fn refuse_part_of_nothing(&self, path: &WorkspacePath) -> Result<(), Fault> {
        match self.index_handle()?.store.manifest() {
            Ok(None) => {
                let message = format!(
                    "there is no index of this workspace yet, so what lies at {path} cannot be refreshed in it"
                );
                Err(Fault::new(ErrorCode::NoIndex, message).hint("build without `path` first"))
            }
            // If it cannot be read, the build tells why.
            Ok(Some(_)) | Err(_) => Ok(()),
        }
    }

    /// Counts what a walk passes over now: of that nobody is told when it changes.
    pub(crate) fn count_skipped(
        &self,
        snapshot: &Snapshot,
        has_ended: &(dyn Fn() -> bool + Sync),
    ) -> io::Result<()> {
        let walk = self.root.walk(None, threads(), &|_| {}, &|_| {}, has_ended)?;
        let passed = self.root.passed_over(&walk, has_ended);
        let mut summaries = self.summaries.lock();
        summaries.skipped = Some((Arc::clone(&snapshot.index), Arc::new(passed)));
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

    /// The index as it lies on disk, with nothing over it unless the root is to be walked first.
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

    /// The same for a search for text: where there is no index that can be used, the files alone.
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
                .hint("see that it is there and may be read, and start the server again if it is another one")
        })
    }

    fn index_handle(&self) -> Result<&IndexHandle, Fault> {
        self.check_root()?;
        self.index.as_ref().ok_or_else(|| {
            Fault::new(ErrorCode::CapabilityMissing, NO_STATE_FOLDER)
                .hint("name one outside the root with --state-dir (PINTLE_STATE_DIR)")
        })
    }

    /// The fault of a search that cannot be answered.
    pub(crate) fn handle_error(&self, error: SearchError) -> Fault {
        let hint = match self.indexing {
            Indexing::Manual => {
                "call index_build, or run `pintle index`; until then read files with text.read"
            }
            Indexing::Auto | Indexing::ScanOnly => {
                "call index_build, or run `pintle index`; literal and regex searches answer without one"
            }
        };
        let damaged = "a server builds it anew by itself: search again in a while, or call index_build to wait for it; without a server run `pintle index`";
        match error {
            SearchError::NoIndex if self.background.progress().is_some() => {
                Fault::new(ErrorCode::NoIndex, "the index is being built")
                    .hint("search again in a while, or call index_build to wait for it")
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

const NO_STATE_FOLDER: &str = "there is no state folder, where the index would be kept";

/// Whether the files can answer where the index cannot.
fn can_be_scanned(error: &SearchError) -> bool {
    match error {
        SearchError::NoIndex | SearchError::Damaged => true,
        SearchError::Io(error) => is_unusable_folder(error),
        SearchError::Cancelled | SearchError::TooLarge { .. } => false,
    }
}

/// Whether an error tells that the state folder cannot be used, rather than that something ran out.
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

/// Why a root is not indexed unasked, if it is not: most of what lies there has nothing to do with the work at hand.
fn auto_index_refusal(root: &Path, home: Option<&Path>) -> Option<&'static str> {
    if root.parent().is_none() {
        return Some("the root is `/`");
    }
    let home = home.and_then(|home| home.canonicalize().ok())?;
    home.starts_with(root).then_some("the root is the home folder, or above it")
}

/// The fault of an index that could not be read or written, which says nothing about what is in it.
fn failed(error: &io::Error) -> Fault {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            storage_failed(format!("the disk is full: the index could not be written ({error})"), error)
                .hint("free some space where the state folder is, and call again; an index that was there before still answers")
        }
        _ if is_unusable_folder(error) => {
            let message = format!("the state folder cannot be used: {error}");
            Fault::new(ErrorCode::CapabilityMissing, message)
                .hint("name one that can be written with --state-dir (PINTLE_STATE_DIR)")
        }
        io::ErrorKind::FileTooLarge => {
            let message = "there is more text under the root than one index can hold";
            Fault::new(ErrorCode::CapabilityMissing, message).hint("serve a part of it with --root")
        }
        _ if error.raw_os_error().is_some() => {
            storage_failed(format!("the index could not be read or written: {error}"), error).hint(
                "call again; if it stays, check the disk of the state folder, free memory and the limit on open files",
            )
        }
        _ => Fault::new(ErrorCode::Internal, format!("the index could not be used: {error}")),
    }
}

/// A path with all that lies below it.
fn below(path: &WorkspacePath) -> Within {
    Within::new([path.as_str().trim_start_matches('/').as_bytes().to_vec()])
}
