//! A folder of JSON files, read once. A link counts only if it leads to a place inside the folder, so
//! that what is served is what lies there. Whatever is passed over is told in the warnings, except
//! dot-files and files that are not JSON by name.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};

use serde_json::Value;

/// No file is read beyond this size.
const MAX_FILE_BYTES: u64 = 8 << 20;
/// No folder is entered below this depth.
const MAX_DEPTH: usize = 16;
/// A folder with more files than this was hardly meant.
const MAX_FILES: usize = 10_000;

/// A folder, by its real path.
pub(crate) struct Folder {
    root: PathBuf,
}

/// A JSON file in a folder.
pub(crate) struct FoundFile {
    /// Relative to the folder, with `/` between segments.
    pub(crate) path: String,
    location: PathBuf,
}

impl Folder {
    /// Finds the folder's real path.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let root = fs::canonicalize(path)?;
        if !root.is_dir() {
            return Err(io::Error::from(io::ErrorKind::NotADirectory));
        }
        Ok(Self { root })
    }

    /// The real path.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// All `*.json` files, sorted by path.
    pub(crate) fn json_files(&self, warnings: &mut Vec<String>) -> Vec<FoundFile> {
        let mut walk = Walk { root: &self.root, files: Vec::new(), full: false, warnings };
        walk.enter(&mut vec![self.root.clone()], "");
        let mut files = walk.files;
        files.sort_by(|a, b| a.path.cmp(&b.path));
        files
    }
}

impl FoundFile {
    /// The last segment of the path.
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// Reads and parses the file, or says why not.
    pub(crate) fn read(&self) -> Result<Value, String> {
        let mut bytes = Vec::new();
        File::open(&self.location)
            .and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes))
            .map_err(|error| format!("it cannot be read: {error}"))?;
        if bytes.len() as u64 > MAX_FILE_BYTES {
            return Err(format!("it has more than {} MiB", MAX_FILE_BYTES >> 20));
        }
        serde_json::from_slice(without_mark(&bytes)).map_err(|error| format!("it is not JSON: {error}"))
    }
}

/// Some editors begin a file with a byte order mark.
fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

struct Walk<'a> {
    root: &'a Path,
    files: Vec<FoundFile>,
    full: bool,
    warnings: &'a mut Vec<String>,
}

impl Walk<'_> {
    /// Walks the last folder of `chain`, which holds the real paths of all folders entered to get
    /// here; `prefix` is the path by which it was reached.
    fn enter(&mut self, chain: &mut Vec<PathBuf>, prefix: &str) {
        let Some(folder) = chain.last() else { return };
        if chain.len() > MAX_DEPTH {
            return self.skip(prefix, "it lies too deep");
        }
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) => return self.skip(prefix, &format!("it cannot be read: {error}")),
        };
        for entry in entries {
            match entry {
                Ok(entry) => self.visit(&entry, chain, prefix),
                Err(error) => self.skip(prefix, &format!("it cannot be read to its end: {error}")),
            }
            if self.full {
                return;
            }
        }
    }

    fn visit(&mut self, entry: &fs::DirEntry, chain: &mut Vec<PathBuf>, prefix: &str) {
        let name = entry.file_name();
        let Some(name) = name.to_str() else {
            return self.skip(&format!("{prefix}{}", name.to_string_lossy()), "its name is not UTF-8");
        };
        if name.starts_with('.') {
            return;
        }
        let path = format!("{prefix}{name}");
        let (location, kind) = match self.resolve(entry) {
            Ok(found) => found,
            Err(reason) => return self.skip(&path, &reason),
        };
        if kind.is_dir() {
            if chain.contains(&location) {
                return self.skip(&path, "it links back to a folder around it");
            }
            chain.push(location);
            self.enter(chain, &format!("{path}/"));
            chain.pop();
        } else if name.ends_with(".json") {
            self.add(path, location, kind);
        }
    }

    /// The real path and kind of an entry, if that lies inside the folder.
    fn resolve(&self, entry: &fs::DirEntry) -> Result<(PathBuf, fs::FileType), String> {
        let unreadable = |error: io::Error| format!("it cannot be read: {error}");
        let kind = entry.file_type().map_err(unreadable)?;
        if !kind.is_symlink() {
            return Ok((entry.path(), kind));
        }
        let target = fs::canonicalize(entry.path()).map_err(|_| "it is a link that leads nowhere")?;
        if !target.starts_with(self.root) {
            return Err("it is a link that leads out of the folder".into());
        }
        let kind = fs::metadata(&target).map_err(unreadable)?.file_type();
        Ok((target, kind))
    }

    fn add(&mut self, path: String, location: PathBuf, kind: fs::FileType) {
        if !kind.is_file() {
            // Opening a pipe would wait for a writer.
            return self.skip(&path, "it is not a regular file");
        }
        if self.files.len() == MAX_FILES {
            self.full = true;
            return self.skip(&path, &format!("there are more than {MAX_FILES} files; the rest is ignored"));
        }
        self.files.push(FoundFile { path, location });
    }

    fn skip(&mut self, path: &str, reason: &str) {
        self.warnings.push(format!("`{}` is skipped: {reason}", path.trim_end_matches('/')));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(folder: &Path) -> (Vec<String>, Vec<String>) {
        let mut warnings = Vec::new();
        let found = Folder::open(folder).expect("a folder").json_files(&mut warnings);
        warnings.sort();
        (found.into_iter().map(|file| file.path).collect(), warnings)
    }

    #[test]
    fn json_files_are_found_at_every_depth_and_dot_files_are_not() {
        let folder = tempfile::tempdir().expect("a folder");
        for path in
            ["b.json", "a/z.json", "a/b/c.json", ".hidden.json", ".git/x.json", "notes.txt", "a.json5"]
        {
            let file = folder.path().join(path);
            fs::create_dir_all(file.parent().expect("a parent")).expect("made");
            fs::write(file, "{}").expect("written");
        }
        assert_eq!(
            paths(folder.path()),
            (vec!["a/b/c.json".into(), "a/z.json".into(), "b.json".into()], vec![])
        );
    }

    #[cfg(unix)]
    #[test]
    fn links_count_only_inside_the_folder_and_never_go_round() {
        use std::os::unix::fs::symlink;
        let outside = tempfile::tempdir().expect("a folder");
        fs::write(outside.path().join("secret.json"), "{}").expect("written");
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        fs::create_dir(root.join("sub")).expect("made");
        fs::write(root.join("sub/real.json"), "{}").expect("written");
        symlink(root.join("sub/real.json"), root.join("inside.json")).expect("linked");
        symlink(outside.path().join("secret.json"), root.join("file.json")).expect("linked");
        symlink(outside.path(), root.join("folder")).expect("linked");
        symlink(root, root.join("sub/round")).expect("linked");
        symlink(root.join("gone.json"), root.join("broken.json")).expect("linked");
        let (found, warnings) = paths(root);
        assert_eq!(found, ["inside.json", "sub/real.json"]);
        assert_eq!(
            warnings,
            [
                "`broken.json` is skipped: it is a link that leads nowhere",
                "`file.json` is skipped: it is a link that leads out of the folder",
                "`folder` is skipped: it is a link that leads out of the folder",
                "`sub/round` is skipped: it links back to a folder around it",
            ]
        );
    }

    #[test]
    fn a_very_deep_folder_is_not_entered_to_its_end() {
        let folder = tempfile::tempdir().expect("a folder");
        let deep = folder.path().join(["d"; 20].join("/"));
        fs::create_dir_all(&deep).expect("made");
        fs::write(deep.join("x.json"), "{}").expect("written");
        let (found, warnings) = paths(folder.path());
        assert!(found.is_empty());
        assert!(warnings[0].contains("too deep"), "{warnings:?}");
    }

    #[test]
    fn a_file_that_cannot_be_used_says_why() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).expect("written");
        write("1-good.json", b"\xef\xbb\xbf{\"a\":1}");
        write("2-text.json", b"hello");
        write("3-huge.json", &vec![b' '; (MAX_FILE_BYTES + 1) as usize]);
        let files = Folder::open(folder.path()).expect("a folder").json_files(&mut Vec::new());
        let read: Vec<_> = files.iter().map(|file| file.read()).collect();
        assert_eq!(read[0], Ok(serde_json::json!({"a": 1})));
        assert!(
            read[1].as_ref().is_err_and(|reason| reason.starts_with("it is not JSON: ")),
            "{:?}",
            read[1]
        );
        assert_eq!(read[2], Err("it has more than 8 MiB".into()));
    }

    #[test]
    fn a_file_is_no_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("x"), "").expect("written");
        assert!(Folder::open(&folder.path().join("x")).is_err());
        assert!(Folder::open(&folder.path().join("y")).is_err());
    }
}
