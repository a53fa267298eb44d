//! Patterns: a compiled query, and the trigrams that each of its matches must contain.

mod require;
mod smart_case;
mod stepwise;

use std::sync::OnceLock;

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use memchr::memmem;
use regex_syntax::{
    ParserBuilder,
    hir::{
        Hir,
        literal::{ExtractKind, Extractor},
    },
    is_meta_character,
};
use serde::{Deserialize, Serialize};

pub(crate) use require::Requirement;
use stepwise::Stepwise;
pub(crate) use stepwise::StepwiseError;

/// How a query is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Syntax {
    /// As literal text.
    Literal,
    /// As a regular expression.
    Regex,
}

/// Whether upper and lower case letters match each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Case {
    /// Only if the query has no upper case letter.
    Smart,
    /// Never.
    #[default]
    Sensitive,
    /// Always.
    Insensitive,
}

/// How a query is to be matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meaning {
    pub(crate) syntax: Syntax,
    pub(crate) case: Case,
    /// Whether a match must begin and end at word boundaries.
    pub(crate) is_word: bool,
}

/// A compiled query.
pub(crate) struct Pattern {
    expression: String,
    is_insensitive: bool,
    /// Whether a match must begin and end at word boundaries.
    pub(crate) is_word: bool,
    /// Compiled when there is a candidate to verify: most queries without hits are answered by the posting lists
    /// alone.
    matcher: OnceLock<RegexMatcher>,
    /// For lines that are so long that a search must be interruptible within one.
    stepwise: OnceLock<Option<Stepwise>>,
    /// Whether matching may take long, so that cancellation must be checked often.
    pub(crate) is_slow: bool,
    /// The length in bytes of the shortest possible match.
    shortest: usize,
    /// Strings one of which each match ends with; empty if they are not known.
    endings: Vec<Vec<u8>>,
    pub(crate) requirement: Requirement,
}

/// The size limit of a compiled expression. Large Unicode classes in large repetitions get near it; anything larger
/// would take seconds to compile.
const SIZE_LIMIT: usize = 32 << 20;
/// The memory limit of the lazily built DFA, for each thread that searches.
const AUTOMATON_LIMIT: usize = 32 << 20;

impl Pattern {
    pub(crate) fn new(query: &str, meaning: Meaning) -> Result<Self, PatternError> {
        let Meaning { syntax, case, is_word } = meaning;
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
        // A literal within one line always compiles. Whether anything else does, only the compiler knows.
        let is_literal = syntax == Syntax::Literal || !query.contains(is_meta_character);
        let is_plain = is_literal && !query.contains(['\n', '\0']);
        if !is_plain {
            let made = matcher_of(&expression, is_insensitive, is_word)?;
            let _ = matcher.set(made);
        }
        // A match at word boundaries is also a match without them, so what the expression requires holds for both.
        let parsed = if is_plain && !is_insensitive {
            Ok(Hir::literal(query.as_bytes()))
        } else {
            let mut parser = ParserBuilder::new();
            parser.utf8(false).multi_line(true).case_insensitive(is_insensitive).build().parse(&expression)
        };
        let shortest = parsed.as_ref().ok().and_then(|expression| expression.properties().minimum_len());
        let shortest = shortest.unwrap_or(0);
        let endings = parsed.as_ref().map(endings_of).unwrap_or_default();
        // If nothing is known about the matches, nothing is required, and every block is a candidate.
        let requirement = parsed.map_or(Requirement::Anything, |expression| Requirement::of(&expression));
        let is_slow = syntax == Syntax::Regex;
        let stepwise = OnceLock::new();
        Ok(Self {
            expression,
            is_insensitive,
            is_word,
            matcher,
            stepwise,
            is_slow,
            shortest,
            endings,
            requirement,
        })
    }

    /// The offset of the first match in a line, if there is one. Unlike the matcher, this can be interrupted.
    pub(crate) fn find(
        &self,
        line: &[u8],
        has_ended: &dyn Fn() -> bool,
    ) -> Result<Option<usize>, StepwiseError> {
        // ripgrep's matcher makes the same checks first. Without them the DFA would have to follow each of the many
        // positions where a match could have begun.
        let has_ending = || self.endings.iter().any(|ending| memmem::find(line, ending).is_some());
        if line.len() < self.shortest || !(self.endings.is_empty() || has_ending()) {
            return Ok(None);
        }
        let expression = match self.is_word {
            true => &format!(r"\b{{start-half}}(?:{})\b{{end-half}}", self.expression),
            false => &self.expression,
        };
        let make = || Stepwise::new(expression, self.is_insensitive, SIZE_LIMIT, AUTOMATON_LIMIT);
        match self.stepwise.get_or_init(make) {
            Some(stepwise) => stepwise.find(line, has_ended),
            None => Err(StepwiseError::Unsupported),
        }
    }

    /// ripgrep's matcher, which decides whether a line matches.
    pub(crate) fn matcher(&self) -> &RegexMatcher {
        self.matcher.get_or_init(|| {
            matcher_of(&self.expression, self.is_insensitive, self.is_word)
                .expect("a literal is an expression")
        })
    }
}

/// Strings one of which each match ends with, if they are few.
fn endings_of(expression: &Hir) -> Vec<Vec<u8>> {
    const MOST: usize = 16;
    let mut extractor = Extractor::new();
    let endings = extractor.kind(ExtractKind::Suffix).limit_total(MOST).extract(expression);
    let endings = endings.literals().unwrap_or_default();
    match endings.iter().any(|ending| ending.is_empty()) {
        true => Vec::new(),
        false => endings.iter().map(|ending| ending.as_bytes().to_vec()).collect(),
    }
}

fn matcher_of(
    expression: &str,
    is_insensitive: bool,
    is_word: bool,
) -> Result<RegexMatcher, grep_regex::Error> {
    // ripgrep's own settings: a match stays within a line, and cannot contain NUL, which no text file has.
    RegexMatcherBuilder::new()
        .multi_line(true)
        .unicode(true)
        .octal(false)
        .case_insensitive(is_insensitive)
        .word(is_word)
        .line_terminator(Some(b'\n'))
        .dot_matches_new_line(false)
        .ban_byte(Some(0))
        .size_limit(SIZE_LIMIT)
        .dfa_size_limit(AUTOMATON_LIMIT)
        .build(expression)
}

/// Why a query is not valid.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PatternError {
    #[error("a match cannot span lines; search for a part of one line")]
    LineEnd,
    /// The message of the regular expression compiler.
    #[error("{0}")]
    Expression(String),
}

impl From<grep_regex::Error> for PatternError {
    fn from(error: grep_regex::Error) -> Self {
        let message = error.to_string();
        // The compiler has one kind of error for all bytes that an expression may not match.
        match message.contains("\\n") {
            true => Self::LineEnd,
            false => Self::Expression(message.trim().to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_cannot_match_for_its_length_or_its_letters_is_not_stepped_through() {
        for (expression, line, found) in [
            ("a{5}", "aaaa", None),
            ("a{5}", "baaaaa", Some(1)),
            ("[a-z]{3}Q", "abcdefg", None),
            ("[a-z]{3}Q", "xabcQ", Some(1)),
            ("[a-z]+(foo|bar)$", "some fox", None),
            ("[a-z]+(foo|bar)$", "some xfoo", Some(5)),
        ] {
            let meaning = Meaning { syntax: Syntax::Regex, case: Case::Sensitive, is_word: false };
            let pattern = Pattern::new(expression, meaning).expect("an expression");
            let questions = std::cell::Cell::new(0);
            let has_ended = || {
                questions.set(questions.get() + 1);
                false
            };
            assert_eq!(pattern.find(line.as_bytes(), &has_ended), Ok(found), "{expression} {line}");
            assert_eq!(questions.get() > 0, found.is_some(), "{expression} {line}");
        }
    }
}
