//! What a query asks for.

use super::term::Term;
use super::tokens::tokenize;

/// No more terms of a query count than this.
pub(crate) const MOST_TERMS: usize = 64;

/// How much BM25 gains at most by a term that is often in a file.
pub(crate) const SATURATION: f32 = 1.2;

/// A term of a query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct QueryTerm {
    pub(crate) term: Term,
    /// What its score is multiplied by.
    pub(crate) weight: f32,
    /// Whether it is a word of several parts as a whole.
    pub(crate) is_whole: bool,
}

/// The distinct terms of a query, in the order in which they first stand in it; at most [`MOST_TERMS`].
///
/// A word of one part weighs 1. The parts of a word share the weight 1 among them, and the whole of the word
/// weighs as much as any number of its parts can gain: a file with the very identifier stands before
/// all files that only have its parts.
pub(crate) fn terms_of(query: &str) -> Vec<QueryTerm> {
    let mut terms: Vec<QueryTerm> = Vec::new();
    // Where the parts of the current word begin among the tokens.
    let mut tokens: Vec<QueryTerm> = Vec::new();
    tokenize(query.as_bytes(), |token| {
        let is_whole = token.parts > 1;
        if is_whole {
            let first = tokens.len().saturating_sub(token.parts as usize);
            for part in &mut tokens[first..] {
                part.weight = 1.0 / token.parts as f32;
            }
        }
        let weight = if is_whole { SATURATION + 1.0 } else { 1.0 };
        tokens.push(QueryTerm { term: token.term, weight, is_whole });
    });
    for token in tokens {
        if let Some(known) = terms.iter_mut().find(|known| known.term == token.term) {
            known.weight = known.weight.max(token.weight);
            known.is_whole |= token.is_whole;
        } else if terms.len() < MOST_TERMS {
            terms.push(token);
        }
    }
    terms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_outweighs_its_parts_and_repetitions_count_once() {
        let weights: Vec<_> =
            terms_of("open fileOpen Open x").iter().map(|term| (term.weight, term.is_whole)).collect();
        assert_eq!(weights, [(1.0, false), (0.5, false), (2.2, true), (1.0, false)]);
    }

    #[test]
    fn a_long_query_is_cut() {
        let words: Vec<_> =
            (0..200).map(|n| format!("{}{}", (b'a' + n % 26) as char, "z".repeat(n as usize))).collect();
        assert_eq!(terms_of(&words.join(" ")).len(), MOST_TERMS);
    }
}
