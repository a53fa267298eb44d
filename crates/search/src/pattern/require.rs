//! From a regular expression to the trigrams that each of its matches contains.
//!
//! For each part of the expression we keep the set of all its matches while that is small. Beyond that we keep sets
//! of prefixes and suffixes: each match begins with one of the former and ends with one of the latter. Where two
//! parts meet, the suffixes of one and the prefixes of the next form strings that must occur. The requirement is
//! conservative: a text without the required trigrams has no match.

use std::collections::BTreeSet;

use regex_syntax::hir::{Class, Hir, HirKind};

use crate::trigrams::{Trigram, trigram};

/// The trigrams that a block must have to contain a match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Requirement {
    /// No trigram is required: every block is a candidate.
    Anything,
    /// No block can match.
    Nothing,
    Trigram(Trigram),
    All(Vec<Requirement>),
    Either(Vec<Requirement>),
}

impl Requirement {
    /// The trigrams that each match of an expression contains.
    pub(crate) fn of(expression: &Hir) -> Self {
        let mut matches = analyze(expression, 0);
        matches.finish();
        matches.required
    }

    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Anything, other) | (other, Self::Anything) => other,
            (Self::Nothing, _) | (_, Self::Nothing) => Self::Nothing,
            (one, other) if one == other => one,
            (one, other) => {
                let mut parts = Vec::new();
                for requirement in [one, other] {
                    match requirement {
                        Self::All(inner) => parts.extend(inner),
                        requirement => parts.push(requirement),
                    }
                }
                let mut unique: Vec<Self> = Vec::with_capacity(parts.len());
                for part in parts {
                    if !unique.contains(&part) {
                        unique.push(part);
                    }
                }
                Self::All(unique)
            }
        }
    }

    fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Anything, _) | (_, Self::Anything) => Self::Anything,
            (Self::Nothing, other) | (other, Self::Nothing) => other,
            (one, other) if one == other => one,
            (Self::Either(mut parts), Self::Either(more)) => {
                parts.extend(more);
                Self::Either(parts)
            }
            (Self::Either(mut parts), other) | (other, Self::Either(mut parts)) => {
                parts.push(other);
                Self::Either(parts)
            }
            (one, other) => Self::Either(vec![one, other]),
        }
    }

    /// Requires that one of the strings occurs. A string that is too short for a trigram requires nothing.
    fn one_of(strings: &Strings) -> Self {
        let mut required = Self::Nothing;
        for string in strings {
            let mut trigrams = Self::Anything;
            for window in string.windows(3) {
                trigrams = trigrams.and(Self::Trigram(trigram([window[0], window[1], window[2]])));
            }
            required = required.or(trigrams);
        }
        required
    }
}

type Strings = BTreeSet<Vec<u8>>;

/// The largest set of strings that is kept. It holds all spellings of three letters in any case, even where some
/// letters have three.
const MOST: usize = 64;
/// If a match is longer, only its prefix and suffix are kept.
const LONGEST: usize = 256;
/// Parts of an expression that are nested deeper require nothing.
const DEEPEST: usize = 200;

/// What is known about the matches of a part of an expression.
#[derive(Clone)]
struct Matches {
    /// All matches, if they are few.
    exact: Option<Strings>,
    /// Each match begins with one of the prefixes and ends with one of the suffixes.
    prefixes: Strings,
    suffixes: Strings,
    required: Requirement,
}

fn analyze(expression: &Hir, depth: usize) -> Matches {
    if depth > DEEPEST {
        return Matches::unknown();
    }
    match expression.kind() {
        HirKind::Empty | HirKind::Look(_) => Matches::exactly([Vec::new()].into()),
        HirKind::Literal(literal) => Matches::exactly([literal.0.to_vec()].into()),
        HirKind::Class(class) => members(class).map_or_else(Matches::unknown, Matches::exactly),
        HirKind::Capture(capture) => analyze(&capture.sub, depth + 1),
        HirKind::Repetition(repetition) => {
            // It is analyzed once however often it is repeated: repetitions of repetitions would take exponentially long.
            let one = analyze(&repetition.sub, depth + 1);
            let is_exact = repetition.max == Some(repetition.min);
            match repetition.min {
                0 if repetition.max == Some(0) => Matches::exactly([Vec::new()].into()),
                0 if repetition.max == Some(1) => one.or(Matches::exactly([Vec::new()].into())),
                0 => Matches::unknown(),
                least => {
                    // Four repetitions contain every trigram that more of them can have.
                    let unrolled = least.min(4);
                    let mut matches = (1..unrolled).fold(one.clone(), |matches, _| matches.then(one.clone()));
                    if !(is_exact && unrolled == least) {
                        matches.forget_exact();
                    }
                    matches
                }
            }
        }
        HirKind::Concat(parts) => {
            let start = Matches::exactly([Vec::new()].into());
            parts.iter().fold(start, |matches, part| matches.then(analyze(part, depth + 1)))
        }
        HirKind::Alternation(parts) => {
            let mut parts = parts.iter().map(|part| analyze(part, depth + 1));
            let first = parts.next().unwrap_or_else(Matches::unknown);
            parts.fold(first, Matches::or)
        }
    }
}

/// The members of a small character class, in UTF-8.
fn members(class: &Class) -> Option<Strings> {
    let mut members = Strings::new();
    match class {
        Class::Unicode(class) => {
            for range in class.ranges() {
                if range.len() + members.len() > MOST {
                    return None;
                }
                members.extend((range.start()..=range.end()).map(|char| char.to_string().into_bytes()));
            }
        }
        Class::Bytes(class) => {
            for range in class.ranges() {
                if range.len() + members.len() > MOST {
                    return None;
                }
                members.extend((range.start()..=range.end()).map(|byte| vec![byte]));
            }
        }
    }
    Some(members)
}

impl Matches {
    fn exactly(strings: Strings) -> Self {
        let mut matches = Self {
            exact: Some(strings),
            prefixes: Strings::new(),
            suffixes: Strings::new(),
            required: Requirement::Anything,
        };
        matches.bound();
        matches
    }

    /// The part may match any string.
    fn unknown() -> Self {
        let any = Strings::from([Vec::new()]);
        Self { exact: None, prefixes: any.clone(), suffixes: any, required: Requirement::Anything }
    }

    fn then(mut self, mut next: Self) -> Self {
        let required = self.required.clone().and(next.required.clone());
        if let (Some(one), Some(other)) = (&self.exact, &next.exact)
            && one.len() * other.len() <= MOST
        {
            let mut matches = Self::exactly(product(one, other));
            matches.required = matches.required.and(required);
            return matches;
        }
        let own = self.exact.clone();
        let others = next.exact.clone();
        self.forget_exact();
        next.forget_exact();
        let meeting = Requirement::one_of(&product(&self.suffixes, &next.prefixes));
        let prefixes = match own {
            Some(own) if own.len() * next.prefixes.len() <= MOST => product(&own, &next.prefixes),
            _ => self.prefixes,
        };
        let suffixes = match others {
            Some(others) if others.len() * self.suffixes.len() <= MOST => product(&self.suffixes, &others),
            _ => next.suffixes,
        };
        let required = self.required.and(next.required).and(meeting).and(required);
        let mut matches = Self { exact: None, prefixes, suffixes, required };
        matches.bound();
        matches
    }

    fn or(mut self, mut other: Self) -> Self {
        if let (Some(one), Some(more)) = (&mut self.exact, &other.exact)
            && one.len() + more.len() <= MOST
        {
            one.extend(more.iter().cloned());
            self.required = self.required.or(other.required);
            return self;
        }
        self.forget_exact();
        other.forget_exact();
        self.prefixes.append(&mut other.prefixes);
        self.suffixes.append(&mut other.suffixes);
        self.required = self.required.or(other.required);
        self.bound();
        self
    }

    /// Replaces the set of all matches by what it requires, its prefixes and its suffixes.
    fn forget_exact(&mut self) {
        let Some(exact) = self.exact.take() else { return };
        let strings_occur = Requirement::one_of(&exact);
        self.required = std::mem::replace(&mut self.required, Requirement::Anything).and(strings_occur);
        self.prefixes = exact.clone();
        self.suffixes = exact;
        self.bound();
    }

    /// Keeps the sets small. Before strings are cut short, their trigrams are added to the requirement.
    fn bound(&mut self) {
        if let Some(exact) = &self.exact {
            if exact.len() > MOST || exact.iter().any(|string| string.len() > LONGEST) {
                self.forget_exact();
            }
            return;
        }
        for is_prefix in [true, false] {
            let strings = if is_prefix { &mut self.prefixes } else { &mut self.suffixes };
            let mut length = strings.iter().map(Vec::len).max().unwrap_or(0);
            // Two bytes on either side are enough to form the trigrams where two parts meet.
            if length <= 2 && strings.len() <= MOST {
                continue;
            }
            let strings_occur = Requirement::one_of(strings);
            length = length.min(3);
            loop {
                length -= 1;
                let cut = |string: &Vec<u8>| match is_prefix {
                    true => string[..string.len().min(length)].to_vec(),
                    false => string[string.len().saturating_sub(length)..].to_vec(),
                };
                *strings = strings.iter().map(cut).collect();
                if strings.len() <= MOST {
                    break;
                }
            }
            self.required = std::mem::replace(&mut self.required, Requirement::Anything).and(strings_occur);
        }
    }

    /// Adds everything that is known to the requirement.
    fn finish(&mut self) {
        self.forget_exact();
        for strings in [&self.prefixes, &self.suffixes] {
            let strings_occur = Requirement::one_of(strings);
            self.required = std::mem::replace(&mut self.required, Requirement::Anything).and(strings_occur);
        }
    }
}

fn product(starts: &Strings, ends: &Strings) -> Strings {
    starts.iter().flat_map(|start| ends.iter().map(|end| [start.as_slice(), end].concat())).collect()
}

#[cfg(any(test, fuzzing))]
impl Requirement {
    /// Whether a block with these trigrams is a candidate.
    pub(crate) fn holds(&self, trigrams: &std::collections::HashSet<Trigram>) -> bool {
        match self {
            Self::Anything => true,
            Self::Nothing => false,
            Self::Trigram(trigram) => trigrams.contains(trigram),
            Self::All(parts) => parts.iter().all(|part| part.holds(trigrams)),
            Self::Either(parts) => parts.iter().any(|part| part.holds(trigrams)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;
    use regex_syntax::ParserBuilder;

    use super::*;

    fn trigrams_of(text: &[u8]) -> HashSet<Trigram> {
        text.windows(3).map(|window| trigram([window[0], window[1], window[2]])).collect()
    }

    fn required(expression: &str, is_insensitive: bool) -> Requirement {
        let mut parser =
            ParserBuilder::new().utf8(false).multi_line(true).case_insensitive(is_insensitive).build();
        Requirement::of(&parser.parse(expression).expect(expression))
    }

    #[test]
    fn texts_without_a_match_lack_a_required_trigram() {
        for (expression, is_insensitive, matching, other) in [
            ("PM_RESUME", false, "xPM_RESUMEx", "PM_RES UME"),
            ("[A-Z]+_SUSPEND", false, "X_SUSPEND", "SUSPEND"),
            (r"EXPORT_SYMBOL_GPL\(bpf_[a-z]+", false, "EXPORT_SYMBOL_GPL(bpf_x", "EXPORT_SYMBOL_GPL(foo"),
            ("foo|bar", false, "a bar", "a baz"),
            ("(abc|def)(ghi|jkl)", false, "defghi", "abc jkl"),
            ("x*abc", false, "abc", "xxxab"),
            ("(abc)+", false, "abcabc", "ab"),
            ("kernel", true, "\u{212a}ERNEL", "ernal"),
            ("mask", true, "ma\u{17f}K", "mast"),
            ("a{5}", false, "aaaaa", "aa"),
            ("(ab){2,}", false, "abab", "ab"),
            ("foo.*bar", false, "foo and bar", "foo"),
        ] {
            let required = required(expression, is_insensitive);
            assert!(required.holds(&trigrams_of(matching.as_bytes())), "{expression}: {required:?}");
            assert!(!required.holds(&trigrams_of(other.as_bytes())), "{expression}: {required:?}");
        }
    }

    #[test]
    fn repetitions_of_repetitions_are_analyzed_once() {
        let nested = (0..40).fold("ab".to_owned(), |inner, _| format!("({inner}){{4}}"));
        let required = required(&nested, false);
        assert!(required.holds(&trigrams_of(b"abababab")), "{required:?}");
        assert!(!required.holds(&trigrams_of(b"abcabc")), "{required:?}");
    }

    #[test]
    fn an_expression_without_a_trigram_requires_nothing() {
        for expression in
            ["", "a", "ab", ".*", r"\w{5}", "abc|d", "(abc)?", "(abc)*", "^$", r"\b", "[ab][cd]"]
        {
            assert_eq!(required(expression, false), Requirement::Anything, "{expression}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 400, max_global_rejects: 100_000, ..ProptestConfig::default() })]
        #[test]
        fn every_match_has_what_is_required(
            expression in "(([abK]|ab|k|[a-c]|é|s){1,3}[+*?]?|\\(?(abc|a|bc)\\)?|\\((a|bcd)\\|(b|[kx]y)\\)(\\{2,3\\})?){1,5}",
            text in "[abckKsxyé()\u{212a}\u{17f}]{0,30}",
            is_insensitive in any::<bool>(),
        ) {
            let built = grep_regex::RegexMatcherBuilder::new().case_insensitive(is_insensitive).build(&expression);
            prop_assume!(built.is_ok());
            let matcher = built.expect("it was built");
            if let Ok(Some(found)) = grep_matcher::Matcher::find(&matcher, text.as_bytes()) {
                let required = required(&expression, is_insensitive);
                let trigrams = trigrams_of(&text.as_bytes()[found]);
                prop_assert!(required.holds(&trigrams), "{} {} {:?}", expression, text, required);
            }
        }
    }
}
