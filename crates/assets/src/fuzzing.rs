//! What must hold of JSON texts, schemas and patches whatever bytes come: the properties that the fuzz targets assert.

use std::{fs, path::PathBuf, thread};

use serde_json::{Value, json};

use crate::{Assets, AssetsConfig, diff as patch_of, locate};

/// Compares two values. The patch turns one into the other, and is sorted. Who applies it is another implementation.
pub fn diff(bytes: &[u8], apply: impl FnOnce(&mut Value, Value)) {
    let mut values = serde_json::Deserializer::from_slice(bytes).into_iter::<Value>();
    let (Some(Ok(mut base)), Some(Ok(new))) = (values.next(), values.next()) else { return };
    let operations = patch_of(&base, &new);
    assert!(operations.is_sorted_by(|one, other| one.path() <= other.path()));
    assert_eq!(operations.is_empty(), base == new);
    apply(&mut base, json!(operations));
    assert_eq!(base, new);
}

/// Looks for values in a text. If it is JSON, every value is found where it begins; if not, nothing is said about
/// anything that lies outside the text.
pub fn json_locator(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (pointer, text) = text.split_once('\n').unwrap_or(("", text));
    if let Some(position) = locate(text, pointer) {
        assert!(text_at(text, position).is_some(), "{position:?} is not in the text");
    }
    let Ok(value) = serde_json::from_str::<Value>(text) else { return };
    let mut pointers = Vec::new();
    collect_pointers(&value, String::new(), &mut pointers);
    for pointer in pointers {
        let position = locate(text, &pointer).unwrap_or_else(|| panic!("{pointer:?} was not found"));
        let found = text_at(text, position).unwrap_or_default();
        let read = serde_json::Deserializer::from_str(found).into_iter::<Value>().next();
        assert_eq!(read.and_then(Result::ok).as_ref(), value.pointer(&pointer), "{pointer:?}");
    }
}

/// What stands at a line and column, both from 1.
fn text_at(text: &str, (line, column): (usize, usize)) -> Option<&str> {
    let start: usize = text.split_inclusive('\n').take(line.checked_sub(1)?).map(str::len).sum();
    let rest = text.get(start..)?;
    let offset = rest.char_indices().map(|(offset, _)| offset).nth(column.checked_sub(1)?)?;
    // A column never reaches into the next line.
    (!rest[..offset].contains('\n')).then(|| &rest[offset..])
}

fn collect_pointers(value: &Value, pointer: String, pointers: &mut Vec<String>) {
    /// What is tried of a value with very many members.
    const MOST: usize = 64;
    if pointers.len() >= MOST {
        return;
    }
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                collect_pointers(item, format!("{pointer}/{index}"), pointers);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                let name = name.replace('~', "~0").replace('/', "~1");
                collect_pointers(member, format!("{pointer}/{name}"), pointers);
            }
        }
        _ => {}
    }
    pointers.push(pointer);
}

/// Judges the text of an asset by a schema; the input is both, with a byte `ff` between them. Whatever the schema is, there
/// is a verdict, it is the same the second time, and every error has a position in the text.
pub fn schema_document(bytes: &[u8]) {
    let mut parts = bytes.splitn(2, |byte| *byte == 0xff);
    let (schema, asset) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let Ok(asset) = std::str::from_utf8(asset) else { return };
    let folder = SchemaFolder::new(schema);
    let load =
        || Assets::load(AssetsConfig { schemas_dir: Some(folder.0.clone()), ..AssetsConfig::default() });
    let assets = load();
    let report = assets.validate_document(asset, "x.json", Some("any"));
    assert_eq!(report.ok, report.errors.is_empty());
    assert_eq!(report.ok, report.reason.is_none());
    // An empty text has its errors behind its end, where something is missing.
    let text = format!("{asset} ");
    for error in &report.errors {
        let position = (error.line, error.column);
        assert!(text_at(&text, position).is_some(), "{error:?} is not in the text");
    }
    let again = load().validate_document(asset, "x.json", Some("any"));
    // Of several references that lead nowhere, any may be the one that is reported.
    let is_schema_wrong = report.errors.iter().any(|error| error.issue.msg.starts_with("schema_invalid"));
    assert!(again == report || is_schema_wrong && again.ok == report.ok, "{again:?} after {report:?}");
}

/// A folder with one schema, which is gone with its handle.
struct SchemaFolder(PathBuf);

impl SchemaFolder {
    fn new(schema: &[u8]) -> Self {
        let name = format!("pintle-fuzz-{}-{:?}", std::process::id(), thread::current().id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).expect("a folder can be made");
        fs::write(folder.join("any.json"), schema).expect("a file can be written");
        Self(folder)
    }
}

impl Drop for SchemaFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
#[path = "../../../fuzz/seeds.rs"]
mod seeds;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_properties_hold_for_the_seeds() {
        seeds::each_seed("diff", |bytes| {
            diff(bytes, |base, patch| {
                let patch: json_patch::Patch = serde_json::from_value(patch).expect("a patch");
                json_patch::patch(base, &patch).expect("it applies");
            });
        });
        seeds::each_seed("json_locator", json_locator);
        seeds::each_seed("schema_document", schema_document);
    }
}
