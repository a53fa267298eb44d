//! C++.

use super::c;
use crate::Kind;
use crate::rule::{Grammar, Name, Rule, Unless, define, descend};

/// What C++ defines.
pub(crate) static GRAMMAR: Grammar = Grammar {
    language: tree_sitter_cpp::LANGUAGE,
    rules: &[c::RULES, RULES],
    through: &[
        ("init_declarator", "declarator"),
        ("pointer_declarator", "declarator"),
        ("array_declarator", "declarator"),
        ("function_declarator", "declarator"),
        ("reference_declarator", ""),
        ("parenthesized_declarator", ""),
        ("attributed_declarator", ""),
        ("qualified_identifier", "name"),
        ("template_function", "name"),
        ("template_method", "name"),
        ("template_type", "name"),
    ],
};

/// What C++ has beyond C, or has in another way.
const RULES: &[Rule] = &[
    descend("template_declaration"),
    define("function_definition", Kind::Function)
        .in_type(Kind::Method)
        .named(Name::Field("declarator"))
        .unless(&[(Unless::Wrapped("qualified_identifier"), Some(Kind::Method))]),
    // Constructors and destructors that are defined elsewhere are declarations.
    define("declaration", Kind::Variable)
        .in_type(Kind::Field)
        .not_in_body()
        .named(Name::Fields("declarator"))
        .unless(&[
            (Unless::WrappedInType("function_declarator"), Some(Kind::Method)),
            (Unless::Wrapped("function_declarator"), None),
            (Unless::NameIsNot("identifier"), None),
            (Unless::Word("extern"), None),
        ])
        .and_inside(),
    define("field_declaration", Kind::Field)
        .named(Name::Fields("declarator"))
        .unless(&[(Unless::Wrapped("function_declarator"), Some(Kind::Method))])
        .and_inside(),
    define("class_specifier", Kind::Class).unless(&[(Unless::Lacks("body"), None)]).with_members(),
    define("namespace_definition", Kind::Module).with_module(),
    define("alias_declaration", Kind::Type),
    define("concept_definition", Kind::Trait),
];
