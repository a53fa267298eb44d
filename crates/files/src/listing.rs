//! Lists a folder, folders first, or a tree, sorted by path, and cuts a long tree where a next call can continue.

use std::sync::Arc;

use pintle_contract::{ErrorCode, Fault, RootName, WorkspacePath};
use pintle_tool::{CallContext, ToolOutput};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    files::{Files, Paths},
    globs::Globs,
    store::{Entry, Kind, Store, StoreError, Terms, TreeEntries, TreeFilter},
};

/// The most entries of a tree in one reply.
const MAX_ENTRIES: usize = 1000;

/// The entries of a folder, or of a tree.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Listing {
    /// Of a folder: folders first, then the rest, each sorted by name. Of a tree: sorted by path.
    entries: Vec<Listed>,
    /// True if a tree has more entries than these.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    truncated: bool,
    /// If `truncated`: how many entries there are in all.
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<u64>,
    /// If `truncated`: the arguments that list the first folder that is not listed, or not all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<Next>,
}

/// One entry.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Listed {
    /// Its name; in a tree its path, from the root of the workspace.
    name: String,
    r#type: Type,
    /// In bytes; 0 if not a file.
    size: u64,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Type {
    Folder,
    File,
    /// Something that cannot be opened, such as a socket or a link that leaves the root.
    Other,
}

/// The arguments of the call that continues.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Next {
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    depth: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    glob: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    r#type: Option<OnlyType>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    ignored: bool,
}

/// Lists only this type.
#[derive(Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum OnlyType {
    File,
    Folder,
}

impl OnlyType {
    fn kind(self) -> Kind {
        match self {
            Self::File => Kind::File,
            Self::Folder => Kind::Folder,
        }
    }
}

/// The options of a listing.
#[derive(Clone, Default)]
pub(crate) struct ListOptions {
    /// How many levels. With a depth or a glob the listing is a tree.
    pub(crate) depth: Option<u32>,
    pub(crate) glob: Option<String>,
    pub(crate) only: Option<OnlyType>,
    pub(crate) ignored: bool,
}

impl ToolOutput for Listing {
    fn is_large(&self) -> bool {
        const MANY: usize = 1000;
        self.entries.len() > MANY
    }
}

impl Listing {
    /// The names of the folders in the listing.
    pub(crate) fn folders(&self) -> impl Iterator<Item = &str> {
        let folders = self.entries.iter().filter(|entry| matches!(entry.r#type, Type::Folder));
        folders.map(|entry| entry.name.as_str())
    }

    fn new(entries: Vec<Entry>) -> Self {
        let entries = entries.into_iter().map(Listed::from).collect();
        Self { entries, truncated: false, total: None, next: None }
    }

    fn part(entries: Vec<Entry>, total: u64, next: Option<Next>) -> Self {
        Self { truncated: true, total: Some(total), next, ..Self::new(entries) }
    }
}

pub(crate) async fn list(
    files: &Arc<Files>,
    call: &CallContext,
    path: WorkspacePath,
    options: ListOptions,
) -> Result<Listing, Fault> {
    let root_name = files.root_name().clone();
    let work = move |store: &dyn Store, paths: &Paths, terms: &Terms<'_>| {
        if let Some(glob) = &options.glob {
            refuse_absolute(&root_name, glob, store, terms)?;
        }
        if options.depth.is_some() || options.glob.is_some() {
            return tree(store, &paths.path, &options, terms);
        }
        let mut entries = store.list(&paths.path, terms)?;
        entries.retain(|entry| options.only.is_none_or(|only| only.kind() == entry.kind));
        let folders_first = |entry: &Entry| (entry.kind != Kind::Folder, entry.name.clone());
        entries.sort_by_cached_key(folders_first);
        Ok(Listing::new(entries))
    };
    files.with_store(call, path.into(), work).await
}

fn tree(
    store: &dyn Store,
    path: &WorkspacePath,
    options: &ListOptions,
    terms: &Terms<'_>,
) -> Result<Listing, StoreError> {
    let globs = match &options.glob {
        None => None,
        Some(glob) => {
            let is_folder = |path: &WorkspacePath| store.is_folder(path, terms);
            Some(Globs::new(glob, path, is_folder).map_err(|problem| bad_glob(&problem))?)
        }
    };
    let find = |depth: Option<u32>, counts_all: bool| {
        let kind = options.only.map(OnlyType::kind);
        let (globs, ignored) = (globs.as_ref(), options.ignored);
        let filter = TreeFilter { depth, globs, kind, ignored, most: MAX_ENTRIES + 1, counts_all };
        store.tree(path, &filter, terms)
    };
    let TreeEntries { mut entries, total } = find(options.depth, true)?;
    if entries.len() <= MAX_ENTRIES {
        return Ok(Listing::new(entries));
    }
    let next = |path: &str, depth: Option<u32>| Next {
        path: path.to_owned(),
        depth,
        glob: globs.as_ref().map(|globs| globs.from_root().to_owned()),
        r#type: options.only,
        ignored: options.ignored,
    };
    // How many levels a path is below the folder.
    let level = |path_below: &str| {
        let below = path_below.strip_prefix(path.as_str()).unwrap_or(path_below).trim_start_matches('/');
        below.split('/').filter(|name| !name.is_empty()).count() as u32
    };
    let left = |level: u32| options.depth.map(|depth| depth.saturating_sub(level).max(1));
    // All entries of fewer levels help more than some entries of all levels: the caller sees every folder and can
    // continue in any of them.
    let shows_folders = globs.is_none() && !matches!(options.only, Some(OnlyType::File));
    if let (true, Some(depth)) = (shows_folders, options.depth) {
        let mut fitting = None;
        for depth in 1..depth.min(DEEPEST) {
            let fewer = find(Some(depth), false)?.entries;
            if fewer.len() > MAX_ENTRIES {
                break;
            }
            fitting = Some((depth, fewer));
        }
        if let Some((depth, fewer)) = fitting {
            let is_not_entered = |entry: &&Entry| entry.kind == Kind::Folder && level(&entry.name) == depth;
            let first = fewer.iter().find(is_not_entered).map(|entry| next(&entry.name, left(depth)));
            return Ok(Listing::part(fewer, total, first));
        }
    }
    let folder_of = |entry: &Entry| entry.name.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
    let stopped_in = entries.get(MAX_ENTRIES).map(folder_of).unwrap_or_default();
    entries.truncate(MAX_ENTRIES);
    let next = match level(&stopped_in) {
        // The same call would stop at the same entry again. A plain listing of the folder has no limit.
        0 => Next {
            path: path.as_str().to_owned(),
            depth: None,
            glob: None,
            r#type: options.only,
            ignored: false,
        },
        level => next(&stopped_in, left(level)),
    };
    Ok(Listing::part(entries, total, Some(next)))
}

/// The most levels that a path can have.
const DEEPEST: u32 = 4096;

/// Refuses an absolute glob of this machine that points into the root, unless the same path exists inside the root.
fn refuse_absolute(
    root_name: &RootName,
    glob: &str,
    store: &dyn Store,
    terms: &Terms<'_>,
) -> Result<(), StoreError> {
    match root_name.split(glob.strip_prefix('!').unwrap_or(glob)) {
        Some((root, _)) if WorkspacePath::parse(root).is_ok_and(|root| store.is_folder(&root, terms)) => {
            Ok(())
        }
        Some((_, relative)) => Err(StoreError::Refused(root_name.refuse_absolute(glob, relative))),
        None => Ok(()),
    }
}

fn bad_glob(problem: &ignore::Error) -> Fault {
    Fault::new(ErrorCode::InvalidRequest, format!("the glob cannot be used: {problem}"))
        .hint("write it as in .gitignore, such as `*.rs` or `src/**/*.{ts,tsx}`; put a literal special character in brackets, such as `[[]`")
}

impl From<Entry> for Listed {
    fn from(entry: Entry) -> Self {
        let r#type = match entry.kind {
            Kind::Folder => Type::Folder,
            Kind::File => Type::File,
            Kind::Other => Type::Other,
        };
        Self { name: entry.name, r#type, size: entry.size }
    }
}
