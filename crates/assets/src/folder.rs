//! Finds and reads the JSON files of a folder, once. A symbolic link is followed only if its target is inside the
//! folder, so that nothing from outside is ever served. Everything that is skipped is reported as a warning, except
//! dot-files and files whose name does not end in `.json`.

use std::{
    collections::{HashSet, VecDeque},
    error::Error,
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};

use pintle_contract::inexact_number;
use serde_json::Value;

use crate::{locate::line_and_column, warnings::Warnings};

/// The size limit of one file.
const MAX_FILE_BYTES: u64 = 8 << 20;
/// How deep folders may be nested.
const MAX_DEPTH: usize = 16;
/// The most JSON files that are read; more suggest that the wrong folder was configured.
const MAX_FILES: usize = 10_000;
/// The most entries of any kind that are looked at, for the same reason.
const MAX_ENTRIES: usize = 100_000;

/// A folder, by its real path.
pub(crate) struct Folder {
    root: PathBuf,
    /// See [`Folder::prefix`].
    prefix: Option<String>,
}

/// A JSON file in a folder.
pub(crate) struct FoundFile {
    /// Relative to the folder, with `/` between segments.
    pub(crate) path: String,
    /// The path that callers see: in the workspace if the folder lies inside it, else the same as `path`.
    pub(crate) listed_path: String,
    location: PathBuf,
}

impl Folder {
    /// Opens a folder: resolves links to its real path and checks that it is a folder.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let root = fs::canonicalize(path)?;
        if !root.is_dir() {
            return Err(io::Error::from(io::ErrorKind::NotADirectory));
        }
        Ok(Self { root, prefix: None })
    }

    /// Sets the workspace that listed paths are relative to. Both are compared by their real paths, links resolved.
    pub(crate) fn in_workspace(mut self, root: &Path) -> Self {
        let path = fs::canonicalize(root).ok().and_then(|root| {
            let path = self.root.strip_prefix(root).ok()?;
            // No tool accepts a path that is not UTF-8.
            path.to_str().map(|path| path.replace(std::path::MAIN_SEPARATOR, "/"))
        });
        self.prefix = path.map(|path| if path.is_empty() { path } else { format!("{path}/") });
        self
    }

    /// The folder's path in the workspace with a final `/`: empty if it is the root of the workspace, none if it is
    /// outside.
    pub(crate) fn prefix(&self) -> Option<&str> {
        self.prefix.as_deref()
    }

    /// The folder's real path, without links.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The `*.json` files, sorted by path; the first [`MAX_FILES`] of them.
    pub(crate) fn json_files(&self, warnings: &mut Warnings) -> Vec<FoundFile> {
        let mut walk = Walk {
            root: &self.root,
            listed_below: self.prefix().unwrap_or_default(),
            files: Vec::new(),
            links: VecDeque::new(),
            seen: HashSet::new(),
            entries_left: MAX_ENTRIES,
            warnings,
        };
        walk.enter(&self.root, "");
        // Links come last, so that a folder is listed by its own path if that is inside, too.
        while let Some((prefix, target)) = walk.links.pop_front() {
            match walk.seen.contains(&target) {
                true => walk.warnings.skip(&prefix, "it is a link to a folder that was already read"),
                false => walk.enter(&target, &prefix),
            }
        }
        let mut files = walk.files;
        files.sort_by(|a, b| a.path.cmp(&b.path));
        if let Some(first) = files.get(MAX_FILES) {
            let ignored = files.len() - MAX_FILES;
            warnings
                .skip(&first.path, &format!("there are more than {MAX_FILES} files ({ignored} are ignored)"));
            files.truncate(MAX_FILES);
        }
        files
    }
}

/// Why a file or a folder of schemas or examples is skipped.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FileProblem {
    #[error("it cannot be read: {0}")]
    Unreadable(#[from] io::Error),
    #[error("it is larger than {} MiB", MAX_FILE_BYTES >> 20)]
    TooLarge,
    #[error("it is not JSON: {0}")]
    NotJson(Box<dyn Error + Send + Sync>),
    #[error("its number at line {line}, column {column} has too many digits to be kept exactly")]
    InexactNumber { line: usize, column: usize },
    #[error("it is neither an object nor a boolean")]
    NotASchema,
    #[error("with it there would be more than {MAX_ENTRIES} files and folders to read")]
    TooManyEntries,
    #[error("it is a broken link")]
    BrokenLink,
    #[error("it is a link out of the folder")]
    LinkOutside,
}

impl FoundFile {
    /// The last segment of the path.
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// Reads and parses the file.
    pub(crate) fn read(&self) -> Result<Value, FileProblem> {
        let mut bytes = Vec::new();
        File::open(&self.location)
            .and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes))
            .map_err(FileProblem::Unreadable)?;
        if bytes.len() as u64 > MAX_FILE_BYTES {
            return Err(FileProblem::TooLarge);
        }
        let text =
            str::from_utf8(without_mark(&bytes)).map_err(|error| FileProblem::NotJson(error.into()))?;
        let value = serde_json::from_str(text).map_err(|error| FileProblem::NotJson(error.into()))?;
        match inexact_number(text) {
            None => Ok(value),
            Some(offset) => {
                let (line, column) = line_and_column(text, offset);
                Err(FileProblem::InexactNumber { line, column })
            }
        }
    }
}

/// Strips the byte order mark that some editors write first.
fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

struct Walk<'a> {
    root: &'a Path,
    /// The prefix of listed paths.
    listed_below: &'a str,
    files: Vec<FoundFile>,
    /// Links to folders that are still to be read: the path of the link and its target.
    links: VecDeque<(String, PathBuf)>,
    /// The real paths of all folders read so far.
    seen: HashSet<PathBuf>,
    entries_left: usize,
    warnings: &'a mut Warnings,
}

impl Walk<'_> {
    /// Walks a folder by its real path; `prefix` is the path by which it was reached.
    fn enter(&mut self, folder: &Path, prefix: &str) {
        if !self.seen.insert(folder.to_owned()) {
            return;
        }
        if prefix.matches('/').count() >= MAX_DEPTH {
            return self.warnings.skip(prefix, "it is nested too deep");
        }
        let entries = match self.entries(folder) {
            Ok(entries) => entries,
            Err(reason) => {
                let path = if prefix.is_empty() { "." } else { prefix };
                return self.warnings.skip(path, &reason.to_string());
            }
        };
        for entry in entries {
            self.visit(&entry, prefix);
        }
    }

    /// The entries of a folder, sorted by name; all of them or none, so that no chance decides which.
    fn entries(&mut self, folder: &Path) -> Result<Vec<fs::DirEntry>, FileProblem> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(folder)? {
            self.entries_left = self.entries_left.checked_sub(1).ok_or(FileProblem::TooManyEntries)?;
            entries.push(entry?);
        }
        entries.sort_by_key(fs::DirEntry::file_name);
        Ok(entries)
    }

    fn visit(&mut self, entry: &fs::DirEntry, prefix: &str) {
        let name = entry.file_name();
        let Some(name) = name.to_str() else {
            let path = format!("{prefix}{}", name.to_string_lossy());
            return self.warnings.skip(&path, "its name is not UTF-8");
        };
        if name.starts_with('.') {
            return;
        }
        let path = format!("{prefix}{name}");
        let (location, kind) = match self.resolve(entry) {
            Ok(found) => found,
            Err(reason) => return self.warnings.skip(&path, &reason.to_string()),
        };
        if !kind.is_dir() {
            if name.ends_with(".json") {
                self.add(path, location, kind);
            }
        } else if location == entry.path() {
            self.enter(&location, &format!("{path}/"));
        } else {
            self.links.push_back((format!("{path}/"), location));
        }
    }

    /// The real path and kind of an entry, if that lies inside the folder.
    fn resolve(&self, entry: &fs::DirEntry) -> Result<(PathBuf, fs::FileType), FileProblem> {
        let kind = entry.file_type()?;
        if !kind.is_symlink() {
            return Ok((entry.path(), kind));
        }
        let target = fs::canonicalize(entry.path()).map_err(|_| FileProblem::BrokenLink)?;
        if !target.starts_with(self.root) {
            return Err(FileProblem::LinkOutside);
        }
        let kind = fs::metadata(&target)?.file_type();
        Ok((target, kind))
    }

    fn add(&mut self, path: String, location: PathBuf, kind: fs::FileType) {
        match kind.is_file() {
            true => {
                let listed_path = format!("{}{path}", self.listed_below);
                self.files.push(FoundFile { path, listed_path, location });
            }
            // Opening a named pipe would block until somebody writes to it.
            false => self.warnings.skip(&path, "it is not a regular file"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(folder: &Path) -> (Vec<String>, Vec<String>) {
        let mut warnings = Warnings::about("example");
        let found = Folder::open(folder).expect("a folder").json_files(&mut warnings);
        let mut warnings = warnings.into_lines();
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
                "example `broken.json` is skipped: it is a broken link",
                "example `file.json` is skipped: it is a link out of the folder",
                "example `folder` is skipped: it is a link out of the folder",
                "example `sub/round` is skipped: it is a link to a folder that was already read",
            ]
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_is_read_once_however_many_links_lead_to_it() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        // Each level links to the next one twice: by every path, there would be 2^15 files.
        for level in 0..15 {
            fs::create_dir(root.join(format!("{level:02}"))).expect("made");
            for link in ["a", "b"] {
                let target = root.join(format!("{:02}", level + 1));
                symlink(target, root.join(format!("{level:02}/{link}"))).expect("linked");
            }
        }
        fs::create_dir(root.join("15")).expect("made");
        fs::write(root.join("15/x.json"), "{}").expect("written");
        // A folder that is skipped by its own name (a dot-folder) is still read through a link.
        fs::create_dir(root.join(".hidden")).expect("made");
        fs::write(root.join(".hidden/y.json"), "{}").expect("written");
        symlink(root.join(".hidden"), root.join("shown")).expect("linked");
        let (found, warnings) = paths(root);
        assert_eq!(found, ["15/x.json", "shown/y.json"]);
        assert_eq!(warnings.len(), 21, "{warnings:?}");
    }

    #[test]
    fn of_too_many_files_the_first_by_path_stay() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("b")).expect("made");
        for number in 0..MAX_FILES {
            fs::write(folder.path().join(format!("b/{number:05}.json")), "").expect("written");
        }
        fs::write(folder.path().join("a.json"), "").expect("written");
        let (found, warnings) = paths(folder.path());
        assert_eq!((found.len(), found[0].as_str()), (MAX_FILES, "a.json"));
        assert!(!found.contains(&"b/09999.json".to_owned()));
        assert!(warnings.len() == 1 && warnings[0].contains("1 are ignored"), "{warnings:?}");
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
        write("4-number.json", "[\n\"é\",  12345678901234567890123]".as_bytes());
        let files =
            Folder::open(folder.path()).expect("a folder").json_files(&mut Warnings::about("example"));
        let read: Vec<_> =
            files.iter().map(|file| file.read().map_err(|problem| problem.to_string())).collect();
        assert_eq!(read[0], Ok(serde_json::json!({"a": 1})));
        assert!(
            read[1].as_ref().is_err_and(|reason| reason.starts_with("it is not JSON: ")),
            "{:?}",
            read[1]
        );
        assert_eq!(read[2], Err("it is larger than 8 MiB".into()));
        assert_eq!(
            read[3],
            Err("its number at line 2, column 7 has too many digits to be kept exactly".into()),
            "not silently another number"
        );
    }

    #[cfg(unix)]
    #[test]
    fn files_are_listed_by_their_paths_in_the_workspace_if_the_folder_really_lies_inside_it() {
        use std::os::unix::fs::symlink;
        let (workspace, outside) =
            (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let root = workspace.path();
        fs::create_dir_all(root.join("a/b/c")).expect("made");
        fs::write(root.join("a/b/c/x.json"), "{}").expect("written");
        fs::write(outside.path().join("x.json"), "{}").expect("written");
        symlink(root.join("a/b"), outside.path().join("in")).expect("linked");
        symlink(outside.path(), root.join("out")).expect("linked");
        symlink("a/b", root.join("alias")).expect("linked");
        symlink(root, outside.path().join("root")).expect("linked");
        let listed = |folder: &Path, root: &Path| {
            let folder = Folder::open(folder).expect("a folder").in_workspace(root);
            let files = folder.json_files(&mut Warnings::about("example"));
            files.iter().map(|file| (file.path.clone(), file.listed_path.clone())).collect::<Vec<_>>()
        };
        let pair = |path: &str, listed: &str| vec![(path.to_owned(), listed.to_owned())];
        assert_eq!(listed(&root.join("a/b"), root), pair("c/x.json", "a/b/c/x.json"));
        assert_eq!(listed(&root.join("alias"), root), pair("c/x.json", "a/b/c/x.json"));
        assert_eq!(listed(&outside.path().join("in"), root), pair("c/x.json", "a/b/c/x.json"));
        assert_eq!(listed(&root.join("a/b"), &outside.path().join("root")), pair("c/x.json", "a/b/c/x.json"));
        assert_eq!(listed(root, root)[0], ("a/b/c/x.json".into(), "a/b/c/x.json".into()));
        assert_eq!(listed(&root.join("out"), root)[0], ("x.json".into(), "x.json".into()));
        assert_eq!(listed(&root.join("a/b"), &root.join("a/b/c")), pair("c/x.json", "c/x.json"));
    }

    #[test]
    fn a_file_is_no_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("x"), "").expect("written");
        assert!(Folder::open(&folder.path().join("x")).is_err());
        assert!(Folder::open(&folder.path().join("y")).is_err());
    }
}
