//! Paths in the workspace: POSIX, normalized, and safe from path traversal above the root.

use std::fmt;

/// A normalized path in the root, without `.`, `..` or double slashes. The root itself is the empty path.
///
/// ```
/// use pintle_contract::WorkspacePath;
///
/// let path = WorkspacePath::parse("/a//b/./../c").unwrap();
/// assert_eq!(path.as_str(), "a/c");
/// assert_eq!(WorkspacePath::parse("a/../..").unwrap_err().to_string(), "it leaves the root");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkspacePath(String);

/// Why a text is not a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathProblem {
    /// It goes up from the root.
    Escapes,
    /// It contains a NUL byte.
    Nul,
    /// It contains a backslash.
    Backslash,
    /// It begins like `C:`.
    Drive,
    /// One of its names has more than 255 bytes, or all of it more than 4,096.
    TooLong,
}

impl fmt::Display for PathProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Escapes => "it leaves the root",
            Self::Nul => "it contains a NUL byte",
            Self::Backslash => "it contains a backslash; separate folders by `/`",
            Self::Drive => "it begins with a drive; paths begin at the root, `/`",
            Self::TooLong => "it is too long; a name has at most 255 bytes, a path 4096",
        })
    }
}

impl std::error::Error for PathProblem {}

const LONGEST_NAME: usize = 255;
const LONGEST_PATH: usize = 4096;

impl WorkspacePath {
    /// The root itself.
    pub fn root() -> Self {
        Self::default()
    }

    /// Parses and normalizes a caller's path. A leading slash means the root.
    pub fn parse(text: &str) -> Result<Self, PathProblem> {
        if text.contains('\0') {
            return Err(PathProblem::Nul);
        }
        if text.contains('\\') {
            return Err(PathProblem::Backslash);
        }
        let mut names: Vec<&str> = Vec::new();
        for name in text.split('/') {
            match name {
                "" | "." => {}
                ".." => {
                    names.pop().ok_or(PathProblem::Escapes)?;
                }
                name if name.len() > LONGEST_NAME => return Err(PathProblem::TooLong),
                name => names.push(name),
            }
        }
        if let Some([letter, b':', ..]) = names.first().map(|name| name.as_bytes())
            && letter.is_ascii_alphabetic()
        {
            return Err(PathProblem::Drive);
        }
        let path = names.join("/");
        if path.len() > LONGEST_PATH { Err(PathProblem::TooLong) } else { Ok(Self(path)) }
    }

    /// The path without a leading slash; empty for the root.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this is the root.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The last name and the folder that it is in; none for the root.
    pub fn split_last(&self) -> Option<(Self, &str)> {
        if self.is_root() {
            return None;
        }
        let (folder, name) = self.0.rsplit_once('/').unwrap_or(("", &self.0));
        Some((Self(folder.to_owned()), name))
    }

    /// The path of a name in this folder; none if it is not one name.
    pub fn join(&self, name: &str) -> Option<Self> {
        let joined = if self.is_root() { name.to_owned() } else { format!("{}/{name}", self.0) };
        Self::parse(&joined).ok().filter(|path| path.0 == joined && !name.is_empty() && !name.contains('/'))
    }

    /// Whether this is `folder` or inside it, at any depth.
    pub fn is_within(&self, folder: &Self) -> bool {
        match self.0.strip_prefix(&folder.0) {
            Some(rest) => folder.is_root() || rest.is_empty() || rest.starts_with('/'),
            None => false,
        }
    }

    /// Whether this is `folder` or directly in it.
    pub fn is_in(&self, folder: &Self) -> bool {
        self == folder || self.split_last().is_some_and(|(parent, _)| parent == *folder)
    }
}

/// Writes the path with a leading slash.
impl fmt::Display for WorkspacePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> WorkspacePath {
        WorkspacePath::parse(text).expect("a path")
    }

    #[test]
    fn paths_are_normalized() {
        for (text, expected) in [
            ("", ""),
            ("/", ""),
            ("///", ""),
            (".", ""),
            ("a", "a"),
            ("/a", "a"),
            ("a/", "a"),
            ("a//b", "a/b"),
            ("./a/./b/.", "a/b"),
            ("a/../b", "b"),
            ("a/b/../../c", "c"),
            ("a/..", ""),
            ("...", "..."),
            ("..a/b..", "..a/b.."),
            (" a ", " a "),
            ("a\nb", "a\nb"),
            ("ä/é", "ä/é"),
            ("ab:c", "ab:c"),
            ("1:", "1:"),
            ("x/c:", "x/c:"),
        ] {
            assert_eq!(path(text).as_str(), expected, "{text:?}");
        }
    }

    #[test]
    fn what_is_no_path_is_refused_with_its_reason() {
        let long = "x".repeat(256);
        let deep = "a/".repeat(3000);
        for (text, problem) in [
            ("..", PathProblem::Escapes),
            ("/..", PathProblem::Escapes),
            ("a/../..", PathProblem::Escapes),
            ("a/../../a", PathProblem::Escapes),
            ("./..", PathProblem::Escapes),
            ("a\0b", PathProblem::Nul),
            ("a\\b", PathProblem::Backslash),
            ("..\\..", PathProblem::Backslash),
            ("C:", PathProblem::Drive),
            ("a:b", PathProblem::Drive),
            ("c:/a", PathProblem::Drive),
            ("/C:/a", PathProblem::Drive),
            (long.as_str(), PathProblem::TooLong),
            (deep.as_str(), PathProblem::TooLong),
        ] {
            assert_eq!(WorkspacePath::parse(text), Err(problem), "{text:?}");
        }
    }

    #[test]
    fn a_path_knows_what_it_lies_in() {
        assert!(path("a/b").is_within(&path("a")) && path("a").is_within(&path("a")));
        assert!(path("a").is_within(&path("/")) && path("/").is_within(&path("/")));
        assert!(!path("ab").is_within(&path("a")) && !path("a").is_within(&path("a/b")));
        assert!(path("a/b").is_in(&path("a")) && path("a").is_in(&path("a")) && path("a").is_in(&path("")));
        assert!(!path("a/b/c").is_in(&path("a")) && !path("a/b").is_in(&path("")));
        assert_eq!(path("a/b").split_last(), Some((path("a"), "b")));
        assert_eq!(path("").split_last(), None);
        assert_eq!(path("a/b").to_string(), "/a/b");
    }
}
