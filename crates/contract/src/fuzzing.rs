//! What must hold of paths and scopes whatever text comes: the properties that the fuzz targets assert.

use crate::{Access, RootName, Scopes, Verb, WorkspacePath};

/// Reads a path. One that is taken names nothing above the root and nothing that a later reader could take for
/// something else, prints back, and means what a plain walk over its names means.
pub fn workspace_path(bytes: &[u8]) {
    assert_bytes_grant_nothing(bytes);
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let root_name = RootName::new([std::path::Path::new("/home/me/project")]);
    if let Some((root, rest)) = root_name.split(text) {
        assert!(text.starts_with(root) && text.ends_with(rest) && !rest.starts_with('/'));
    }
    let parsed = WorkspacePath::parse(text);
    assert_eq!(parsed.is_err(), is_refused_for_its_form(text) || walk(text).is_none(), "{text:?}");
    let Ok(path) = parsed else { return };
    assert_eq!(Some(path.as_str().to_owned()), walk(text), "{text:?}");
    assert!(path.as_str().len() <= 4096 && !path.as_str().contains(['\0', '\\']));
    for name in path.as_str().split('/').filter(|_| !path.is_root()) {
        assert!(!matches!(name, "" | "." | "..") && name.len() <= 255, "{text:?}");
    }
    for printed in [path.as_str().to_owned(), path.to_string()] {
        assert_eq!(WorkspacePath::parse(&printed).as_ref(), Ok(&path), "{text:?}");
    }
    assert!(path.is_within(&WorkspacePath::root()) && path.is_within(&path) && path.is_in(&path));
    match path.split_last() {
        Some((folder, name)) => {
            assert_eq!(folder.join(name).as_ref(), Some(&path));
            assert!(path.is_in(&folder) && path.is_within(&folder) && !folder.is_within(&path));
        }
        None => assert!(path.is_root()),
    }
    // A name is one name, whatever it holds.
    if let Some(joined) = path.join(text) {
        assert!(
            joined.is_in(&path)
                && joined != path
                && joined.split_last().is_some_and(|(_, name)| name == text)
        );
    }
}

/// The path that a text means if `..` is read from left to right; none if it leaves the root.
fn walk(text: &str) -> Option<String> {
    let mut path = String::new();
    for name in text.split('/').filter(|name| !matches!(*name, "" | ".")) {
        if name == ".." {
            if path.is_empty() {
                return None;
            }
            path.truncate(path.rfind('/').unwrap_or(0));
        } else {
            if !path.is_empty() {
                path.push('/');
            }
            path.push_str(name);
        }
    }
    Some(path)
}

/// Whether a path that stays below the root is refused all the same.
fn is_refused_for_its_form(text: &str) -> bool {
    let has_drive = |path: String| {
        let bytes = path.as_bytes();
        bytes.len() > 1 && bytes[0].is_ascii_alphabetic() && bytes[1] == b':'
    };
    text.contains(['\0', '\\'])
        || text.split('/').any(|name| name.len() > 255)
        || walk(text).is_some_and(|path| path.len() > 4096 || has_drive(path))
}

/// Reads scopes, one a line, and asks them about the path in the last line. What is granted is granted by a scope whose
/// folder the path lies in; a right to write is a right to read; fewer scopes never grant more.
pub fn scopes(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (lines, last) = text.rsplit_once('\n').unwrap_or(("", text));
    let lines: Vec<&str> = lines.split('\n').filter(|line| !line.is_empty()).collect();
    let parsed = Scopes::parse(lines.iter().copied());
    let each: Vec<_> = lines.iter().map(|line| Scopes::parse([*line])).collect();
    assert_eq!(parsed.is_ok(), each.iter().all(Result::is_ok));
    let Ok(scopes) = parsed else { return };
    let each: Vec<Scopes> = each.into_iter().filter_map(Result::ok).collect();
    assert!(!scopes.are_everything());
    if let Ok(path) = WorkspacePath::parse(last) {
        for access in [Access::Path, Access::Tree] {
            let may = |scopes: &Scopes, verb: Verb| scopes.cover(&access(verb, path.clone()));
            for verb in [Verb::Read, Verb::Write] {
                assert_eq!(may(&scopes, verb), each.iter().any(|scope| may(scope, verb)), "{text:?}");
            }
            assert!(!may(&scopes, Verb::Write) || may(&scopes, Verb::Read));
            for (line, scope) in lines.iter().zip(&each) {
                if may(scope, Verb::Read) {
                    let folder = line.split_once(':').map_or("", |(_, folder)| folder.trim_end_matches('*'));
                    let folder = WorkspacePath::parse(folder).expect("the folder of a scope is a path");
                    assert!(path.is_within(&folder), "{line:?} grants {path}");
                }
            }
        }
        assert_eq!(scopes.may_read(&path), scopes.may_read_bytes(path.as_str().as_bytes()), "{path}");
        for name in scopes.ways_from(&path) {
            assert!(path.join(name).is_some(), "{name:?} is no name in {path}");
        }
    }
    let named = Access::Named(last.to_owned().into());
    assert_eq!(scopes.cover(&named), scopes.named().any(|name| name == last));
}

/// A path as a file system has it can be any bytes. It may be looked at only if a scope on its folder says so, and never
/// because its bytes could not be read as text.
fn assert_bytes_grant_nothing(bytes: &[u8]) {
    let scopes = Scopes::parse(["read:/open/", "write:/flat/*"]).expect("scopes");
    let is_open = bytes == b"open" || bytes.starts_with(b"open/");
    let is_plain = !bytes.split(|byte| *byte == b'/').any(|name| matches!(name, b"" | b"." | b".."));
    // Names that the walk of a folder can meet: no empty ones, and no steps up or aside.
    if is_plain && bytes.len() < 4096 {
        let is_flat = bytes.strip_prefix(b"flat/").is_some_and(|name| !name.contains(&b'/'));
        assert!(!scopes.may_read_bytes(bytes) || is_open || is_flat || bytes == b"flat", "{bytes:?}");
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
        seeds::each_seed("workspace_path", workspace_path);
        seeds::each_seed("scopes", scopes);
    }
}
