//! Patterns: what is searched for in a text, and which grams a match must contain.

mod require;
mod smart_case;
mod stepwise;

use std::sync::OnceLock;

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use regex_syntax::{ParserBuilder, hir::Hir, is_meta_character};

pub(crate) use require::Requirement;
use stepwise::Stepwise;
pub(crate) use stepwise::Unanswered;

/// How a query is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Syntax {
    /// As it stands.
    Literal,
    /// As a regular expression.
    Regex,
}

/// Whether upper and lower case are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Case {
    /// Unless the query has a letter in upper case.
    #[default]
    Smart,
    /// No.
    Sensitive,
    /// Yes.
    Insensitive,
}

/// A query that is ready to be searched for.
pub(crate) struct Pattern {
    expression: String,
    is_insensitive: bool,
    /// Made when something is there to be looked at: most of what is not in an index is found out sooner.
    matcher: OnceLock<RegexMatcher>,
    /// For lines that are so long that a search may have to be interrupted within one.
    stepwise: OnceLock<Option<Stepwise>>,
    /// Whether looking for it may take long.
    pub(crate) is_slow: bool,
    pub(crate) requirement: Requirement,
}

/// How large a compiled expression may become. Large Unicode classes in large repetitions come to this; what goes
/// beyond would take seconds to compile.
const SIZE_LIMIT: usize = 32 << 20;
/// How much memory the lazily built automaton may take, for each thread that searches.
const AUTOMATON_LIMIT: usize = 32 << 20;

impl Pattern {
    /// `Err` says what is wrong with the query.
    pub(crate) fn new(query: &str, syntax: Syntax, case: Case) -> Result<Self, String> {
        let expression = match syntax {
            Syntax::Literal => regex_syntax::escape(query),
            Syntax::Regex => query.to_owned(),
        };
        let is_insensitive = match case {
            Case::Sensitive => false,
            Case::Insensitive => true,
            Case::Smart => smart_case::ignores_case(&expression),
        };
        let matcher = OnceLock::new();
        // A literal within a line is always an expression; of others only the compiler knows.
        let is_literal = syntax == Syntax::Literal || !query.contains(is_meta_character);
        let is_plain = is_literal && !query.contains(['\n', '\0']);
        if !is_plain {
            let made =
                matcher_of(&expression, is_insensitive).map_err(|error| explain(&error.to_string()))?;
            let _ = matcher.set(made);
        }
        let parsed = if is_plain && !is_insensitive {
            Ok(Hir::literal(query.as_bytes()))
        } else {
            let mut parser = ParserBuilder::new();
            parser.utf8(false).multi_line(true).case_insensitive(is_insensitive).build().parse(&expression)
        };
        // What cannot be told asks for nothing, and every block is looked at.
        let requirement = parsed.map_or(Requirement::Anything, |expression| Requirement::of(&expression));
        let is_slow = syntax == Syntax::Regex;
        Ok(Self { expression, is_insensitive, matcher, stepwise: OnceLock::new(), is_slow, requirement })
    }

    /// Where the first match in a line begins, if there is one; can be interrupted.
    pub(crate) fn find(
        &self,
        line: &[u8],
        has_ended: &dyn Fn() -> bool,
    ) -> Result<Option<usize>, Unanswered> {
        let make = || Stepwise::new(&self.expression, self.is_insensitive, SIZE_LIMIT, AUTOMATON_LIMIT);
        match self.stepwise.get_or_init(make) {
            Some(stepwise) => stepwise.find(line, has_ended),
            None => Err(Unanswered::Unknown),
        }
    }

    /// What decides whether a line matches.
    pub(crate) fn matcher(&self) -> &RegexMatcher {
        self.matcher.get_or_init(|| {
            matcher_of(&self.expression, self.is_insensitive).expect("a literal is an expression")
        })
    }
}

fn matcher_of(expression: &str, is_insensitive: bool) -> Result<RegexMatcher, grep_regex::Error> {
    // What ripgrep sets: matches stay in a line, and cannot hold NUL, which no text has.
    RegexMatcherBuilder::new()
        .multi_line(true)
        .unicode(true)
        .octal(false)
        .case_insensitive(is_insensitive)
        .line_terminator(Some(b'\n'))
        .dot_matches_new_line(false)
        .ban_byte(Some(0))
        .size_limit(SIZE_LIMIT)
        .dfa_size_limit(AUTOMATON_LIMIT)
        .build(expression)
}

fn explain(problem: &str) -> String {
    if problem.contains("\\n") || problem.contains("\"\\n\"") {
        return "a match cannot reach over the end of a line; search for a part of one line".into();
    }
    problem.trim().to_owned()
}
