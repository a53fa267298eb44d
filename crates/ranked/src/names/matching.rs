//! How a name matches a query by its parts.
//!
//! A name falls into parts as words do: at everything that is no letter or digit, where a capital follows
//! something else, before the last capital of a run that a small letter follows, and between letters and
//! digits. Bytes beyond ASCII are small letters.
//!
//! The matchers are automata whose states are the bits of a number: bit `i` says that `i` bytes of the query
//! are matched.

use super::block::LONGEST_NAME;
use super::order::fold;

/// Longer queries only match exactly and as a beginning.
pub(crate) const LONGEST_PATTERN: usize = 63;
/// Shorter queries match from the start of a part only: anything has them somewhere.
const SHORTEST_INSIDE: usize = 3;

const SEPARATOR: u8 = 0;
const DIGIT: u8 = 1;
const LOWER: u8 = 2;
const UPPER: u8 = 3;

const CLASSES: [u8; 256] = {
    let mut classes = [SEPARATOR; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            b'0'..=b'9' => DIGIT,
            b'a'..=b'z' | 0x80.. => LOWER,
            b'A'..=b'Z' => UPPER,
            _ => SEPARATOR,
        };
        byte += 1;
    }
    classes
};

/// How well a name matches, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Class {
    /// It is the query.
    Exact,
    /// It is the query in another case.
    OtherCase,
    /// It begins with the query.
    Prefix,
    /// One of its parts begins what is the query.
    Part,
    /// The query is made of the beginnings of some neighbouring parts, in their order.
    Abbreviation,
    /// The query is somewhere inside.
    Inside,
    /// One letter is wrong, missing, too much, or has changed places with the next.
    OneTypo,
    /// Two such mistakes.
    TwoTypos,
}

/// Where in the query each byte stands, as bits.
pub(crate) type Positions = Box<[u64; 256]>;

/// The positions of the bytes of a pattern, in both cases if case makes no difference.
pub(crate) fn positions(pattern: &[u8], is_sensitive: bool) -> Positions {
    let mut positions = Box::new([0; 256]);
    for (index, &byte) in pattern.iter().enumerate().take(LONGEST_PATTERN) {
        positions[byte as usize] |= 1 << index;
        if !is_sensitive {
            positions[fold(byte) as usize] |= 1 << index;
            positions[byte.to_ascii_uppercase() as usize] |= 1 << index;
        }
    }
    positions
}

/// What a query is matched by.
pub(crate) struct Pattern<'q> {
    query: &'q [u8],
    is_sensitive: bool,
    /// Of the query.
    inside: Positions,
    inside_end: u64,
    /// Of the query without what separates parts.
    parts: Positions,
    parts_end: u64,
}

impl<'q> Pattern<'q> {
    /// The pattern of a query of at most [`LONGEST_PATTERN`] bytes.
    pub(crate) fn new(query: &'q [u8], is_sensitive: bool) -> Self {
        let letters: Vec<u8> =
            query.iter().copied().filter(|&byte| CLASSES[byte as usize] != SEPARATOR).collect();
        let end = |length: usize| 1u64.checked_shl(length as u32).unwrap_or(0);
        Self {
            query,
            is_sensitive,
            inside: positions(query, is_sensitive),
            inside_end: if query.len() < SHORTEST_INSIDE { 0 } else { end(query.len()) },
            parts: positions(&letters, is_sensitive),
            // Nothing but separators abbreviates nothing.
            parts_end: if letters.is_empty() { 0 } else { end(letters.len()) },
        }
    }

    /// How a name matches without typing errors.
    pub(crate) fn class_of(&self, name: &[u8]) -> Option<Class> {
        if name == self.query {
            return Some(Class::Exact);
        }
        if name.get(..self.query.len()).is_some_and(|start| self.is_query(start)) {
            return Some(if name.len() == self.query.len() { Class::OtherCase } else { Class::Prefix });
        }
        let (is_abbreviation, is_inside) = self.run(name);
        if !is_abbreviation && !is_inside {
            return None;
        }
        let starts_here = |(start, window)| self.is_query(window) && starts_part(name, start);
        if name.windows(self.query.len().max(1)).enumerate().any(starts_here) {
            return Some(Class::Part);
        }
        Some(if is_abbreviation { Class::Abbreviation } else { Class::Inside })
    }

    fn is_query(&self, text: &[u8]) -> bool {
        if self.is_sensitive { text == self.query } else { text.eq_ignore_ascii_case(self.query) }
    }

    /// A quick check that rules out names without the letters of the query in their order.
    pub(crate) fn order(&self) -> Order<'_> {
        Order { positions: &self.parts, end: self.parts_end, states: [1; LONGEST_NAME + 1], valid: 0 }
    }

    /// Whether beginnings of neighbouring parts make the query, and whether the query is somewhere inside.
    fn run(&self, name: &[u8]) -> (bool, bool) {
        let (mut all_parts, mut all_inside) = (0, 0);
        // What the beginnings up to the current part, and of it, can make of the query.
        let mut reached = 0;
        // The same, if the current part goes on contributing.
        let mut live = 0;
        // The same, if the last of several capitals turns out to begin a part.
        let mut pending = None;
        let mut inside = 0;
        let mut before = SEPARATOR;
        for &byte in name {
            let class = CLASSES[byte as usize];
            let positions = self.parts[byte as usize];
            let mut next_pending = None;
            if class != before {
                if class == LOWER && before == UPPER {
                    if let Some(pending) = pending {
                        (reached, live) = (pending, pending);
                    }
                } else if class != SEPARATOR {
                    // Any part may be the first. What was reached goes on over separators.
                    live = reached | 1;
                    reached = 0;
                }
            } else if class == UPPER {
                next_pending = Some(((reached | 1) & positions) << 1);
            }
            live = if class == SEPARATOR { 0 } else { (live & positions) << 1 };
            reached |= live;
            pending = next_pending;
            all_parts |= reached;
            inside = ((inside | 1) & self.inside[byte as usize]) << 1;
            all_inside |= inside;
            before = class;
        }
        (all_parts & self.parts_end != 0, all_inside & self.inside_end != 0)
    }
}

/// Checks one name after another for the letters of a query in their order. Most names that
/// have the letters do not, and names that share their beginning share the work for it.
pub(crate) struct Order<'p> {
    positions: &'p Positions,
    end: u64,
    /// What may be matched after so many bytes.
    states: [u64; LONGEST_NAME + 1],
    /// How many bytes of the current name the states are of.
    valid: usize,
}

impl Order<'_> {
    /// Only so many bytes of the name stay the same.
    #[inline]
    pub(crate) fn keep(&mut self, shared: usize) {
        self.valid = self.valid.min(shared);
    }

    /// Whether the current name has the letters in their order.
    #[inline]
    pub(crate) fn is_kept_by(&mut self, name: &[u8]) -> bool {
        let valid = self.valid.min(name.len()).min(LONGEST_NAME);
        let mut state = self.states[valid];
        for (byte, next) in name[valid..].iter().zip(&mut self.states[valid + 1..]) {
            state |= (state & self.positions[*byte as usize]) << 1;
            *next = state;
        }
        self.valid = name.len();
        // A query without letters has no order.
        self.end == 0 || state & self.end != 0
    }
}

/// Whether a part of a name starts at this byte.
pub(crate) fn starts_part(name: &[u8], start: usize) -> bool {
    let class = |index: usize| name.get(index).map_or(SEPARATOR, |&byte| CLASSES[byte as usize]);
    let (before, here) = (start.checked_sub(1).map_or(SEPARATOR, class), class(start));
    if here == SEPARATOR {
        return false;
    }
    if before == here {
        here == UPPER && class(start + 1) == LOWER
    } else {
        !(before == UPPER && here == LOWER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Class::*;

    #[test]
    fn names_match_by_their_parts() {
        for (query, name, expected) in [
            ("open", "open", Some(Exact)),
            ("open", "Open", Some(OtherCase)),
            ("open", "open_file", Some(Prefix)),
            ("open", "OPENED", Some(Prefix)),
            ("open", "file_open", Some(Part)),
            ("open", "fileOpener", Some(Part)),
            ("open_f", "do_open_file", Some(Part)),
            ("open", "reopenFile", Some(Inside)),
            ("op", "reopenFile", None),
            ("fo", "file_operations", Some(Abbreviation)),
            ("fileop", "file_operations", Some(Abbreviation)),
            ("f_op", "file_operations", Some(Abbreviation)),
            ("fop", "file_big_operations", None),
            ("bop", "file_big_operations", Some(Abbreviation)),
            ("fbo", "the_FileBigOperations", Some(Abbreviation)),
            ("hs", "HTTPServer", Some(Abbreviation)),
            ("hse", "HTTPServer", Some(Abbreviation)),
            ("ts", "HTTPServer", None),
            ("se", "HTTPServer", Some(Part)),
            ("s", "HTTPServer", Some(Part)),
            ("x64", "x86_64", None),
            ("866", "x86_64", Some(Abbreviation)),
            ("8", "x86_64", Some(Part)),
            ("6", "x86_64", Some(Part)),
            ("of", "file_open", None),
            ("fil_o", "FILE_OPEN", Some(Abbreviation)),
            ("__", "a__b", None),
            ("a", "", None),
        ] {
            let pattern = Pattern::new(query.as_bytes(), false);
            assert_eq!(pattern.class_of(name.as_bytes()), expected, "{query} {name}");
        }
    }

    #[test]
    fn case_counts_if_asked() {
        for (query, name, expected) in [
            ("Open", "Open", Some(Exact)),
            ("Open", "open", None),
            ("Open", "fileOpen", Some(Part)),
            ("Open", "file_open", None),
            ("FO", "FileOperations", Some(Abbreviation)),
            ("FO", "file_operations", None),
        ] {
            assert_eq!(
                Pattern::new(query.as_bytes(), true).class_of(name.as_bytes()),
                expected,
                "{query} {name}"
            );
        }
    }
}
