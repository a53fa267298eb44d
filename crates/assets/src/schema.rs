//! One schema: compiled on first use, then kept, and able to judge assets.

use std::{
    collections::HashSet,
    sync::{Arc, OnceLock},
};

use jsonschema::{Draft, Validator};
use serde_json::{Map, Value};

use crate::{
    folder::FoundFile,
    issue::{self, Issue},
    names::schema_name,
    references::{Librarian, Library, id_of},
    unlocated::unlocated,
    version::version_of,
    watch::{Interrupted, Limits, watched},
    watched::{Watched, WatchedNode},
};

/// The member by which an asset names its schema.
pub(crate) const SCHEMA_REF: &str = "$schemaRef";
/// The member by which any JSON document may name its schema.
pub(crate) const SCHEMA: &str = "$schema";

/// One schema file.
pub(crate) struct Schema {
    pub(crate) name: String,
    pub(crate) version: String,
    /// Relative to the folder.
    pub(crate) path: String,
    pub(crate) document: Arc<Value>,
    file_uri: Option<String>,
    /// Whether assets may carry `$schema` without the schema knowing it.
    sets_schema_aside: bool,
    validator: OnceLock<Result<Validator<Watched>, String>>,
}

impl Schema {
    /// A schema in a file of the library.
    pub(crate) fn new(file: &FoundFile, document: Arc<Value>, file_uri: Option<String>) -> Self {
        Self {
            name: schema_name(file.name()).to_owned(),
            version: version_of(&document, id_of(&document)),
            path: file.path.clone(),
            sets_schema_aside: !declares(&document, SCHEMA),
            document,
            file_uri,
            validator: OnceLock::new(),
        }
    }

    /// All ways in which an asset does not match; none if it does. When `stop` says so, the validation is
    /// left, and the answer is worth nothing.
    pub(crate) fn issues(
        &self,
        mut asset: Value,
        library: &Arc<Library>,
        stop: &dyn Fn() -> bool,
    ) -> Vec<Issue> {
        let validator = match self.validator.get_or_init(|| self.compile(library)) {
            Ok(validator) => validator,
            Err(reason) => return vec![Issue::schema_invalid(reason)],
        };
        if let Value::Object(members) = &mut asset {
            // The others keep their order, in which messages quote them.
            members.shift_remove(SCHEMA_REF);
            if self.sets_schema_aside {
                members.shift_remove(SCHEMA);
            }
        }
        match watched(Limits::NONE, stop, |watch| validator.is_valid(WatchedNode::new(&asset, watch))) {
            Ok(true) => Vec::new(),
            Ok(false) => list_errors(validator, &asset, stop),
            // Not an empty list: that would be a verdict for the asset.
            Err(Interrupted) => vec![Issue::unfinished()],
        }
    }

    fn compile(&self, library: &Arc<Library>) -> Result<Validator<Watched>, String> {
        let draft = match Draft::default().detect(&self.document) {
            Draft::Unknown => Draft::default(),
            known => known,
        };
        let mut options = jsonschema::options_for::<Watched>()
            .with_draft(draft)
            .with_retriever(Librarian(Arc::clone(library)))
            .should_validate_formats(true);
        if let Some(uri) = &self.file_uri {
            options = options.with_base_uri(uri);
        }
        options
            .build(&self.document)
            .map_err(|error| unlocated(&issue::compile_message(&error), self.folder_uri(), library))
    }

    /// The address of the schemas folder, with a final `/`.
    fn folder_uri(&self) -> Option<&str> {
        let uri = self.file_uri.as_deref()?;
        let depth = self.path.split('/').count();
        let end = uri.rmatch_indices('/').nth(depth - 1)?.0;
        Some(&uri[..=end])
    }
}

/// What is wrong with an asset that does not match, as far as it can be listed.
fn list_errors(validator: &Validator<Watched>, asset: &Value, stop: &dyn Fn() -> bool) -> Vec<Issue> {
    let all = watched(Limits::LISTING, stop, |watch| {
        issue::collect(validator.iter_errors(WatchedNode::new(asset, watch)))
    });
    if let Ok(issues) = all {
        return issues;
    }
    // In a large asset the first error is a help; in choices within choices it holds all the others.
    let first = watched(Limits::LISTING, stop, |watch| {
        validator.validate(WatchedNode::new(asset, watch)).err().as_ref().map(issue::only_first)
    });
    vec![first.ok().flatten().unwrap_or_else(Issue::too_many)]
}

/// Whether a schema knows a member of the asset by name.
fn declares(schema: &Value, member: &str) -> bool {
    let mut pending = vec![schema];
    // References may go round.
    let mut seen = HashSet::new();
    while let Some(next) = pending.pop() {
        let Value::Object(keywords) = next else { continue };
        if !seen.insert(std::ptr::from_ref(next)) {
            continue;
        }
        if names_member(keywords, member) {
            return true;
        }
        for keyword in ["allOf", "anyOf", "oneOf"] {
            pending.extend(keywords.get(keyword).and_then(Value::as_array).into_iter().flatten());
        }
        pending.extend(["if", "then", "else"].iter().filter_map(|keyword| keywords.get(*keyword)));
        let target = keywords.get("$ref").and_then(Value::as_str).and_then(|target| target.strip_prefix('#'));
        pending.extend(target.and_then(|pointer| schema.pointer(pointer)));
    }
    false
}

fn names_member(keywords: &Map<String, Value>, member: &str) -> bool {
    let required = keywords.get("required").and_then(Value::as_array);
    keywords.get("properties").is_some_and(|properties| properties.get(member).is_some())
        || required.is_some_and(|names| names.iter().any(|name| name == member))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        folder::Folder,
        schemas::Schemas,
        testing::{folder_of, issues, schemas_of},
        warnings::Warnings,
    };
    use serde_json::json;

    #[test]
    fn a_schema_that_does_not_compile_says_where_and_why() {
        let (schemas, warnings) = schemas_of(&[
            ("type.json", json!({"properties": {"a": {"type": "strin"}}})),
            ("ref.json", json!({"$ref": "#/$defs/none"})),
        ]);
        assert!(warnings.is_empty(), "compiling waits until it is needed: {warnings:?}");
        let told = issues(&schemas, "type", json!(1));
        assert!(told[0].starts_with(": schema_invalid: /properties/a/type: \"strin\" is not"), "{told:?}");
        let told = issues(&schemas, "ref", json!(1));
        assert!(told[0].starts_with(": schema_invalid: ") && told[0].contains("/$defs/none"), "{told:?}");
    }

    #[test]
    fn references_lead_to_other_files_by_id_by_file_uri_and_beside() {
        let number = json!({"type": "number"});
        let (schemas, _) = schemas_of(&[
            ("by-id.json", json!({"$ref": "https://h/x/number.json"})),
            ("number.json", json!({"$id": "https://h/x/number.json", "type": "number"})),
            ("by-uri.json", json!({"$ref": "sub/plain.json#/$defs/n"})),
            ("sub/plain.json", json!({"$defs": {"n": {"$ref": "../deeper.json"}}})),
            ("deeper.json", number.clone()),
            ("beside.json", json!({"$id": "https://h/a/beside.json", "$ref": "sibling.json"})),
            ("sibling.json", number),
            // Asked for by its file URI, its references still start at its id.
            ("by-uri-to-id.json", json!({"$ref": "web/one.json"})),
            (
                "web/one.json",
                json!({"$id": "https://w/q/one.json", "properties": {"a": {"$ref": "two.json"}}}),
            ),
            ("elsewhere.json", json!({"$id": "https://w/q/two.json", "type": "number"})),
        ]);
        for name in ["by-id", "by-uri", "beside"] {
            assert_eq!(issues(&schemas, name, json!("x")), [": \"x\" is not of type \"number\""], "{name}");
            assert!(issues(&schemas, name, json!(1)).is_empty(), "{name}");
        }
        for name in ["by-uri-to-id", "one"] {
            assert_eq!(
                issues(&schemas, name, json!({"a": "x"})),
                ["/a: \"x\" is not of type \"number\""],
                "{name}"
            );
        }
    }

    #[test]
    fn references_work_whatever_the_folder_is_called() {
        let folder = folder_of(&[
            ("we[i]rd |^{ä}%20#/a b.json", json!({"$ref": "sub%5B/c%23.json"}).to_string()),
            ("we[i]rd |^{ä}%20#/sub[/c#.json", json!({"type": "number"}).to_string()),
        ]);
        let folder = Folder::open(&folder.path().join("we[i]rd |^{ä}%20#")).expect("a folder");
        let schemas = Schemas::load(&folder, &mut Warnings::about("schema"));
        assert_eq!(issues(&schemas, "a b", json!("x")), [": \"x\" is not of type \"number\""]);
    }

    #[test]
    fn references_may_go_round() {
        let (schemas, _) = schemas_of(&[
            ("a.json", json!({"properties": {"b": {"$ref": "b.json"}}, "type": "object"})),
            ("b.json", json!({"properties": {"a": {"$ref": "a.json"}}, "type": "object"})),
        ]);
        assert_eq!(issues(&schemas, "a", json!({"b": {"a": 1}})), ["/b/a: 1 is not of type \"object\""]);
    }

    #[test]
    fn no_reference_leaves_the_folder() {
        let outside = folder_of(&[("outside.json", "true".to_owned())]);
        let inside = outside.path().join("it's mine/schemas");
        std::fs::create_dir_all(&inside).expect("made");
        let targets = ["../outside.json", "http://127.0.0.1:1/x.json", "file:///etc/passwd", "/etc/passwd"];
        for (number, target) in targets.iter().enumerate() {
            let schema = json!({"$ref": target}).to_string();
            std::fs::write(inside.join(format!("s{number}.json")), schema).expect("written");
        }
        let schemas =
            Schemas::load(&Folder::open(&inside).expect("a folder"), &mut Warnings::about("schema"));
        for (number, target) in targets.iter().enumerate() {
            let told = issues(&schemas, &format!("s{number}"), json!(1));
            assert!(told[0].contains("schema_invalid") && told[0].contains(target), "{target}: {told:?}");
            let folder = outside.path().file_name().expect("a name").to_string_lossy();
            assert!(!told[0].contains("mine") && !told[0].contains(&*folder), "{target}: {told:?}");
        }
    }

    #[test]
    fn other_drafts_are_honoured_and_unknown_ones_are_the_default() {
        let draft7 =
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "number"}]});
        let unknown =
            json!({"$schema": "https://nowhere.example/schema", "prefixItems": [{"type": "number"}]});
        let (schemas, _) = schemas_of(&[
            ("draft7.json", draft7),
            ("unknown.json", unknown),
            ("through.json", json!({"$ref": "unknown.json"})),
        ]);
        for name in ["draft7", "unknown", "through"] {
            assert_eq!(
                issues(&schemas, name, json!(["x"])),
                ["/0: \"x\" is not of type \"number\""],
                "{name}"
            );
        }
    }

    #[test]
    fn formats_are_asserted() {
        let (schemas, _) = schemas_of(&[("d.json", json!({"format": "date-time"}))]);
        assert_eq!(issues(&schemas, "d", json!("noon")), [": \"noon\" is not a \"date-time\""]);
        assert!(issues(&schemas, "d", json!("2026-01-02T03:04:05Z")).is_empty());
    }

    #[test]
    fn a_schema_is_compiled_once() {
        let (schemas, _) = schemas_of(&[("a.json", json!({"type": "number"}))]);
        let schema = schemas.get("a").expect("a schema");
        assert!(schema.validator.get().is_none(), "not before it is needed");
        issues(&schemas, "a", json!(1));
        let first: *const _ = schema.validator.get().expect("compiled");
        issues(&schemas, "a", json!(2));
        assert!(std::ptr::eq(first, schema.validator.get().expect("compiled")));
    }

    /// A tree of shapes, as scene formats have them: each inner shape is one of several kinds.
    fn shape() -> Value {
        let kind = |name: &str| {
            json!({
                "properties": {"kind": {"const": name}, "child": {"$ref": "node.json"}},
                "required": ["kind", "child"]
            })
        };
        let leaf = json!({
            "properties": {"kind": {"const": "leaf"}, "size": {"type": "number"}},
            "required": ["kind", "size"]
        });
        json!({"oneOf": [leaf, kind("translate"), kind("rotate"), kind("scale")]})
    }

    fn nested(depth: usize, leaf: Value) -> Value {
        (0..depth).fold(leaf, |child, _| json!({"kind": "rotate", "child": child}))
    }

    #[test]
    fn the_errors_of_choices_within_choices_are_listed_as_long_as_they_are_few() {
        let (schemas, _) = schemas_of(&[("node.json", shape())]);
        let wrong = json!({"kind": "leaf", "size": "x"});
        let told = issues(&schemas, "node", nested(3, wrong.clone()));
        assert!(
            told[0].ends_with("; closest: /child/child/child/size \"x\" is not of type \"number\""),
            "{told:?}"
        );
        for depth in [12, 40, 100] {
            let told = issues(&schemas, "node", nested(depth, wrong.clone()));
            assert!(told.len() == 1 && told[0].starts_with(": the asset does not match, but"), "{told:?}");
            assert!(told[0].contains("too many to list"), "{told:?}");
        }
        assert!(issues(&schemas, "node", nested(40, json!({"kind": "leaf", "size": 1}))).is_empty());
    }

    #[test]
    fn a_verdict_on_choices_within_choices_takes_little_work() {
        let (schemas, _) = schemas_of(&[("node.json", shape())]);
        issues(&schemas, "node", json!(1));
        let schema = schemas.get("node").expect("a schema");
        let validator = schema.validator.get().expect("compiled").as_ref().expect("usable");
        let asset = nested(100, json!({"kind": "leaf", "size": "x"}));
        let limits = Limits { steps: 100_000, ..Limits::NONE };
        let valid = watched(limits, &|| false, |watch| validator.is_valid(WatchedNode::new(&asset, watch)));
        assert_eq!(valid, Ok(false));
    }

    #[test]
    fn a_reference_to_the_schema_is_set_aside_and_so_is_its_id_unless_it_knows_it() {
        let closed = json!({"additionalProperties": false, "properties": {"a": true}});
        let (schemas, _) = schemas_of(&[
            ("closed.json", closed),
            ("knows.json", json!({"properties": {"$schema": {"const": "k"}}})),
            ("demands.json", json!({"required": ["$schema"]})),
            (
                "through.json",
                json!({
                    "$ref": "#/$defs/it",
                    "$defs": {"it": {"allOf": [{"properties": {"$schema": {"const": "k"}}}]}}
                }),
            ),
            ("round.json", json!({"$ref": "#"})),
            ("reference.json", json!({"properties": {"$schemaRef": {"const": "k"}}})),
        ]);
        let asset = json!({"$schemaRef": "x", "a": 1, "$schema": "y"});
        for name in ["closed", "demands", "round", "reference"] {
            assert_eq!(issues(&schemas, name, asset.clone()), [""; 0], "{name}");
        }
        for name in ["knows", "through"] {
            assert_eq!(issues(&schemas, name, asset.clone()), ["/$schema: \"k\" was expected"], "{name}");
        }
        assert_eq!(issues(&schemas, "closed", json!({"b": {"$schemaRef": "x"}})).len(), 1, "only at the top");
    }
}
