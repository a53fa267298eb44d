//! Python.

use crate::Kind;
use crate::rule::{Grammar, Name, Rule, Unless, define, descend};

/// What Python defines.
pub(crate) static GRAMMAR: Grammar = Grammar {
    language: tree_sitter_python::LANGUAGE,
    rules: &[RULES],
    through: &[("type", ""), ("generic_type", "")],
};

const RULES: &[Rule] = &[
    descend("block"),
    descend("decorated_definition"),
    descend("expression_statement"),
    descend("if_statement"),
    descend("elif_clause"),
    descend("else_clause"),
    descend("try_statement"),
    descend("except_clause"),
    descend("finally_clause"),
    descend("with_statement"),
    define("function_definition", Kind::Function).in_type(Kind::Method).with_body(),
    define("class_definition", Kind::Class).with_members(),
    define("type_alias_statement", Kind::Type).named(Name::Field("left")).not_in_body(),
    define("assignment", Kind::Variable)
        .in_type(Kind::Field)
        .not_in_body()
        .named(Name::Field("left"))
        .unless(&[(Unless::NameIsNot("identifier"), None), (Unless::Capitals, Some(Kind::Constant))])
        .and_inside(),
];
