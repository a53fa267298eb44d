//! Ruby.

use crate::Kind;
use crate::rule::{Grammar, Name, Rule, Unless, define, descend};

/// What Ruby defines.
pub(crate) static GRAMMAR: Grammar = Grammar {
    language: tree_sitter_ruby::LANGUAGE,
    rules: &[RULES],
    through: &[("scope_resolution", "name")],
};

const RULES: &[Rule] = &[
    descend("body_statement"),
    descend("begin"),
    descend("if"),
    descend("unless"),
    descend("then"),
    descend("else"),
    // `private def name`, `included do ... end`, `Struct.new(:field) do ... end`
    descend("call"),
    descend("argument_list"),
    descend("do_block"),
    descend("singleton_class").with_members(),
    define("module", Kind::Module).with_members(),
    define("class", Kind::Class).with_members(),
    define("method", Kind::Function).in_type(Kind::Method),
    define("singleton_method", Kind::Method),
    define("assignment", Kind::Constant)
        .named(Name::Field("left"))
        .unless(&[(Unless::NameIsNot("constant"), None)])
        .and_inside(),
];
