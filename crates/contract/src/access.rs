//! Who may do what.
//!
//! A **scope** is one permission: `read:/notes/`, `write:/src/*`, `assets:publish`. An **access** is what a call is about
//! to do. A caller's **scopes** cover an access or they do not; what no scope covers is denied.

use std::{borrow::Cow, fmt, sync::Arc};

use thiserror::Error;

use crate::{PathProblem, WorkspacePath};

/// What is done to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Looking at it.
    Read,
    /// Changing it; includes looking.
    Write,
}

impl Verb {
    /// Whether who may do this may do the other.
    fn includes(self, other: Self) -> bool {
        self == Self::Write || other == Self::Read
    }
}

/// What a call is about to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// Something to a path.
    Path(Verb, WorkspacePath),
    /// Something to a folder and to everything below it.
    Tree(Verb, WorkspacePath),
    /// Working in a folder. It needs no scope, but the folder must not be denied.
    Enter(WorkspacePath),
    /// Something that has a scope of its own, such as `assets:publish`.
    Named(Cow<'static, str>),
}

/// The scope that would cover it. To enter a folder, none is needed.
impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(Verb::Read, path) | Self::Tree(Verb::Read, path) | Self::Enter(path) => {
                write!(f, "read:{path}")
            }
            Self::Path(Verb::Write, path) | Self::Tree(Verb::Write, path) => write!(f, "write:{path}"),
            Self::Named(name) => f.write_str(name),
        }
    }
}

/// What a caller may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scopes(Granted);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Granted {
    Everything,
    These(Arc<[Scope]>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Scope {
    /// A folder with everything below it, or with its direct children alone.
    Folder {
        verb: Verb,
        folder: WorkspacePath,
        is_deep: bool,
    },
    Named(String),
}

/// A text that is not a scope.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "`{text}` is not a scope: {problem}; write `read:/folder/`, `write:/folder/*`, `assets:read` or `run:NAME`"
)]
pub struct ScopeError {
    /// The text.
    pub text: String,
    /// What is wrong with it.
    #[source]
    pub problem: ScopeProblem,
}

/// What is wrong with a text that should be a scope.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ScopeProblem {
    /// Kind and rest are not separated.
    #[error("it has no `:`")]
    NoColon,
    /// The kind is none of those that there are.
    #[error("its kind is unknown")]
    UnknownKind,
    /// There is a kind and nothing else.
    #[error("nothing follows the `:`")]
    NothingFollows,
    /// `run:` with something that no command can be called.
    #[error("`run:` takes the name of one command")]
    NotACommandName,
    /// The path is relative.
    #[error("its path does not begin with `/`")]
    RelativePath,
    /// A `*` that is not the whole last name.
    #[error("`*` may only stand for the last name")]
    MisplacedStar,
    /// The path has `.` or `..` in it.
    #[error("its path is not plain")]
    NotPlain,
    /// The path is wrong in another way.
    #[error(transparent)]
    Path(#[from] PathProblem),
}

impl Scopes {
    /// The local user's: whatever the server can do.
    pub fn everything() -> Self {
        Self(Granted::Everything)
    }

    /// Nothing.
    pub fn none() -> Self {
        Self(Granted::These(Arc::default()))
    }

    /// Reads scopes as they are written. `Err` names the one that makes no sense.
    pub fn parse<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Self, ScopeError> {
        let parse =
            |text: &str| Scope::parse(text).map_err(|problem| ScopeError { text: text.to_owned(), problem });
        texts.into_iter().map(parse).collect::<Result<_, _>>().map(Granted::These).map(Self)
    }

    /// Whether an access is covered.
    pub fn cover(&self, access: &Access) -> bool {
        match (&self.0, access) {
            (Granted::Everything, _) | (_, Access::Enter(_)) => true,
            (Granted::These(scopes), _) => scopes.iter().any(|scope| scope.covers(access)),
        }
    }

    /// Whether something may be done to some path.
    pub fn cover_some_path(&self, wanted: Verb) -> bool {
        match &self.0 {
            Granted::Everything => true,
            Granted::These(scopes) => scopes
                .iter()
                .any(|scope| matches!(scope, Scope::Folder { verb, .. } if verb.includes(wanted))),
        }
    }

    /// Whether a path may be looked at.
    pub fn may_read(&self, path: &WorkspacePath) -> bool {
        match &self.0 {
            Granted::Everything => true,
            Granted::These(_) => self.cover(&Access::Path(Verb::Read, path.clone())),
        }
    }

    /// Whether a path may be looked at that a file system has: its names can be any bytes.
    pub fn may_read_bytes(&self, path: &[u8]) -> bool {
        self.are_everything() || self.may_read(&nameable(path))
    }

    /// The names in a folder on the way to what may be looked at. They say no more than the scopes themselves.
    pub fn ways_from(&self, folder: &WorkspacePath) -> Vec<&str> {
        let Granted::These(scopes) = &self.0 else { return Vec::new() };
        let folders = scopes.iter().filter_map(|scope| match scope {
            Scope::Folder { folder, .. } => Some(folder),
            Scope::Named(_) => None,
        });
        let below = folders.filter(|scope| scope.is_within(folder) && *scope != folder);
        let names = below.filter_map(|scope| {
            scope.as_str().strip_prefix(folder.as_str())?.trim_start_matches('/').split('/').next()
        });
        names.collect()
    }

    /// The scopes that are no folder's, as they are written.
    pub fn named(&self) -> impl Iterator<Item = &str> {
        let scopes: &[Scope] = match &self.0 {
            Granted::Everything => &[],
            Granted::These(scopes) => scopes,
        };
        scopes.iter().filter_map(|scope| match scope {
            Scope::Named(name) => Some(name.as_str()),
            Scope::Folder { .. } => None,
        })
    }

    /// Whether nothing is denied.
    pub fn are_everything(&self) -> bool {
        self.0 == Granted::Everything
    }
}

/// A path as scopes can name it. A name that no scope can have, such as one that is not UTF-8, is replaced by another
/// that none has, so that a scope on a folder above it still applies.
fn nameable(path: &[u8]) -> WorkspacePath {
    const NO_NAME: &str = "\u{fffd} no name \u{fffd}";
    let parsed = |path: &[u8]| str::from_utf8(path).ok().and_then(|path| WorkspacePath::parse(path).ok());
    parsed(path).unwrap_or_else(|| {
        let names = path.split(|byte| *byte == b'/').map(|name| match parsed(name) {
            Some(_) => name,
            None => NO_NAME.as_bytes(),
        });
        // A path that still cannot be named is too long to be in a folder that a scope names.
        parsed(&names.collect::<Vec<_>>().join(&b'/')).unwrap_or_else(WorkspacePath::root)
    })
}

impl Scope {
    fn parse(text: &str) -> Result<Self, ScopeProblem> {
        let (kind, rest) = text.split_once(':').ok_or(ScopeProblem::NoColon)?;
        let verb = match kind {
            "read" => Verb::Read,
            "write" => Verb::Write,
            "run" if rest.contains(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '-' | '.')) => {
                return Err(ScopeProblem::NotACommandName);
            }
            "assets" | "run" | "metrics" if !rest.is_empty() => return Ok(Self::Named(text.to_owned())),
            "assets" | "run" | "metrics" => return Err(ScopeProblem::NothingFollows),
            _ => return Err(ScopeProblem::UnknownKind),
        };
        if !rest.starts_with('/') {
            return Err(ScopeProblem::RelativePath);
        }
        let (folder, is_deep) = match rest.strip_suffix("/*") {
            Some(folder) => (folder, false),
            None => (rest, true),
        };
        if folder.contains('*') {
            return Err(ScopeProblem::MisplacedStar);
        }
        if folder.split('/').any(|name| matches!(name, "." | "..")) {
            return Err(ScopeProblem::NotPlain);
        }
        Ok(Self::Folder { verb, folder: WorkspacePath::parse(folder)?, is_deep })
    }

    fn covers(&self, access: &Access) -> bool {
        match (self, access) {
            (Self::Named(scope), Access::Named(name)) => scope == name,
            (Self::Folder { verb, folder, is_deep }, Access::Path(wanted, path)) => {
                verb.includes(*wanted) && if *is_deep { path.is_within(folder) } else { path.is_in(folder) }
            }
            (Self::Folder { verb, folder, is_deep }, Access::Tree(wanted, path)) => {
                verb.includes(*wanted) && *is_deep && path.is_within(folder)
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(verb: Verb, text: &str) -> Access {
        Access::Path(verb, WorkspacePath::parse(text).expect("a path"))
    }

    #[test]
    fn a_scope_covers_its_folder_and_what_the_verb_implies() {
        for (scope, verb, text, expected) in [
            ("read:/", Verb::Read, "/", true),
            ("read:/", Verb::Read, "/a/b", true),
            ("read:/", Verb::Write, "/a", false),
            ("write:/", Verb::Read, "/a", true),
            ("write:/", Verb::Write, "/", true),
            ("read:/a/", Verb::Read, "/a", true),
            ("read:/a", Verb::Read, "/a/b/c", true),
            ("read:/a/", Verb::Read, "/ab", false),
            ("read:/a/", Verb::Read, "/", false),
            ("read:/a/", Verb::Read, "/A", false),
            ("write:/a/*", Verb::Write, "/a", true),
            ("write:/a/*", Verb::Write, "/a/b", true),
            ("write:/a/*", Verb::Write, "/a/b/c", false),
            ("write:/*", Verb::Write, "/b", true),
            ("write:/*", Verb::Write, "/b/c", false),
        ] {
            let scopes = Scopes::parse([scope]).expect(scope);
            assert_eq!(scopes.cover(&path(verb, text)), expected, "{scope} {text}");
        }
    }

    #[test]
    fn what_no_scope_covers_is_denied_and_the_local_user_may_do_everything() {
        let none = Scopes::parse([]).expect("no scopes");
        assert!(!none.cover(&path(Verb::Read, "/")) && !none.cover(&Access::Named("assets:read".into())));
        let some = Scopes::parse(["read:/a", "assets:publish"]).expect("scopes");
        assert!(
            some.cover(&Access::Named("assets:publish".into()))
                && !some.cover(&Access::Named("assets:read".into()))
        );
        assert!(Scopes::everything().cover(&Access::Named("run:anything".into())));
    }

    #[test]
    fn a_scope_that_makes_no_sense_is_refused() {
        for (text, expected) in [
            ("run:*", ScopeProblem::NotACommandName),
            ("run:a b", ScopeProblem::NotACommandName),
            ("run:", ScopeProblem::NothingFollows),
            ("assets:", ScopeProblem::NothingFollows),
            ("", ScopeProblem::NoColon),
            ("read", ScopeProblem::NoColon),
            ("read:", ScopeProblem::RelativePath),
            ("read:a", ScopeProblem::RelativePath),
            ("look:/a", ScopeProblem::UnknownKind),
            ("READ:/", ScopeProblem::UnknownKind),
            ("read:/a/*/b", ScopeProblem::MisplacedStar),
            ("read:/../a", ScopeProblem::NotPlain),
            ("read:/a/./b", ScopeProblem::NotPlain),
        ] {
            let error = Scopes::parse(["read:/", text]).expect_err(text);
            assert_eq!((error.text.as_str(), &error.problem), (text, &expected));
            assert_eq!(
                error.to_string(),
                format!(
                    "`{text}` is not a scope: {expected}; write `read:/folder/`, `write:/folder/*`, \
                     `assets:read` or `run:NAME`"
                )
            );
        }
        let error = Scopes::parse(["read:/a\0b"]).expect_err("a name with a NUL");
        assert!(matches!(error.problem, ScopeProblem::Path(_)), "{error}");
    }

    #[test]
    fn an_access_names_the_scope_that_it_needs() {
        assert_eq!(path(Verb::Write, "a/b").to_string(), "write:/a/b");
        assert_eq!(path(Verb::Read, "").to_string(), "read:/");
    }

    #[test]
    fn a_name_that_no_scope_can_have_belongs_to_the_folders_above_it() {
        let scopes = Scopes::parse(["read:/a", "read:/b/*"]).expect("scopes");
        let long = [b"a/".as_slice(), &b"x".repeat(300)].concat();
        for (path, expected) in [
            (b"a/b.txt".as_slice(), true),
            (b"c.txt", false),
            (b"a/\xff", true),
            (b"a/\xff/b.txt", true),
            (b"b/\xff", true),
            (b"b/\xff/b.txt", false),
            (b"\xff", false),
            (b"\xff/a", false),
            (b"a/back\\slash", true),
            (&long, true),
        ] {
            assert_eq!(scopes.may_read_bytes(path), expected, "{}", path.escape_ascii());
            assert!(Scopes::everything().may_read_bytes(path));
        }
        // A path with more bytes than any path may have is in no folder.
        assert!(!scopes.may_read_bytes(&b"a/".repeat(3000)));
    }
}
