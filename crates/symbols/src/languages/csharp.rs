//! C#.

use crate::Kind;
use crate::rule::{Grammar, Rule, Unless, define, descend};

/// What C# defines.
pub(crate) static GRAMMAR: Grammar =
    Grammar { language: tree_sitter_c_sharp::LANGUAGE, rules: &[RULES], through: &[] };

const RULES: &[Rule] = &[
    descend("preproc_if"),
    descend("preproc_elif"),
    descend("preproc_else"),
    descend("global_statement"),
    descend("declaration_list"),
    descend("enum_member_declaration_list"),
    descend("field_declaration"),
    descend("event_field_declaration"),
    descend("variable_declaration").transparent(),
    define("namespace_declaration", Kind::Module).with_module(),
    define("file_scoped_namespace_declaration", Kind::Module),
    define("class_declaration", Kind::Class).with_members(),
    define("record_declaration", Kind::Class)
        .unless(&[(Unless::Word("struct"), Some(Kind::Struct))])
        .with_members(),
    define("struct_declaration", Kind::Struct).with_members(),
    define("interface_declaration", Kind::Interface).with_members(),
    define("enum_declaration", Kind::Enum).with_members(),
    define("enum_member_declaration", Kind::Constant),
    define("delegate_declaration", Kind::Type),
    define("method_declaration", Kind::Method),
    define("constructor_declaration", Kind::Method),
    define("destructor_declaration", Kind::Method),
    define("local_function_statement", Kind::Function),
    define("property_declaration", Kind::Field),
    define("event_declaration", Kind::Field),
    define("variable_declarator", Kind::Field)
        .only_in_type()
        .unless(&[(Unless::ParentWord("const"), Some(Kind::Constant))]),
];
