//! Compares the hits of Pintle with those of ripgrep, line by line.

use std::{
    collections::{HashMap, HashSet},
    ffi::OsStr,
    fs,
    os::unix::ffi::OsStrExt,
    path::PathBuf,
    process::Command,
};

use memchr::{memchr, memchr_iter};

use super::{Bench, groups::Query, pintle::Pintle, program};

/// A hit. Hits are ordered by the bytes of the path, then by line.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hit<'a> {
    pub path: &'a [u8],
    pub line: u64,
    text: &'a [u8],
}

/// Returns the number of hits, or an error if the two differ.
pub fn check(bench: &Bench<'_>, pintle: &Pintle, query: &Query) -> Result<usize, String> {
    check_command(bench, &mut pintle.search(query, true), query)
}

/// The same for a command that prints line numbers.
pub fn check_command(bench: &Bench<'_>, ours: &mut Command, query: &Query) -> Result<usize, String> {
    let theirs = program::output(&mut bench.peers.ripgrep(bench.tree, query, true))?;
    let ours = program::output(ours)?;
    let (mut theirs, ours) = (hits(&theirs), hits(&ours));
    if theirs != ours {
        let mut binary = Binary::in_root(bench.tree.root());
        theirs.retain(|hit| !binary.has(hit));
    }
    if theirs == ours { Ok(ours.len()) } else { Err(difference(&theirs, &ours)) }
}

/// Parses printed hits, in order. Other lines, such as a note on a binary file, are skipped.
pub fn hits(printed: &[u8]) -> Vec<Hit<'_>> {
    let lines = printed.split(|byte| *byte == b'\n');
    let mut hits: Vec<_> = lines.filter_map(hit).collect();
    hits.sort_unstable();
    hits
}

/// Parses `path:line:text`; the path can contain colons.
fn hit(printed: &[u8]) -> Option<Hit<'_>> {
    memchr_iter(b':', printed).find_map(|colon| {
        let (path, rest) = (&printed[..colon], &printed[colon + 1..]);
        let (digits, text) = rest.split_at(memchr(b':', rest)?);
        let line = std::str::from_utf8(digits).ok()?.parse().ok()?;
        Some(Hit { path, line, text: &text[1..] })
    })
}

/// The files with a NUL byte. Ripgrep prints the hits before the first NUL; Pintle skips such files.
pub struct Binary<'a> {
    root: PathBuf,
    known: HashMap<&'a [u8], bool>,
}

impl<'a> Binary<'a> {
    pub fn in_root(root: PathBuf) -> Self {
        Self { root, known: HashMap::new() }
    }

    /// Whether the file of a hit has a NUL byte.
    pub fn has(&mut self, hit: &Hit<'a>) -> bool {
        *self.known.entry(hit.path).or_insert_with(|| {
            let content = fs::read(self.root.join(OsStr::from_bytes(hit.path))).unwrap_or_default();
            memchr(0, &content).is_some()
        })
    }
}

/// Summarizes how two lists of hits differ.
fn difference(theirs: &[Hit<'_>], ours: &[Hit<'_>]) -> String {
    let lacking = |these: &[Hit<'_>], those: &[Hit<'_>]| -> String {
        let those: HashSet<_> = those.iter().map(|hit| (hit.path, hit.line)).collect();
        let lacking: Vec<_> = these.iter().filter(|hit| !those.contains(&(hit.path, hit.line))).collect();
        let first = lacking.first().map(|hit| format!(", the first {}", location(hit))).unwrap_or_default();
        format!("{}{first}", lacking.len())
    };
    let other_text = theirs.iter().zip(ours).find(|(theirs, ours)| theirs.text != ours.text);
    let other_text = other_text.map(|(hit, _)| format!("; another text at {}", location(hit)));
    format!(
        "ripgrep has {} hits, pintle {}; only in ripgrep: {}; only in pintle: {}{}",
        theirs.len(),
        ours.len(),
        lacking(theirs, ours),
        lacking(ours, theirs),
        other_text.filter(|_| theirs.len() == ours.len()).unwrap_or_default()
    )
}

fn location(hit: &Hit<'_>) -> String {
    format!("{}:{}", String::from_utf8_lossy(hit.path), hit.line)
}
