//! How many typing errors lie between a name and a query.
//!
//! An error is a wrong letter, a missing one, one too much, or two neighbours that changed places (and were
//! not changed otherwise). As in [`matching`](super::matching), states are bits.

use super::matching::{Positions, positions};

/// The shortest query that may be mistyped, and the shortest that may be so twice.
const SHORTEST: [usize; 2] = [4, 8];

/// How many errors a query of this many bytes may have.
pub(crate) fn most_typos(length: usize) -> usize {
    SHORTEST.iter().filter(|&&shortest| length >= shortest).count()
}

/// What names are compared with.
pub(crate) struct Typos {
    positions: Positions,
    end: u64,
    most: usize,
}

/// The state after some bytes of a name.
#[derive(Clone, Copy)]
struct TypoState {
    /// For each number of errors, how much of the query may be matched.
    matched: [u64; 3],
    /// For each number of errors before, which byte of the query may have come one too early.
    early: [u64; 2],
}

impl Typos {
    /// Looks for names with few errors. None if the query is too short for any.
    pub(crate) fn new(query: &[u8], is_sensitive: bool) -> Option<Self> {
        let most = most_typos(query.len());
        let end = 1u64.checked_shl(query.len() as u32)?;
        (most > 0).then(|| Self { positions: positions(query, is_sensitive), end, most })
    }

    /// How many errors a name has, if they are not too many.
    pub(crate) fn errors(&self, name: &[u8]) -> Option<usize> {
        // As many bytes of the query may be missing as there are errors.
        let mut state = TypoState { matched: [1, 3, 7], early: [0; 2] };
        for &byte in name {
            state = self.step(&state, byte);
            if state.matched[self.most] == 0 && state.early[self.most - 1] == 0 {
                return None;
            }
        }
        (0..=self.most).find(|&errors| state.matched[errors] & self.end != 0)
    }

    #[inline]
    fn step(&self, state: &TypoState, byte: u8) -> TypoState {
        let positions = self.positions[byte as usize];
        let mut matched = [(state.matched[0] & positions) << 1, 0, 0];
        let mut early = [0; 2];
        for errors in 1..=2 {
            let fewer = state.matched[errors - 1];
            matched[errors] = (state.matched[errors] & positions) << 1
                | fewer
                | fewer << 1
                | matched[errors - 1] << 1
                | (state.early[errors - 1] & positions) << 2;
            early[errors - 1] = fewer & (positions >> 1);
        }
        TypoState { matched, early }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn errors(query: &str, name: &str) -> Option<usize> {
        Typos::new(query.as_bytes(), true)?.errors(name.as_bytes())
    }

    proptest! {
        #[test]
        fn errors_are_counted_as_the_plain_algorithm_does(query in "[abc]{4,12}", name in "[abc]{0,14}") {
            let distance = strsim::osa_distance(&query, &name);
            let expected = (distance <= most_typos(query.len())).then_some(distance);
            prop_assert_eq!(errors(&query, &name), expected);
        }
    }

    #[test]
    fn short_queries_have_no_errors() {
        assert_eq!(errors("abc", "abd"), None);
        assert_eq!(errors("open", "oepn"), Some(1));
        assert_eq!(errors("open", "oep"), None);
        assert_eq!(errors("openfile", "opnfiles"), Some(2));
        assert_eq!(errors(&"a".repeat(64), &"a".repeat(64)), None);
    }
}
