//! Whether Pintle finds what ripgrep finds, line for line.

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

/// A line that was found. Their order is that of the bytes of the path, then of the line.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hit<'a> {
    pub path: &'a [u8],
    pub line: u64,
    text: &'a [u8],
}

/// How many hits there are, the same for both; an error if they differ.
pub fn check(bench: &Bench<'_>, pintle: &Pintle, query: &Query) -> Result<usize, String> {
    check_command(bench, &mut pintle.search(query, true), query)
}

/// The same for a command that prints the numbers of lines.
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

/// The hits in what was printed, in order. A line that is none, such as a note on a binary file, is left out.
pub fn hits(printed: &[u8]) -> Vec<Hit<'_>> {
    let lines = printed.split(|byte| *byte == b'\n');
    let mut hits: Vec<_> = lines.filter_map(hit).collect();
    hits.sort_unstable();
    hits
}

/// `path:line:text`; the path may have colons, too.
fn hit(printed: &[u8]) -> Option<Hit<'_>> {
    memchr_iter(b':', printed).find_map(|colon| {
        let (path, rest) = (&printed[..colon], &printed[colon + 1..]);
        let (digits, text) = rest.split_at(memchr(b':', rest)?);
        let line = std::str::from_utf8(digits).ok()?.parse().ok()?;
        Some(Hit { path, line, text: &text[1..] })
    })
}

/// Which files have a NUL. Ripgrep gives what comes before the first one; Pintle leaves such a file out.
pub struct Binary<'a> {
    root: PathBuf,
    known: HashMap<&'a [u8], bool>,
}

impl<'a> Binary<'a> {
    pub fn in_root(root: PathBuf) -> Self {
        Self { root, known: HashMap::new() }
    }

    /// Whether the file of a hit is one of them.
    pub fn has(&mut self, hit: &Hit<'a>) -> bool {
        *self.known.entry(hit.path).or_insert_with(|| {
            let content = fs::read(self.root.join(OsStr::from_bytes(hit.path))).unwrap_or_default();
            memchr(0, &content).is_some()
        })
    }
}

/// Where hits differ, in short.
fn difference(theirs: &[Hit<'_>], ours: &[Hit<'_>]) -> String {
    let lacking = |these: &[Hit<'_>], those: &[Hit<'_>]| -> String {
        let those: HashSet<_> = those.iter().map(|hit| (hit.path, hit.line)).collect();
        let lacking: Vec<_> = these.iter().filter(|hit| !those.contains(&(hit.path, hit.line))).collect();
        let first = lacking.first().map(|hit| format!(", the first {}", place(hit))).unwrap_or_default();
        format!("{}{first}", lacking.len())
    };
    let other_text = theirs.iter().zip(ours).find(|(theirs, ours)| theirs.text != ours.text);
    let other_text = other_text.map(|(hit, _)| format!("; another text at {}", place(hit)));
    format!(
        "ripgrep has {} hits, pintle {}; only in ripgrep: {}; only in pintle: {}{}",
        theirs.len(),
        ours.len(),
        lacking(theirs, ours),
        lacking(ours, theirs),
        other_text.filter(|_| theirs.len() == ours.len()).unwrap_or_default()
    )
}

fn place(hit: &Hit<'_>) -> String {
    format!("{}:{}", String::from_utf8_lossy(hit.path), hit.line)
}
