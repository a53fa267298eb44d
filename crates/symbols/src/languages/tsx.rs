//! TypeScript with JSX.

use super::{javascript, typescript};
use crate::rule::Grammar;

/// What TypeScript defines, in the grammar that knows JSX.
pub(crate) static GRAMMAR: Grammar = Grammar {
    language: tree_sitter_typescript::LANGUAGE_TSX,
    rules: &[javascript::SHARED, typescript::RULES],
    through: javascript::THROUGH,
};
