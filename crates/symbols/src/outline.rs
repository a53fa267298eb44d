//! What a text defines.

use crate::budget::{Budget, Stop};
use crate::grammar::Resolved;
use crate::language::Language;
use crate::lines::Lines;
use crate::symbol::{Definition, Symbol};
use crate::walk::definitions;
use std::ops::ControlFlow;
use tree_sitter::{ParseOptions, ParseState, Parser};

/// The longest text that is parsed. The parser can need two hundred bytes of memory for one of nothing but brackets.
const LONGEST_TEXT: usize = 4 * 1024 * 1024;

/// What came of outlining a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outline {
    /// All symbols, in the order of their names in the text.
    Complete(Vec<Symbol>),
    /// Parsing would have taken far longer than a text of this length should. These symbols are known all the same.
    GaveUp(Vec<Symbol>),
    /// `has_ended` said yes.
    Interrupted,
    /// Nothing is known about what texts in this language define.
    Unsupported,
}

impl Outline {
    /// The symbols that are known, unless it was interrupted or the language has none.
    pub fn symbols(self) -> Option<Vec<Symbol>> {
        match self {
            Self::Complete(symbols) | Self::GaveUp(symbols) => Some(symbols),
            Self::Interrupted | Self::Unsupported => None,
        }
    }
}

/// Finds what texts define. It keeps the prepared grammars from one text to the next, so there should be one for each
/// thread.
pub struct Outliner {
    parser: Parser,
    /// The prepared grammars, by the number of the language.
    grammars: Vec<Option<Resolved>>,
}

impl Default for Outliner {
    fn default() -> Self {
        Self::new()
    }
}

impl Outliner {
    /// One without any prepared grammar.
    pub fn new() -> Self {
        Self { parser: Parser::new(), grammars: Vec::new() }
    }

    /// What `text` defines, in the order of the text. `has_ended` is asked often whether anybody still waits.
    ///
    /// The text may be anything at all: what cannot be parsed defines nothing.
    pub fn outline(&mut self, language: Language, text: &[u8], has_ended: &dyn Fn() -> bool) -> Outline {
        if !language.has_symbols() {
            return Outline::Unsupported;
        }
        let language = language.by_content(text);
        if has_ended() {
            return Outline::Interrupted;
        }
        let (found, stop) = self.parse(language, text, has_ended);
        if stop == Some(Stop::Interrupted) {
            return Outline::Interrupted;
        }
        let lines = Lines::new(text);
        let symbols = found.into_iter().map(|definition| lines.locate(definition)).collect();
        if stop.is_some() { Outline::GaveUp(symbols) } else { Outline::Complete(symbols) }
    }

    /// What the parser finds, and why it stopped before the end.
    fn parse(
        &mut self,
        language: Language,
        text: &[u8],
        has_ended: &dyn Fn() -> bool,
    ) -> (Vec<Definition>, Option<Stop>) {
        if text.len() > LONGEST_TEXT {
            return (Vec::new(), Some(Stop::Spent));
        }
        if text.iter().all(u8::is_ascii_whitespace) {
            return (Vec::new(), None);
        }
        let index = usize::from(language.id());
        if self.grammars.len() <= index {
            self.grammars.resize_with(index + 1, || None);
        }
        if self.grammars[index].is_none() {
            self.grammars[index] = language.grammar().map(Resolved::new);
        }
        let Some(grammar) = &self.grammars[index] else { return (Vec::new(), None) };
        // Fails only for a grammar made for another version of the parser; a test sees to it that there is none.
        if self.parser.set_language(&grammar.language).is_err() {
            return (Vec::new(), None);
        }
        let budget = Budget::new(text, has_ended);
        let mut step = |_: &ParseState| match budget.step() {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        };
        let options = ParseOptions::new().progress_callback(&mut step);
        let tree = self.parser.parse_with_options(&mut |offset, _| budget.read(offset), None, Some(options));
        if let Some(stop) = budget.stop() {
            self.parser.reset();
            return (Vec::new(), Some(stop));
        }
        let Some(tree) = tree else { return (Vec::new(), Some(Stop::Spent)) };
        match definitions(grammar, &tree, text, has_ended) {
            Some(found) => (found, None),
            None => (Vec::new(), Some(Stop::Interrupted)),
        }
    }
}
