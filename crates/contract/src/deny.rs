//! Deny rules: paths that no caller may read or write, whatever its scopes.
//!
//! A rule is a glob. Without a `/` it matches a name at any depth, with one a path from the root. It also covers
//! everything below what it matches. Upper and lower case are the same, because on some file systems they are the same
//! file. What may not be read may not be written either: an edit would return what it has read.

use std::borrow::Cow;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use thiserror::Error;

use crate::Verb;

/// What nobody may write unless the configuration allows it: files that an editor, a shell, git or an agent would
/// execute or obey later.
pub const NOT_WRITABLE: [&str; 8] =
    [".git", ".vscode/", ".idea/", ".devcontainer/", ".envrc", ".mcp.json", ".cursor/", ".claude/"];

/// Paths that may not be read or written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DenyRules {
    read: Globs,
    write: Globs,
    /// The rules that hold unless they are lifted.
    preset: Globs,
    /// What lifts them.
    allow: Globs,
}

/// The globs of deny rules, as they are written.
#[derive(Clone, Copy, Debug, Default)]
pub struct DenyGlobs<'a> {
    /// What may be neither read nor written.
    pub read: &'a [String],
    /// What may not be written.
    pub write: &'a [String],
    /// Which of [`NOT_WRITABLE`] may be written all the same.
    pub allow_write: &'a [String],
}

/// A glob that is not one.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{glob}` cannot be used as a glob: {problem}")]
pub struct GlobError {
    /// The glob.
    pub glob: String,
    /// What is wrong with it.
    pub problem: String,
}

impl DenyRules {
    /// Reads rules.
    pub fn new(globs: DenyGlobs<'_>) -> Result<Self, GlobError> {
        Ok(Self {
            read: Globs::new(globs.read.iter().map(String::as_str))?,
            write: Globs::new(globs.write.iter().map(String::as_str))?,
            preset: Globs::new(NOT_WRITABLE)?,
            allow: Globs::new(globs.allow_write.iter().map(String::as_str))?,
        })
    }

    /// Whether a path of the workspace may not be read, or not be written.
    pub fn deny(&self, verb: Verb, path: &[u8]) -> bool {
        if verb == Verb::Read && self.read.set.is_empty() {
            return false;
        }
        let path = folded(path.strip_prefix(b"/").unwrap_or(path));
        // The root has no name that a glob could match.
        if path.is_empty() {
            return false;
        }
        match verb {
            Verb::Read => self.read.match_any(&path),
            Verb::Write => {
                self.read.match_any(&path)
                    || self.write.match_any(&path)
                    || (self.preset.match_any(&path) && !self.allow.match_any(&path))
            }
        }
    }

    /// Whether there is nothing that may not be read.
    pub fn let_everything_be_read(&self) -> bool {
        self.read.set.is_empty()
    }
}

#[derive(Clone, Debug, Default)]
struct Globs {
    texts: Vec<String>,
    set: GlobSet,
}

/// What is written the same matches the same.
impl PartialEq for Globs {
    fn eq(&self, other: &Self) -> bool {
        self.texts == other.texts
    }
}

impl Eq for Globs {}

impl Globs {
    fn new<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Self, GlobError> {
        let texts: Vec<String> = texts.into_iter().map(str::to_owned).collect();
        let mut set = GlobSetBuilder::new();
        for text in &texts {
            let wrong = |problem: String| GlobError { glob: text.clone(), problem };
            let pattern = pattern(text).map_err(|problem| wrong(problem.to_owned()))?;
            for pattern in [format!("{pattern}/**"), pattern] {
                let glob = GlobBuilder::new(&pattern).literal_separator(true).build();
                set.add(glob.map_err(|error| wrong(error.kind().to_string()))?);
            }
        }
        let set =
            set.build().map_err(|error| GlobError { glob: texts.join(", "), problem: error.to_string() })?;
        Ok(Self { texts, set })
    }

    /// Whether one of them matches a path in lower case.
    fn match_any(&self, path: &str) -> bool {
        self.set.is_match(path)
    }
}

/// A glob as it is matched against a path without a leading `/`.
fn pattern(text: &str) -> Result<String, &'static str> {
    let name = text.strip_suffix('/').unwrap_or(text);
    let path = name.strip_prefix("./").unwrap_or(name);
    let is_anchored = path.contains('/');
    let path = path.trim_start_matches('/').to_lowercase();
    if path.is_empty() {
        return Err("it names nothing");
    }
    if path.split('/').any(|name| matches!(name, "" | "." | "..")) {
        return Err("`.`, `..` and empty names are not part of a path");
    }
    Ok(if is_anchored { path } else { format!("**/{path}") })
}

/// A path in lower case. What is not UTF-8 in it matches no letter.
fn folded(path: &[u8]) -> Cow<'_, str> {
    let path = String::from_utf8_lossy(path);
    let is_folded = |byte: u8| byte.is_ascii() && !byte.is_ascii_uppercase();
    if path.bytes().all(is_folded) { path } else { Cow::Owned(path.to_lowercase()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(read: &[&str], write: &[&str], allow: &[&str]) -> DenyRules {
        let [read, write, allow_write] =
            [read, write, allow].map(|globs| globs.iter().map(|&glob| glob.to_owned()).collect::<Vec<_>>());
        DenyRules::new(DenyGlobs { read: &read, write: &write, allow_write: &allow_write }).expect("globs")
    }

    #[test]
    fn a_glob_matches_a_name_at_any_depth_or_a_path_from_the_root() {
        for (glob, denied, allowed) in [
            (
                ".env*",
                &[".env", "a/.env.local", ".ENV", "a/.Env/b", "/.env"][..],
                &["env", "a/x.env", "a"][..],
            ),
            ("/.env", &[".env", ".env/x"], &["a/.env", ".env2"]),
            (
                "keys/*.pem",
                &["keys/a.pem", "KEYS/A.PEM", "keys/a.pem/b"],
                &["a/keys/a.pem", "keys/a/b.pem", "keys"],
            ),
            ("secret/", &["secret", "secret/a", "a/secret/b"], &["secrets", "a/secrets"]),
            ("secret/**", &["secret/a", "secret/a/b"], &["secret", "a/secret/b"]),
            ("a/**/key", &["a/key", "a/b/c/key"], &["key", "b/a/key"]),
            ("*.{key,pem}", &["x.key", "a/b/x.PEM"], &["x.keys"]),
            ("Größe", &["größe", "a/GRÖßE"], &["grosse"]),
            ("*", &["a", "a/b"], &[""]),
        ] {
            let rules = rules(&[glob], &[], &[]);
            for (paths, expected) in [(denied, true), (allowed, false)] {
                for path in paths {
                    for verb in [Verb::Read, Verb::Write] {
                        assert_eq!(rules.deny(verb, path.as_bytes()), expected, "{glob} {path}");
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_executed_later_is_not_writable_unless_it_is_allowed() {
        let preset = DenyRules::new(DenyGlobs::default()).expect("the preset");
        let executed = [
            ".git/hooks/pre-commit",
            "sub/.git/config",
            ".git",
            ".GIT/config",
            ".vscode/tasks.json",
            "a/.idea/x",
            ".devcontainer/devcontainer.json",
            ".envrc",
            "a/.mcp.json",
            ".cursor/mcp.json",
            ".claude/settings.json",
        ];
        for path in executed {
            assert!(preset.deny(Verb::Write, path.as_bytes()), "{path}");
            assert!(!preset.deny(Verb::Read, path.as_bytes()), "{path}");
        }
        for path in [".gitignore", ".github/workflows/ci.yml", "git/x", ".env", "vscode/x"] {
            assert!(!preset.deny(Verb::Write, path.as_bytes()), "{path}");
        }
        let opened = rules(&[], &["/.vscode/launch.json"], &[".vscode/", "/.git/config"]);
        for (path, expected) in [
            (".vscode/tasks.json", false),
            // What the user denies stays denied.
            (".vscode/launch.json", true),
            (".git/config", false),
            (".git/hooks/x", true),
            (".envrc", true),
        ] {
            assert_eq!(opened.deny(Verb::Write, path.as_bytes()), expected, "{path}");
        }
    }

    #[test]
    fn names_that_are_not_utf_8_are_covered_by_the_folders_above_them() {
        let rules = rules(&["Secret", "*.key"], &[], &[]);
        for (path, expected) in [
            (b"secret/\xff".as_slice(), true),
            (b"SECRET/\xff", true),
            (b"\xff.KEY", true),
            (b"\xff/x", false),
        ] {
            assert_eq!(rules.deny(Verb::Read, path), expected, "{}", path.escape_ascii());
        }
    }

    #[test]
    fn a_glob_that_cannot_match_is_refused() {
        for glob in ["", "/", "a/../b", "./", "a//b", "[", "a/{b"] {
            let error = DenyRules::new(DenyGlobs { read: &[glob.to_owned()], ..DenyGlobs::default() });
            assert_eq!(error.expect_err(glob).glob, glob);
        }
    }
}
