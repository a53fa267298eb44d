//! What must hold of manifests and templates whatever bytes come: the property that the fuzz target asserts.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt, path::Path};

use serde_json::{Map, Value};

use self::position::assert_position;
use crate::{Manifest, duration};

const FILE: &str = "m.tool.toml";

/// Reads a manifest and fills its template with arguments; the input is both, with a byte `ff` between them. An error has
/// a position in the file. What is taken has a name, and no argument of a caller becomes an option, or more than one
/// argument, of the program.
pub fn tool_manifest(bytes: &[u8]) {
    let mut parts = bytes.splitn(2, |byte| *byte == 0xff);
    let (text, arguments) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let Ok(text) = std::str::from_utf8(text) else { return };
    let _ = duration(text);
    let parse = || Manifest::parse(text, Path::new(FILE), Some(OsStr::new("/bin")));
    let manifest = match parse() {
        Ok(manifest) => manifest,
        Err(problem) => return assert_position(FILE, text, &problem.to_string()),
    };
    assert!(parse().is_ok_and(|again| again.is_same(&manifest)));
    assert!((1..=64).contains(&manifest.name().len()) && manifest.program.is_absolute());
    assert!(manifest.definition.input_schema.is_object() && manifest.definition.output_schema.is_object());
    let Ok(Value::Object(fields)) = serde_json::from_slice::<Value>(arguments) else { return };
    let Ok(filled) = manifest.template.fill(&fields) else { return };
    let given = manifest.template.fields().map(|name| count(&fields, name)).sum::<usize>();
    let fixed = manifest.template.fill(&Map::new()).map_or(0, |fixed| fixed.len());
    // Options are there only if their value is, so there may be more of those than without any argument.
    let options = manifest.template.fields().count();
    assert!((fixed + given..=fixed + given + options).contains(&filled.len()), "{filled:?}");
    assert!(!filled.iter().any(|argument| argument.as_bytes().contains(&0)));
}

fn count(fields: &Map<String, Value>, name: &str) -> usize {
    match fields.get(name) {
        None | Some(Value::Null) => 0,
        Some(Value::Array(values)) => values.len(),
        Some(_) => 1,
    }
}

#[path = "../../../fuzz/position.rs"]
mod position;

#[cfg(test)]
#[path = "../../../fuzz/seeds.rs"]
mod seeds;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_properties_hold_for_the_seeds() {
        seeds::each_seed("tool_manifest", tool_manifest);
    }
}
