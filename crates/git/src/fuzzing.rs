//! What must hold of the files of a repository whatever bytes they hold: the properties that the fuzz targets assert.
//! Whoever may write in the root may write any of them.

mod pack;
mod repository;
mod wildmatch;

use crate::{
    attributes,
    config::Config,
    hash::{HashKind, ObjectId},
    index::Index,
    pattern::Pattern,
    problem::Problem,
};

/// Reads an index; the first byte says which hash its objects are named by. What is taken is in order, and every path in
/// it leads to something in the work tree; every entry is found by its path.
pub fn git_index(bytes: &[u8]) {
    let Some((&first, body)) = bytes.split_first() else { return };
    let hash = if first & 1 == 0 { HashKind::Sha1 } else { HashKind::Sha256 };
    // Zeros in place of the checksum say that nobody computed it.
    let content = [body, &vec![0; hash.length()]].concat();
    let Ok(index) = Index::parse(&content, hash, &|| false) else { return };
    // An entry takes 62 bytes at least.
    assert!(index.entries.len() * 62 <= content.len());
    for pair in index.entries.windows(2) {
        let [one, other] = [&pair[0], &pair[1]].map(|entry| (index.path(entry), entry.stage));
        assert!(one < other);
    }
    for entry in &index.entries {
        let path = index.path(entry);
        assert!(path.len() <= 4096 && !path.contains(&0));
        assert!(!path.split(|byte| *byte == b'/').any(|name| matches!(name, b"" | b"." | b".." | b".git")));
        assert_eq!(index.find(path).map(|found| index.path(found)), Some(path));
        assert!(index.beneath(path).len() <= index.entries.len());
        if let (Some(trees), Some(slash)) = (&index.trees, memchr::memchr(b'/', path)) {
            let folder = trees.find(trees.top(), &path[..slash]);
            let _ = folder.and_then(|folder| trees.tree(folder));
        }
    }
    assert_eq!(index.beneath(b""), 0..index.entries.len());
    assert!(
        matches!(Index::parse(&content, hash, &|| true), Err(Problem::Ended)) || index.entries.is_empty()
    );
}

/// Reads objects from a pack. The module `fuzzing::pack` says what the input is and what must hold.
pub fn git_pack(bytes: &[u8]) {
    pack::git_pack(bytes);
}

/// Reads the configuration. What is understood is understood in the same way with a remark behind it.
pub fn git_config(bytes: &[u8]) {
    let read = |text: &[u8]| {
        let mut config = Config::default();
        config.read(text).map(|()| {
            let verdict = config.check().map_err(|problem| problem.to_string());
            format!("{config:?} {verdict:?} {}", config.has_worktree_file())
        })
    };
    let found = read(bytes);
    if let Ok(found) = found {
        // A backslash at the end of the file would take the remark to its line.
        if !bytes.ends_with(b"\\") {
            assert_eq!(read(&[bytes, b"\n# remark\n; another\n"].concat()).ok(), Some(found));
        }
    }
    for kind in [HashKind::Sha1, HashKind::Sha256] {
        if let Some(id) = ObjectId::from_digits(bytes, kind) {
            assert_eq!(id.to_string().as_bytes(), bytes.to_ascii_lowercase());
            assert_eq!(ObjectId::from_start(id.as_bytes(), kind), Some(id));
        }
    }
}

/// Reads attributes. The module `attributes::fuzzing` says what the input is and what must hold.
pub fn git_attributes(bytes: &[u8]) {
    attributes::fuzzing::git_attributes(bytes);
}

/// Matches a path, in the second line, with a pattern of a `.gitignore`, in the first. A plain matcher that tries
/// everything says the same.
pub fn ignore_pattern(bytes: &[u8]) {
    let (line, path) = bytes.split_at(memchr::memchr(b'\n', bytes).unwrap_or(bytes.len()));
    let path = path.strip_prefix(b"\n").unwrap_or(path);
    let pattern = Pattern::new(line);
    for is_folder in [false, true] {
        let matches = pattern.matches(path, is_folder);
        if let Some(expected) = wildmatch::matches(line, path, is_folder) {
            let shown = [line, path].map(String::from_utf8_lossy);
            assert_eq!(matches, expected, "{shown:?}, is_folder = {is_folder}");
        }
    }
    assert_eq!(pattern.is_negated, line.starts_with(b"!"));
}

/// Reads a whole repository. The module `fuzzing::repository` says what the input is and what must hold.
pub fn git_repository(bytes: &[u8]) {
    repository::git_repository(bytes);
}

#[cfg(test)]
#[path = "../../../fuzz/seeds.rs"]
mod seeds;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_properties_hold_for_the_seeds() {
        seeds::each_seed("git_index", git_index);
        seeds::each_seed("git_pack", git_pack);
        seeds::each_seed("git_config", git_config);
        seeds::each_seed("git_attributes", git_attributes);
        seeds::each_seed("ignore_pattern", ignore_pattern);
        seeds::each_seed("git_repository", git_repository);
    }
}
