//! The toolset: a store, the rules for its files, and the tools and resources on them.

use std::{cell::RefCell, sync::Arc};

use pintle_contract::{Access, ErrorCode, Fault, RootName, Verb, WorkspacePath, nearest};
use pintle_tool::{CallContext, DynTool, Resources};

use crate::{
    batch::{self, BatchEntry},
    fault::{fault, target_fault},
    hash::{Hash, Tag},
    resources::ListResources,
    store::{Rules, Source, Store, StoreError, Terms, UnfinishedChange},
    substitution::{self, Substituted, Substitution},
    text,
    text_search::TextSearch,
    together::Done,
    tools,
};

/// The files toolset.
pub struct Files {
    store: Arc<dyn Store>,
    rules: Arc<dyn Rules>,
    text_search: Box<dyn TextSearch>,
    changed: Box<dyn Fn(&WorkspacePath) + Send + Sync>,
    root_name: RootName,
}

/// Some lines of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lines {
    /// The lines, with their terminators.
    pub content: String,
    /// The hash of the whole file.
    pub hash: Hash,
    /// How many lines the file has.
    pub total_lines: u64,
    /// The number of the first line of `content`.
    pub first_line: u64,
}

impl Files {
    /// Tools on a store, which find files by their text with `text_search`. `changed` is called with each path that a call changed or tried to change, before its reply
    /// is sent, so that a search index can see the edit.
    pub fn new(
        store: Arc<dyn Store>,
        rules: Arc<dyn Rules>,
        text_search: impl TextSearch,
        root_name: RootName,
        changed: impl Fn(&WorkspacePath) + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            store,
            rules,
            text_search: Box::new(text_search),
            changed: Box::new(changed),
            root_name,
        })
    }

    /// Reads lines as `text.read` does, with the permissions and deadline of a call.
    pub async fn read_lines(
        self: &Arc<Self>,
        call: &CallContext,
        path: &str,
        lines: [i64; 2],
    ) -> Result<Lines, Fault> {
        let work = move |source: &dyn Source, has_ended: &dyn Fn() -> bool| {
            let text::Read { content, hash, total_lines, first_line } = text::read(source, lines, has_ended)?;
            Ok(Lines { content, hash, total_lines, first_line })
        };
        self.read(call, self::path(path)?, work).await
    }

    /// What stands in the way of undoing change sets that were cut off, with those of their files that the caller may
    /// read.
    pub fn unfinished_changes(&self, call: &CallContext) -> Vec<UnfinishedChange> {
        let may_read =
            |path: &&WorkspacePath| call.caller().require(&Access::Path(Verb::Read, (*path).clone())).is_ok();
        let shown = |change: UnfinishedChange| {
            let files: Vec<_> = change.files.iter().filter(may_read).cloned().collect();
            // The reason may name any of the files.
            let is_hidden = files.len() < change.files.len();
            let reason = if is_hidden { "the server's log says why".into() } else { change.reason };
            UnfinishedChange { files, reason, ..change }
        };
        self.store.unfinished().into_iter().map(shown).collect()
    }

    /// Whether several files can be changed in one call.
    pub fn can_change_several(&self) -> bool {
        self.store.can_change_several()
    }

    pub(crate) fn root_name(&self) -> &RootName {
        &self.root_name
    }

    /// The tools.
    pub fn tools(self: &Arc<Self>) -> Vec<Arc<dyn DynTool>> {
        tools::all(self)
    }

    /// The resources.
    pub fn resources(self: &Arc<Self>) -> Vec<Arc<dyn Resources>> {
        vec![Arc::new(ListResources(Arc::clone(self)))]
    }

    /// Runs `work` on a blocking thread; `paths` are the paths that its errors are about.
    pub(crate) async fn with_store<T: Send + 'static>(
        self: &Arc<Self>,
        call: &CallContext,
        paths: Paths,
        work: impl FnOnce(&dyn Store, &Paths, &Terms<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, Fault> {
        let files = Arc::clone(self);
        let work = move |call: &CallContext| {
            files.on_terms(call, |store, terms| {
                for path in std::iter::once(&paths.path).chain(&paths.to) {
                    files.refuse_absolute(path, store, terms)?;
                }
                work(store, &paths, terms).map_err(|error| match (error, &paths) {
                    (StoreError::Target(error), Paths { to: Some(to), .. }) => target_fault(*error, to),
                    (error, Paths { path, .. }) => files.fault(error, path, store, terms),
                })
            })
        };
        compute(call, work).await
    }

    /// Reads a file. A small one in the page cache is read on this thread, which is faster than handing it to a
    /// blocking thread.
    pub(crate) async fn read<T: Send + 'static>(
        self: &Arc<Self>,
        call: &CallContext,
        path: WorkspacePath,
        work: impl FnOnce(&dyn Source, &dyn Fn() -> bool) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, Fault> {
        let content = self.on_terms(call, |store, terms| store.read_at_once(&path, terms));
        if let Some(content) = content {
            return work(&content, &|| call.has_ended()).map_err(|error| fault(error, &path));
        }
        let work = |store: &dyn Store, paths: &Paths, terms: &Terms<'_>| {
            work(store.open(&paths.path, terms)?.as_ref(), terms.has_ended)
        };
        self.with_store(call, path.into(), work).await
    }

    /// Makes edits in several files, all or none of them.
    pub(crate) async fn edit_files(
        self: &Arc<Self>,
        call: &CallContext,
        entries: Vec<BatchEntry>,
        dry_run: bool,
    ) -> Result<Done, Fault> {
        let files = Arc::clone(self);
        let work = move |call: &CallContext| {
            files.on_terms(call, |store, terms| batch::edit_files(&files, store, terms, &entries, dry_run))
        };
        compute(call, work).await
    }

    /// Replaces every match of a query.
    pub(crate) async fn substitute(
        self: &Arc<Self>,
        call: &CallContext,
        wanted: Substitution,
    ) -> Result<Substituted, Fault> {
        let files = Arc::clone(self);
        let work = move |call: &CallContext| {
            let found = substitution::find(files.text_search.as_ref(), &wanted, call)?;
            files.on_terms(call, |store, terms| {
                substitution::substitute(&files, store, terms, &wanted, &found)
            })
        };
        compute(call, work).await
    }

    /// Refuses an absolute path of this machine that points into the root, unless the same path exists inside the root.
    pub(crate) fn refuse_absolute(
        &self,
        path: &WorkspacePath,
        store: &dyn Store,
        terms: &Terms<'_>,
    ) -> Result<(), Fault> {
        let Some((root, relative)) = self.root_name.split(path.as_str()) else { return Ok(()) };
        let is_there = WorkspacePath::parse(root).is_ok_and(|root| store.names(&root, terms).is_ok());
        match is_there {
            true => Ok(()),
            false => Err(self.root_name.refuse_absolute(path.as_str(), relative)),
        }
    }

    /// Runs `work` with the permissions, rules and cancellation of a call.
    fn on_terms<T>(&self, call: &CallContext, work: impl FnOnce(&dyn Store, &Terms<'_>) -> T) -> T {
        let written = RefCell::new(Vec::new());
        let permit = |verb, path: &WorkspacePath| {
            // This is the resolved path, after all links.
            if verb == Verb::Write {
                written.borrow_mut().push(path.clone());
            }
            call.caller().require(&Access::Path(verb, path.clone()))
        };
        let has_ended = || call.has_ended();
        let commit = || call.commit();
        let rules = self.rules.as_ref();
        let terms = Terms { permit: &permit, rules, has_ended: &has_ended, commit: &commit };
        let done = work(self.store.as_ref(), &terms);
        written.borrow().iter().for_each(&self.changed);
        done
    }
}

/// Runs work on a blocking thread. If the call ends early, its reply waits until the work has undone what it had begun.
async fn compute<T: Send + 'static>(
    call: &CallContext,
    work: impl FnOnce(&CallContext) -> Result<T, Fault> + Send + 'static,
) -> Result<T, Fault> {
    let guard = call.cleanup_guard();
    let guarded = move |call: &CallContext| {
        let _guard = guard;
        work(call)
    };
    call.compute(guarded).await?
}

impl Files {
    /// The fault for an error at a path.
    pub(crate) fn fault(
        &self,
        error: StoreError,
        path: &WorkspacePath,
        store: &dyn Store,
        terms: &Terms<'_>,
    ) -> Fault {
        match error {
            StoreError::NotFound => self.not_found(path, store, terms),
            error => fault(error, path),
        }
    }

    /// The fault for a missing file, with the nearest existing name.
    fn not_found(&self, path: &WorkspacePath, store: &dyn Store, terms: &Terms<'_>) -> Fault {
        let fault = Fault::new(ErrorCode::NotFound, format!("there is nothing at {path}"));
        let base = self.root_name.base();
        let hint = format!("file.list lists a folder; paths are relative to the root, `{base}`");
        let mut missing = path.clone();
        while let Some((folder, name)) = missing.split_last() {
            match store.names(&folder, terms) {
                Ok(names) => {
                    let near = nearest(name, names.iter().map(String::as_str));
                    return match near.and_then(|near| folder.join(near)) {
                        Some(near) if near != missing => {
                            fault.hint(format!("the nearest name to {missing} is {near}; {hint}"))
                        }
                        _ => fault.hint(hint),
                    };
                }
                Err(_) => missing = folder,
            }
        }
        fault.hint(hint)
    }
}

/// The paths of a call.
pub(crate) struct Paths {
    pub(crate) path: WorkspacePath,
    /// The target of a move.
    pub(crate) to: Option<WorkspacePath>,
}

impl From<WorkspacePath> for Paths {
    fn from(path: WorkspacePath) -> Self {
        Self { path, to: None }
    }
}

/// Parses a caller's path.
pub(crate) fn path(text: &str) -> Result<WorkspacePath, Fault> {
    WorkspacePath::parse(text).map_err(|problem| {
        Fault::new(ErrorCode::InvalidRequest, format!("the path cannot be used: {problem}"))
            .hint("paths are relative to the root of the workspace, such as `src/main.rs`")
    })
}

/// Parses a caller's hash.
pub(crate) fn tag(text: &str) -> Result<Tag, Fault> {
    Tag::parse(text).ok_or_else(|| {
        let message =
            "`hash` is not a SHA-256 hash of 64 hexadecimal digits, nor at least the first 8 of them";
        Fault::new(ErrorCode::InvalidRequest, message)
            .hint("text.read, file.read, search, show_file and every edit return a file's hash")
    })
}

/// The fault for a stale hash. It does not name the current one: a caller that has not read a version cannot overwrite it.
pub(crate) fn stale() -> Fault {
    Fault::new(ErrorCode::Conflict, "the file has changed since it was read; nothing was done")
        .hint("read it again before you change it")
}

/// The fault for `lines` written as `"3-7"` if `old` does not occur there.
pub(crate) fn lines_unconfirmed(fault: Fault, written: &str, [start, end]: [i64; 2]) -> Fault {
    if fault.code != ErrorCode::InvalidRequest {
        return fault;
    }
    let last = end - 1;
    let hint = format!(
        "`lines` was written as `{written}`: [{start}, {end}] if line {last} is included, [{start}, {last}] if it is not; `old` confirms neither, so send the two numbers that are meant"
    );
    fault.hint(hint)
}

/// Refuses `lines` written as `"3-7"` where nothing confirms what is meant.
pub(crate) fn lines_not_confirmed(written: &str, [start, end]: [i64; 2]) -> Fault {
    let last = end - 1;
    let message = format!(
        "`lines` was written as `{written}`, which may or may not include line {last}, and there is no single `old` that shows it"
    );
    Fault::new(ErrorCode::InvalidRequest, message)
        .hint(format!("send [{start}, {end}] to include line {last}, or [{start}, {last}]"))
}
