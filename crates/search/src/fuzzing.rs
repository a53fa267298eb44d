//! What must hold of queries, cursors and the files of an index whatever bytes come: the properties that the fuzz
//! targets assert.

use grep_matcher::Matcher;
use pintle_contract::Permissions;

use crate::{
    pattern::{Case, Meaning, Pattern, Requirement, Syntax},
    query::{Cursor, Filter, glob_prefixes},
    segment,
    trigrams::{codec, trigram},
};

/// Reads a segment of an index, written well or damaged. The module `segment::fuzzing` says what the input is and what
/// must hold.
pub fn index_segment(bytes: &[u8]) {
    segment::fuzzing::index_segment(bytes);
}

/// Reads a posting list. The module `trigrams::codec::fuzzing` says what the input is and what must hold.
pub fn posting_list(bytes: &[u8]) {
    codec::fuzzing::posting_list(bytes);
}

/// Reads a cursor, which a caller may have changed. It is refused, or comes back the same from being written.
pub fn search_cursor(bytes: &[u8]) {
    if let Some(cursor) = std::str::from_utf8(bytes).ok().and_then(Cursor::decode) {
        // A byte of the path takes two characters of JSON at least, and these more than two of Base64.
        assert!(cursor.path.len() <= bytes.len());
        let written = cursor.encode();
        assert_eq!(Cursor::decode(&written).as_ref(), Some(&cursor));
        assert_eq!(Cursor::decode(&written).map(|cursor| cursor.encode()), Some(written));
    }
    let mut numbers = bytes.as_chunks::<8>().0.iter().map(|chunk| u64::from_le_bytes(*chunk));
    let mut next = || numbers.next().unwrap_or_default();
    let cursor = Cursor { query: next(), count: next(), line: next(), path: bytes.to_vec() };
    assert_eq!(Cursor::decode(&cursor.encode()), Some(cursor));
}

/// Reads globs, one a line, and at last a path. A path that the globs admit is within their glob_prefixes, so that no search
/// passes over a file that its globs ask for.
pub fn search_filter(bytes: &[u8]) {
    let (globs, path) = match memchr::memrchr(b'\n', bytes) {
        Some(end) => (&bytes[..end], &bytes[end + 1..]),
        None => (bytes, &b""[..]),
    };
    let Ok(globs) = std::str::from_utf8(globs) else { return };
    let globs: Vec<String> = globs.split('\n').map(str::to_owned).collect();
    // The paths of an index come from a walk, which meets no other names.
    if path.contains(&0) || path.split(|byte| *byte == b'/').any(|name| matches!(name, b"" | b"." | b"..")) {
        return;
    }
    let is_folder = |path: &str| path.ends_with('d');
    let permissions = Permissions::everything();
    let Ok(filter) = Filter::new(&permissions, &globs, is_folder, None) else { return };
    if filter.admits(path, None)
        && let Some(within) = glob_prefixes(&globs, is_folder)
    {
        assert!(within.covers(path), "{globs:?} admit {path:?} beyond {within:?}");
    }
}

/// Reads a query and looks for it. The input is a byte (1 for a regular expression, 2 and 4 for the case, 8 for whole
/// words), the query and a newline, and then a text. Every line that matches holds what the query requires of the
/// index, and the automaton for long lines finds the same first match as ripgrep's matcher.
pub fn search_pattern(bytes: &[u8]) {
    /// Longer queries take longer to compile, and are made of the same parts.
    const LONGEST: usize = 80;
    let Some((&flags, rest)) = bytes.split_first() else { return };
    let mut lines = rest.split(|byte| *byte == b'\n');
    let Some(Ok(query)) = lines.next().map(std::str::from_utf8) else { return };
    if query.len() > LONGEST {
        return;
    }
    let syntax = if flags & 1 == 1 { Syntax::Regex } else { Syntax::Literal };
    let case = [Case::Sensitive, Case::Insensitive, Case::Smart][usize::from(flags >> 1 & 3) % 3];
    let is_word = flags & 8 == 8;
    let Ok(pattern) = Pattern::new(query, Meaning { syntax, case, is_word }) else { return };
    assert!(syntax == Syntax::Regex || requirement_size(&pattern.requirement) <= 4096);
    for line in lines.filter(|line| !line.contains(&0)) {
        let found = pattern.matcher().find(line).expect("the matcher has no errors");
        if let Some(found) = found {
            let trigrams = line.windows(3).map(|window| trigram([window[0], window[1], window[2]])).collect();
            let is_promised = pattern.requirement.holds(&trigrams);
            assert!(is_promised, "{query:?} matches {line:?} without {:?}", pattern.requirement);
            assert!(found.end() <= line.len());
        }
        if let Ok(start) = pattern.find(line, &|| false) {
            assert_eq!(start, found.map(|found| found.start()), "{query:?} in {line:?}");
        }
    }
}

fn requirement_size(required: &Requirement) -> usize {
    match required {
        Requirement::All(parts) | Requirement::Either(parts) => {
            1 + parts.iter().map(requirement_size).sum::<usize>()
        }
        _ => 1,
    }
}

#[cfg(test)]
#[path = "../../../fuzz/seeds.rs"]
mod seeds;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_properties_hold_for_the_seeds() {
        seeds::each_seed("index_segment", index_segment);
        seeds::each_seed("posting_list", posting_list);
        seeds::each_seed("search_cursor", search_cursor);
        seeds::each_seed("search_filter", search_filter);
        seeds::each_seed("search_pattern", search_pattern);
    }
}
