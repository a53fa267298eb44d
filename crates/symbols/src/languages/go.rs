//! Go.

use crate::Kind;
use crate::rule::{Grammar, Name, Rule, Unless, define, descend};

/// What Go defines.
pub(crate) static GRAMMAR: Grammar =
    Grammar { language: tree_sitter_go::LANGUAGE, rules: &[RULES], through: &[] };

const RULES: &[Rule] = &[
    descend("type_declaration"),
    descend("const_declaration"),
    descend("var_declaration"),
    descend("var_spec_list"),
    descend("struct_type"),
    descend("interface_type"),
    descend("field_declaration_list"),
    define("function_declaration", Kind::Function),
    define("method_declaration", Kind::Method),
    define("type_spec", Kind::Type)
        .unless(&[
            (Unless::Has("type", "struct_type"), Some(Kind::Struct)),
            (Unless::Has("type", "interface_type"), Some(Kind::Interface)),
        ])
        .with_members(),
    define("type_alias", Kind::Type),
    define("field_declaration", Kind::Field).named(Name::Fields("name")).and_inside(),
    define("method_elem", Kind::Method),
    define("const_spec", Kind::Constant).named(Name::Fields("name")),
    define("var_spec", Kind::Variable).named(Name::Fields("name")),
];
