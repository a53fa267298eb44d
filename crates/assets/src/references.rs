//! Resolves `$ref` between schema files of one folder, and nowhere else.
//!
//! A file is found by its `$id`, else by its file URI. A file without an id next to one with an id is also found
//! relative to that id, and the other way round, so that a folder can mirror a web site. Everything is looked up in
//! memory: no reference can reach the disk or the network.

use std::{collections::HashMap, error::Error, path::Path, sync::Arc};

use jsonschema::{Draft, Retrieve, Uri};
use serde_json::Value;
use url::Url;

/// The documents that references can resolve to.
#[derive(Default)]
pub(crate) struct Library {
    documents: Vec<Document>,
    /// By id, without a fragment.
    by_id: HashMap<String, usize>,
    by_file_uri: HashMap<String, usize>,
    mirrors: Vec<MirroredFolder>,
}

struct Document {
    value: Arc<Value>,
    has_id: bool,
    /// The base URI of its references: its id, else its file URI.
    base: Option<Url>,
}

/// The URL of a folder on the web and the file URI of the local folder that mirrors it; both end in `/`.
#[derive(PartialEq)]
struct MirroredFolder {
    web: String,
    here: String,
}

impl Library {
    /// Adds a file by its path, relative to `root`. If another file had the same id first, the id still resolves to
    /// that one.
    pub(crate) fn add(&mut self, root: &Path, path: &str, value: Arc<Value>) -> Added {
        let file_uri = file_uri(&root.join(path));
        let id = id_of(&value).and_then(|id| absolute(id, file_uri.as_ref()));
        let index = self.documents.len();
        let base = id.clone().or_else(|| file_uri.clone());
        self.documents.push(Document { value, has_id: id.is_some(), base });
        if let Some(uri) = &file_uri {
            self.by_file_uri.insert(uri.as_str().to_owned(), index);
        }
        let mut id_taken_by = None;
        if let Some(id) = &id {
            match self.by_id.get(id.as_str()) {
                Some(first) => id_taken_by = Some(*first),
                None => _ = self.by_id.insert(id.as_str().to_owned(), index),
            }
            if let Some(uri) = &file_uri {
                self.add_mirrors(id, uri, path.matches('/').count());
            }
        }
        Added { index, file_uri: file_uri.map(String::from), id_taken_by }
    }

    /// The file that an id names.
    pub(crate) fn find_id(&self, id: &str) -> Option<usize> {
        let mut id = Url::parse(id).ok()?;
        id.set_fragment(None);
        self.by_id.get(id.as_str()).copied()
    }

    /// The reference that resolves to a URI, as it is written in some document.
    pub(crate) fn as_written(&self, uri: &str) -> Option<&str> {
        let without_fragment = |uri: &str| uri.split('#').next().unwrap_or_default().to_owned();
        let wanted = without_fragment(uri);
        let leads_there = |document: &Document, reference: &str| {
            let base = document.base.as_ref();
            base.and_then(|base| base.join(reference).ok())
                .is_some_and(|target| without_fragment(target.as_str()) == wanted)
        };
        self.documents.iter().find_map(|document| {
            let written = references_in(&document.value);
            written.into_iter().find(|reference| leads_there(document, reference))
        })
    }

    /// Pairs each parent folder of a file with the same parent of its id, as far up as both go.
    fn add_mirrors(&mut self, id: &Url, file_uri: &Url, depth: usize) {
        let (mut web, mut here) = (id.as_str(), file_uri.as_str());
        let web_root = match id.cannot_be_a_base() {
            true => return,
            false => id[..url::Position::BeforePath].len(),
        };
        for _ in 0..=depth {
            let (Some(web_end), Some(here_end)) = (web.rfind('/'), here.rfind('/')) else { return };
            if web_end < web_root {
                return;
            }
            let mirror =
                MirroredFolder { web: web[..=web_end].to_owned(), here: here[..=here_end].to_owned() };
            if !self.mirrors.contains(&mirror) {
                self.mirrors.push(mirror);
            }
            (web, here) = (&web[..web_end], &here[..here_end]);
        }
    }

    fn find(&self, uri: &str) -> Option<&Document> {
        let exact = self.by_id.get(uri).or_else(|| self.by_file_uri.get(uri));
        let index = exact
            .copied()
            .or_else(|| self.mirrors.iter().find_map(|mirror| self.find_in_mirror(mirror, uri)));
        index.map(|index| &self.documents[index])
    }

    fn find_in_mirror(&self, mirror: &MirroredFolder, uri: &str) -> Option<usize> {
        if let Some(rest) = uri.strip_prefix(&mirror.web) {
            // A file with an id of its own is not the document at this URL.
            let index = *self.by_file_uri.get(&format!("{}{rest}", mirror.here))?;
            return (!self.documents[index].has_id).then_some(index);
        }
        let rest = uri.strip_prefix(&mirror.here)?;
        self.by_id.get(&format!("{}{rest}", mirror.web)).copied()
    }
}

/// The result of adding a file.
pub(crate) struct Added {
    /// Its index, in the order of adding.
    pub(crate) index: usize,
    /// The base URI of its references, unless it has an id.
    pub(crate) file_uri: Option<String>,
    /// The index of the file that was added first with the same id.
    pub(crate) id_taken_by: Option<usize>,
}

/// Gives the schema compiler access to the library, and to nothing else.
pub(crate) struct LibraryRetriever(pub(crate) Arc<Library>);

impl Retrieve for LibraryRetriever {
    fn retrieve(&self, uri: &Uri<String>) -> Result<Value, Box<dyn Error + Send + Sync>> {
        // Both sides are normalized by `url`, so that equal URIs are equal text.
        let document = Url::parse(uri.as_str()).ok().and_then(|uri| self.0.find(uri.as_str()));
        match document {
            Some(document) => Ok(served(&document.value)),
            None => Err(format!("no file in the schemas folder has the id or the URI `{uri}`").into()),
        }
    }
}

/// A copy for the compiler, which takes the URI that it asked for as the base of the document's references: the
/// document's own id is removed so that it cannot override that. An unknown `$schema` is removed as well, because the
/// compiler refuses unknown dialects and they are read as the default one here.
fn served(document: &Value) -> Value {
    let mut copy = document.clone();
    let has_id = id_of(document).is_some();
    let draft = Draft::default().detect(document);
    if let Value::Object(members) = &mut copy {
        if has_id {
            members.remove(draft.id_keyword());
        }
        if draft == Draft::Unknown {
            members.remove("$schema");
        }
    }
    copy
}

/// The id of a document, as its draft spells it.
pub(crate) fn id_of(document: &Value) -> Option<&str> {
    let draft = Draft::default().detect(document);
    // The old drafts ignore an id next to a `$ref`.
    draft.create_resource_ref(document).id()?;
    let id = document.get(draft.id_keyword())?.as_str()?.trim_end_matches('#');
    (!id.is_empty() && !id.starts_with('#')).then_some(id)
}

/// The value of every `$ref`, `$dynamicRef` and `$recursiveRef`, anywhere in a document.
fn references_in(document: &Value) -> Vec<&str> {
    let mut references = Vec::new();
    let mut pending = vec![document];
    while let Some(value) = pending.pop() {
        match value {
            Value::Array(items) => pending.extend(items),
            Value::Object(members) => {
                let reference = ["$ref", "$dynamicRef", "$recursiveRef"].map(|keyword| members.get(keyword));
                references.extend(reference.into_iter().flatten().filter_map(Value::as_str));
                pending.extend(members.values());
            }
            _ => {}
        }
    }
    references
}

/// The URI of a file. Characters that strict URI parsers refuse are percent-encoded, and so are quotes, so that
/// `redact` can see where a URI in a message ends.
fn file_uri(path: &Path) -> Option<Url> {
    let uri = Url::from_file_path(path).ok()?;
    let strict = ['[', ']', '^', '|', '\'', '`'].into_iter().fold(uri.to_string(), |uri, character| {
        uri.replace(character, &format!("%{:02X}", u32::from(character)))
    });
    Url::parse(&strict).ok()
}

fn absolute(id: &str, base: Option<&Url>) -> Option<Url> {
    let mut id = match base {
        Some(base) => base.join(id).ok()?,
        None => Url::parse(id).ok()?,
    };
    id.set_fragment(None);
    Some(id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn library(files: &[(&str, Value)]) -> Library {
        let mut library = Library::default();
        for (path, value) in files {
            library.add(Path::new("/s"), path, Arc::new(value.clone()));
        }
        library
    }

    /// The index of the file that a URI resolves to.
    fn resolve(library: &Library, uri: &str) -> Option<usize> {
        let found = library.find(Url::parse(uri).expect("a URI").as_str())?;
        library.documents.iter().position(|document| Arc::ptr_eq(&document.value, &found.value))
    }

    #[test]
    fn a_file_is_found_by_id_and_by_file_uri() {
        let library = library(&[
            ("a.json", json!({"$id": "https://h/x/a.json"})),
            ("sub/b c.json", json!({"title": "b"})),
            (
                "old.json",
                json!({"$schema": "http://json-schema.org/draft-04/schema#", "id": "https://h/old#"}),
            ),
            ("urn.json", json!({"$id": "urn:example:u"})),
        ]);
        assert_eq!(resolve(&library, "https://h/x/a.json"), Some(0));
        assert_eq!(resolve(&library, "https://H:443/x/./a.json"), Some(0));
        assert_eq!(resolve(&library, "file:///s/a.json"), Some(0));
        assert_eq!(resolve(&library, "file:///s/sub/b%20c.json"), Some(1));
        assert_eq!(resolve(&library, "https://h/old"), Some(2));
        assert_eq!(resolve(&library, "urn:example:u"), Some(3));
        assert_eq!(library.find_id("https://h/x/a.json#/x"), Some(0));
    }

    #[test]
    fn a_file_without_an_id_is_found_beside_one_with_an_id() {
        let library = library(&[
            ("d/x.json", json!({"$id": "https://h/a/b/x.json"})),
            ("d/y.json", json!({"title": "y"})),
            ("d/deep/z.json", json!({"title": "z"})),
            ("up.json", json!({"title": "up"})),
            ("d/own.json", json!({"$id": "https://elsewhere/own.json"})),
        ]);
        assert_eq!(resolve(&library, "https://h/a/b/y.json"), Some(1));
        assert_eq!(resolve(&library, "https://h/a/b/deep/z.json"), Some(2));
        assert_eq!(resolve(&library, "https://h/a/up.json"), Some(3));
        // It has an id of its own, and the folder ends above `a`.
        assert_eq!(resolve(&library, "https://h/a/b/own.json"), None);
        assert_eq!(resolve(&library, "https://h/up.json"), None);
        assert_eq!(resolve(&library, "https://h/a/b/none.json"), None);
    }

    #[test]
    fn nothing_outside_the_folder_is_found() {
        let library = library(&[("a.json", json!({"$id": "https://h/x/a.json"})), ("b.json", json!({}))]);
        for uri in [
            "file:///etc/passwd",
            "file:///outside.json",
            "file:///s/../outside.json",
            "file:///s/%2e%2e/outside.json",
            "https://h/outside.json",
            "http://h/x/a.json",
            "https://h/x/../../s/b.json",
        ] {
            assert_eq!(resolve(&library, uri), None, "{uri}");
        }
    }

    #[test]
    fn the_first_of_two_files_with_one_id_has_it() {
        let mut library = Library::default();
        let root = Path::new("/s");
        let first = library.add(root, "a.json", Arc::new(json!({"$id": "https://h/x"})));
        let second = library.add(root, "b.json", Arc::new(json!({"$id": "https://h/x"})));
        assert_eq!((first.id_taken_by, second.id_taken_by), (None, Some(0)));
        assert_eq!(library.find_id("https://h/x"), Some(0));
    }
}
