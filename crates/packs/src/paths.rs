//! The paths of entries. A path is accepted only if it means the same, and means one file, on every system: where
//! backslashes separate names, where case does not count, and where accents are stored in another form.

use std::collections::HashMap;

use icu_normalizer::DecomposingNormalizerBorrowed;

use crate::{ArchiveError, Limits};

/// Whether an entry is a file or a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Folder,
}

/// The paths of an archive so far.
pub(crate) struct Paths<'a> {
    limits: &'a Limits,
    /// Each path and the folders that lead to it, by the form in which similar paths are the same.
    seen: HashMap<String, (String, Kind)>,
    entries: usize,
}

impl<'a> Paths<'a> {
    pub(crate) fn new(limits: &'a Limits) -> Self {
        Self { limits, seen: HashMap::new(), entries: 0 }
    }

    /// Takes the next path, and returns it without `./` at its start and `/` at its end. None for the folder that the
    /// archive itself stands for.
    pub(crate) fn add(&mut self, name: &[u8], kind: Kind) -> Result<Option<String>, ArchiveError> {
        self.count()?;
        let shown = String::from_utf8_lossy(&name[..name.len().min(self.limits.path_bytes)]).into_owned();
        let refuse = |problem: &str| Err(ArchiveError::unsafe_entry(&shown, problem));
        let Ok(path) = std::str::from_utf8(name) else { return refuse("has a name that is not UTF-8") };
        let path = match kind {
            Kind::Folder if path == "." || path == "./" => return Ok(None),
            Kind::Folder => path.strip_suffix('/').unwrap_or(path),
            Kind::File => path,
        };
        // `tar -czf pack.tar.gz .` writes every name like this.
        let path = path.strip_prefix("./").unwrap_or(path);
        if path.starts_with('/') {
            return refuse("has an absolute name");
        }
        if path.len() > self.limits.path_bytes {
            return refuse("has a name that is too long");
        }
        let names: Vec<&str> = path.split('/').collect();
        if names.len() > self.limits.depth {
            return refuse("lies in too many folders");
        }
        for name in &names {
            if let Some(problem) = problem_of(name, self.limits) {
                return refuse(problem);
            }
        }
        self.register(path, &names, kind)?;
        Ok(Some(path.to_owned()))
    }

    /// Takes an entry that has no path, such as the comment of a `.tar.gz`.
    pub(crate) fn count(&mut self) -> Result<(), ArchiveError> {
        self.entries += 1;
        match self.entries > self.limits.entries {
            true => Err(ArchiveError::TooLarge(format!("it has more than {} entries", self.limits.entries))),
            false => Ok(()),
        }
    }

    /// Refuses a path that another one is, or is similar to. Folders count, too: `a/x` and `A/y` need one or two folders,
    /// by the system.
    fn register(&mut self, path: &str, names: &[&str], kind: Kind) -> Result<(), ArchiveError> {
        let mut length = 0;
        for (index, name) in names.iter().enumerate() {
            length += name.len() + usize::from(index > 0);
            let (prefix, is_last) = (&path[..length], index + 1 == names.len());
            let kind = if is_last { kind } else { Kind::Folder };
            let Some((other, other_kind)) = self.seen.get(&folded(prefix)) else {
                self.seen.insert(folded(prefix), (prefix.to_owned(), kind));
                continue;
            };
            let problem = match (other == prefix, kind, *other_kind) {
                (true, Kind::Folder, Kind::Folder) => continue,
                (true, Kind::File, Kind::File) => "is in it twice".to_owned(),
                (true, _, _) => "is a file and a folder".to_owned(),
                (false, _, _) => format!("differs from `{other}` only in case or in the form of its letters"),
            };
            return Err(ArchiveError::unsafe_entry(prefix, problem));
        }
        Ok(())
    }
}

/// What is wrong with one name of a path.
fn problem_of(name: &str, limits: &Limits) -> Option<&'static str> {
    Some(match name {
        "" => "has an empty name in its path",
        "." | ".." => "leads elsewhere: its path has `.` or `..`",
        _ if name.len() > limits.name_bytes => "has a name that is too long",
        _ if name.contains('\\') => "has a backslash in its name, which separates folders on Windows",
        _ if name.contains(':') => "has a colon in its name, which separates drives and streams on Windows",
        _ if name.contains(char::is_control) => "has a control character in its name",
        _ if name.ends_with(['.', ' ']) => "has a name that ends in a dot or a space, which Windows removes",
        _ => return None,
    })
}

/// The form in which paths are the same that differ only in case or in the form of their letters.
fn folded(path: &str) -> String {
    let normalizer = const { DecomposingNormalizerBorrowed::new_nfkd() };
    let normalized = normalizer.normalize(path);
    // First to upper case: `ß` and `SS`, `ſ` and `s` have a capital letter in common, but no small one.
    let lower = normalized.chars().flat_map(char::to_uppercase).flat_map(char::to_lowercase);
    normalizer.normalize(&lower.collect::<String>()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add_all(names: &[&str]) -> Result<Vec<String>, String> {
        let mut paths = Paths::new(&Limits::PACK);
        let kind = |name: &str| if name.ends_with('/') { Kind::Folder } else { Kind::File };
        let added = names.iter().map(|name| paths.add(name.as_bytes(), kind(name)));
        let added: Result<Vec<_>, _> = added.collect();
        Ok(added.map_err(|error| error.to_string())?.into_iter().flatten().collect())
    }

    #[test]
    fn plain_paths_are_taken_as_they_are() {
        let names = ["./", "./a/", "./a/b.json", "a/c.json", "a/", "Grüße/λ.json", ".hidden", "...a"];
        let expected = ["a", "a/b.json", "a/c.json", "a", "Grüße/λ.json", ".hidden", "...a"];
        assert_eq!(add_all(&names), Ok(expected.map(str::to_owned).to_vec()));
    }

    #[test]
    fn a_path_that_leads_elsewhere_or_is_read_otherwise_is_refused() {
        for (name, problem) in [
            ("/etc/passwd", "absolute"),
            (".//etc/passwd", "absolute"),
            ("//host/share", "absolute"),
            ("../a", "`..`"),
            ("a/../b", "`..`"),
            ("a/..", "`..`"),
            ("..", "`..`"),
            ("././a", "`.`"),
            ("a/./b", "`.`"),
            ("a//b", "empty"),
            ("", "empty"),
            ("..\\a", "backslash"),
            ("C:/a", "colon"),
            ("c:a", "colon"),
            ("a.json::$DATA", "colon"),
            ("a\nb", "control"),
            ("a\0b", "control"),
            ("a\u{85}b", "control"),
            ("...", "dot"),
            (".. /a", "space"),
            ("a.json.", "dot"),
        ] {
            let refused = add_all(&[name]).expect_err(name);
            assert!(refused.contains(problem), "{name}: {refused}");
        }
        let long = "x".repeat(256);
        assert!(add_all(&[&long]).expect_err("long").contains("too long"));
        assert!(add_all(&[&["x".repeat(200).as_str(); 6].join("/")]).expect_err("long").contains("too long"));
        assert!(add_all(&[&["x"; 17].join("/")]).expect_err("deep").contains("folders"));
        assert!(add_all(&[&["x"; 16].join("/")]).is_ok());
        assert!(Paths::new(&Limits::PACK).add(b"a\xff", Kind::File).is_err());
    }

    #[test]
    fn paths_that_are_one_file_somewhere_are_refused() {
        for (names, problem) in [
            (["a", "a"], "twice"),
            (["a", "./a"], "twice"),
            (["a", "A"], "differs from `a`"),
            (["a/x", "A/y"], "differs from `a`"),
            (["b/a.json", "b/A.json"], "differs from `b/a.json`"),
            (["é", "e\u{301}"], "differs"),
            (["É", "e\u{301}"], "differs"),
            (["ﬁ", "FI"], "differs"),
            (["straße", "STRASSE"], "differs"),
            (["\u{212a}", "k"], "differs"),
            (["σ", "ς"], "differs"),
            (["a", "a/b"], "a file and a folder"),
            (["a/b", "a"], "a file and a folder"),
            (["a/", "a"], "a file and a folder"),
        ] {
            let refused = add_all(&names).expect_err(names[1]);
            assert!(refused.contains(problem), "{names:?}: {refused}");
        }
    }
}
