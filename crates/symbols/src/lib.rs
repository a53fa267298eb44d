//! What language a file is in, and what it defines.
//!
//! A [`Language`] is known from a file's name. For some of them an [`Outliner`] finds what a text defines: its
//! functions, types, constants and so on, each a [`Symbol`] with its position.
//!
//! A text is parsed with the language's grammar, and the tree is walked only where definitions can be: `rule.rs`
//! has the words in which a language's table (`languages/`) says where that is.

mod budget;
mod cplusplus;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod grammar;
mod kind;
mod language;
mod languages;
mod lines;
mod outline;
mod rule;
mod symbol;
mod walk;

pub use kind::Kind;
pub use language::Language;
pub use outline::{Outline, Outliner};
pub use symbol::Symbol;
