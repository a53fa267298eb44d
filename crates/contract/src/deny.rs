//! Deny rules: paths that no caller may read or write, whatever its scopes.
//!
//! A rule is a glob. Without a `/` it matches a name at any depth, with one a path from the root. It also covers
//! everything below what it matches. Upper and lower case are the same, because on some file systems they are the same
//! file. What may not be read may not be written either: an edit would return what it has read.
//!
//! `globset` matches bytes, so its `?` and its classes match a part of a character that is not ASCII. For names with such
//! a character they are widened to `*`: a rule hides too much rather than too little.

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
            read: Globs::new(globs.read.iter().map(String::as_str), Purpose::Deny)?,
            write: Globs::new(globs.write.iter().map(String::as_str), Purpose::Deny)?,
            preset: Globs::new(NOT_WRITABLE, Purpose::Deny)?,
            allow: Globs::new(globs.allow_write.iter().map(String::as_str), Purpose::Allow)?,
        })
    }

    /// Whether a path of the workspace may not be read, or not be written.
    pub fn deny(&self, verb: Verb, path: &[u8]) -> bool {
        if verb == Verb::Read && self.read.set.is_empty() {
            return false;
        }
        let path = Folded::new(path.strip_prefix(b"/").unwrap_or(path));
        // The root has no name that a glob could match.
        if path.text.is_empty() {
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

/// What globs are for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// They match too much rather than too little.
    Deny,
    /// They match only what they say.
    Allow,
}

#[derive(Clone, Debug, Default)]
struct Globs {
    texts: Vec<String>,
    set: GlobSet,
    /// Those with a `?` or a class, widened. They are for names that are not ASCII.
    widened: GlobSet,
}

/// What is written the same matches the same.
impl PartialEq for Globs {
    fn eq(&self, other: &Self) -> bool {
        self.texts == other.texts
    }
}

impl Eq for Globs {}

impl Globs {
    fn new<'a>(texts: impl IntoIterator<Item = &'a str>, purpose: Purpose) -> Result<Self, GlobError> {
        let texts: Vec<String> = texts.into_iter().map(str::to_owned).collect();
        let (mut set, mut widened) = (GlobSetBuilder::new(), GlobSetBuilder::new());
        for text in &texts {
            let wrong = |problem: String| GlobError { glob: text.clone(), problem };
            let pattern = pattern(text).map_err(|problem| wrong(problem.to_owned()))?;
            let add = |set: &mut GlobSetBuilder, pattern: String| {
                for pattern in [format!("{pattern}/**"), pattern] {
                    let glob = GlobBuilder::new(&pattern).literal_separator(true).build();
                    set.add(glob.map_err(|error| wrong(error.kind().to_string()))?);
                }
                Ok(())
            };
            let parts = parts(&pattern);
            add(&mut set, parts.iter().map(|part| part.folded(purpose)).collect())?;
            if purpose == Purpose::Deny && parts.iter().any(|part| matches!(part, Part::One | Part::Class(_)))
            {
                add(&mut widened, widen(&parts))?;
            }
        }
        let build = |set: GlobSetBuilder| {
            set.build().map_err(|error| GlobError { glob: texts.join(", "), problem: error.to_string() })
        };
        let (set, widened) = (build(set)?, build(widened)?);
        Ok(Self { texts, set, widened })
    }

    fn match_any(&self, path: &Folded<'_>) -> bool {
        self.set.is_match(path.text.as_ref()) || (!path.is_ascii && self.widened.is_match(path.text.as_ref()))
    }
}

/// A glob as it is matched against a path without a leading `/`.
fn pattern(text: &str) -> Result<String, &'static str> {
    let name = text.strip_suffix('/').unwrap_or(text);
    let path = name.strip_prefix("./").unwrap_or(name);
    if path.starts_with('!') {
        return Err("`!` at its beginning does not negate; a name that begins with it is written `\\!`");
    }
    let is_anchored = path.contains('/');
    let path = path.trim_start_matches('/');
    if path.is_empty() {
        return Err("it names nothing");
    }
    if path.split('/').any(|name| matches!(name, "" | "." | "..")) {
        return Err("`.`, `..` and empty names are not part of a path");
    }
    Ok(if is_anchored { path.to_owned() } else { format!("**/{path}") })
}

/// A part of a glob.
enum Part<'a> {
    /// `*`
    Any,
    /// `?`
    One,
    /// `[…]`
    Class(&'a str),
    /// A character after a backslash.
    Escaped(char),
    /// Any other character.
    Plain(char),
}

fn parts(mut glob: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    while let Some(first) = glob.chars().next() {
        let rest = &glob[first.len_utf8()..];
        let (part, length) = match (first, rest.chars().next()) {
            ('*', _) => (Part::Any, 1),
            ('?', _) => (Part::One, 1),
            ('\\', Some(escaped)) => (Part::Escaped(escaped), 1 + escaped.len_utf8()),
            ('[', _) => {
                // A `]` that comes first does not close the class.
                let before = rest.len() - rest.strip_prefix(['!', '^']).unwrap_or(rest).len();
                let before = before + usize::from(rest[before..].starts_with(']'));
                let end = rest[before..].find(']').map_or(rest.len(), |end| before + end + 1);
                (Part::Class(&rest[..end]), 1 + end)
            }
            (plain, _) => (Part::Plain(plain), plain.len_utf8()),
        };
        parts.push(part);
        glob = &glob[length..];
    }
    parts
}

impl Part<'_> {
    /// The part as it is matched against a folded path.
    fn folded(&self, purpose: Purpose) -> String {
        match self {
            Self::Any => "*".to_owned(),
            Self::One => "?".to_owned(),
            // A range that says something else in lower case.
            Self::Class(class) if purpose == Purpose::Deny && has_mixed_range(class) => "?".to_owned(),
            Self::Class(class) => format!("[{}", class.to_ascii_lowercase()),
            Self::Escaped(escaped) => fold(*escaped).flat_map(|folded| ['\\', folded]).collect(),
            Self::Plain(plain) => fold(*plain).collect(),
        }
    }
}

/// Whether a class has a range whose ends are not of one kind, such as `A-z`.
fn has_mixed_range(class: &str) -> bool {
    let kind = |end: char| match end {
        'A'..='Z' => 1,
        'a'..='z' => 2,
        _ if end.is_ascii() => 3,
        _ => 4,
    };
    let characters: Vec<char> = class.chars().collect();
    class.ends_with(']')
        && characters
            .windows(3)
            .any(|range| range[1] == '-' && range[2] != ']' && kind(range[0]) != kind(range[2]))
}

/// A glob with `*` in the place of every `?` and every class.
fn widen(parts: &[Part<'_>]) -> String {
    let is_one = |part: &Part<'_>| matches!(part, Part::One | Part::Class(_));
    let is_star = |part: &Part<'_>| is_one(part) || matches!(part, Part::Any);
    // One for several in a row: two would be another thing.
    let runs = parts.chunk_by(|one, next| is_star(one) && is_star(next));
    let widened = runs.map(|run| match run.iter().any(is_one) {
        true => "*".to_owned(),
        false => run.iter().map(|part| part.folded(Purpose::Deny)).collect(),
    });
    widened.collect()
}

/// A character of which upper and lower case are the same, and so are all its lower cases (`σ` and `ς`).
fn fold(character: char) -> impl Iterator<Item = char> {
    // `ẞ` has a lower case but is its own upper case, so it begins with that.
    character.to_lowercase().flat_map(char::to_uppercase).flat_map(char::to_lowercase)
}

/// A path of which upper and lower case are the same. What is not UTF-8 in it matches no letter.
struct Folded<'a> {
    text: Cow<'a, str>,
    /// Whether the path is ASCII as it is written.
    is_ascii: bool,
}

impl<'a> Folded<'a> {
    fn new(path: &'a [u8]) -> Self {
        let text = String::from_utf8_lossy(path);
        let is_ascii = text.is_ascii();
        let text = match text {
            text if is_ascii && !text.bytes().any(|byte| byte.is_ascii_uppercase()) => text,
            text if is_ascii => Cow::Owned(text.to_ascii_lowercase()),
            text => Cow::Owned(text.chars().flat_map(fold).collect()),
        };
        Self { text, is_ascii }
    }
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
    fn a_character_that_is_not_ascii_is_one_character_whatever_its_case() {
        for (glob, denied, allowed) in [
            ("key_[äö].txt", &["key_ä.txt", "KEY_Ö.TXT", "a/key_ö.txt/b"][..], &["key_a.txt", "key.txt"][..]),
            ("key_[!a].txt", &["key_ä.txt", "key_b.txt"], &["key_a.txt"]),
            ("secre?.txt", &["secreé.txt", "secret.txt", "SECRE😀.txt", "secre\u{fffd}.txt"], &["secre.txt"]),
            ("ΟΔΟΣ*", &["ΟΔΟΣΑ.txt", "οδος", "οδοσ.txt", "a/Οδος/b"], &["ΟΔΟ"]),
            ("*ς", &["ΟΔΟΣ", "οδοσ", "οδος"], &["οδος.txt"]),
            ("Straße", &["STRASSE", "straße", "STRAẞE"], &["strase"]),
            ("\u{212a}ey", &["key", "KEY", "\u{212a}ey"], &["ey"]),
            ("a/??/é", &["a/éé/é", "a/xy/É", "a/ééé/é"], &["a/x/y/é", "a/xyz/e"]),
            ("[а-я]x", &["жx", "Жx"], &["bx", "x"]),
            ("[A-z]x", &["_x", "Qx", "qx", "éx"], &["x"]),
            ("[^]é]x", &["ax", "äx"], &["]x"]),
            ("{[é],b?}.key", &["é.key", "bé.key", "bb.key"], &["b.key", "c.key"]),
            ("é\\?*", &["é?", "É?x"], &["éx"]),
            ("a/?**/é", &["a/b/é", "a/é/é"], &["a/b/c/é"]),
        ] {
            let rules = rules(&[glob], &[], &[]);
            for (paths, expected) in [(denied, true), (allowed, false)] {
                for path in paths {
                    assert_eq!(rules.deny(Verb::Read, path.as_bytes()), expected, "{glob} {path}");
                }
            }
        }
        // What allows is not widened.
        let rules = rules(&[], &[], &[".git/?", ".vscode/[!é]"]);
        for (path, expected) in
            [(".git/a", false), (".git/é", true), (".vscode/a", false), (".vscode/ö", true)]
        {
            assert_eq!(rules.deny(Verb::Write, path.as_bytes()), expected, "{path}");
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
        for glob in ["", "/", "a/../b", "./", "a//b", "[", "a/{b", "!a", "./!a/b", "[!", "[A-z"] {
            let error = DenyRules::new(DenyGlobs { read: &[glob.to_owned()], ..DenyGlobs::default() });
            assert_eq!(error.expect_err(glob).glob, glob);
        }
    }

    #[test]
    fn a_name_can_begin_with_an_exclamation_mark() {
        let rules = rules(&["\\!a", "/!b", "c!"], &[], &[]);
        for (path, expected) in
            [("!a", true), ("x/!A", true), ("!b", true), ("c!", true), ("a", false), ("b", false)]
        {
            assert_eq!(rules.deny(Verb::Read, path.as_bytes()), expected, "{path}");
        }
    }
}
