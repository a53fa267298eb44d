//! C.

use crate::Kind;
use crate::rule::{Grammar, Name, Rule, Unless, define, descend};

/// What C defines.
pub(crate) static GRAMMAR: Grammar =
    Grammar { language: tree_sitter_c::LANGUAGE, rules: &[RULES], through: THROUGH };

/// What is around a name.
const THROUGH: &[(&str, &str)] = &[
    ("init_declarator", "declarator"),
    ("pointer_declarator", "declarator"),
    ("array_declarator", "declarator"),
    ("function_declarator", "declarator"),
    ("parenthesized_declarator", ""),
    ("attributed_declarator", ""),
];

/// What C has in common with C++.
pub(super) const RULES: &[Rule] = &[
    descend("preproc_if"),
    descend("preproc_ifdef"),
    descend("preproc_elif"),
    descend("preproc_elifdef"),
    descend("preproc_else"),
    descend("linkage_specification"),
    descend("declaration_list"),
    descend("enumerator_list"),
    descend("field_declaration_list"),
    define("preproc_def", Kind::Macro),
    define("preproc_function_def", Kind::Macro),
    define("function_definition", Kind::Function).named(Name::Field("declarator")),
    // What is only declared is defined elsewhere.
    define("declaration", Kind::Variable)
        .not_in_body()
        .named(Name::Fields("declarator"))
        .unless(&[
            (Unless::Wrapped("function_declarator"), None),
            (Unless::NameIsNot("identifier"), None),
            (Unless::Word("extern"), None),
        ])
        .and_inside(),
    define("type_definition", Kind::Type).named(Name::Fields("declarator")).and_inside(),
    define("struct_specifier", Kind::Struct).unless(&[(Unless::Lacks("body"), None)]).with_members(),
    define("union_specifier", Kind::Union).unless(&[(Unless::Lacks("body"), None)]).with_members(),
    define("enum_specifier", Kind::Enum).unless(&[(Unless::Lacks("body"), None)]).with_members(),
    define("enumerator", Kind::Constant),
    define("field_declaration", Kind::Field)
        .named(Name::Fields("declarator"))
        .unless(&[(Unless::NameIsNot("field_identifier"), None)])
        .and_inside(),
];
