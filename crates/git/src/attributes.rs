//! What `.gitattributes` says of a file, as far as it decides how its content is compared.

#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use pintle_root::open_file_in;

use crate::{
    directory::{name_of, read_all},
    pattern::Pattern,
    problem::Problem,
    repository::Repository,
};

/// The largest file of attributes that is read.
const LIMIT: u64 = 4 << 20;
/// The attributes of at most so many folders are cached.
const MOST_FOLDERS: usize = 4096;
const NAME: &[u8] = b".gitattributes";

/// What git does with line endings before a file becomes a blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Conversion {
    /// Nothing.
    None,
    /// It makes line feeds of them.
    Always,
    /// The same, if the file looks like text.
    Text,
}

/// The attributes of a work tree. Files are read when a path needs them.
pub(crate) struct Attributes<'a> {
    repository: &'a Repository,
    folders: HashMap<Vec<u8>, Arc<Rules>>,
    /// Those of `info/attributes`, which take precedence over all others.
    own: Option<Arc<Rules>>,
}

#[derive(Default)]
struct Rules {
    rules: Vec<(Pattern, Vec<Assignment>)>,
    macros: HashMap<Vec<u8>, Vec<Assignment>>,
}

struct Assignment {
    name: Vec<u8>,
    value: Value,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Value {
    Set,
    Unset,
    /// As if no rule had set it.
    Unspecified,
    Text(Vec<u8>),
}

impl<'a> Attributes<'a> {
    pub(crate) fn new(repository: &'a Repository) -> Self {
        Self { repository, folders: HashMap::new(), own: None }
    }

    /// How the line endings of a file are converted.
    pub(crate) fn conversion(&mut self, path: &[u8]) -> Result<Conversion, Problem> {
        let rule_files = self.rule_files_of(path)?;
        let mut found = AttributeFiles::default();
        for (depth, rules) in &rule_files {
            let own = path.get(*depth..).unwrap_or_default();
            for (_, assignments) in
                rules.rules.iter().rev().filter(|(pattern, _)| pattern.matches(own, false))
            {
                found.take(assignments, &rule_files);
            }
        }
        Ok(found.conversion(self.repository.config.auto_crlf))
    }

    /// The rules that apply to a path, by descending precedence, each with the number of bytes of the path that are the
    /// folder of its file.
    fn rule_files_of(&mut self, path: &[u8]) -> Result<Vec<(usize, Arc<Rules>)>, Problem> {
        let own = match &self.own {
            Some(own) => Arc::clone(own),
            None => {
                let text = self.repository.common_dir().read(b"info/attributes", LIMIT)?.unwrap_or_default();
                Arc::clone(self.own.insert(Arc::new(parse(&text))))
            }
        };
        let mut rule_files = vec![(0, own)];
        let slashes = memchr::memrchr_iter(b'/', path).map(|slash| slash + 1);
        for depth in slashes.chain([0]) {
            rule_files.push((depth, self.folder(&path[..depth])?));
        }
        Ok(rule_files)
    }

    fn folder(&mut self, path: &[u8]) -> Result<Arc<Rules>, Problem> {
        if let Some(rules) = self.folders.get(path) {
            return Ok(Arc::clone(rules));
        }
        let opened = self.repository.work_tree().open_folder(path.strip_suffix(b"/").unwrap_or(path));
        // As in git, a link and a file that cannot be read count as no file.
        let rules = match opened.and_then(|folder| open_file_in(folder, NAME)) {
            Ok(file) => parse(&read_all(&file, &name_of(&[path, NAME].concat()), LIMIT)?),
            Err(_) => Rules::default(),
        };
        if self.folders.len() == MOST_FOLDERS {
            self.folders.clear();
        }
        let rules = Arc::new(rules);
        self.folders.insert(path.to_vec(), Arc::clone(&rules));
        Ok(rules)
    }
}

/// What was found of the attributes that count; what was found first is stronger.
#[derive(Default)]
struct AttributeFiles {
    text: Option<Value>,
    crlf: Option<Value>,
    eol: Option<Value>,
    /// The macros that were expanded. Once more they say nothing new, and macros that name macros many times over would
    /// take exponentially long.
    expanded: HashSet<Vec<u8>>,
}

impl AttributeFiles {
    fn take(&mut self, assignments: &[Assignment], rule_files: &[(usize, Arc<Rules>)]) {
        // Macros may name macros, as deep as they like.
        let mut open = vec![assignments.iter().rev()];
        while let Some(next) = open.last_mut() {
            let Some(Assignment { name, value }) = next.next() else {
                open.pop();
                continue;
            };
            match &name[..] {
                b"text" => drop(self.text.get_or_insert_with(|| value.clone())),
                b"crlf" => drop(self.crlf.get_or_insert_with(|| value.clone())),
                b"eol" => drop(self.eol.get_or_insert_with(|| value.clone())),
                name if *value == Value::Set && self.expanded.insert(name.to_vec()) => {
                    let own = rule_files.iter().find_map(|(_, rules)| rules.macros.get(name));
                    match own {
                        Some(assignments) => open.push(assignments.iter().rev()),
                        None if name == b"binary" => drop(self.text.get_or_insert(Value::Unset)),
                        None => {}
                    }
                }
                _ => {}
            }
        }
    }

    fn conversion(&self, is_automatic: bool) -> Conversion {
        let said = |value: &Option<Value>| match value {
            Some(Value::Set) => Some(Conversion::Always),
            Some(Value::Unset) => Some(Conversion::None),
            Some(Value::Text(text)) if text == b"auto" => Some(Conversion::Text),
            Some(Value::Text(text)) if text == b"input" => Some(Conversion::Always),
            _ => None,
        };
        let has_ending = matches!(&self.eol, Some(Value::Text(text)) if matches!(&text[..], b"lf" | b"crlf"));
        match said(&self.text).or_else(|| said(&self.crlf)) {
            Some(conversion) => conversion,
            None if has_ending => Conversion::Always,
            None if is_automatic => Conversion::Text,
            None => Conversion::None,
        }
    }
}

fn parse(text: &[u8]) -> Rules {
    const MACRO: &[u8] = b"[attr]";
    let mut rules = Rules::default();
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    for line in text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii) {
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        let (first, rest) = match quoted(line) {
            Some(found) => found,
            None => {
                let end = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
                (line[..end].to_vec(), &line[end..])
            }
        };
        let words = rest.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let assignments = words.map(assignment).collect();
        match first.strip_prefix(MACRO) {
            Some(name) => drop(rules.macros.insert(name.to_vec(), assignments)),
            // Git has no negated patterns here.
            None if first.starts_with(b"!") => {}
            None => rules.rules.push((Pattern::new(&first), assignments)),
        }
    }
    rules
}

fn assignment(word: &[u8]) -> Assignment {
    let (name, value) = if let Some(name) = word.strip_prefix(b"-") {
        (name, Value::Unset)
    } else if let Some(name) = word.strip_prefix(b"!") {
        (name, Value::Unspecified)
    } else if let Some(at) = memchr::memchr(b'=', word) {
        (&word[..at], Value::Text(word[at + 1..].to_vec()))
    } else {
        (word, Value::Set)
    };
    Assignment { name: name.to_vec(), value }
}

/// A pattern in quotes, and what follows it. `None` if it is not quoted, or not as git quotes: then the quotes are part
/// of the pattern.
fn quoted(line: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut rest = line.strip_prefix(b"\"")?;
    let mut text = Vec::new();
    loop {
        let (first, more) = rest.split_first()?;
        rest = more;
        match first {
            b'"' => return Some((text, rest)),
            b'\\' => {
                let (escaped, more) = rest.split_first()?;
                rest = more;
                text.push(match escaped {
                    b'a' => 0x07,
                    b'b' => 0x08,
                    b't' => b'\t',
                    b'n' => b'\n',
                    b'v' => 0x0b,
                    b'f' => 0x0c,
                    b'r' => b'\r',
                    b'\\' | b'"' => *escaped,
                    b'0'..=b'3' => {
                        let (digits, more) = rest.split_at_checked(2)?;
                        rest = more;
                        let digits = [*escaped, digits[0], digits[1]];
                        u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 8).ok()?
                    }
                    _ => return None,
                });
            }
            byte => text.push(*byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conversion(text: &str, path: &str) -> Conversion {
        let rule_files = vec![(0, Arc::new(parse(text.as_bytes())))];
        let mut found = AttributeFiles::default();
        for (pattern, assignments) in rule_files[0].1.rules.iter().rev() {
            if pattern.matches(path.as_bytes(), false) {
                found.take(assignments, &rule_files);
            }
        }
        found.conversion(false)
    }

    #[test]
    fn macros_that_name_macros_many_times_over_take_no_time() {
        let levels =
            (0..12).map(|level| format!("[attr]m{level} {}\n", format!("m{} ", level + 1).repeat(50)));
        let text = levels.collect::<String>() + "[attr]m12 text\n* m0\n";
        assert_eq!(conversion(&text, "x"), Conversion::Always);
    }

    #[test]
    fn attributes_decide_about_line_endings() {
        assert_eq!(conversion("* text=auto", "a"), Conversion::Text);
        assert_eq!(conversion("* text=auto\n*.png binary", "a.png"), Conversion::None);
        assert_eq!(conversion("*.c text\n*.c -text", "a.c"), Conversion::None);
        assert_eq!(conversion("*.c text -text", "a.c"), Conversion::None);
        assert_eq!(conversion("*.c text !text", "a.c"), Conversion::None);
        assert_eq!(conversion("*.c eol=crlf", "a.c"), Conversion::Always);
        assert_eq!(conversion("\"a b\" text", "a b"), Conversion::Always);
        for (escaped, byte) in [("a", '\u{7}'), ("b", '\u{8}'), ("f", '\u{c}'), ("v", '\u{b}'), ("101", 'A')]
        {
            let attributes = format!("\"x\\{escaped}\" text");
            assert_eq!(conversion(&attributes, &format!("x{byte}")), Conversion::Always, "{escaped}");
        }
        assert_eq!(conversion("\"x\\q\" text", "xq"), Conversion::None);
        assert_eq!(conversion("[attr]raw -text\n* text\n*.x raw", "a.x"), Conversion::None);
        assert_eq!(conversion("[attr]a b\n[attr]b a\n* a", "x"), Conversion::None);
        assert_eq!(conversion("!* text\n# * text\n", "x"), Conversion::None);
    }
}
