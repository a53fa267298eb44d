//! The toolset: a root, its index, and the tools on them.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use pintle_auth::Scopes;
use pintle_contract::{ErrorCode, Fault, WorkspacePath};
use pintle_engine::{CallContext, DynTool, result_too_large};
use pintle_files::Files;
use serde_json::json;

use crate::{
    build::{Build, Built, Mode, Observer, Phase, build, threads},
    index::Index,
    live::{Live, Snapshot, Unready, Watching},
    root::Root,
    segment::Torn,
    stamp::Stamp,
    store::Store,
    summary::Summary,
    surroundings::Surroundings,
    tools,
    walk::{PassedOver, Within, absolute, passed_over, walk},
};

/// What is searched, and where its index is kept.
pub struct SearchConfig {
    /// The root.
    pub root: PathBuf,
    /// The state folder. Without one there is no index.
    pub state_dir: Option<PathBuf>,
    /// The largest file that is searched, in bytes.
    pub max_file_bytes: u64,
}

/// Files are searched up to this size unless it is set otherwise.
pub const DEFAULT_MAX_FILE_BYTES: u64 = 128 << 20;
/// No larger limit can be set: blocks are counted in 16 bits.
pub const LARGEST_MAX_FILE_BYTES: u64 = 256 << 20;

/// The search toolset.
pub struct Search {
    pub(crate) root: Arc<Root>,
    indexed: Option<Indexed>,
    limit: u64,
    /// The account of the index for callers that asked last.
    summaries: Mutex<Summaries>,
    /// Whether the index is being refreshed without anybody having asked for it.
    is_refreshing: AtomicBool,
    /// Whether the index was found to be damaged, and nothing was done about it yet.
    is_damaged: AtomicBool,
}

/// Nobody watches, and nobody ends it.
struct Unobserved;

impl Observer for Unobserved {
    fn step(&self, _: Phase, _: u64, _: u64) {}

    fn has_ended(&self) -> bool {
        false
    }
}

struct Indexed {
    store: Store,
    live: Live,
}

#[derive(Default)]
struct Summaries {
    of: Option<Arc<Index>>,
    by_scopes: Vec<(Scopes, Arc<Summary>)>,
    /// What was passed over when it was last counted, for an index.
    passed: Option<(Arc<Index>, Arc<PassedOver>)>,
}

impl Search {
    /// Gets ready to search. No index is opened before somebody asks for something.
    pub fn open(config: SearchConfig) -> io::Result<Arc<Self>> {
        let root = Arc::new(Root::open(&config.root)?);
        let limit = config.max_file_bytes.min(LARGEST_MAX_FILE_BYTES);
        let indexed = config.state_dir.map(|state| {
            let store = Store::new(&state, &config.root);
            Indexed { live: Live::new(Arc::clone(&root), store.clone()), store }
        });
        Ok(Arc::new(Self {
            root,
            indexed,
            limit,
            summaries: Mutex::default(),
            is_refreshing: AtomicBool::new(false),
            is_damaged: AtomicBool::new(false),
        }))
    }

    /// The tools of search.
    pub fn tools(self: &Arc<Self>) -> Vec<Arc<dyn DynTool>> {
        tools::search_tools(self)
    }

    /// The tools that show the workspace and how the server is. Files are shown through the files toolset, and
    /// `surroundings` has what other parts of the server know.
    pub fn workspace_tools(
        self: &Arc<Self>,
        files: &Arc<Files>,
        surroundings: Surroundings,
    ) -> Vec<Arc<dyn DynTool>> {
        tools::workspace_tools(self, files, surroundings)
    }

    /// When the index was last built, if there is one.
    pub fn index_built_at(&self) -> Option<std::time::SystemTime> {
        let manifest = self.indexed.as_ref()?.store.manifest().ok()??;
        std::time::SystemTime::UNIX_EPOCH.checked_add(std::time::Duration::from_millis(manifest.built_at))
    }

    /// A file was changed through the tools: searches that begin from now on see it.
    pub fn note(&self, path: &WorkspacePath) {
        if let Some(indexed) = &self.indexed {
            indexed.live.note(path.as_str().trim_start_matches('/').as_bytes());
        }
    }

    pub(crate) fn root_path(&self) -> &Path {
        self.root.path()
    }

    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    /// What is to be told if an index was built for files of another size than is set now.
    pub(crate) fn other_limit(&self, snapshot: &Snapshot) -> Option<String> {
        let (is, should) = (snapshot.manifest.limit, self.limit);
        (is != should)
            .then(|| format!("the index was built for files of up to {is} bytes, not {should} as is set"))
    }

    pub(crate) fn watching(&self) -> Watching {
        self.indexed.as_ref().map_or(Watching::NotYet, |indexed| indexed.live.watching())
    }

    /// The root as it is now.
    pub(crate) fn snapshot(self: &Arc<Self>, call: &CallContext) -> Result<Snapshot, Fault> {
        let indexed = self.indexed()?;
        let snapshot = indexed.live.snapshot(&|| call.has_ended());
        if snapshot.is_ok() && indexed.live.is_heavy() {
            self.refresh_behind();
        }
        snapshot.map_err(|unready| self.unready(unready))
    }

    /// Builds an index that was found to be damaged anew, while calls go on.
    pub(crate) fn mend(self: &Arc<Self>) {
        if self.is_damaged.swap(false, Ordering::AcqRel) {
            self.refresh_behind();
        }
    }

    /// Brings what has changed into the index on disk, while searches go on.
    fn refresh_behind(self: &Arc<Self>) {
        if self.is_refreshing.swap(true, Ordering::AcqRel) {
            return;
        }
        let search = Arc::clone(self);
        let refresh = move || {
            // If that fails, searches stay as slow as they are, and the next one tries again.
            // What the kernel has told of need not be looked for.
            let within = search.indexed.as_ref().and_then(|indexed| indexed.live.changed_paths(&|| false));
            let _ = search.build_within(Mode::Incremental, within, &Unobserved);
            search.is_refreshing.store(false, Ordering::Release);
        };
        if std::thread::Builder::new().name("refresh".into()).spawn(refresh).is_err() {
            self.is_refreshing.store(false, Ordering::Release);
        }
    }

    /// The same, or nothing if there is no index.
    pub(crate) fn snapshot_if_any(&self, call: &CallContext) -> Result<Option<Snapshot>, Fault> {
        let Some(indexed) = &self.indexed else { return Ok(None) };
        match indexed.live.snapshot(&|| call.has_ended()) {
            Ok(snapshot) => Ok(Some(snapshot)),
            Err(Unready::Missing | Unready::Damaged) => Ok(None),
            Err(unready) => Err(self.unready(unready)),
        }
    }

    /// The account of what a caller may read.
    pub(crate) fn summary(&self, snapshot: &Snapshot, scopes: &Scopes) -> Result<Summary, Fault> {
        let summary = self.summary_of_index(&snapshot.index, scopes);
        let summary = summary.and_then(|summary| summary.with(&snapshot.index, &snapshot.overlay, scopes));
        let mut summary = summary.map_err(|torn| self.unready(torn.into()))?;
        let passed = self.summaries.lock().unwrap_or_else(PoisonError::into_inner).passed.clone();
        if let Some((_, passed)) = passed.filter(|(of, _)| Arc::ptr_eq(of, &snapshot.index)) {
            summary.pass(&passed, scopes);
        }
        Ok(summary)
    }

    /// The account of the index alone, which is counted once for each kind of caller.
    fn summary_of_index(&self, index: &Arc<Index>, scopes: &Scopes) -> Result<Arc<Summary>, Torn> {
        let is_same = |of: &Arc<Index>| Arc::ptr_eq(of, index);
        let known = {
            let mut summaries = self.summaries.lock().unwrap_or_else(PoisonError::into_inner);
            if !summaries.of.as_ref().is_some_and(is_same) {
                *summaries = Summaries { of: Some(Arc::clone(index)), ..Summaries::default() };
            }
            summaries.by_scopes.iter().find(|(of, _)| of == scopes).map(|(_, summary)| Arc::clone(summary))
        };
        if let Some(summary) = known {
            return Ok(summary);
        }
        let summary = Arc::new(Summary::of(index, scopes)?);
        let mut summaries = self.summaries.lock().unwrap_or_else(PoisonError::into_inner);
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
        let is_there =
            within.targets().all(|target| Stamp::of_path(&absolute(self.root.path(), target)).is_ok());
        let was_there =
            |index: &Index| index.places_within(&within).map_or(true, |places| !places.is_empty());
        let is_known = || match self.indexed()?.store.open() {
            Ok(opened) => Ok(opened.is_some_and(|generation| was_there(&generation.index))),
            // The build tells what is wrong with it.
            Err(_) => Ok(true),
        };
        if is_there || is_known()? {
            return Ok(());
        }
        Err(Fault::new(ErrorCode::NotFound, format!("there is nothing at {path}")).hint(
            "paths are relative to the root of the workspace, such as `src`; leave `path` out to build all",
        ))
    }

    /// Refuses to refresh a part where there is no index that it could be a part of.
    fn refuse_part_of_nothing(&self, path: &WorkspacePath) -> Result<(), Fault> {
        match self.indexed()?.store.manifest() {
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
    pub(crate) fn count_passed(
        &self,
        snapshot: &Snapshot,
        has_ended: &(dyn Fn() -> bool + Sync),
    ) -> io::Result<()> {
        let walk = walk(self.root.path(), None, threads(), &|_| {}, has_ended)?;
        let passed = passed_over(self.root.path(), &walk, has_ended);
        let mut summaries = self.summaries.lock().unwrap_or_else(PoisonError::into_inner);
        summaries.passed = Some((Arc::clone(&snapshot.index), Arc::new(passed)));
        Ok(())
    }

    fn build_within(
        &self,
        mode: Mode,
        within: Option<Within>,
        observer: &dyn Observer,
    ) -> Result<Built, Fault> {
        let indexed = self.indexed()?;
        let request = Build {
            root: &self.root,
            store: &indexed.store,
            mode,
            within,
            threads: threads(),
            limit: self.limit,
        };
        build(&request, observer).map_err(|error| self.unready(error.into()))
    }

    /// The index as it lies on disk, with nothing over it unless the root is to be walked first.
    pub(crate) fn snapshot_on_disk(&self, is_fresh: bool) -> Result<Snapshot, Fault> {
        let indexed = self.indexed()?;
        let snapshot = match is_fresh {
            true => {
                indexed.live.do_not_watch("one search only");
                indexed.live.snapshot(&|| false)
            }
            false => indexed.live.snapshot_on_disk(),
        };
        snapshot.map_err(|unready| self.unready(unready))
    }

    fn indexed(&self) -> Result<&Indexed, Fault> {
        self.root.check().map_err(|problem| {
            let message = format!("the root, {}, {problem}", self.root.path().display());
            Fault::new(ErrorCode::CapabilityMissing, message)
                .hint("see that it is there and may be read, and start the server again if it is another one")
        })?;
        self.indexed.as_ref().ok_or_else(|| {
            Fault::new(
                ErrorCode::CapabilityMissing,
                "there is no state folder, where the index would be kept",
            )
            .hint("start the server with --state-dir (PINTLE_STATE_DIR), outside the root")
        })
    }

    /// The fault of a search that cannot be answered.
    pub(crate) fn unready(&self, unready: Unready) -> Fault {
        let hint = "call index_build, or run `pintle index`; until then read files with text.read";
        let damaged = "a server builds it anew by itself: search again in a while, or call index_build to wait for it; without a server run `pintle index`";
        match unready {
            Unready::Missing if self.is_refreshing.load(Ordering::Acquire) => {
                Fault::new(ErrorCode::NoIndex, "the index is being built anew")
                    .hint("search again in a while, or call index_build to wait for it")
            }
            Unready::Missing => {
                Fault::new(ErrorCode::NoIndex, "there is no index of this workspace yet").hint(hint)
            }
            Unready::Damaged => {
                if let Some(indexed) = &self.indexed {
                    indexed.live.forget();
                }
                self.is_damaged.store(true, Ordering::Release);
                Fault::new(ErrorCode::NoIndex, "the index is damaged or of another version, and is not used")
                    .hint(damaged)
            }
            Unready::TooLarge { bytes, most } => result_too_large(bytes, most)
                .hint("ask for fewer hits with `top`, or for fewer lines around them with `context`"),
            Unready::Ended => Fault::new(ErrorCode::Cancelled, "the call was ended"),
            Unready::Failed(error) => failed(&error),
        }
    }
}

/// The fault of an index that could not be read or written, which says nothing about what is in it.
fn failed(error: &io::Error) -> Fault {
    let upstream = |message: String, reason: &str| {
        Fault::new(ErrorCode::UpstreamFailed, message).details(json!({ "reason": reason }))
    };
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            upstream(format!("the disk is full: the index could not be written ({error})"), "no_space")
                .hint("free some space where the state folder is, and call again; the old index still answers")
        }
        io::ErrorKind::PermissionDenied
        | io::ErrorKind::NotFound
        | io::ErrorKind::ReadOnlyFilesystem
        | io::ErrorKind::NotADirectory
        | io::ErrorKind::AlreadyExists => {
            let message = format!("the state folder cannot be used: {error}");
            Fault::new(ErrorCode::CapabilityMissing, message)
                .hint("name one that can be written with --state-dir (PINTLE_STATE_DIR)")
        }
        io::ErrorKind::FileTooLarge => {
            let message = "there is more text under the root than one index can hold";
            Fault::new(ErrorCode::CapabilityMissing, message).hint("serve a part of it with --root")
        }
        _ if error.raw_os_error().is_some() => {
            upstream(format!("the index could not be read or written: {error}"), "io").hint(
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
