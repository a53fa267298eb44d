//! One schema file and its validator, which is compiled on first use and cached.

use std::sync::{Arc, OnceLock};

use jsonschema::{Draft, Validator};
use serde_json::Value;

use crate::{
    counted_json::{CountedJson, CountedNode},
    declared::declared,
    folder::FoundFile,
    issue::{self, Issue},
    names::schema_name,
    redact::redact_file_urls,
    references::{Library, LibraryRetriever, id_of},
    step_budget::{Interrupted, Limits, within_budget},
    version::version_of,
};

/// The member by which an asset names its schema.
pub(crate) const SCHEMA_REF: &str = "$schemaRef";
/// The member by which any JSON document may name its schema.
pub(crate) const SCHEMA: &str = "$schema";
/// The base of references in a schema that has neither an id nor a file URI.
const NO_BASE: &str = "json-schema:///";

/// One schema file.
pub(crate) struct Schema {
    pub(crate) name: String,
    pub(crate) version: String,
    /// Relative to the folder.
    pub(crate) path: String,
    /// The path that callers see.
    pub(crate) listed_path: String,
    pub(crate) document: Arc<Value>,
    file_uri: Option<String>,
    compiled: OnceLock<Result<Compiled, CompileError>>,
}

/// A schema that cannot be compiled.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
struct CompileError {
    /// In the words of whoever wrote the schemas, without the addresses of files.
    message: String,
}

/// A compiled schema.
struct Compiled {
    validator: Validator<CountedJson>,
    /// The top-level members that are removed from an asset before validation, because the schema does not
    /// declare them: `$schemaRef` and `$schema`.
    ignored_members: Vec<&'static str>,
}

/// By which of its names a schema was looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SchemaNameKind {
    /// Its own name.
    Own,
    /// The alias of the schema of whole assets.
    Alias,
}

impl Schema {
    /// A schema read from a file; nothing is compiled yet.
    pub(crate) fn new(file: &FoundFile, document: Arc<Value>, file_uri: Option<String>) -> Self {
        Self {
            name: schema_name(file.name()).to_owned(),
            version: version_of(&document, id_of(&document)),
            path: file.path.clone(),
            listed_path: file.listed_path.clone(),
            document,
            file_uri,
            compiled: OnceLock::new(),
        }
    }

    /// Validates an asset and returns every issue; an empty list means valid. When `stop` returns true the validation
    /// is cancelled, and the result is one issue that says so.
    pub(crate) fn issues(
        &self,
        mut asset: Value,
        looked_up_by: SchemaNameKind,
        library: &Arc<Library>,
        stop: &dyn Fn() -> bool,
    ) -> Vec<Issue> {
        let Compiled { validator, ignored_members } =
            match self.compiled.get_or_init(|| self.compile(library)) {
                Ok(compiled) => compiled,
                Err(error) => return vec![Issue::schema_invalid(&error.message)],
            };
        if let Value::Object(members) = &mut asset {
            // `shift_remove` keeps the order of the other members, which messages quote.
            for member in ignored_members {
                members.shift_remove(*member);
            }
            // The alias validates assets that name their schema in `$schemaRef`, so that member is not validated.
            if looked_up_by == SchemaNameKind::Alias {
                members.shift_remove(SCHEMA_REF);
            }
        }
        match within_budget(Limits::NONE, stop, |budget| validator.is_valid(CountedNode::new(&asset, budget)))
        {
            Ok(true) => Vec::new(),
            Ok(false) => list_errors(validator, &asset, stop),
            // An empty list would say that the asset is valid.
            Err(Interrupted) => vec![Issue::unfinished()],
        }
    }

    fn compile(&self, library: &Arc<Library>) -> Result<Compiled, CompileError> {
        let draft = match Draft::default().detect(&self.document) {
            Draft::Unknown => Draft::default(),
            known => known,
        };
        let mut options = jsonschema::options_for::<CountedJson>()
            .with_draft(draft)
            .with_retriever(LibraryRetriever(Arc::clone(library)))
            .should_validate_formats(true);
        if let Some(uri) = &self.file_uri {
            options = options.with_base_uri(uri);
        }
        let validator = options.build(&self.document).map_err(|error| CompileError {
            message: redact_file_urls(&issue::compile_message(&error), self.folder_uri(), library),
        })?;
        const MEMBERS: [&str; 2] = [SCHEMA_REF, SCHEMA];
        let base_uri = self.file_uri.as_deref().or_else(|| id_of(&self.document)).unwrap_or(NO_BASE);
        let declared = declared(&self.document, draft, base_uri, library, &MEMBERS);
        let ignored_members = MEMBERS.into_iter().filter(|member| !declared.contains(member)).collect();
        Ok(Compiled { validator, ignored_members })
    }

    /// The file URI of the schemas folder, with a final `/`.
    fn folder_uri(&self) -> Option<&str> {
        let uri = self.file_uri.as_deref()?;
        let depth = self.path.split('/').count();
        let end = uri.rmatch_indices('/').nth(depth - 1)?.0;
        Some(&uri[..=end])
    }
}

/// Lists the errors of an invalid asset; if they exceed the budget, only the first one or a summary.
fn list_errors(validator: &Validator<CountedJson>, asset: &Value, stop: &dyn Fn() -> bool) -> Vec<Issue> {
    let all = within_budget(Limits::LISTING, stop, |budget| {
        issue::collect(validator.iter_errors(CountedNode::new(asset, budget)))
    });
    if let Ok(issues) = all {
        return issues;
    }
    // In a large asset the first error still helps. In nested choices it contains all the others and exceeds the
    // budget, too.
    let first = within_budget(Limits::LISTING, stop, |budget| {
        validator.validate(CountedNode::new(asset, budget)).err().as_ref().map(issue::only_first)
    });
    vec![first.ok().flatten().unwrap_or_else(Issue::too_many)]
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
        assert!(warnings.is_empty(), "a schema is compiled on first use: {warnings:?}");
        let messages = issues(&schemas, "type", json!(1));
        assert!(
            messages[0].starts_with(": schema_invalid: /properties/a/type: \"strin\" is not"),
            "{messages:?}"
        );
        let messages = issues(&schemas, "ref", json!(1));
        assert!(
            messages[0].starts_with(": schema_invalid: ") && messages[0].contains("/$defs/none"),
            "{messages:?}"
        );
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
            let messages = issues(&schemas, &format!("s{number}"), json!(1));
            assert!(
                messages[0].contains("schema_invalid") && messages[0].contains(target),
                "{target}: {messages:?}"
            );
            let folder = outside.path().file_name().expect("a name").to_string_lossy();
            assert!(
                !messages[0].contains("mine") && !messages[0].contains(&*folder),
                "{target}: {messages:?}"
            );
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
        assert!(schema.compiled.get().is_none(), "not before it is needed");
        issues(&schemas, "a", json!(1));
        let first: *const _ = schema.compiled.get().expect("compiled");
        issues(&schemas, "a", json!(2));
        assert!(std::ptr::eq(first, schema.compiled.get().expect("compiled")));
    }

    /// A tree of shapes as in scene formats: each inner shape is one of several kinds (nested `oneOf`).
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
        let messages = issues(&schemas, "node", nested(3, wrong.clone()));
        assert!(
            messages[0].ends_with("; closest: /child/child/child/size \"x\" is not of type \"number\""),
            "{messages:?}"
        );
        for depth in [12, 40, 100] {
            let messages = issues(&schemas, "node", nested(depth, wrong.clone()));
            assert!(
                messages.len() == 1 && messages[0].starts_with(": the asset does not match, but"),
                "{messages:?}"
            );
            assert!(messages[0].contains("too many to list"), "{messages:?}");
        }
        assert!(issues(&schemas, "node", nested(40, json!({"kind": "leaf", "size": 1}))).is_empty());
    }

    #[test]
    fn a_verdict_on_choices_within_choices_takes_little_work() {
        let (schemas, _) = schemas_of(&[("node.json", shape())]);
        issues(&schemas, "node", json!(1));
        let schema = schemas.get("node").expect("a schema");
        let compiled = schema.compiled.get().expect("compiled").as_ref().expect("usable");
        let asset = nested(100, json!({"kind": "leaf", "size": "x"}));
        let limits = Limits { steps: 100_000, ..Limits::NONE };
        let valid = within_budget(limits, &|| false, |budget| {
            compiled.validator.is_valid(CountedNode::new(&asset, budget))
        });
        assert_eq!(valid, Ok(false));
    }

    /// Whether a schema validates `$schemaRef` and `$schema`: their values here are wrong for every schema of the
    /// tables below that declares them.
    fn validates_them(schemas: &Schemas, name: &str) -> bool {
        let messages = issues(schemas, name, json!({"$schemaRef": "wrong", "a": 1, "$schema": "wrong"}));
        let (one, other) = ("/$schemaRef", "/$schema");
        let names_both = [one, other].iter().all(|path| messages.iter().any(|issue| issue.starts_with(path)));
        assert!(messages.is_empty() || names_both, "{name}: {messages:?}");
        !messages.is_empty()
    }

    #[test]
    fn declared_members_are_validated_and_undeclared_ones_are_ignored() {
        let right = json!({"properties": {"$schemaRef": {"const": "k"}, "$schema": {"const": "k"}}});
        let draft7 = "http://json-schema.org/draft-07/schema#";
        let other = json!({
            "$id": "https://h/other.json",
            "$defs": {"it": {"$anchor": "here", "allOf": [right]}, "nothing": {"properties": {"b": right}}}
        });
        let declaring = [
            ("properties.json", right.clone()),
            ("pattern.json", json!({"patternProperties": {"^\\$schema(Ref)?$": {"const": "k"}}})),
            ("any-pattern.json", json!({"patternProperties": {"": {"enum": ["k", 1]}}})),
            (
                "closed.json",
                json!({"additionalProperties": false, "properties": {
                    "a": true, "$schemaRef": {"const": "k"}, "$schema": {"const": "k"}
                }}),
            ),
            ("all.json", json!({"allOf": [true, {"allOf": [right]}]})),
            ("then.json", json!({"if": true, "then": right})),
            ("dependent.json", json!({"dependentSchemas": {"a": right}})),
            ("old-dependent.json", json!({"$schema": draft7, "dependencies": {"a": right}})),
            ("local.json", json!({"$ref": "#/$defs/it", "$defs": {"it": right}})),
            ("anchor.json", json!({"$ref": "#it", "$defs": {"it": {"$anchor": "it", "allOf": [right]}}})),
            ("file.json", json!({"$ref": "other.json#/$defs/it"})),
            (
                "id.json",
                json!({"$ref": "https://h/other.json#here", "unevaluatedProperties": false,
                "properties": {"a": true}}),
            ),
            ("round.json", json!({"allOf": [{"$ref": "#"}, {"$ref": "file.json"}]})),
            (
                "dynamic.json",
                json!({"$dynamicRef": "#it", "$defs": {"it": {"$dynamicAnchor": "it", "allOf": [right]}}}),
            ),
            (
                "recursive.json",
                json!({"$schema": "https://json-schema.org/draft/2019-09/schema",
                "anyOf": [{"$recursiveRef": "#"}, true], "allOf": [right]}),
            ),
            (
                "embedded.json",
                json!({"$ref": "inner.json", "$defs": {"x": {"$id": "inner.json", "$ref": "#/$defs/y",
                "$defs": {"y": right}}}}),
            ),
        ];
        let silent = [
            ("open.json", json!({"properties": {"a": true}})),
            ("closed-without.json", json!({"additionalProperties": false, "properties": {"a": true}})),
            ("numbers.json", json!({"additionalProperties": {"type": "number"}})),
            (
                "evaluated.json",
                json!({"allOf": [{"properties": {"a": true}}], "unevaluatedProperties": false}),
            ),
            ("names.json", json!({"propertyNames": {"pattern": "^[a-z]+$"}})),
            ("few.json", json!({"maxProperties": 1})),
            (
                "other-pattern.json",
                json!({"patternProperties": {"^[a-z]": true}, "additionalProperties": false}),
            ),
            (
                "below.json",
                json!({"properties": {"a": right, "b": {"required": ["$schemaRef"]}},
                "additionalProperties": false}),
            ),
            (
                "unused.json",
                json!({"$defs": {"it": right}, "additionalProperties": false, "properties": {"a": true}}),
            ),
            ("elsewhere.json", json!({"$ref": "other.json#/$defs/nothing"})),
            (
                "beside-old-reference.json",
                json!({"$schema": draft7, "$ref": "#/definitions/it", "definitions":
                {"it": {"additionalProperties": false, "properties": {"a": true}}}, "properties": right["properties"]}),
            ),
            ("yes.json", json!(true)),
        ];
        let files: Vec<_> = declaring.iter().chain(&silent).cloned().chain([("other.json", other)]).collect();
        let (schemas, _) = schemas_of(&files);
        for (files, validated) in [(&declaring[..], true), (&silent[..], false)] {
            for (file, _) in files {
                let name = schema_name(file);
                assert_eq!(validates_them(&schemas, name), validated, "{name}");
                let right = json!({"$schemaRef": "k", "a": 1, "$schema": "k"});
                assert_eq!(issues(&schemas, name, right), [""; 0], "{name}");
            }
        }
        let messages =
            issues(&schemas, "closed-without", json!({"a": {"$schemaRef": 1}, "b": {"$schemaRef": "x"}}));
        assert_eq!(messages.len(), 1, "only at the top: {messages:?}");
    }

    #[test]
    fn a_schema_that_requires_or_forbids_the_member_validates_it() {
        let equal = json!({"$schemaRef": "x", "a": 1});
        let (schemas, _) = schemas_of(&[
            ("required.json", json!({"required": ["$schemaRef"]})),
            ("any.json", json!({"anyOf": [{"required": ["$schemaRef"]}, {"required": ["b"]}]})),
            ("depends.json", json!({"dependentRequired": {"a": ["$schemaRef"]}})),
            (
                "old-depends.json",
                json!({
                    "$schema": "http://json-schema.org/draft-07/schema#", "dependencies": {"a": ["$schemaRef"]}
                }),
            ),
            ("const.json", json!({"const": equal})),
            ("enum.json", json!({"enum": [1, equal]})),
            ("else.json", json!({"if": {"required": ["b"]}, "else": {"required": ["$schemaRef"]}})),
        ]);
        for name in schemas.names() {
            assert_eq!(issues(&schemas, name, equal.clone()), [""; 0], "{name}");
            assert_eq!(issues(&schemas, name, json!({"a": 1})).len(), 1, "{name}: without it");
        }
        // Or a schema that forbids it.
        let (schemas, _) = schemas_of(&[
            ("not.json", json!({"not": {"required": ["$schemaRef"]}})),
            ("never.json", json!({"properties": {"$schemaRef": false}})),
            ("brings.json", json!({"dependentRequired": {"$schemaRef": ["b"]}})),
        ]);
        for name in schemas.names() {
            assert_eq!(issues(&schemas, name, equal.clone()).len(), 1, "{name}");
            assert_eq!(issues(&schemas, name, json!({"a": 1})), [""; 0], "{name}: without it");
        }
    }

    #[test]
    fn one_of_the_two_may_be_declared_and_the_other_ignored() {
        let closed = |member: &str| json!({"additionalProperties": false, "properties": {"a": true, member: {"const": "k"}}});
        let (schemas, _) =
            schemas_of(&[("reference.json", closed("$schemaRef")), ("schema.json", closed("$schema"))]);
        let asset = json!({"$schemaRef": "x", "a": 1, "$schema": "x"});
        assert_eq!(issues(&schemas, "reference", asset.clone()), ["/$schemaRef: \"k\" was expected"]);
        assert_eq!(issues(&schemas, "schema", asset), ["/$schema: \"k\" was expected"]);
    }

    #[test]
    fn by_the_alias_the_reference_is_always_ignored() {
        let schema = json!({"properties": {"$schemaRef": {"const": "k"}, "$schema": {"const": "k"}}});
        let (schemas, _) = schemas_of(&[("synesthetic-asset.schema.json", schema)]);
        let wrong = json!({"$schemaRef": "x"});
        assert_eq!(issues(&schemas, "nested-synesthetic-asset", wrong.clone()), [""; 0]);
        assert_eq!(issues(&schemas, "synesthetic-asset", wrong), ["/$schemaRef: \"k\" was expected"]);
        let both = json!({"$schemaRef": "x", "$schema": "x"});
        assert_eq!(issues(&schemas, "nested-synesthetic-asset", both), ["/$schema: \"k\" was expected"]);
        // A document that names the schema of whole assets is validated by its alias, whichever way it names it.
        for document in [json!({"$schemaRef": "x/synesthetic-asset.schema.json"}), json!({"$schemaRef": 7})] {
            let found = schemas.find_for(&document, "synesthetic-asset").expect("a schema");
            assert_eq!(found.document_name(), "nested-synesthetic-asset");
            assert!(found.issues(document, &|| false).is_empty());
        }
    }
}
