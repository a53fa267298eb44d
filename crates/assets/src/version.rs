//! Reads the version of a schema, and orders versions. Versions here need not be SemVer (`2`, `v1.2`), so the
//! comparison is more lenient than the `semver` crate.

use std::cmp::Ordering;

use serde_json::Value;

use crate::names::schema_name;

/// The `version` of a schema, else the version in its `$id`, else an empty string.
pub(crate) fn version_of(schema: &Value, id: Option<&str>) -> String {
    match schema.get("version") {
        Some(Value::String(version)) => version.clone(),
        Some(Value::Number(version)) => version.to_string(),
        _ => id.and_then(version_in_id).unwrap_or_default().to_owned(),
    }
}

/// Compares part by part, by number; a release is higher than its pre-releases, as in SemVer.
pub(crate) fn compare(a: &str, b: &str) -> Ordering {
    let ((core_a, pre_release_a), (core_b, pre_release_b)) = (split(a), split(b));
    compare_parts(core_a, core_b, Some("0")).then_with(|| match (pre_release_a, pre_release_b) {
        (None, None) => Ordering::Equal,
        (None, Some(_)) => Ordering::Greater,
        (Some(_), None) => Ordering::Less,
        (Some(a), Some(b)) => compare_parts(a, b, None),
    })
}

/// The version in the path of an id; the last segment that has one wins.
fn version_in_id(id: &str) -> Option<&str> {
    let path = id.split(['#', '?']).next().unwrap_or_default();
    // The host may look like a version (`127.0.0.1`).
    let path = match path.split_once("://") {
        Some((_, rest)) => rest.split_once('/')?.1,
        None => path,
    };
    path.rsplit(['/', ':']).find_map(|segment| version_at_end(schema_name(segment)))
}

/// The version that a segment is, or ends in after a separator: `1.2.0`, `v2`, `tone-1.2.0-rc.1`.
fn version_at_end(segment: &str) -> Option<&str> {
    let after_separators = segment.match_indices(['-', '_', '@', '.']).map(|(index, _)| index + 1);
    std::iter::once(0).chain(after_separators).find_map(|start| as_version(&segment[start..]))
}

/// Accepts at least two numbers, or one after a `v`, and then an optional pre-release or build.
fn as_version(text: &str) -> Option<&str> {
    let number = text.strip_prefix('v').unwrap_or(text);
    let core = number.split(['-', '+']).next().unwrap_or_default();
    let numeric = core.split('.').all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()));
    let enough = core.contains('.') || number.len() < text.len();
    (numeric && enough).then_some(number)
}

/// Splits into the numbers and the pre-release; build metadata is ignored.
fn split(version: &str) -> (&str, Option<&str>) {
    let version = version.strip_prefix('v').unwrap_or(version);
    let version = version.split('+').next().unwrap_or_default();
    match version.split_once('-') {
        Some((core, pre_release)) => (core, Some(pre_release)),
        None => (version, None),
    }
}

/// Compares dotted parts; `missing` is used for parts that the shorter one lacks.
fn compare_parts(a: &str, b: &str, missing: Option<&str>) -> Ordering {
    let (mut a, mut b) = (a.split('.'), b.split('.'));
    loop {
        let order = match (a.next(), b.next()) {
            (None, None) => return Ordering::Equal,
            (a, b) => match (a.or(missing), b.or(missing)) {
                (Some(a), Some(b)) => compare_part(a, b),
                (a, b) => a.cmp(&b),
            },
        };
        if order.is_ne() {
            return order;
        }
    }
}

/// Compares two parts: numbers by value, of any length, and below any text, as in SemVer.
fn compare_part(a: &str, b: &str) -> Ordering {
    let number = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    match (number(a), number(b)) {
        (true, true) => {
            let (a, b) = (a.trim_start_matches('0'), b.trim_start_matches('0'));
            a.len().cmp(&b.len()).then_with(|| a.cmp(b))
        }
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        (false, false) => a.cmp(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_stated_version_beats_the_one_in_the_id() {
        let id = Some("https://h/0.7.3/tone.schema.json");
        assert_eq!(version_of(&json!({"version": "2.0"}), id), "2.0");
        assert_eq!(version_of(&json!({"version": 2}), id), "2");
        assert_eq!(version_of(&json!({"version": ["x"]}), id), "0.7.3");
        assert_eq!(version_of(&json!({}), id), "0.7.3");
        assert_eq!(version_of(&json!({}), None), "");
        assert_eq!(version_of(&json!(true), None), "");
    }

    #[test]
    fn a_version_is_found_in_the_path_of_an_id() {
        for (id, expected) in [
            ("https://schemas.example.dev/0.7.3/tone.schema.json", "0.7.3"),
            ("https://h/v1.2/tone.json", "1.2"),
            ("https://h/v2/tone.json", "2"),
            ("https://h/tone-1.2.0.schema.json", "1.2.0"),
            ("https://h/1.0/tone-1.2.0.schema.json", "1.2.0"),
            ("https://h/tone-1.2.0-rc.1.json", "1.2.0-rc.1"),
            ("https://h/tone@3.1", "3.1"),
            ("urn:example:tone:1.4", "1.4"),
            ("tone-1.5.json", "1.5"),
            ("https://127.0.0.1/tone.json", ""),
            ("https://127.0.0.1", ""),
            ("https://h/2020/tone.json?v=1.2#3.4", ""),
            ("https://h/tone.json", ""),
        ] {
            assert_eq!(version_of(&json!({}), Some(id)), expected, "{id}");
        }
    }

    #[test]
    fn versions_are_compared_by_number() {
        for (lower, higher) in [
            ("0.9.0", "0.10.0"),
            ("", "0.1"),
            ("1.0.0-rc.1", "1.0.0"),
            ("1.0.0-rc.2", "1.0.0-rc.10"),
            ("1.0.0-alpha", "1.0.0-alpha.1"),
            ("99999999999999999999", "100000000000000000000"),
            ("1.2", "v1.3"),
        ] {
            assert_eq!(compare(lower, higher), Ordering::Less, "{lower} {higher}");
            assert_eq!(compare(higher, lower), Ordering::Greater, "{lower} {higher}");
        }
        for (a, b) in [("1", "1.0.0"), ("1.0+a", "1.0+b"), ("01.2", "1.2"), ("", "0")] {
            assert_eq!(compare(a, b), Ordering::Equal, "{a} {b}");
        }
    }
}
