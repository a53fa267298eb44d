//! Which files are ignored: `.gitignore` in the folders, and `info/exclude` of the repository.

use crate::{
    directory::{name_of, read_all},
    pattern::Pattern,
    problem::Problem,
    repository::Repository,
};

/// The largest file of patterns that is read.
const LIMIT: u64 = 4 << 20;
/// The name of the files that hold patterns.
pub(crate) const NAME: &[u8] = b".gitignore";

/// The patterns that apply in a folder, and in those around it.
pub(crate) struct Ignored {
    /// `info/exclude` first, the `.gitignore` of the innermost folder last.
    files: Vec<RuleFile>,
}

/// The patterns of one file.
struct RuleFile {
    /// How many bytes of a path are the folder that the patterns were written in.
    depth: usize,
    patterns: Vec<Pattern>,
}

impl Ignored {
    pub(crate) fn new(repository: &Repository) -> Result<Self, Problem> {
        let text = repository.common_dir().read(b"info/exclude", LIMIT)?.unwrap_or_default();
        Ok(Self { files: vec![RuleFile { depth: 0, patterns: patterns(&text) }] })
    }

    /// Adds the patterns of a folder, whose `path` is empty or ends with a slash. Returns whether it has any.
    pub(crate) fn enter(&mut self, repository: &Repository, path: &[u8]) -> Result<bool, Problem> {
        let file_path = [path, NAME].concat();
        let file = match repository.work_tree().open_file(&file_path) {
            Ok(file) => file,
            // As in git, a link and a file that cannot be read count as no file.
            Err(_) => return Ok(false),
        };
        let patterns = patterns(&read_all(&file, &name_of(&file_path), LIMIT)?);
        self.files.push(RuleFile { depth: path.len(), patterns });
        Ok(true)
    }

    /// Removes the patterns of the innermost folder.
    pub(crate) fn leave(&mut self) {
        self.files.pop();
    }

    /// Whether a path is ignored. That a folder around it may be ignored is not looked at.
    pub(crate) fn contains(&self, path: &[u8], is_folder: bool) -> bool {
        for RuleFile { depth, patterns } in self.files.iter().rev() {
            let own = path.get(*depth..).unwrap_or_default();
            if let Some(last) = patterns.iter().rev().find(|pattern| pattern.matches(own, is_folder)) {
                return !last.is_negated;
            }
        }
        false
    }
}

fn patterns(text: &[u8]) -> Vec<Pattern> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let lines = text.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let lines = lines.filter(|line| !line.starts_with(b"#")).map(trim_end).filter(|line| !line.is_empty());
    lines.map(Pattern::new).collect()
}

/// Cuts off the spaces at the end, up to one that is escaped.
fn trim_end(line: &[u8]) -> &[u8] {
    let (mut end, mut at) = (0, 0);
    while let Some(byte) = line.get(at) {
        at += if *byte == b'\\' { 2 } else { 1 };
        if *byte != b' ' {
            end = at.min(line.len());
        }
    }
    &line[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_git_reads_them() {
        let text = b"\xef\xbb\xbf# no\n\na \\ \nb  \r\n\\#c\n!d\n   \ne\\\\ ";
        let patterns = patterns(text);
        let matched = |path: &[u8]| patterns.iter().any(|pattern| pattern.matches(path, false));
        assert_eq!(patterns.len(), 5);
        for path in [&b"a  "[..], b"b", b"#c", b"d", b"e\\"] {
            assert!(matched(path), "{}", name_of(path));
        }
        assert!(!matched(b"a"));
    }
}
