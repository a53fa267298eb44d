//! The content of a folder, to compare it before and after.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::{ffi::OsStringExt, fs::MetadataExt},
    path::Path,
};

/// Everything in a folder by its path from there: its kind and mode, and the bytes of a file or the target of a link.
pub type Tree = BTreeMap<String, (u32, Vec<u8>)>;

pub fn tree(folder: &Path) -> Tree {
    let mut found = Tree::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).expect("a folder") {
            let path = entry.expect("an entry").path();
            let metadata = path.symlink_metadata().expect("there");
            let bytes = if metadata.is_dir() {
                folders.push(path.clone());
                Vec::new()
            } else if metadata.is_symlink() {
                fs::read_link(&path).expect("a link").into_os_string().into_vec()
            } else {
                fs::read(&path).expect("a file")
            };
            let name = path.strip_prefix(folder).expect("below").to_string_lossy().into_owned();
            found.insert(name, (metadata.mode(), bytes));
        }
    }
    found
}

/// Writes a file, with its parent folders.
pub fn write(folder: &Path, path: &str, content: impl AsRef<[u8]>) {
    let path = folder.join(path);
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(path, content).expect("writes");
}
