//! `list://{+path}`: the entries of a folder as an MCP resource.

use std::sync::Arc;

use pintle_contract::{Fault, Permission, Verb, WorkspacePath};
use pintle_tool::{Boxed, CallContext, ResourceContent, ResourceEntry, Resources, decode_address};

use crate::{
    files::{self, Files},
    listing::{self, ListOptions, Listing},
};

const MIME_TYPE: &str = "application/json";

pub(crate) struct ListResources(pub(crate) Arc<Files>);

/// The folder that a URI names.
fn path_of(rest: &str) -> Result<WorkspacePath, Fault> {
    files::path(&decode_address(rest)?)
}

impl Resources for ListResources {
    fn scheme(&self) -> &'static str {
        "list"
    }

    fn template(&self) -> Option<&'static str> {
        Some("list://{+path}")
    }

    fn list<'a>(&'a self, call: &'a CallContext) -> Boxed<'a, Result<Vec<ResourceEntry>, Fault>> {
        let root = ResourceEntry {
            uri: "list:///".into(),
            name: "the root of the workspace".into(),
            mime_type: MIME_TYPE,
        };
        let may_read = call.caller().permissions().may_read(&WorkspacePath::root());
        Box::pin(async move { Ok(may_read.then_some(root).into_iter().collect()) })
    }

    fn permission(&self) -> Permission {
        Permission::Address(Verb::Read)
    }

    fn read<'a>(&'a self, call: &'a CallContext, rest: &'a str) -> Boxed<'a, Result<ResourceContent, Fault>> {
        Box::pin(async move {
            let path = path_of(rest)?;
            let listing = listing::list(&self.0, call, path, ListOptions::default()).await?;
            let text = call.compute(move |_| serde_json::to_string(&listing)).await?;
            let text = text.map_err(|error| Fault::internal(error.to_string()))?;
            Ok(ResourceContent { mime_type: MIME_TYPE, text })
        })
    }

    /// The folders whose path begins with the prefix, each with a final slash so that the next name can follow. Clients
    /// insert them into the URI as they are, so `%` is encoded here.
    fn complete<'a>(&'a self, call: &'a CallContext, prefix: &'a str) -> Boxed<'a, Vec<String>> {
        Box::pin(async move {
            let Ok(prefix) = decode_address(prefix) else { return Vec::new() };
            let (folder, beginning) = match prefix.rfind('/') {
                Some(slash) => prefix.split_at(slash + 1),
                None => ("", prefix.as_str()),
            };
            let Ok(path) = WorkspacePath::parse(folder) else { return Vec::new() };
            let finish = |names: Vec<&str>| -> Vec<String> {
                let names = names.into_iter().filter(|name| name.starts_with(beginning));
                // A name that is not valid in a path cannot be opened.
                let names = names.filter(|name| path.join(name).is_some());
                names.map(|name| format!("{folder}{name}/").replace('%', "%25")).collect()
            };
            if !call.caller().permissions().may_read(&path) {
                return finish(call.caller().permissions().ways_from(&path));
            }
            // A folder that cannot be listed has no completions.
            let listing = listing::list(&self.0, call, path.clone(), ListOptions::default()).await;
            finish(listing.iter().flat_map(Listing::folders).collect())
        })
    }
}
