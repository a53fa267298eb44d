//! The schema registry: all schemas of a folder, looked up by name, by `$id` or by a reference in a document.

use std::{collections::BTreeMap, sync::Arc};

use pintle_contract::{Fault, nearest};
use pintle_tool::CallContext;
use serde_json::Value;

use crate::{
    folder::{FileProblem, Folder, FoundFile},
    issue::Issue,
    names::schema_name,
    references::Library,
    schema::{SCHEMA, SCHEMA_REF, Schema, SchemaNameKind},
    version,
    warnings::Warnings,
};

/// The schema of complete assets.
const CANONICAL_ASSET: &str = "synesthetic-asset";
/// An alias of [`CANONICAL_ASSET`], for assets that contain their parts instead of referring to them.
pub(crate) const NESTED_ASSET: &str = "nested-synesthetic-asset";

/// All schemas of a folder.
#[derive(Default)]
pub(crate) struct Schemas {
    /// Indexed by the number that [`Library::add`] returned.
    schemas: Vec<Arc<Schema>>,
    /// The index of the highest version of each name.
    by_name: BTreeMap<String, usize>,
    /// Files that could not be read as a schema, sorted by path.
    broken: Vec<BrokenFile>,
    library: Arc<Library>,
}

/// A file that could not be read as a schema, and why.
struct BrokenFile {
    name: String,
    path: String,
    reason: Arc<str>,
}

/// The result of looking up a schema by name or by reference.
#[derive(Clone)]
pub(crate) enum ResolvedSchema {
    /// A schema, the library that its references resolve in, and the name by which it was looked up.
    Schema(Arc<Schema>, Arc<Library>, SchemaNameKind),
    /// A file that has the name but could not be read as a schema.
    Broken { name: String, reason: Arc<str> },
}

impl Schemas {
    /// Reads a folder. A file that cannot be used is skipped with a warning.
    pub(crate) fn load(folder: &Folder, warnings: &mut Warnings) -> Self {
        let mut library = Library::default();
        let mut loaded = Self::default();
        for file in folder.json_files(warnings) {
            match read_schema(&file) {
                Ok(document) => loaded.add(folder, &file, document, &mut library, warnings),
                Err(problem) => {
                    let reason = problem.to_string();
                    warnings.skip(&file.path, &reason);
                    let name = schema_name(file.name()).to_owned();
                    loaded.broken.push(BrokenFile { name, path: file.path, reason: reason.into() });
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
        warnings: &mut Warnings,
    ) {
        let added = library.add(folder.root(), &file.path, Arc::clone(&document));
        if let Some(first) = added.id_taken_by {
            let first = &self.schemas[first].path;
            warnings.push(&file.path, &format!("has the same id as `{first}`, which references resolve to"));
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
        let listed = |schema: &&Schema| !self.is_hidden(&schema.name);
        let mut list: Vec<&Schema> = self.schemas.iter().map(|schema| &**schema).filter(listed).collect();
        list.sort_by(|a, b| (&a.name, &a.version, &a.path).cmp(&(&b.name, &b.version, &b.path)));
        list
    }

    /// All names, sorted, each once.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str).filter(|name| !self.is_hidden(name))
    }

    /// The schema of that name, in its highest version.
    pub(crate) fn get(&self, name: &str) -> Option<&Arc<Schema>> {
        let name = self.canonical(name);
        self.by_name.get(name).map(|&index| &self.schemas[index])
    }

    /// The schema of that name, or the file of that name that could not be read as one.
    pub(crate) fn find(&self, name: &str) -> Option<ResolvedSchema> {
        if let Some(schema) = self.get(name) {
            let looked_up_by = if self.is_hidden(name) { SchemaNameKind::Alias } else { SchemaNameKind::Own };
            return Some(ResolvedSchema::Schema(Arc::clone(schema), Arc::clone(&self.library), looked_up_by));
        }
        let name = self.canonical(name);
        self.broken.iter().find(|file| file.name == name).map(BrokenFile::found)
    }

    /// The schema that a document's reference names: by id, else by the file whose path shares the longest suffix
    /// with the reference, else by file name, else by schema name.
    pub(crate) fn find_reference(&self, reference: &str) -> Option<ResolvedSchema> {
        if let Some(index) = self.library.find_id(reference) {
            return Some(self.found(&self.schemas[index]));
        }
        let path = reference.split(['#', '?']).next().unwrap_or_default();
        let path = path.split_once("://").map_or(path, |(_, rest)| rest);
        let file_name = path.rsplit('/').next().unwrap_or_default();
        let by_path = || self.best(|file| path_fit(path, file));
        let by_file_name = || self.best(|file| usize::from(file.rsplit('/').next() == Some(file_name)));
        let by_name = || self.find(schema_name(file_name)).map(ResolvedSchema::for_document);
        by_path().or_else(by_file_name).or_else(by_name)
    }

    /// The file with the highest `fit` above 0; of equals the highest version, then the first path.
    fn best(&self, fit: impl Fn(&str) -> usize) -> Option<ResolvedSchema> {
        let schemas = self.schemas.iter().map(|schema| (fit(&schema.path), schema));
        let fitting = schemas.filter(|(fit, schema)| *fit > 0 && !self.is_hidden(&schema.name));
        // `max_by` returns the last of equals, and files are sorted by path, so the order is reversed.
        let schema = fitting.rev().max_by(|(fit_a, a), (fit_b, b)| {
            fit_a.cmp(fit_b).then_with(|| version::compare(&a.version, &b.version))
        });
        let broken = self.broken.iter().map(|file| (fit(&file.path), file));
        let broken = broken.filter(|(fit, file)| *fit > 0 && !self.is_hidden(&file.name));
        match (schema, broken.rev().max_by_key(|(fit, _)| *fit)) {
            (Some((fit, schema)), Some((broken_fit, _))) if fit >= broken_fit => Some(self.found(schema)),
            (Some((_, schema)), None) => Some(self.found(schema)),
            (_, broken) => broken.map(|(_, file)| file.found()),
        }
    }

    /// The schema of a document: the one it names, else the one of its component.
    pub(crate) fn find_for(&self, document: &Value, component: &str) -> Option<ResolvedSchema> {
        let named = |member| document.get(member).and_then(Value::as_str);
        let by_member = |member| named(member).and_then(|reference| self.find_reference(reference));
        let by_component = || self.find(component).map(ResolvedSchema::for_document);
        by_member(SCHEMA_REF).or_else(|| by_member(SCHEMA)).or_else(by_component)
    }

    /// The schema of an asset that names none: the one of complete assets, if there is one. An asset that names an
    /// unknown schema gets none, because validating it against another one would be misleading.
    pub(crate) fn find_default(&self, asset: &Value) -> Option<ResolvedSchema> {
        match asset.get(SCHEMA_REF) {
            Some(Value::String(_)) => None,
            _ => self.find(NESTED_ASSET),
        }
    }

    /// The message for an unknown schema name, with the known name that was probably meant.
    pub(crate) fn unknown_message(&self, name: &str) -> String {
        let name: String = name.chars().take(80).collect();
        match nearest(&name, self.names()) {
            Some(near) => {
                format!("there is no schema `{name}`; the nearest is `{near}` (list_schemas shows the names)")
            }
            None if self.names().next().is_some() => {
                format!("there is no schema `{name}` (list_schemas shows the names)")
            }
            None => format!(
                "there is no schema `{name}`: this server has no schemas; set schemas_dir (--schemas-dir)"
            ),
        }
    }

    /// Wraps a schema that a document named.
    fn found(&self, schema: &Arc<Schema>) -> ResolvedSchema {
        ResolvedSchema::Schema(Arc::clone(schema), Arc::clone(&self.library), SchemaNameKind::Own)
            .for_document()
    }

    fn canonical<'a>(&self, name: &'a str) -> &'a str {
        if self.is_hidden(name) { CANONICAL_ASSET } else { name }
    }

    /// Whether a name is only an alias of the schema of complete assets. Other schemas can still refer to a file of
    /// that name.
    fn is_hidden(&self, name: &str) -> bool {
        name == NESTED_ASSET
            && (self.by_name.contains_key(CANONICAL_ASSET)
                || self.broken.iter().any(|file| file.name == CANONICAL_ASSET))
    }
}

impl BrokenFile {
    fn found(&self) -> ResolvedSchema {
        ResolvedSchema::Broken { name: self.name.clone(), reason: Arc::clone(&self.reason) }
    }
}

/// How well a reference fits a file's path: 0 unless one is a suffix of the other, else two for each shared segment,
/// plus one if that is the file's whole path.
fn path_fit(reference: &str, file: &str) -> usize {
    let (mut reference, mut file) = (reference.rsplit('/'), file.rsplit('/'));
    let mut fit = 0;
    loop {
        match (reference.next(), file.next()) {
            (Some(a), Some(b)) if a == b => fit += 2,
            (Some(_), Some(_)) => return 0,
            (None, Some(_)) => return fit,
            (_, None) => return fit + 1,
        }
    }
}

impl ResolvedSchema {
    /// The schema's own name.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Schema(schema, ..) => &schema.name,
            Self::Broken { name, .. } => name,
        }
    }

    /// The same, looked up for a document that names its schema: complete assets are validated by the alias.
    fn for_document(self) -> Self {
        match self {
            Self::Schema(schema, library, _) if schema.name == CANONICAL_ASSET => {
                Self::Schema(schema, library, SchemaNameKind::Alias)
            }
            other => other,
        }
    }

    /// The name that is reported for documents of this schema: the alias for complete assets.
    pub(crate) fn document_name(&self) -> &str {
        match self.name() {
            CANONICAL_ASSET => NESTED_ASSET,
            name => name,
        }
    }

    /// Validates an asset and returns every issue; an empty list means valid. When `stop` returns true the validation
    /// is cancelled, and the result is one issue that says so.
    pub(crate) fn issues(&self, asset: Value, stop: &dyn Fn() -> bool) -> Vec<Issue> {
        match self {
            Self::Schema(schema, library, looked_up_by) => schema.issues(asset, *looked_up_by, library, stop),
            Self::Broken { reason, .. } => vec![Issue::schema_invalid(reason)],
        }
    }

    /// The same on a blocking thread, cancelled when the call ends: even a small asset can take long.
    pub(crate) async fn issues_in_call(
        self,
        asset: Arc<Value>,
        call: &CallContext,
    ) -> Result<Vec<Issue>, Fault> {
        call.compute(move |call| self.issues(Arc::unwrap_or_clone(asset), &|| call.has_ended())).await
    }
}

fn read_schema(file: &FoundFile) -> Result<Arc<Value>, FileProblem> {
    match file.read()? {
        schema @ (Value::Object(_) | Value::Bool(_)) => Ok(Arc::new(schema)),
        _ => Err(FileProblem::NotASchema),
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
            Some(ResolvedSchema::Schema(schema, ..)) => schema.path.clone(),
            _ => String::new(),
        };
        for (document, expected) in [
            (json!({"$schemaRef": "jsonschema/tone.schema.json"}), "tone.schema.json"),
            (json!({"$schemaRef": "tone.schema.json"}), "tone.schema.json"),
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
    fn of_several_files_with_one_name_a_reference_means_the_one_with_its_path() {
        let (schemas, _) = load_schemas(&[
            ("v1/tone.schema.json", r#"{"version": "1"}"#.into()),
            ("v2/tone.schema.json", r#"{"version": "2"}"#.into()),
            ("v3/tone.schema.json", "broken".into()),
            ("v4/tone.json", r#"{"version": "4"}"#.into()),
        ]);
        let lead = |reference: &str| match schemas.find_reference(reference) {
            Some(ResolvedSchema::Schema(schema, ..)) => schema.path.clone(),
            Some(ResolvedSchema::Broken { .. }) => "broken".into(),
            None => String::new(),
        };
        for (reference, path) in [
            ("v1/tone.schema.json", "v1/tone.schema.json"),
            ("https://h/schemas/v1/tone.schema.json#x", "v1/tone.schema.json"),
            ("jsonschema/v2/tone.schema.json", "v2/tone.schema.json"),
            ("v3/tone.schema.json", "broken"),
            // No file has that path: the highest version of that file name, then of that name.
            ("elsewhere/tone.schema.json", "v2/tone.schema.json"),
            ("tone.schema.json", "v2/tone.schema.json"),
            ("elsewhere/tone.json", "v4/tone.json"),
            ("tone", "v4/tone.json"),
            ("v1/none.json", ""),
            ("", ""),
        ] {
            assert_eq!(lead(reference), path, "{reference}");
        }
    }

    #[test]
    fn a_file_named_as_the_nested_asset_does_not_hide_the_canonical_one() {
        let nested = json!({"$id": "https://h/nested.json", "type": "null"});
        let (schemas, _) = schemas_of(&[
            ("nested-synesthetic-asset.schema.json", nested),
            (
                "synesthetic-asset.schema.json",
                json!({"properties": {"a": {"$ref": "https://h/nested.json"}}}),
            ),
        ]);
        assert_eq!(listed(&schemas), [(CANONICAL_ASSET, "", "synesthetic-asset.schema.json")]);
        assert_eq!(schemas.names().collect::<Vec<_>>(), [CANONICAL_ASSET]);
        assert_eq!(issues(&schemas, NESTED_ASSET, json!({"a": 1})), ["/a: 1 is not of type \"null\""]);
        let found = schemas.find_reference("x/nested-synesthetic-asset.schema.json").expect("found");
        assert_eq!(found.name(), CANONICAL_ASSET);
    }

    #[test]
    fn a_schema_with_a_number_that_cannot_be_held_is_not_used() {
        let (schemas, warnings) =
            load_schemas(&[("n.json", "{\n \"minimum\": 123456789012345678901}".into())]);
        let expected =
            ": schema_invalid: its number at line 2, column 13 has too many digits to be kept exactly";
        assert_eq!(issues(&schemas, "n", json!(1)), [expected]);
        assert!(warnings[0].starts_with("schema `n.json` is skipped: its number"), "{warnings:?}");
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_nearest() {
        let (schemas, _) = schemas_of(&[("tone.json", json!({})), ("rule.json", json!({}))]);
        assert!(schemas.unknown_message("tune").contains("the nearest is `tone`"));
        let unlike = schemas.unknown_message("lamp");
        assert_eq!(unlike, "there is no schema `lamp` (list_schemas shows the names)");
        let none = Schemas::default().unknown_message("x");
        assert!(none.ends_with("this server has no schemas; set schemas_dir (--schemas-dir)"), "{none}");
        assert!(schemas.unknown_message(&"x".repeat(1_000)).len() < 300);
    }
}
