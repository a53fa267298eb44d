//! The queries, in groups with one bar each.

use crate::report::Bar;

/// The prefix of the literals that are planted in a few files of generated trees; a digit from 0 to 3 follows.
pub const PLANTED: &str = "planted_for_the_search_";

/// Queries of one kind. With a bar of "at least" the figure is the speed relative to the peer, with "at most" the time
/// relative to the peer's; the worst query has to meet the bar.
pub struct Group {
    pub what: &'static str,
    pub peer: Peer,
    pub bar: Bar,
    /// Whether the bar applies, or the figures are only reported.
    pub has_bar: bool,
    pub queries: Vec<Query>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    Ripgrep,
    Codesearch,
}

#[derive(Clone, PartialEq, Eq)]
pub struct Query {
    pub pattern: String,
    pub is_regex: bool,
    pub any_case: bool,
}

impl Query {
    pub fn literal(pattern: &str) -> Self {
        Self { pattern: pattern.to_owned(), is_regex: false, any_case: false }
    }

    pub fn regex(pattern: &str) -> Self {
        Self { is_regex: true, ..Self::literal(pattern) }
    }

    /// A literal, case-insensitive.
    pub fn any_case(pattern: &str) -> Self {
        Self { any_case: true, ..Self::literal(pattern) }
    }
}

impl Group {
    fn new(what: &'static str, peer: Peer, bar: Bar, queries: Vec<Query>) -> Self {
        Self { what, peer, bar, has_bar: true, queries }
    }

    pub fn absent_and_rare(queries: Vec<Query>) -> Self {
        Self::new("absent and rare literals", Peer::Ripgrep, Bar::AtLeast(80.0), queries)
    }

    pub fn no_hit_in_codesearch(queries: Vec<Query>) -> Self {
        Self::new("no hit, time", Peer::Codesearch, Bar::AtMost(3.0), queries)
    }

    pub fn selective_in_codesearch(queries: Vec<Query>) -> Self {
        Self::new("selective", Peer::Codesearch, Bar::AtLeast(2.0), queries)
    }

    /// Rare literals whose trigrams are common.
    pub fn common_in_codesearch(queries: Vec<Query>) -> Self {
        Self::new("common n-grams", Peer::Codesearch, Bar::AtLeast(20.0), queries)
    }

    pub fn every_line(queries: Vec<Query>) -> Self {
        Self::new("all lines of a very common literal", Peer::Ripgrep, Bar::AtLeast(1.5), queries)
    }

    /// Patterns that are shorter than an n-gram.
    pub fn short(queries: Vec<Query>) -> Self {
        Self::new("one or two characters, time", Peer::Ripgrep, Bar::AtMost(1.05), queries)
    }

    pub fn any_case(queries: Vec<Query>) -> Self {
        Self::new("literals in any case", Peer::Ripgrep, Bar::AtLeast(8.0), queries)
    }

    /// Queries without a bar.
    pub fn without_bar(queries: Vec<Query>) -> Self {
        Self { has_bar: false, ..Self::new("other queries", Peer::Ripgrep, Bar::AtLeast(1.0), queries) }
    }

    /// The groups of a tree with planted literals.
    pub fn of_planted(common: &[&str]) -> Vec<Self> {
        let planted = |number: usize| format!("{PLANTED}{number}");
        let literals = |patterns: &[&str]| patterns.iter().map(|pattern| Query::literal(pattern)).collect();
        vec![
            Self::absent_and_rare(literals(&["ZZZ_notthere", "no_such_function_here", &planted(1)])),
            Self::no_hit_in_codesearch(literals(&["ZZZ_notthere"])),
            Self::selective_in_codesearch(literals(&[&planted(2)])),
            Self::every_line(literals(common)),
            Self::short(literals(&["~", "zq"])),
            Self::any_case(["zzz_NotThere", &planted(3).to_uppercase()].map(Query::any_case).to_vec()),
        ]
    }
}
