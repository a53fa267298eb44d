//! The configuration of a repository: a parser of its files, and the few settings that are used.
//!
//! Nothing in it is ever run or opened: neither the commands that it names nor the files that it includes.

use crate::{hash::HashKind, problem::Problem};

/// The settings that are used.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    /// `core.fileMode`: whether the executable bit counts.
    pub(crate) file_mode: bool,
    /// `core.symlinks`: whether symbolic links are checked out as such, or as files that contain the target.
    pub(crate) symlinks: bool,
    /// `core.trustctime` and `core.checkStat`: whether a changed ctime means that a file may have changed.
    pub(crate) trust_changed: bool,
    /// `core.autocrlf`: whether line endings are converted in files without a `text` attribute.
    pub(crate) auto_crlf: bool,
    /// `core.sparseCheckout`: whether files marked skip-worktree may be absent.
    pub(crate) sparse_checkout: bool,
    pub(crate) is_bare: bool,
    pub(crate) hash: HashKind,
    has_worktree_file: bool,
    /// Where the work tree is, relative to the git directory or absolute.
    pub(crate) work_tree: Option<String>,
    version: u64,
    ref_storage: Option<String>,
    unknown_extension: Option<String>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            file_mode: true,
            symlinks: true,
            trust_changed: true,
            auto_crlf: false,
            sparse_checkout: false,
            is_bare: false,
            hash: HashKind::Sha1,
            has_worktree_file: false,
            work_tree: None,
            version: 0,
            ref_storage: None,
            unknown_extension: None,
        }
    }
}

impl Config {
    /// Adds what a file of the configuration says.
    pub(crate) fn read(&mut self, text: &[u8]) -> Result<(), Problem> {
        for Variable { name, value } in variables(text).map_err(|error| damaged(error.to_string()))? {
            self.set(&name, value.as_deref())?;
        }
        Ok(())
    }

    /// Whether there is a second file, `config.worktree`, for this work tree only.
    pub(crate) fn has_worktree_file(&self) -> bool {
        self.has_worktree_file
    }

    /// Refuses what would lead to wrong answers.
    pub(crate) fn check(&self) -> Result<(), Problem> {
        let unsupported = |what: String| Err(Problem::unsupported(what));
        match (&self.ref_storage, &self.unknown_extension) {
            _ if self.version > 1 => unsupported(format!("the repository format {}", self.version)),
            (Some(storage), _) if storage != "files" => Err(Problem::Unsupported {
                what: format!("the ref storage `{storage}`"),
                remedy: Some("`git refs migrate --ref-format=files` (git 2.48 or later) changes it"),
            }),
            (_, Some(name)) if self.version > 0 => unsupported(format!("the extension `{name}`")),
            _ => Ok(()),
        }
    }

    fn set(&mut self, name: &str, value: Option<&str>) -> Result<(), Problem> {
        let is_on = || is_on(value).ok_or_else(|| damaged(format!("`{name}` is neither true nor false")));
        let text = value.unwrap_or_default();
        match name {
            "core.repositoryformatversion" => {
                self.version = text
                    .parse()
                    .map_err(|_| damaged("`core.repositoryformatversion` is no number".into()))?;
            }
            "core.filemode" => self.file_mode = is_on()?,
            "core.symlinks" => self.symlinks = is_on()?,
            "core.trustctime" => self.trust_changed = is_on()?,
            "core.checkstat" => self.trust_changed &= !text.eq_ignore_ascii_case("minimal"),
            "core.autocrlf" => self.auto_crlf = text.eq_ignore_ascii_case("input") || is_on()?,
            "core.sparsecheckout" => self.sparse_checkout = is_on()?,
            "core.bare" => self.is_bare = is_on()?,
            "core.worktree" => self.work_tree = Some(text.to_owned()),
            "extensions.worktreeconfig" => self.has_worktree_file = is_on()?,
            "extensions.refstorage" => self.ref_storage = Some(text.to_ascii_lowercase()),
            "extensions.objectformat" => {
                self.hash = match text {
                    "sha1" => HashKind::Sha1,
                    "sha256" => HashKind::Sha256,
                    other => return Err(Problem::unsupported(format!("the object format `{other}`"))),
                }
            }
            "extensions.noop"
            | "extensions.noop-v1"
            | "extensions.preciousobjects"
            | "extensions.partialclone"
            | "extensions.relativeworktrees" => {}
            _ => {
                if let Some(extension) = name.strip_prefix("extensions.") {
                    self.unknown_extension = Some(extension.to_owned());
                }
            }
        }
        Ok(())
    }
}

fn damaged(reason: String) -> Problem {
    Problem::damaged("the git configuration", reason)
}

fn is_on(value: Option<&str>) -> Option<bool> {
    let Some(value) = value else { return Some(true) };
    match value.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" => Some(true),
        "false" | "no" | "off" | "" => Some(false),
        number => number.parse::<i64>().ok().map(|number| number != 0),
    }
}

/// One setting: its section, with a subsection if there is one, and its key, with dots between them.
#[derive(Debug, PartialEq)]
struct Variable {
    name: String,
    value: Option<String>,
}

/// A line of the file is not written as git writes configurations.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} cannot be understood")]
struct SyntaxError {
    line: usize,
}

fn variables(text: &[u8]) -> Result<Vec<Variable>, SyntaxError> {
    let text = String::from_utf8_lossy(text);
    let mut reader = ConfigReader { rest: text.trim_start_matches('\u{feff}').chars().peekable(), line: 1 };
    let (mut section, mut variables) = (String::new(), Vec::new());
    loop {
        match reader.rest.peek().copied() {
            None => return Ok(variables),
            Some('#' | ';') => reader.skip_line(),
            Some('[') => section = reader.section()?,
            Some(character) if character.is_whitespace() => drop(reader.next()),
            Some(character) if character.is_ascii_alphabetic() => {
                let key = reader.key();
                variables.push(Variable { name: format!("{section}.{key}"), value: reader.value()? });
            }
            Some(_) => return Err(reader.problem()),
        }
    }
}

struct ConfigReader<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
    line: usize,
}

impl ConfigReader<'_> {
    /// The next character; both kinds of line endings are one.
    fn next(&mut self) -> Option<char> {
        let mut next = self.rest.next();
        if next == Some('\r') && self.rest.peek() == Some(&'\n') {
            next = self.rest.next();
        }
        self.line += usize::from(next == Some('\n'));
        next
    }

    fn problem(&self) -> SyntaxError {
        SyntaxError { line: self.line }
    }

    fn skip_line(&mut self) {
        while !matches!(self.next(), None | Some('\n')) {}
    }

    fn section(&mut self) -> Result<String, SyntaxError> {
        let mut name = String::new();
        self.next();
        loop {
            match self.next() {
                Some(']') => return Ok(name),
                Some(' ' | '\t') => {}
                Some('"') => {
                    name.push('.');
                    loop {
                        match self.next() {
                            Some('"') => break,
                            Some('\\') => name.extend(self.next()),
                            None | Some('\n') => return Err(self.problem()),
                            Some(character) => name.push(character),
                        }
                    }
                }
                Some(character) if character.is_ascii_alphanumeric() || matches!(character, '-' | '.') => {
                    name.push(character.to_ascii_lowercase());
                }
                _ => return Err(self.problem()),
            }
        }
    }

    fn key(&mut self) -> String {
        let mut key = String::new();
        while let Some(next) = self.rest.next_if(|next| next.is_ascii_alphanumeric() || *next == '-') {
            key.push(next.to_ascii_lowercase());
        }
        key
    }

    fn value(&mut self) -> Result<Option<String>, SyntaxError> {
        let is_space = |next: &char| matches!(next, ' ' | '\t' | '\r');
        while self.rest.next_if(is_space).is_some() {}
        match self.next() {
            None | Some('\n') => return Ok(None),
            Some('=') => {}
            Some('#' | ';') => {
                self.skip_line();
                return Ok(None);
            }
            Some(_) => return Err(self.problem()),
        }
        while self.rest.next_if(is_space).is_some() {}
        // Spaces count only once something follows them.
        let (mut value, mut spaces, mut is_quoted) = (String::new(), String::new(), false);
        loop {
            let next = self.next();
            if let Some(space @ (' ' | '\t' | '\r')) = next
                && !is_quoted
            {
                spaces.push(space);
                continue;
            }
            let character = match next {
                None | Some('\n') if is_quoted => return Err(self.problem()),
                None | Some('\n') => return Ok(Some(value)),
                Some('#' | ';') if !is_quoted => {
                    self.skip_line();
                    return Ok(Some(value));
                }
                Some('"') => {
                    is_quoted = !is_quoted;
                    None
                }
                Some('\\') => match self.next() {
                    Some('\n') => None,
                    Some('n') => Some('\n'),
                    Some('t') => Some('\t'),
                    Some('b') => Some('\u{8}'),
                    Some(character @ ('\\' | '"')) => Some(character),
                    _ => return Err(self.problem()),
                },
                other => other,
            };
            value.push_str(&std::mem::take(&mut spaces));
            value.extend(character);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(text: &str) -> Vec<(String, Option<String>)> {
        let variables = variables(text.as_bytes()).expect("understood");
        variables.into_iter().map(|Variable { name, value }| (name, value)).collect()
    }

    #[test]
    fn a_file_is_read_as_git_reads_it() {
        let text = "# c\n[Core] bare = false ; no\n\tFileMode\n\tx = a  b \\\n c # d\r\n[a \"B\\\"c\"]\n q=\"  x;\"y\\t\n";
        let pairs = named(text);
        let expected = [
            ("core.bare", Some("false")),
            ("core.filemode", None),
            ("core.x", Some("a  b  c")),
            ("a.B\"c.q", Some("  x;y\t")),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.map(str::to_owned)));
        assert_eq!(pairs, expected);
    }

    #[test]
    fn what_cannot_be_understood_is_reported_with_its_line() {
        for text in ["[core\n", "\n[core]\n = x", "[core]\nx = \"a\n", "[core]\nx y\n", "[core]\nx = \\q\n"] {
            assert!(variables(text.as_bytes()).is_err(), "{text}");
        }
        assert_eq!(variables(b"\n\n?"), Err(SyntaxError { line: 3 }));
        assert_eq!(SyntaxError { line: 3 }.to_string(), "line 3 cannot be understood");
    }

    #[test]
    fn what_would_lead_to_wrong_answers_is_refused() {
        let check = |text: &str| {
            let mut config = Config::default();
            config.read(text.as_bytes()).and_then(|()| config.check()).map_err(|problem| problem.to_string())
        };
        assert_eq!(check("[core]\nrepositoryformatversion=1\n[extensions]\nobjectformat=sha256"), Ok(()));
        assert!(check("[core]\nrepositoryformatversion=2").is_err());
        assert!(check("[core]\nrepositoryformatversion=1\n[extensions]\nrefstorage=reftable").is_err());
        assert!(check("[core]\nrepositoryformatversion=1\n[extensions]\nnewThing=1").is_err());
    }
}
