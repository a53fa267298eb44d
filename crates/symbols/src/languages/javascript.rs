//! JavaScript, with JSX.

use crate::Kind;
use crate::rule::{Grammar, Name, Rule, Unless, define, descend};

/// What JavaScript defines.
pub(crate) static GRAMMAR: Grammar =
    Grammar { language: tree_sitter_javascript::LANGUAGE, rules: &[SHARED, RULES], through: THROUGH };

/// What is around a name.
pub(super) const THROUGH: &[(&str, &str)] = &[("string", ""), ("member_expression", "property")];

const RULES: &[Rule] = &[define("field_definition", Kind::Field).named(Name::Field("property")).unless(&[
    (Unless::Has("value", "arrow_function"), Some(Kind::Method)),
    (Unless::Has("value", "function_expression"), Some(Kind::Method)),
])];

/// What JavaScript has in common with TypeScript.
pub(super) const SHARED: &[Rule] = &[
    descend("export_statement"),
    descend("statement_block"),
    descend("if_statement"),
    descend("else_clause"),
    descend("try_statement"),
    descend("catch_clause"),
    descend("finally_clause"),
    descend("expression_statement"),
    descend("return_statement"),
    descend("parenthesized_expression"),
    descend("unary_expression"),
    descend("call_expression"),
    descend("member_expression"),
    descend("arguments"),
    descend("object"),
    descend("lexical_declaration"),
    descend("variable_declaration"),
    descend("class_body"),
    descend("class_static_block").with_body(),
    descend("arrow_function").with_body(),
    descend("function_expression").with_body(),
    descend("generator_function").with_body(),
    descend("class").with_members(),
    define("function_declaration", Kind::Function).with_body(),
    define("generator_function_declaration", Kind::Function).with_body(),
    define("class_declaration", Kind::Class).with_members(),
    define("method_definition", Kind::Method).with_body(),
    // A variable is listed outside functions; a function that has its name from a variable, everywhere.
    define("variable_declarator", Kind::Variable)
        .unless(&[
            (Unless::NameIsNot("identifier"), None),
            (Unless::Has("value", "arrow_function"), Some(Kind::Function)),
            (Unless::Has("value", "function_expression"), Some(Kind::Function)),
            (Unless::Has("value", "generator_function"), Some(Kind::Function)),
            (Unless::Has("value", "class"), Some(Kind::Class)),
            (Unless::InBody, None),
            (Unless::ParentWord("const"), Some(Kind::Constant)),
        ])
        .and_inside(),
    // `exports.name = function () {}`
    define("assignment_expression", Kind::Function)
        .named(Name::Field("left"))
        .unless(&[
            (Unless::Has("right", "arrow_function"), Some(Kind::Function)),
            (Unless::Has("right", "function_expression"), Some(Kind::Function)),
            (Unless::Has("right", "generator_function"), Some(Kind::Function)),
            (Unless::Has("right", "class"), Some(Kind::Class)),
            (Unless::Otherwise, None),
        ])
        .and_inside(),
    // `{ name: function () {} }`
    define("pair", Kind::Method)
        .named(Name::Field("key"))
        .unless(&[
            (Unless::Has("value", "arrow_function"), Some(Kind::Method)),
            (Unless::Has("value", "function_expression"), Some(Kind::Method)),
            (Unless::Has("value", "generator_function"), Some(Kind::Method)),
            (Unless::Otherwise, None),
        ])
        .and_inside(),
];
