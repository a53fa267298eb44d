//! Filters the paths of a listing by a glob. It selects exactly the files that `search` searches with the same glob.

use ignore::overrides::{Override, OverrideBuilder};
use pintle_contract::WorkspacePath;

/// A glob as in a `.gitignore`: without a slash it matches names at any depth, and `!` negates it.
pub struct Globs {
    /// For files: the path of a folder matches everything in it.
    files: Override,
    /// For folders: the glob as it is written.
    folders: Override,
    /// The deepest folder that contains all matches.
    base: WorkspacePath,
    /// The glob, relative to the root.
    from_root: String,
}

impl Globs {
    /// A glob with a slash counts from `folder`, or from the root if it begins with a slash or with the path of
    /// `folder`.
    pub fn new(
        glob: &str,
        folder: &WorkspacePath,
        is_folder: impl Fn(&WorkspacePath) -> bool,
    ) -> Result<Self, ignore::Error> {
        let (not, rest) = glob.strip_prefix('!').map_or(("", glob), |rest| ("!", rest));
        let rest = rest.trim_start_matches("./");
        let rest = if rest == "." { "/" } else { rest };
        // Only a `!` at the very beginning negates. Behind `./` it is part of a name.
        let escaped = (not.is_empty() && rest.starts_with('!')).then(|| format!("\\{rest}"));
        let rest = escaped.as_deref().unwrap_or(rest);
        let written = from_root(rest, folder);
        let meant = stands_for_its_content(rest, folder, is_folder).unwrap_or_else(|| written.clone());
        Ok(Self {
            files: build(&format!("{not}{meant}"))?,
            folders: build(&format!("{not}{written}"))?,
            // A negated glob can match anywhere.
            base: if not.is_empty() { base_of(&meant, &written) } else { WorkspacePath::root() },
            from_root: format!("{not}{written}"),
        })
    }

    /// The same glob relative to the root, so that it can be used with any other folder.
    pub fn from_root(&self) -> &str {
        &self.from_root
    }

    /// Whether a file matches.
    pub fn admit_file(&self, path: &str) -> bool {
        let matched = self.files.matched(path, false);
        matched.is_whitelist() || (self.files.num_whitelists() == 0 && !matched.is_ignore())
    }

    /// Whether a folder matches.
    pub fn admit_folder(&self, path: &str) -> bool {
        [&self.files, &self.folders].into_iter().any(|globs| {
            let matched = globs.matched(path, true);
            matched.is_whitelist() || (globs.num_whitelists() == 0 && !matched.is_ignore())
        })
    }

    /// Whether anything below a folder can match; nothing can below a folder that the glob excludes.
    pub fn admit_content(&self, path: &str) -> bool {
        let folder = WorkspacePath::parse(path).unwrap_or_default();
        (folder.is_within(&self.base) || self.base.is_within(&folder))
            && !self.files.matched(path, true).is_ignore()
    }
}

fn build(glob: &str) -> Result<Override, ignore::Error> {
    OverrideBuilder::new("/").add(glob)?.build()
}

fn has_wildcards(glob: &str) -> bool {
    glob.contains(['*', '?', '[', '{', '\\'])
}

/// Makes a glob relative to the root.
fn from_root(glob: &str, folder: &WorkspacePath) -> String {
    let has_slash = glob.trim_end_matches('/').contains('/');
    // What begins with `#` is a remark, unless something stands before it.
    if !has_slash
        || glob.starts_with('/')
        || glob.starts_with("**/")
        || folder.is_root() && glob.starts_with('#')
    {
        return glob.to_owned();
    }
    // The slash says that the glob counts from the root in whatever folder it is used next.
    if folder.is_root() || is_from_root(glob, folder) {
        return format!("/{glob}");
    }
    format!("/{}/{glob}", globset::escape(folder.as_str()))
}

fn is_from_root(glob: &str, folder: &WorkspacePath) -> bool {
    let rest = glob.strip_prefix(folder.as_str());
    glob.starts_with('/') || rest.is_some_and(|rest| !folder.is_root() && rest.starts_with('/'))
}

/// The glob for all content of a folder, if the given glob is the path of a folder.
fn stands_for_its_content(
    glob: &str,
    folder: &WorkspacePath,
    is_folder: impl Fn(&WorkspacePath) -> bool,
) -> Option<String> {
    if has_wildcards(glob) {
        return None;
    }
    let parsed = match is_from_root(glob, folder) {
        true => WorkspacePath::parse(glob),
        false => WorkspacePath::parse(&format!("{folder}/{glob}")),
    };
    let meant = parsed.ok()?;
    let is_meant = glob.ends_with('/') || is_folder(&meant);
    let escaped = globset::escape(meant.as_str());
    is_meant.then(|| if meant.is_root() { "**".to_owned() } else { format!("/{escaped}/**") })
}

/// The deepest folder that contains all matches of both globs.
fn base_of(meant: &str, written: &str) -> WorkspacePath {
    let base = |glob: &str| {
        // Without a slash it matches at any depth.
        let (folders, _) = glob.trim_end_matches('/').rsplit_once('/')?;
        // A glob that begins with `#` is a comment, which excludes nothing.
        if glob.starts_with('#') {
            return None;
        }
        let plain = folders.split('/').take_while(|name| !has_wildcards(name));
        WorkspacePath::parse(&plain.collect::<Vec<_>>().join("/")).ok()
    };
    let (meant, written) = (base(meant).unwrap_or_default(), base(written).unwrap_or_default());
    if meant.is_within(&written) { written } else { WorkspacePath::root() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn globs(glob: &str, folder: &str) -> Globs {
        let folder = WorkspacePath::parse(folder).expect("a path");
        let is_folder = |path: &WorkspacePath| ["src", "a/src", "a"].contains(&path.as_str());
        Globs::new(glob, &folder, is_folder).expect("a glob")
    }

    #[test]
    fn files_match_as_they_do_in_a_search() {
        for (glob, folder, matching, other) in [
            ("*.rs", "", "a/b/c.rs", "a/b/c.md"),
            ("src", "", "src/x/y", "a/src"),
            ("./src", "", "src/x", "a/src"),
            ("././src", "", "src/x", "a/src"),
            ("src/", "", "src/x", "b/src"),
            ("/src/*.rs", "", "src/x.rs", "a/src/x.rs"),
            ("src/*.rs", "", "src/x.rs", "src/a/x.rs"),
            ("!*.md", "", "a/x.rs", "a/x.md"),
            ("Makefile", "", "a/Makefile", "a/Makefile.am"),
            // From the folder that is listed.
            ("src", "a", "a/src/x", "src/x"),
            ("src/*.rs", "a", "a/src/x.rs", "src/x.rs"),
            ("a/src/*.rs", "a", "a/src/x.rs", "a/x.rs"),
            ("/src/*.rs", "a", "src/x.rs", "a/src/x.rs"),
            ("**/*.rs", "a", "a/src/x.rs", "a/x.md"),
            ("x/*.rs", "a[1]", "a[1]/x/y.rs", "a1/x/y.rs"),
        ] {
            let globs = globs(glob, folder);
            assert!(globs.admit_file(matching), "{glob} in {folder}: {matching}");
            assert!(!globs.admit_file(other), "{glob} in {folder}: {other}");
        }
    }

    #[test]
    fn a_folder_matches_by_its_own_name_too() {
        assert!(globs("src", "").admit_folder("b/src"));
        assert!(globs("src", "").admit_folder("src/deep"));
        assert!(!globs("*.rs", "").admit_folder("src"));
        assert!(globs("*/", "").admit_folder("b") && !globs("*/", "").admit_file("b"));
        assert!(!globs("!b", "").admit_folder("b") && globs("!b", "").admit_folder("c"));
    }

    #[test]
    fn only_folders_that_may_hold_a_match_are_entered() {
        let entered = |glob: &str, path: &str| globs(glob, "").admit_content(path);
        assert!(entered("a/b/*.rs", "a") && entered("a/b/*.rs", "a/b") && !entered("a/b/*.rs", "c"));
        assert!(entered("*.rs", "c") && entered("**/a/*.rs", "c") && entered("a*/b", "ax"));
        assert!(!entered("!b", "b") && entered("!b", "c") && entered("!a/b/c", "x"));
        // A folder's name is looked for everywhere.
        assert!(entered("src", "b"));
        // A comment excludes nothing.
        assert!(entered("#a/b", "c") && globs("#a/b", "").admit_file("c/d"));
    }

    #[test]
    fn a_glob_from_the_root_means_the_same_in_any_folder() {
        let first = globs("src/*.rs", "a");
        assert_eq!(first.from_root(), "/a/src/*.rs");
        assert!(globs(first.from_root(), "a/src").admit_file("a/src/x.rs"));
        assert_eq!(globs("!*.md", "a").from_root(), "!*.md");
        for (glob, folder) in [("a/src/*.rs", ""), ("a/src/*.rs", "a"), ("/a/src/*.rs", "b")] {
            let first = globs(glob, folder);
            assert_eq!(first.from_root(), "/a/src/*.rs", "{glob} in {folder}");
            assert!(globs(first.from_root(), "a/src").admit_file("a/src/x.rs"), "{glob} in {folder}");
        }
    }
}
