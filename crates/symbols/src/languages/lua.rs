//! Lua.

use crate::Kind;
use crate::rule::{Grammar, Name, Rule, Unless, define, descend};

/// What Lua defines.
pub(crate) static GRAMMAR: Grammar = Grammar {
    language: tree_sitter_lua::LANGUAGE,
    rules: &[RULES],
    through: &[
        ("dot_index_expression", "field"),
        ("method_index_expression", "method"),
        ("variable_list", "name"),
        ("string", "content"),
    ],
};

const RULES: &[Rule] = &[
    descend("block"),
    descend("do_statement"),
    descend("if_statement"),
    descend("else_statement"),
    descend("return_statement"),
    descend("expression_list"),
    descend("table_constructor"),
    descend("variable_declaration"),
    descend("function_definition").with_body(),
    define("function_declaration", Kind::Function)
        .unless(&[(Unless::Wrapped("method_index_expression"), Some(Kind::Method))])
        .with_body(),
    // A function that has its name from a variable is listed everywhere; a variable, outside functions, if it
    // is not a part of another.
    define("assignment_statement", Kind::Variable)
        .named(Name::Node("variable_list"))
        .unless(&[
            (Unless::NameIsNot("identifier"), None),
            (Unless::EndsWith("expression_list", "function_definition"), Some(Kind::Function)),
            (Unless::InBody, None),
            (Unless::Wrapped("dot_index_expression"), None),
            (Unless::Capitals, Some(Kind::Constant)),
        ])
        .and_inside(),
    define("field", Kind::Function)
        .unless(&[
            (Unless::Has("value", "function_definition"), Some(Kind::Function)),
            (Unless::Otherwise, None),
        ])
        .and_inside(),
];
