//! Rust.

use crate::Kind;
use crate::rule::{Grammar, Rule, define, descend};

/// What Rust defines.
pub(crate) static GRAMMAR: Grammar =
    Grammar { language: tree_sitter_rust::LANGUAGE, rules: &[RULES], through: &[] };

const RULES: &[Rule] = &[
    descend("declaration_list"),
    descend("enum_variant_list"),
    descend("field_declaration_list"),
    descend("foreign_mod_item"),
    descend("block"),
    descend("impl_item").with_members(),
    define("function_item", Kind::Function).in_type(Kind::Method).with_body(),
    define("function_signature_item", Kind::Function).in_type(Kind::Method),
    define("struct_item", Kind::Struct).with_members(),
    define("union_item", Kind::Union).with_members(),
    define("enum_item", Kind::Enum).with_members(),
    define("enum_variant", Kind::Variant).and_inside(),
    define("field_declaration", Kind::Field),
    define("trait_item", Kind::Trait).with_members(),
    define("mod_item", Kind::Module).with_module(),
    define("type_item", Kind::Type).not_in_body(),
    define("associated_type", Kind::Type),
    define("const_item", Kind::Constant).not_in_body(),
    define("static_item", Kind::Variable).not_in_body(),
    define("macro_definition", Kind::Macro),
];
