//! The toolset: a store, what must hold of its files, and the tools on them.

use std::{cell::RefCell, sync::Arc};

use pintle_contract::{Access, ErrorCode, Fault, RootName, Verb, WorkspacePath, nearest};
use pintle_tool::{CallContext, DynTool, Resources};
use serde_json::json;

use crate::{
    fault::{fault, target_fault},
    hash::Hash,
    resources::ListResources,
    store::{Rules, Source, Store, StoreError, Terms},
    text, tools,
};

/// The files toolset.
pub struct Files {
    store: Arc<dyn Store>,
    rules: Arc<dyn Rules>,
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
    /// Tools on a store, for files of which the rules hold. `changed` gets each path that a call has changed, or
    /// has tried to, before the call is answered.
    pub fn new(
        store: Arc<dyn Store>,
        rules: Arc<dyn Rules>,
        root_name: RootName,
        changed: impl Fn(&WorkspacePath) + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self { store, rules, changed: Box::new(changed), root_name })
    }

    /// Reads lines as `text.read` does, on the terms of a call.
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

    /// Does something with the store, where it may take its time; `paths` are what it is done to.
    pub(crate) async fn with_store<T: Send + 'static>(
        self: &Arc<Self>,
        call: &CallContext,
        paths: Paths,
        work: impl FnOnce(&dyn Store, &Paths, &Terms<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, Fault> {
        let files = Arc::clone(self);
        let done = call.compute(move |call| {
            files.on_terms(call, |store, terms| {
                files.refuse_absolute(&paths, store, terms)?;
                work(store, &paths, terms).map_err(|error| match (error, &paths) {
                    (StoreError::NotFound, Paths { path, .. }) => files.not_found(path, store, terms),
                    (StoreError::Target(error), Paths { to: Some(to), .. }) => target_fault(*error, to),
                    (error, Paths { path, .. }) => fault(error, path),
                })
            })
        });
        done.await?
    }

    /// Reads a file. A small one that is at hand is read right here: that takes less time than to hand it over.
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

    /// Refuses a path that begins with the root's own path on this machine, unless that is there again in the root.
    fn refuse_absolute(&self, paths: &Paths, store: &dyn Store, terms: &Terms<'_>) -> Result<(), Fault> {
        for path in std::iter::once(&paths.path).chain(&paths.to) {
            let Some((root, relative)) = self.root_name.split(path.as_str()) else { continue };
            let is_there = WorkspacePath::parse(root).is_ok_and(|root| store.names(&root, terms).is_ok());
            if !is_there {
                return Err(self.root_name.refuse_absolute(path.as_str(), relative));
            }
        }
        Ok(())
    }

    /// Does something with the store on the terms of a call.
    fn on_terms<T>(&self, call: &CallContext, work: impl FnOnce(&dyn Store, &Terms<'_>) -> T) -> T {
        let written = RefCell::new(Vec::new());
        let permit = |verb, path: &WorkspacePath| {
            // The resolved path, whatever links the caller's path led through.
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

impl Files {
    /// The fault of a file that is not there, with what may have been meant.
    fn not_found(&self, path: &WorkspacePath, store: &dyn Store, terms: &Terms<'_>) -> Fault {
        let fault = Fault::new(ErrorCode::NotFound, format!("there is nothing at {path}"));
        let base = self.root_name.base();
        let hint = format!("file.list shows what lies in a folder; paths are relative to the root, `{base}`");
        let mut missing = path.clone();
        while let Some((folder, name)) = missing.split_last() {
            match store.names(&folder, terms) {
                Ok(names) => {
                    let near =
                        nearest(name, names.iter().map(String::as_str)).filter(|near| is_alike(name, near));
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

/// What a call is about.
pub(crate) struct Paths {
    pub(crate) path: WorkspacePath,
    /// Where it moves to.
    pub(crate) to: Option<WorkspacePath>,
}

impl From<WorkspacePath> for Paths {
    fn from(path: WorkspacePath) -> Self {
        Self { path, to: None }
    }
}

/// The path that a caller wrote.
pub(crate) fn path(text: &str) -> Result<WorkspacePath, Fault> {
    WorkspacePath::parse(text).map_err(|problem| {
        Fault::new(ErrorCode::InvalidRequest, format!("the path cannot be used: {problem}"))
            .hint("paths are relative to the root of the workspace, such as `src/main.rs`")
    })
}

/// The hash that a caller wrote.
pub(crate) fn hash(text: &str) -> Result<Hash, Fault> {
    Hash::parse(text).ok_or_else(|| {
        Fault::new(ErrorCode::InvalidRequest, "`hash` is not a hash, which is 64 hexadecimal digits").hint(
            "text.read, file.read, search and show_file give the hash of a file, and so does every edit",
        )
    })
}

/// The fault of a file that has another version. The current hash is told only where the edit itself shows that the
/// caller knows the content.
pub(crate) fn stale(found: Hash, is_told: bool) -> Fault {
    let changed = "the file has changed since it was read; nothing was done";
    match is_told {
        true => Fault::new(ErrorCode::Conflict, format!("{changed}. Its current hash is {found}"))
            .hint("read it again; if the lines are still as you gave them, repeat the edit with that hash")
            .details(json!({"currentHash": found.to_string()})),
        false => Fault::new(ErrorCode::Conflict, changed).hint("read it again and decide anew"),
    }
}

/// Whether one name may have been meant by the other.
fn is_alike(name: &str, other: &str) -> bool {
    let (name, other) = (name.to_lowercase(), other.to_lowercase());
    strsim::normalized_damerau_levenshtein(&name, &other) >= 0.6
}
