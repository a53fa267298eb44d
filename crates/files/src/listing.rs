//! What lies in a folder, in the order in which people look for it.

use std::sync::Arc;

use pintle_contract::{Fault, WorkspacePath};
use pintle_engine::{CallContext, ToolOutput};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    files::{Files, Paths},
    store::{Entry, Kind, Store, Terms},
};

/// The entries of a folder.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Listing {
    /// Folders first, then all else, each sorted by name.
    entries: Vec<Listed>,
}

/// One entry.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Listed {
    name: String,
    r#type: Type,
    /// In bytes; 0 for what is not a file.
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

impl ToolOutput for Listing {
    fn is_large(&self) -> bool {
        const MANY: usize = 1000;
        self.entries.len() > MANY
    }
}

impl Listing {
    /// The names of the folders among them.
    pub(crate) fn folders(&self) -> impl Iterator<Item = &str> {
        let folders = self.entries.iter().filter(|entry| matches!(entry.r#type, Type::Folder));
        folders.map(|entry| entry.name.as_str())
    }
}

pub(crate) async fn list(
    files: &Arc<Files>,
    call: &CallContext,
    path: WorkspacePath,
) -> Result<Listing, Fault> {
    let work = |store: &dyn Store, paths: &Paths, terms: &Terms<'_>| {
        let mut entries = store.list(&paths.path, terms)?;
        let place = |entry: &Entry| (entry.kind != Kind::Folder, entry.name.clone());
        entries.sort_by_cached_key(place);
        Ok(Listing { entries: entries.into_iter().map(Listed::from).collect() })
    };
    files.with_store(call, path.into(), work).await
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
