//! What must hold of a whole repository whatever its files hold: the property that the fuzz target asserts.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    thread,
};

use flate2::{Compression, write::ZlibEncoder};

use crate::{GitStatus, hash::HashKind, status};

/// The files that an input can write, by number.
const FILES: [&str; 16] = [
    ".git/HEAD",
    ".git/config",
    ".git/index",
    ".git/packed-refs",
    ".git/refs/heads/main",
    ".git/info/exclude",
    ".git/info/attributes",
    ".git/config.worktree",
    ".git/commondir",
    ".git/objects/info/alternates",
    ".gitignore",
    ".gitattributes",
    "a",
    "b.txt",
    "d/.gitignore",
    "d/c",
];
/// Numbers from here on are objects: a commit, a tree and a blob.
const KINDS: [&str; 3] = ["commit", "tree", "blob"];

/// Writes a repository and asks for its state. The input are files: a number, two bytes for the length, and the content,
/// in which `$0`, `$1` and so on stand for the names of the objects that came before.
///
/// Whatever the files hold, there is an answer, it is the same the second time, and every path in it lies in the root.
pub(super) fn git_repository(bytes: &[u8]) {
    let folder = TemporaryFolder::new();
    let mut names: Vec<String> = Vec::new();
    let mut rest = bytes;
    folder.write(".git/HEAD", b"ref: refs/heads/main\n");
    while let Some(([number, high, low], content)) = rest.split_first_chunk::<3>() {
        let length = usize::from(u16::from_be_bytes([*high, *low])).min(content.len());
        let (content, after) = content.split_at(length);
        rest = after;
        let content = with_names(content, &names);
        let number = usize::from(*number) % (FILES.len() + KINDS.len());
        match FILES.get(number) {
            Some(file) => folder.write(file, &content),
            None => names.push(folder.write_object(KINDS[number - FILES.len()], &content)),
        }
    }
    let found = state(&folder.0);
    if let Ok(Some(status)) = &found {
        for dirty in &status.dirty {
            let is_odd = |name: &[u8]| matches!(name, b"." | b".." | b".git");
            assert!(!dirty.path.is_empty() && !dirty.path.starts_with(b"/"));
            assert!(!dirty.path.split(|byte| *byte == b'/').any(is_odd), "{:?}", dirty.path);
        }
        assert!(status.dirty.is_sorted_by(|one, other| one.path < other.path));
    }
    assert_eq!(state(&folder.0), found);
}

fn state(root: &Path) -> Result<Option<GitStatus>, String> {
    status(root, &|| false).map_err(|problem| problem.to_string())
}

/// Puts the names of objects in the places that stand for them.
fn with_names(content: &[u8], names: &[String]) -> Vec<u8> {
    let mut filled = Vec::with_capacity(content.len());
    let mut rest = content;
    while let Some((first, after)) = rest.split_first() {
        let digit = after.first().filter(|_| *first == b'$').and_then(|digit| digit.checked_sub(b'0'));
        match digit.and_then(|digit| names.get(usize::from(digit))) {
            Some(name) => {
                filled.extend(name.as_bytes());
                rest = &after[1..];
            }
            None => {
                filled.push(*first);
                rest = after;
            }
        }
    }
    filled
}

/// A folder that is gone with its handle.
struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    fn new() -> Self {
        let name = format!("pintle-fuzz-git-{}-{:?}", std::process::id(), thread::current().id());
        let folder = std::env::temp_dir().join(name);
        for name in [".git/objects/info", ".git/refs/heads", ".git/info", "d"] {
            fs::create_dir_all(folder.join(name)).expect("a folder can be made");
        }
        Self(folder)
    }

    fn write(&self, file: &str, content: &[u8]) {
        fs::write(self.0.join(file), content).expect("a file can be written");
    }

    fn write_object(&self, kind: &str, content: &[u8]) -> String {
        let name = HashKind::Sha1.name_of(kind, content).to_string();
        let header = format!("{kind} {}\0", content.len());
        let mut packed = ZlibEncoder::new(Vec::new(), Compression::fast());
        let is_packed = packed.write_all(header.as_bytes()).and_then(|()| packed.write_all(content));
        is_packed.expect("memory can be written");
        let (folder, rest) = name.split_at(2);
        let folder = format!(".git/objects/{folder}");
        fs::create_dir_all(self.0.join(&folder)).expect("a folder can be made");
        self.write(&format!("{folder}/{rest}"), &packed.finish().expect("memory can be written"));
        name
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
