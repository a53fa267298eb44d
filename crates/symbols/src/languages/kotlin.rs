//! Kotlin.

use crate::Kind;
use crate::rule::{Grammar, Name, Rule, Unless, define, descend};

/// What Kotlin defines.
pub(crate) static GRAMMAR: Grammar = Grammar {
    language: tree_sitter_kotlin_ng::LANGUAGE,
    rules: &[RULES],
    through: &[("variable_declaration", "")],
};

const RULES: &[Rule] = &[
    descend("class_body"),
    descend("enum_class_body"),
    descend("primary_constructor"),
    descend("class_parameters"),
    define("class_declaration", Kind::Class)
        .unless(&[
            (Unless::Word("interface"), Some(Kind::Interface)),
            (Unless::Word("enum"), Some(Kind::Enum)),
        ])
        .with_members(),
    define("object_declaration", Kind::Class).with_members(),
    define("companion_object", Kind::Class).with_members(),
    define("enum_entry", Kind::Constant).named(Name::Node("identifier")).with_members(),
    define("function_declaration", Kind::Function).in_type(Kind::Method),
    define("property_declaration", Kind::Variable)
        .in_type(Kind::Field)
        .named(Name::Node("variable_declaration"))
        .unless(&[(Unless::NameIsNot("identifier"), None), (Unless::Word("const"), Some(Kind::Constant))]),
    // A parameter of a constructor is a field if it says so.
    define("class_parameter", Kind::Field).named(Name::Node("identifier")).unless(&[
        (Unless::Word("val"), Some(Kind::Field)),
        (Unless::Word("var"), Some(Kind::Field)),
        (Unless::Otherwise, None),
    ]),
    define("type_alias", Kind::Type).named(Name::Field("type")),
];
