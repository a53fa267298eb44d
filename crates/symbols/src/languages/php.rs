//! PHP.

use crate::Kind;
use crate::rule::{Grammar, Name, Rule, define, descend};

/// What PHP defines.
pub(crate) static GRAMMAR: Grammar =
    Grammar { language: tree_sitter_php::LANGUAGE_PHP, rules: &[RULES], through: &[("variable_name", "")] };

const RULES: &[Rule] = &[
    descend("compound_statement"),
    descend("if_statement"),
    descend("else_clause"),
    descend("else_if_clause"),
    descend("declaration_list"),
    descend("enum_declaration_list"),
    descend("const_declaration"),
    descend("property_declaration"),
    descend("formal_parameters"),
    define("namespace_definition", Kind::Module).with_module(),
    define("class_declaration", Kind::Class).with_members(),
    define("interface_declaration", Kind::Interface).with_members(),
    define("trait_declaration", Kind::Trait).with_members(),
    define("enum_declaration", Kind::Enum).with_members(),
    define("enum_case", Kind::Constant),
    define("function_definition", Kind::Function).with_body(),
    define("method_declaration", Kind::Method).with_body(),
    define("property_element", Kind::Field),
    define("property_promotion_parameter", Kind::Field),
    define("const_element", Kind::Constant).named(Name::Node("name")),
];
