//! TypeScript.

use super::javascript;
use crate::Kind;
use crate::rule::{Grammar, Name, Rule, Unless, define, descend};

/// What TypeScript defines.
pub(crate) static GRAMMAR: Grammar = Grammar {
    language: tree_sitter_typescript::LANGUAGE_TYPESCRIPT,
    rules: &[javascript::SHARED, RULES],
    through: javascript::THROUGH,
};

/// What TypeScript has beyond JavaScript.
pub(super) const RULES: &[Rule] = &[
    descend("ambient_declaration"),
    descend("interface_body"),
    define("abstract_class_declaration", Kind::Class).with_members(),
    define("interface_declaration", Kind::Interface).with_members(),
    define("method_signature", Kind::Method),
    define("abstract_method_signature", Kind::Method),
    define("property_signature", Kind::Field),
    define("public_field_definition", Kind::Field).unless(&[
        (Unless::Has("value", "arrow_function"), Some(Kind::Method)),
        (Unless::Has("value", "function_expression"), Some(Kind::Method)),
    ]),
    define("function_signature", Kind::Function),
    define("type_alias_declaration", Kind::Type).not_in_body(),
    define("enum_declaration", Kind::Enum).with_members(),
    define("enum_body", Kind::Constant).named(Name::Alone("name")).and_inside(),
    define("enum_assignment", Kind::Constant),
    define("module", Kind::Module).with_module(),
    define("internal_module", Kind::Module).with_module(),
];
