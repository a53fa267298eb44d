//! The patterns of `.gitignore` and `.gitattributes`, with git's own rules of what matches.

/// One pattern.
#[derive(Debug)]
pub(crate) struct Pattern {
    /// It begins with `!`: what it matches is not ignored, whatever earlier patterns say.
    pub(crate) is_negated: bool,
    is_for_folders: bool,
    /// It is compared with the last name of a path only.
    is_for_names: bool,
    /// The literal prefix.
    start: Vec<u8>,
    /// What follows the prefix.
    rest: Rest,
}

#[derive(Debug)]
enum Rest {
    Nothing,
    /// Anything with this suffix.
    Ending(Vec<u8>),
    Glob(Vec<Token>),
    /// A pattern that is not well formed matches nothing.
    Never,
}

/// The metacharacters.
const SPECIAL: &[u8] = b"*?[\\";

impl Pattern {
    /// A pattern as it is written in a line, without the white space around it.
    pub(crate) fn new(line: &[u8]) -> Self {
        let (is_negated, text) = match line.strip_prefix(b"!") {
            Some(text) => (true, text),
            None => (false, line),
        };
        let (is_for_folders, text) = match text.strip_suffix(b"/") {
            Some(text) => (true, text),
            None => (false, text),
        };
        let is_for_names = !text.contains(&b'/');
        let text = text.strip_prefix(b"/").unwrap_or(text);
        let is_special = |byte: &u8| SPECIAL.contains(byte);
        // As in git, what follows the literal prefix is matched by itself: a `**` after it counts as one at the start.
        let (start, rest) = text.split_at(text.iter().position(is_special).unwrap_or(text.len()));
        let rest = match rest.split_first() {
            None => Rest::Nothing,
            Some((b'*', ending)) if is_for_names && start.is_empty() && !ending.iter().any(is_special) => {
                Rest::Ending(ending.to_vec())
            }
            Some(_) => tokens(rest).map_or(Rest::Never, Rest::Glob),
        };
        Self { is_negated, is_for_folders, is_for_names, start: start.to_vec(), rest }
    }

    /// Whether it matches a path, which is relative to the folder that the pattern was written in.
    pub(crate) fn matches(&self, path: &[u8], is_folder: bool) -> bool {
        if self.is_for_folders && !is_folder {
            return false;
        }
        let text = if self.is_for_names {
            memchr::memrchr(b'/', path).map_or(path, |slash| &path[slash + 1..])
        } else {
            path
        };
        let Some(text) = text.strip_prefix(&self.start[..]) else { return false };
        match &self.rest {
            Rest::Nothing => text.is_empty(),
            Rest::Ending(ending) => text.ends_with(ending),
            Rest::Glob(tokens) => matches(tokens, text),
            Rest::Never => false,
        }
    }
}

/// A part of a pattern.
#[derive(Debug)]
enum Token {
    Byte(u8),
    /// One byte of a set; never a slash.
    Class(Box<[bool; 256]>),
    /// `?`: one byte that is no slash.
    One,
    /// `*`: any bytes that are no slash.
    Some,
    /// `**` at the end, or before an escaped slash: any bytes.
    All,
    /// `**/`: any number of folders, or none.
    Folders,
}

fn tokens(pattern: &[u8]) -> Option<Vec<Token>> {
    let (mut tokens, mut at) = (Vec::new(), 0);
    while let Some(byte) = pattern.get(at).copied() {
        match byte {
            b'?' => tokens.push(Token::One),
            b'[' => {
                let (class, length) = class(&pattern[at + 1..])?;
                tokens.push(Token::Class(class));
                at += length;
            }
            b'\\' => {
                at += 1;
                tokens.push(Token::Byte(*pattern.get(at)?));
            }
            b'*' => {
                let stars = pattern[at..].iter().take_while(|byte| **byte == b'*').count();
                let is_at_start = at == 0 || pattern[at - 1] == b'/';
                at += stars - 1;
                let after = &pattern[at + 1..];
                if stars < 2 || !is_at_start {
                    tokens.push(Token::Some);
                } else if after.first() == Some(&b'/') {
                    tokens.push(Token::Folders);
                    at += 1;
                } else if after.is_empty() || after.starts_with(b"\\/") {
                    tokens.push(Token::All);
                } else {
                    tokens.push(Token::Some);
                }
            }
            byte => tokens.push(Token::Byte(byte)),
        }
        at += 1;
    }
    Some(tokens)
}

/// The set that begins after a `[`, and how many bytes are written until its end.
fn class(pattern: &[u8]) -> Option<(Box<[bool; 256]>, usize)> {
    let mut set = Box::new([false; 256]);
    let is_negated = matches!(pattern.first(), Some(b'!' | b'^'));
    let start = usize::from(is_negated);
    let (mut at, mut last) = (start, None);
    loop {
        let byte = *pattern.get(at)?;
        match byte {
            b']' if at > start => break,
            b'-' if last.is_some() && !matches!(pattern.get(at + 1), None | Some(b']')) => {
                at += 1;
                let mut end = *pattern.get(at)?;
                if end == b'\\' {
                    at += 1;
                    end = *pattern.get(at)?;
                }
                (last.unwrap_or(end)..=end).for_each(|byte| set[usize::from(byte)] = true);
                last = None;
            }
            b'[' if pattern.get(at + 1) == Some(&b':') => {
                let name = &pattern[at + 2..];
                let end = memchr::memchr(b']', name)?;
                if let Some(name) = name[..end].strip_suffix(b":") {
                    let is_in = named_class(name)?;
                    (0..=u8::MAX).filter(is_in).for_each(|byte| set[usize::from(byte)] = true);
                    at += end + 2;
                    last = None;
                } else {
                    // It is no name, but a bracket among other bytes.
                    set[usize::from(b'[')] = true;
                    last = Some(b'[');
                }
            }
            byte => {
                let mut own = byte;
                if byte == b'\\' {
                    at += 1;
                    own = *pattern.get(at)?;
                }
                set[usize::from(own)] = true;
                last = Some(own);
            }
        }
        at += 1;
    }
    set.iter_mut().for_each(|is_in| *is_in ^= is_negated);
    set[usize::from(b'/')] = false;
    Some((set, at + 1))
}

fn named_class(name: &[u8]) -> Option<fn(&u8) -> bool> {
    Some(match name {
        b"alnum" => u8::is_ascii_alphanumeric,
        b"alpha" => u8::is_ascii_alphabetic,
        b"blank" => |byte| matches!(byte, b' ' | b'\t'),
        b"cntrl" => u8::is_ascii_control,
        b"digit" => u8::is_ascii_digit,
        b"graph" => u8::is_ascii_graphic,
        b"lower" => u8::is_ascii_lowercase,
        b"print" => |byte| matches!(byte, b' '..=b'~'),
        b"punct" => u8::is_ascii_punctuation,
        b"space" => |byte| matches!(byte, b' ' | b'\t'..=b'\r'),
        b"upper" => u8::is_ascii_uppercase,
        b"xdigit" => u8::is_ascii_hexdigit,
        _ => return None,
    })
}

/// Simulates the pattern as a nondeterministic automaton, all states at once. So the time is at most the length of the
/// pattern times that of the text, where backtracking would be exponential.
fn matches(tokens: &[Token], text: &[u8]) -> bool {
    let mut now = vec![false; tokens.len() + 1];
    let mut next = now.clone();
    reach(tokens, &mut now, 0);
    for byte in text.iter().copied() {
        let mut is_alive = false;
        next.fill(false);
        for (at, token) in tokens.iter().enumerate().filter(|(at, _)| now[*at]) {
            let is_slash = byte == b'/';
            match token {
                Token::Byte(own) if *own == byte => reach(tokens, &mut next, at + 1),
                Token::Class(set) if set[usize::from(byte)] => reach(tokens, &mut next, at + 1),
                Token::One if !is_slash => reach(tokens, &mut next, at + 1),
                Token::Some if !is_slash => reach(tokens, &mut next, at),
                Token::All => reach(tokens, &mut next, at),
                Token::Folders => {
                    // Within a name it cannot end, so nothing after it is reached.
                    next[at] = true;
                    if is_slash {
                        reach(tokens, &mut next, at + 1);
                    }
                }
                _ => continue,
            }
            is_alive = true;
        }
        if !is_alive {
            return false;
        }
        std::mem::swap(&mut now, &mut next);
    }
    now[tokens.len()]
}

/// Marks a token as reached, with those after it that are reached without any byte.
fn reach(tokens: &[Token], reached: &mut [bool], mut at: usize) {
    reached[at] = true;
    while let Some(Token::Some | Token::All | Token::Folders) = tokens.get(at) {
        at += 1;
        reached[at] = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        fs::{self, File},
        path::Path,
        process::Command,
    };

    #[test]
    fn patterns_match_as_in_git() {
        let cases: &[(&str, &[&str], &[&str])] = &[
            ("a", &["a", "x/a"], &["ab", "a/b"]),
            ("/a", &["a"], &["x/a"]),
            ("a/b", &["a/b"], &["x/a/b"]),
            ("*.o", &["a.o", "x/.o"], &["a.oo", "o"]),
            ("a*c", &["ac", "abbc", "x/abc"], &["abcd"]),
            ("a/*.c", &["a/b.c"], &["a/b/c.c"]),
            ("**/a", &["a", "x/a", "x/y/a"], &["xa"]),
            ("a/**", &["a/b", "a/b/c"], &["a"]),
            ("a/**/b", &["a/b", "a/x/b", "a/x/y/b"], &["a/xb", "ab"]),
            ("foo**/bar", &["foo/bar", "foox/y/bar"], &["fo/bar"]),
            ("x/a**b", &["x/ab", "x/axb"], &["x/a/b"]),
            ("*.{a,b}", &["x.{a,b}"], &["x.a"]),
            ("[a-c]x", &["ax", "cx"], &["dx", "-x"]),
            ("[!a-c]x", &["dx"], &["ax"]),
            ("[]a]", &["]", "a"], &["b"]),
            ("[[:digit:]x]", &["1", "x"], &["a", ":"]),
            ("a[/]b", &[], &["a/b"]),
            ("[a", &[], &["[a", "a"]),
            ("a\\*", &["a*"], &["ab"]),
            ("a\\", &[], &["a", "a\\"]),
            ("?", &["a"], &["", "ab"]),
            ("a?b/", &[], &["a/b", "axb"]),
        ];
        for (pattern, yes, no) in cases {
            let own = Pattern::new(pattern.as_bytes());
            yes.iter().for_each(|path| assert!(own.matches(path.as_bytes(), false), "{pattern} {path}"));
            no.iter().for_each(|path| assert!(!own.matches(path.as_bytes(), false), "{pattern} {path}"));
        }
        assert!(Pattern::new(b"a/").matches(b"x/a", true));
        assert!(Pattern::new(b"!a").is_negated);
    }

    #[test]
    fn no_pattern_takes_long() {
        let pattern = Pattern::new("a*".repeat(1000).as_bytes());
        assert!(!pattern.matches(&[&[b'a'; 4000][..], b"/"].concat(), false));
        let pattern = Pattern::new(format!("{}b", "**/a*".repeat(500)).as_bytes());
        assert!(!pattern.matches("a/".repeat(2000).as_bytes(), false));
    }

    /// Runs the real git, in a folder without any configuration around it.
    fn git(folder: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new("git");
        command.args(arguments).current_dir(folder).env("HOME", folder).env("XDG_CONFIG_HOME", folder);
        command.env("GIT_CONFIG_NOSYSTEM", "1");
        command
    }

    #[test]
    fn random_patterns_match_as_in_git() {
        const PARTS: &[&str] = &[
            "a",
            "b",
            "/",
            "/",
            "*",
            "**",
            "**/",
            "/**",
            "?",
            "[ab]",
            "[!a]",
            "[^b-z]",
            "[]-]",
            "[a-",
            "\\",
            "\\*",
            "-",
            "[[:alpha:]]",
            "[[:x:]]",
            "{a,b}",
            "***",
            "[a\\]]",
            "[[:digit:]-a]",
            "[!]a]",
            "[--b]",
            "[b-a]",
            "]",
            "!",
        ];
        let names = ["a", "b", "ab", "ba", "-", "]", "a*", "{a,b}", "aab", "\\", "["];
        let mut paths: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        for first in ["a", "b", "ab", "aa"] {
            paths.extend(names.iter().map(|name| format!("{first}/{name}")));
            paths.extend(names.iter().map(|name| format!("{first}/b/{name}")));
            paths.extend(names.iter().map(|name| format!("{first}/a/ab/{name}")));
        }
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        assert!(git(folder, &["init", "-q"]).status().expect("git runs").success());
        let input = folder.join("input");
        fs::write(&input, paths.join("\0")).expect("written");
        let mut seed = 1_u64;
        let mut random = |limit: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(seed >> 33).expect("small") % limit
        };
        for _ in 0..400 {
            let pattern: String = (0..1 + random(5)).map(|_| PARTS[random(PARTS.len())]).collect();
            if pattern.starts_with('!') {
                continue;
            }
            fs::write(folder.join(".git/info/exclude"), &pattern).expect("written");
            let mut command = git(folder, &["check-ignore", "--no-index", "--stdin", "-z"]);
            let output = command.stdin(File::open(&input).expect("opened")).output().expect("git runs");
            let theirs: Vec<_> =
                output.stdout.split(|byte| *byte == 0).filter(|path| !path.is_empty()).collect();
            let own = Pattern::new(pattern.as_bytes());
            let is_ignored = |path: &&String| {
                let folders = path.match_indices('/').map(|(slash, _)| &path[..slash]);
                folders.into_iter().any(|folder| own.matches(folder.as_bytes(), true))
                    || own.matches(path.as_bytes(), false)
            };
            let ours: Vec<_> = paths.iter().filter(is_ignored).map(String::as_bytes).collect();
            assert_eq!(
                ours.iter().map(|path| String::from_utf8_lossy(path)).collect::<Vec<_>>(),
                theirs.iter().map(|path| String::from_utf8_lossy(path)).collect::<Vec<_>>(),
                "{pattern}"
            );
        }
    }
}
