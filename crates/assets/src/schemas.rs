//! The schemas of a folder: found by name, by id or by reference.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use pintle_contract::{Fault, nearest};
use pintle_engine::CallContext;
use serde_json::Value;

use crate::{
    folder::{Folder, FoundFile},
    issue::Issue,
    names::schema_name,
    references::Library,
    schema::{SCHEMA, SCHEMA_REF, Schema},
    version,
    weight::is_heavy,
};

/// The schema of whole assets.
const CANONICAL_ASSET: &str = "synesthetic-asset";
/// What the schema of whole assets is called where assets hold their parts.
pub(crate) const NESTED_ASSET: &str = "nested-synesthetic-asset";

/// All schemas of a folder.
#[derive(Default)]
pub(crate) struct Schemas {
    /// In the order of the library's numbers.
    schemas: Vec<Arc<Schema>>,
    /// The highest version of each name, by number.
    by_name: BTreeMap<String, usize>,
    /// Files that are no schemas, and why.
    broken: HashMap<String, Arc<str>>,
    library: Arc<Library>,
}

/// What a name or a reference led to.
#[derive(Clone)]
pub(crate) enum Found {
    /// A schema, and the library that its references lead to.
    Schema(Arc<Schema>, Arc<Library>),
    /// A file that is no schema.
    Broken { name: String, reason: Arc<str> },
}

impl Schemas {
    /// Reads a folder. A file that cannot be used is told in the warnings.
    pub(crate) fn load(folder: &Folder, warnings: &mut Vec<String>) -> Self {
        let mut library = Library::default();
        let mut loaded = Self::default();
        for file in folder.json_files(warnings) {
            match read_schema(&file) {
                Ok(document) => loaded.add(folder, &file, document, &mut library, warnings),
                Err(reason) => {
                    warnings.push(format!("schema `{}` is skipped: {reason}", file.path));
                    loaded.broken.insert(schema_name(file.name()).to_owned(), reason.into());
                }
            }
        }
        loaded.library = Arc::new(library);
        loaded
    }

    fn add(
        &mut self,
        folder: &Folder,
        file: &FoundFile,
        document: Arc<Value>,
        library: &mut Library,
        warnings: &mut Vec<String>,
    ) {
        let added = library.add(folder.root(), &file.path, Arc::clone(&document));
        if let Some(first) = added.id_taken_by {
            let first = &self.schemas[first].path;
            warnings.push(format!("schema `{}` has the id of `{first}`: references lead there", file.path));
        }
        let schema = Schema::new(file, document, added.file_uri);
        // Files come sorted by path, so of equal versions the first path stays.
        let best = self.by_name.entry(schema.name.clone()).or_insert(added.index);
        if *best != added.index && version::compare(&self.schemas[*best].version, &schema.version).is_lt() {
            *best = added.index;
        }
        self.schemas.push(Arc::new(schema));
    }

    /// All schemas, sorted by name, version, path.
    pub(crate) fn list(&self) -> Vec<&Schema> {
        let mut list: Vec<&Schema> = self.schemas.iter().map(|schema| &**schema).collect();
        list.sort_by(|a, b| (&a.name, &a.version, &a.path).cmp(&(&b.name, &b.version, &b.path)));
        list
    }

    /// All names, sorted, each once.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }

    /// The schema of that name, in its highest version.
    pub(crate) fn get(&self, name: &str) -> Option<&Arc<Schema>> {
        let name = self.canonical(name);
        self.by_name.get(name).map(|&index| &self.schemas[index])
    }

    /// The schema of that name, or the file that should have been one.
    pub(crate) fn find(&self, name: &str) -> Option<Found> {
        if let Some(schema) = self.get(name) {
            return Some(self.found(schema));
        }
        let name = self.canonical(name);
        let reason = self.broken.get(name)?;
        Some(Found::Broken { name: name.to_owned(), reason: Arc::clone(reason) })
    }

    /// The schema that a reference in a document names: by id, else by file name.
    pub(crate) fn find_reference(&self, reference: &str) -> Option<Found> {
        if let Some(index) = self.library.find_id(reference) {
            return Some(self.found(&self.schemas[index]));
        }
        let path = reference.split(['#', '?']).next().unwrap_or_default();
        self.find(schema_name(path.rsplit('/').next().unwrap_or_default()))
    }

    /// The schema of a document: the one it names, else the one of its component.
    pub(crate) fn find_for(&self, document: &Value, component: &str) -> Option<Found> {
        let named = |member| document.get(member).and_then(Value::as_str);
        let by_member = |member| named(member).and_then(|reference| self.find_reference(reference));
        by_member(SCHEMA_REF).or_else(|| by_member(SCHEMA)).or_else(|| self.find(component))
    }

    /// What to tell a caller who named a schema that there is not.
    pub(crate) fn unknown_message(&self, name: &str) -> String {
        let name: String = name.chars().take(80).collect();
        match nearest(&name, self.names()) {
            Some(near) => {
                format!("there is no schema `{name}`; the nearest is `{near}` (list_schemas shows the names)")
            }
            None => format!("there is no schema `{name}`: this server has no schemas"),
        }
    }

    fn found(&self, schema: &Arc<Schema>) -> Found {
        Found::Schema(Arc::clone(schema), Arc::clone(&self.library))
    }

    fn canonical<'a>(&self, name: &'a str) -> &'a str {
        let exists = |name| self.by_name.contains_key(name) || self.broken.contains_key(name);
        if name == NESTED_ASSET && exists(CANONICAL_ASSET) { CANONICAL_ASSET } else { name }
    }
}

impl Found {
    /// The schema's own name.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Schema(schema, _) => &schema.name,
            Self::Broken { name, .. } => name,
        }
    }

    /// The name that documents of this schema go by: whole assets are nested ones.
    pub(crate) fn document_name(&self) -> &str {
        match self.name() {
            CANONICAL_ASSET => NESTED_ASSET,
            name => name,
        }
    }

    /// All ways in which an asset does not match; none if it does.
    pub(crate) fn issues(&self, asset: Value) -> Vec<Issue> {
        match self {
            Self::Schema(schema, library) => schema.issues(asset, library),
            Self::Broken { reason, .. } => vec![Issue::schema_invalid(reason)],
        }
    }

    /// The same, where it blocks nobody if it may take long.
    pub(crate) async fn issues_in_call(self, asset: Value, call: &CallContext) -> Result<Vec<Issue>, Fault> {
        if self.is_ready() && !is_heavy(&asset) {
            return Ok(self.issues(asset));
        }
        call.compute(move |_| self.issues(asset)).await
    }

    fn is_ready(&self) -> bool {
        match self {
            Self::Schema(schema, _) => schema.is_compiled(),
            Self::Broken { .. } => true,
        }
    }
}

fn read_schema(file: &FoundFile) -> Result<Arc<Value>, String> {
    match file.read()? {
        schema @ (Value::Object(_) | Value::Bool(_)) => Ok(Arc::new(schema)),
        _ => Err("it is neither an object nor a boolean".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{issues, load_schemas, schemas_of};
    use serde_json::json;

    fn listed(schemas: &Schemas) -> Vec<(&str, &str, &str)> {
        let list = schemas.list().into_iter();
        list.map(|schema| (schema.name.as_str(), schema.version.as_str(), schema.path.as_str())).collect()
    }

    #[test]
    fn schemas_are_listed_by_name_version_path() {
        let (schemas, warnings) = schemas_of(&[
            ("b.json", json!({})),
            ("z/a.schema.json", json!({"version": "1"})),
            ("y/a.schema.json", json!({"version": "2"})),
            ("x/a.json", json!({"version": "2"})),
        ]);
        assert_eq!(
            listed(&schemas),
            [
                ("a", "1", "z/a.schema.json"),
                ("a", "2", "x/a.json"),
                ("a", "2", "y/a.schema.json"),
                ("b", "", "b.json")
            ]
        );
        assert!(warnings.is_empty(), "{warnings:?}");
    }

    #[test]
    fn of_one_name_the_highest_version_answers_then_the_first_path() {
        let (schemas, _) = schemas_of(&[
            ("1/a.json", json!({"version": "0.9.0"})),
            ("2/a.json", json!({"version": "0.10.0"})),
            ("3/a.json", json!({"version": "0.10.0"})),
        ]);
        assert_eq!(schemas.get("a").map(|schema| schema.path.as_str()), Some("2/a.json"));
    }

    #[test]
    fn a_file_that_is_no_schema_is_not_listed_and_says_why() {
        let (schemas, warnings) = load_schemas(&[
            ("text.json", "hello".into()),
            ("list.json", "[1]".into()),
            ("yes.json", "true".into()),
            ("no.json", "false".into()),
        ]);
        assert_eq!(listed(&schemas), [("no", "", "no.json"), ("yes", "", "yes.json")]);
        assert!(schemas.get("text").is_none() && schemas.get("list").is_none());
        assert_eq!(
            issues(&schemas, "list", json!(1)),
            [": schema_invalid: it is neither an object nor a boolean"]
        );
        assert!(issues(&schemas, "text", json!(1))[0].starts_with(": schema_invalid: it is not JSON"));
        assert_eq!(warnings.len(), 2, "{warnings:?}");
        assert!(issues(&schemas, "yes", json!(1)).is_empty());
        assert_eq!(issues(&schemas, "no", json!(1)), [": False schema does not allow 1"]);
    }

    #[test]
    fn the_nested_asset_is_another_name_of_the_canonical_one() {
        let (schemas, _) = schemas_of(&[("synesthetic-asset.schema.json", json!({"type": "object"}))]);
        assert_eq!(schemas.get(NESTED_ASSET).map(|schema| schema.name.as_str()), Some(CANONICAL_ASSET));
        assert_eq!(listed(&schemas).len(), 1);
        assert_eq!(issues(&schemas, NESTED_ASSET, json!(1)), [": 1 is not of type \"object\""]);
        let (none, _) = schemas_of(&[("tone.json", json!({}))]);
        assert!(none.find(NESTED_ASSET).is_none());
    }

    #[test]
    fn a_document_names_its_schema_by_id_or_file_name_and_else_by_its_component() {
        let (schemas, _) = schemas_of(&[
            ("tone.schema.json", json!({"$id": "https://h/1.0/tone.schema.json"})),
            ("new/tone.schema.json", json!({"$id": "https://h/2.0/tone.schema.json"})),
            ("rule.json", json!({})),
        ]);
        let path = |document: Value, component: &str| match schemas.find_for(&document, component) {
            Some(Found::Schema(schema, _)) => schema.path.clone(),
            _ => String::new(),
        };
        for (document, expected) in [
            (json!({"$schemaRef": "jsonschema/tone.schema.json"}), "new/tone.schema.json"),
            (json!({"$schemaRef": "https://h/1.0/tone.schema.json"}), "tone.schema.json"),
            (json!({"$schemaRef": "https://other/rule.json#x"}), "rule.json"),
            (json!({"$schemaRef": "none.json", "$schema": "tone"}), "new/tone.schema.json"),
            (json!({"$schemaRef": 7, "$schema": ["tone"]}), "rule.json"),
            (json!([]), "rule.json"),
        ] {
            assert_eq!(path(document.clone(), "rule"), expected, "{document}");
        }
        assert_eq!(path(json!({}), "none"), "");
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_nearest() {
        let (schemas, _) = schemas_of(&[("tone.json", json!({})), ("rule.json", json!({}))]);
        assert!(schemas.unknown_message("tune").contains("the nearest is `tone`"));
        assert!(Schemas::default().unknown_message("x").contains("no schemas"));
        assert!(schemas.unknown_message(&"x".repeat(1_000)).len() < 300);
    }
}
