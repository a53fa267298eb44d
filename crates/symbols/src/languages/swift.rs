//! Swift.

use crate::Kind;
use crate::rule::{Grammar, Name, Rule, Unless, define, descend};

/// What Swift defines.
pub(crate) static GRAMMAR: Grammar = Grammar {
    language: tree_sitter_swift::LANGUAGE,
    rules: &[RULES],
    through: &[("pattern", "bound_identifier")],
};

const RULES: &[Rule] = &[
    descend("class_body"),
    descend("enum_class_body"),
    descend("protocol_body"),
    // An extension adds to a type that is defined elsewhere.
    define("class_declaration", Kind::Class)
        .unless(&[
            (Unless::Has("declaration_kind", "extension"), None),
            (Unless::Has("declaration_kind", "struct"), Some(Kind::Struct)),
            (Unless::Has("declaration_kind", "enum"), Some(Kind::Enum)),
        ])
        .with_members(),
    define("protocol_declaration", Kind::Interface).with_members(),
    define("enum_entry", Kind::Variant).named(Name::Fields("name")),
    define("function_declaration", Kind::Function).in_type(Kind::Method),
    define("protocol_function_declaration", Kind::Method),
    define("init_declaration", Kind::Method),
    define("property_declaration", Kind::Variable)
        .in_type(Kind::Field)
        .named(Name::Fields("name"))
        .unless(&[(Unless::NameIsNot("simple_identifier"), None)]),
    define("protocol_property_declaration", Kind::Field),
    define("typealias_declaration", Kind::Type),
    define("associatedtype_declaration", Kind::Type),
];
