//! Bash, and what is like it.

use crate::Kind;
use crate::rule::{Grammar, Name, Rule, Unless, define, descend};

/// What Bash defines.
pub(crate) static GRAMMAR: Grammar = Grammar {
    language: tree_sitter_bash::LANGUAGE,
    rules: &[RULES],
    through: &[("variable_assignment", "name")],
};

const RULES: &[Rule] = &[
    descend("if_statement"),
    descend("elif_clause"),
    descend("else_clause"),
    descend("case_statement"),
    descend("case_item"),
    descend("compound_statement"),
    descend("variable_assignments"),
    define("function_definition", Kind::Function).with_body(),
    define("variable_assignment", Kind::Variable)
        .not_in_body()
        .unless(&[(Unless::NameIsNot("variable_name"), None)]),
    define("declaration_command", Kind::Variable)
        .not_in_body()
        .named(Name::Nodes("variable_assignment"))
        .unless(&[
            (Unless::NameIsNot("variable_name"), None),
            (Unless::Word("readonly"), Some(Kind::Constant)),
        ]),
];
