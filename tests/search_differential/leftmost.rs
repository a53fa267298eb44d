//! A second reference, for matches that ripgrep misses.
//!
//! The engine of ripgrep up to 15.2 sometimes skips the first match and reports a later one (rust-lang/regex 1354,
//! fixed in `regex` 1.13.1, with which Pintle is built): in the same line, whose column is then too late, or in a later
//! line, so that `(target)*a` finds only the second line of `target/` and `Cargo.lock`. Where the two differ, the
//! simplest of the engines decides: it steps through the text and skips nothing.

use regex_automata::{
    Input,
    nfa::thompson::{self, pikevm::PikeVM},
    util::syntax,
};

use super::{Hit, patterns::Question};

/// The same hits, with the columns corrected that ripgrep reports too late.
pub fn corrected(question: &Question, hits: &[Hit]) -> Vec<Hit> {
    let engine = question.is_regex.then(|| engine(question));
    let column = |hit: &Hit| -> Option<u64> {
        let reported = hit.column?;
        let Some(engine) = &engine else { return Some(reported) };
        let mut slots = [None; 2];
        engine.search_slots(&mut engine.create_cache(), &Input::new(&hit.text), &mut slots);
        let first = slots[0].map(|offset| offset.get() as u64 + 1);
        // Only a column that is too late is an error of that kind.
        Some(first.map_or(reported, |first| first.min(reported)))
    };
    let correct = |hit: &Hit| Hit {
        path: hit.path.clone(),
        line: hit.line,
        column: column(hit),
        text: hit.text.clone(),
    };
    hits.iter().map(correct).collect()
}

/// Whether the only difference is that ripgrep's output lacks lines that match.
pub fn only_misses_lines(question: &Question, expected: &[u8], found: &[u8]) -> bool {
    if !question.is_regex {
        return false;
    }
    let engine = engine(question);
    let mut cache = engine.create_cache();
    let mut rest = expected.split_inclusive(|byte| *byte == b'\n').peekable();
    let is_right = found.split_inclusive(|byte| *byte == b'\n').all(|line| {
        rest.next_if_eq(&line).is_some() || engine.is_match(&mut cache, Input::new(text_of(line)))
    });
    is_right && rest.next().is_none()
}

/// The text of a printed line, after its path, its number and its column.
fn text_of(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let mut parts = line.splitn(4, |byte| *byte == b':');
    parts.nth(3).unwrap_or_default()
}

fn engine(question: &Question) -> PikeVM {
    let is_insensitive = match question.case.of_tool {
        Some("smart") => !has_upper_case_letter(&question.text),
        case => case == Some("insensitive"),
    };
    let expression = match question.is_word {
        true => format!(r"\b{{start-half}}(?:{})\b{{end-half}}", question.text),
        false => question.text.clone(),
    };
    PikeVM::builder()
        .syntax(syntax::Config::new().multi_line(true).utf8(false).case_insensitive(is_insensitive))
        .thompson(thompson::Config::new().utf8(false))
        .build(&expression)
        .expect("what ripgrep takes is an expression")
}

/// Letters that name a class, as in `\W` and `\p{Greek}`, do not count.
fn has_upper_case_letter(expression: &str) -> bool {
    let mut letters = expression.chars();
    while let Some(letter) = letters.next() {
        if letter == '\\' {
            let named = letters.next();
            if matches!(named, Some('p' | 'P')) && letters.next() == Some('{') {
                letters.find(|letter| *letter == '}');
            }
        } else if letter.is_uppercase() {
            return true;
        }
    }
    false
}
