//! Finds which members of an asset a schema declares. An asset may name its schema in `$schemaRef` or `$schema`, and a
//! closed schema (`additionalProperties: false`) that does not declare that member would refuse the asset. So an
//! undeclared member is removed before validation, and a declared one must stay to be validated.

use std::{collections::HashSet, sync::Arc};

use jsonschema::{Draft, Registry, uri};
use serde_json::{Map, Value, json};

use crate::references::{Library, LibraryRetriever};

/// Returns those of `members` that a schema declares. It declares what it names in `properties`, `required`, a dependency or
/// a `const` or `enum`, and what one of its `patternProperties` matches: itself or in any schema that it applies to the
/// same value, through references into other files, too. What it forbids or allows without naming it
/// (`additionalProperties`, `unevaluatedProperties`, `propertyNames`) is not declared.
pub(crate) fn declared<'m>(
    schema: &Value,
    draft: Draft,
    base_uri: &str,
    library: &Arc<Library>,
    members: &[&'m str],
) -> Vec<&'m str> {
    let mut found = Vec::new();
    let registry = Registry::new().retriever(LibraryRetriever(Arc::clone(library))).draft(draft);
    let registry = registry.add(base_uri, draft.create_resource_ref(schema)).and_then(|all| all.prepare());
    let (Ok(registry), Ok(base_uri)) = (registry, uri::from_str(base_uri)) else {
        // Such a schema does not compile either, so nothing is ever validated against it.
        return found;
    };
    let mut pending = vec![(schema, registry.resolver(base_uri), draft)];
    // References can form a cycle.
    let mut seen = HashSet::new();
    while let Some((schema, resolver, draft)) = pending.pop() {
        let Value::Object(keywords) = schema else { continue };
        if !seen.insert(std::ptr::from_ref(schema)) {
            continue;
        }
        let draft = match draft.detect(schema) {
            Draft::Unknown => draft,
            known => known,
        };
        let resolver = resolver.in_subresource(draft.create_resource_ref(schema)).unwrap_or(resolver);
        let reference = |keyword: &str| keywords.get(keyword).and_then(Value::as_str);
        let targets = [
            reference("$ref").map(|target| resolver.lookup(target)),
            reference("$dynamicRef").map(|target| resolver.lookup(target)),
            reference("$recursiveRef").map(|_| resolver.lookup_recursive_ref()),
        ];
        pending
            .extend(targets.into_iter().flatten().filter_map(Result::ok).map(|target| target.into_inner()));
        // The old drafts ignore every keyword next to a `$ref`.
        if reference("$ref").is_some() && matches!(draft, Draft::Draft4 | Draft::Draft6 | Draft::Draft7) {
            continue;
        }
        let named = members.iter().filter(|member| names(keywords, member, draft));
        found.extend(named.copied());
        let applied = applied_to_the_same_value(keywords);
        pending.extend(applied.into_iter().map(|schema| (schema, resolver.clone(), draft)));
    }
    found
}

/// The schemas that an object schema applies to the value that it is itself applied to.
fn applied_to_the_same_value(keywords: &Map<String, Value>) -> Vec<&Value> {
    let lists =
        ["allOf", "anyOf", "oneOf"].into_iter().filter_map(|keyword| keywords.get(keyword)?.as_array());
    let maps = ["dependentSchemas", "dependencies"];
    let maps = maps.into_iter().filter_map(|keyword| keywords.get(keyword)?.as_object());
    let single = ["not", "if", "then", "else"].into_iter().filter_map(|keyword| keywords.get(keyword));
    single.chain(lists.flatten()).chain(maps.flat_map(Map::values)).collect()
}

/// Whether the keywords of one object schema name a member.
fn names(keywords: &Map<String, Value>, member: &str, draft: Draft) -> bool {
    let has_key = |keyword: &str| keywords.get(keyword).is_some_and(|map| map.get(member).is_some());
    let lists = |list: &Value| list.as_array().is_some_and(|names| names.iter().any(|name| name == member));
    let some_value_lists = |keyword: &str| {
        let map = keywords.get(keyword).and_then(Value::as_object);
        map.is_some_and(|map| map.values().any(lists))
    };
    let patterns = keywords.get("patternProperties").and_then(Value::as_object);
    let mut values = keywords.get("const").into_iter().chain(
        // The objects that the value may be equal to.
        keywords.get("enum").and_then(Value::as_array).into_iter().flatten(),
    );
    ["properties", "dependentRequired", "dependentSchemas", "dependencies"].into_iter().any(has_key)
        || keywords.get("required").is_some_and(lists)
        || ["dependentRequired", "dependencies"].into_iter().any(some_value_lists)
        || values.any(|value| value.get(member).is_some())
        || patterns.is_some_and(|patterns| patterns.keys().any(|pattern| matches(pattern, member, draft)))
}

/// Whether a pattern matches a name, as the validator sees it.
fn matches(pattern: &str, name: &str, draft: Draft) -> bool {
    let forbidden = json!({ "patternProperties": { pattern: { "not": {} } } });
    let validator = jsonschema::options().with_draft(draft).build(&forbidden);
    validator.is_ok_and(|validator| !validator.is_valid(&json!({ name: null })))
}
