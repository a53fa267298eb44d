//! Scala.

use crate::Kind;
use crate::rule::{Grammar, Name, Rule, Unless, define, descend};

/// What Scala defines.
pub(crate) static GRAMMAR: Grammar =
    Grammar { language: tree_sitter_scala::LANGUAGE, rules: &[RULES], through: &[] };

const RULES: &[Rule] = &[
    descend("package_clause"),
    descend("template_body"),
    descend("with_template_body"),
    descend("enum_body"),
    descend("enum_case_definitions"),
    descend("extension_definition").with_members(),
    descend("class_parameters").transparent(),
    define("package_object", Kind::Module).with_members(),
    define("object_definition", Kind::Class).with_members(),
    define("class_definition", Kind::Class).with_members(),
    define("trait_definition", Kind::Trait).with_members(),
    define("enum_definition", Kind::Enum).with_members(),
    define("simple_enum_case", Kind::Variant),
    define("full_enum_case", Kind::Variant),
    define("function_definition", Kind::Function).in_type(Kind::Method),
    define("function_declaration", Kind::Function).in_type(Kind::Method),
    define("given_definition", Kind::Variable).in_type(Kind::Field),
    define("type_definition", Kind::Type),
    define("val_declaration", Kind::Variable).in_type(Kind::Field),
    define("var_declaration", Kind::Variable).in_type(Kind::Field),
    define("val_definition", Kind::Variable)
        .in_type(Kind::Field)
        .named(Name::Field("pattern"))
        .unless(&[(Unless::NameIsNot("identifier"), None)]),
    define("var_definition", Kind::Variable)
        .in_type(Kind::Field)
        .named(Name::Field("pattern"))
        .unless(&[(Unless::NameIsNot("identifier"), None)]),
    // A parameter of a class is a field if it says so, or the class is a case class.
    define("class_parameter", Kind::Field).unless(&[
        (Unless::Word("val"), Some(Kind::Field)),
        (Unless::Word("var"), Some(Kind::Field)),
        (Unless::ParentWord("case"), Some(Kind::Field)),
        (Unless::Otherwise, None),
    ]),
];
