//! Java.

use crate::Kind;
use crate::rule::{Grammar, Name, Rule, Unless, define, descend};

/// What Java defines.
pub(crate) static GRAMMAR: Grammar = Grammar {
    language: tree_sitter_java::LANGUAGE,
    rules: &[RULES],
    through: &[("variable_declarator", "name")],
};

const RULES: &[Rule] = &[
    descend("class_body"),
    descend("interface_body"),
    descend("enum_body"),
    descend("enum_body_declarations"),
    descend("annotation_type_body"),
    define("class_declaration", Kind::Class).with_members(),
    define("record_declaration", Kind::Class).with_members(),
    define("interface_declaration", Kind::Interface).with_members(),
    define("annotation_type_declaration", Kind::Interface).with_members(),
    define("enum_declaration", Kind::Enum).with_members(),
    define("enum_constant", Kind::Constant).with_members(),
    define("method_declaration", Kind::Method),
    define("constructor_declaration", Kind::Method),
    define("compact_constructor_declaration", Kind::Method),
    define("annotation_type_element_declaration", Kind::Method),
    define("field_declaration", Kind::Field)
        .named(Name::Fields("declarator"))
        .unless(&[(Unless::Capitals, Some(Kind::Constant))]),
    define("constant_declaration", Kind::Constant).named(Name::Fields("declarator")),
    define("module_declaration", Kind::Module),
];
