//! A second judge, of columns alone.
//!
//! The engine of ripgrep up to 15.2 sometimes tells of a match that is not the first in its line (rust-lang/regex
//! 1354, mended in `regex` 1.13.1, with which Pintle is built). Which lines match is not touched by it. Where the two
//! columns differ, the plainest of the engines decides: it steps through the text and leaves nothing out.

use regex_automata::{
    Input,
    nfa::thompson::{self, pikevm::PikeVM},
    util::syntax,
};

use super::{Hit, patterns::Question};

/// The same hits, with the columns that ripgrep has too late put right.
pub fn corrected(question: &Question, hits: &[Hit]) -> Vec<Hit> {
    let engine = question.is_regex.then(|| engine(question));
    let column = |hit: &Hit| -> Option<u64> {
        let told = hit.column?;
        let Some(engine) = &engine else { return Some(told) };
        let mut slots = [None; 2];
        engine.search_slots(&mut engine.create_cache(), &Input::new(&hit.text), &mut slots);
        let first = slots[0].map(|place| place.get() as u64 + 1);
        // Only what is too late is a fault of that kind.
        Some(first.map_or(told, |first| first.min(told)))
    };
    let correct = |hit: &Hit| Hit {
        path: hit.path.clone(),
        line: hit.line,
        column: column(hit),
        text: hit.text.clone(),
    };
    hits.iter().map(correct).collect()
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

/// Leaving out those that name a class, as `\W` and `\p{Greek}` do.
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
