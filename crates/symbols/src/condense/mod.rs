//! A shortcut for C: the text without what defines nothing.
//!
//! Most of a C file is inside functions, comments, parameters and values. The parser needs far longer for those
//! than a plain scan needs to leave them out, so it gets a text with empty bodies, and what it finds there is put
//! back into its place in the real one. Macros do not go through the parser at all: a `#define` is a line.
//!
//! Preprocessor lines are left out too. Where a condition chooses between whole declarations, all of them stay;
//! where it chooses between parts of one, the first part stays.

mod cursor;
mod pieces;
mod scanner;
mod words;

use crate::symbol::Definition;
use pieces::Pieces;
use scanner::Scanner;

/// A text without what defines nothing.
pub(crate) struct Condensed {
    pieces: Pieces,
    /// What was found on the way: the macros.
    macros: Vec<Definition>,
}

impl Condensed {
    /// What the parser is to read.
    pub(crate) fn text(&self) -> &[u8] {
        self.pieces.text()
    }

    /// All definitions in their real places: the macros, and what the parser found.
    pub(crate) fn restore(self, found: Vec<Definition>) -> Vec<Definition> {
        let pieces = &self.pieces;
        let mut all = self.macros;
        all.extend(found.into_iter().map(|definition| {
            let start = pieces.original(definition.name.start);
            let name = start..start + definition.name.len();
            let end = pieces.original(definition.end.max(1) - 1) + 1;
            Definition { end: end.max(name.end), name, kind: definition.kind }
        }));
        all.sort_by_key(|definition| definition.name.start);
        all
    }
}

/// Leaves out of a C text what defines nothing; nothing at all if `has_ended` has said yes.
pub(crate) fn condense(text: &[u8], has_ended: &dyn Fn() -> bool) -> Option<Condensed> {
    let (pieces, macros) = Scanner::new(text).run(has_ended)?;
    Some(Condensed { pieces, macros })
}

#[cfg(test)]
mod tests;
