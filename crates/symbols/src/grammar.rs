//! A language's table, with all names resolved to the parser's numbers.

use crate::Kind;
use crate::rule::{Grammar, Inside, Name, Rule, Unless};
use std::num::NonZeroU16;
use tree_sitter::Language;

/// The number of a field.
type FieldId = NonZeroU16;

/// A [`Grammar`] ready for use.
pub(crate) struct Resolved {
    /// The parser's tables.
    pub language: Language,
    /// For each number of a node kind, the rule of such nodes plus one; zero is for no rule.
    by_node: Vec<u8>,
    rules: Vec<ResolvedRule>,
    through: Vec<Option<Through>>,
}

/// What a rule says, in numbers.
pub(crate) struct ResolvedRule {
    /// What it defines, by scope.
    pub defines: [Option<Kind>; 3],
    /// Where the names are.
    pub name: ResolvedName,
    /// When it is something else.
    pub unless: Vec<(ResolvedUnless, Option<Kind>)>,
    /// Where to look for more.
    pub inside: Inside,
}

/// See [`Name`].
pub(crate) enum ResolvedName {
    /// The children in this field.
    Field { field: FieldId, only_first: bool, alone: bool },
    /// The children of this kind. Kinds are compared by name, because one name can have several numbers.
    Node { kind: &'static str, only_first: bool },
}

/// See [`Unless`].
pub(crate) enum ResolvedUnless {
    /// [`Unless::Has`].
    Has(FieldId, &'static str),
    /// [`Unless::Lacks`].
    Lacks(FieldId),
    /// All others need no numbers.
    Other(Unless),
}

/// How to go on from a node around a name.
#[derive(Clone, Copy)]
pub(crate) enum Through {
    /// In this field.
    Field(FieldId),
    /// In the first named child.
    First,
}

impl Resolved {
    /// Looks every name up. A name that the grammar does not have never matches; a test sees to it that there is none.
    pub(crate) fn new(grammar: &Grammar) -> Self {
        let language = Language::new(grammar.language);
        let count = language.node_kind_count();
        let rules: Vec<&Rule> = grammar.rules.iter().copied().flatten().collect();
        let mut by_node = vec![0; count];
        let mut through = vec![None; count];
        let field = |name: &str| language.field_id_for_name(name);
        for id in 0..count as u16 {
            if !language.node_kind_is_named(id) || !language.node_kind_is_visible(id) {
                continue;
            }
            let name = language.node_kind_for_id(id).unwrap_or_default();
            if let Some(rule) = rules.iter().rposition(|rule| rule.node == name) {
                by_node[usize::from(id)] = rule as u8 + 1;
            }
            if let Some((_, name)) = grammar.through.iter().find(|(node, _)| *node == name) {
                through[usize::from(id)] = match field(name) {
                    Some(field) => Some(Through::Field(field)),
                    None => Some(Through::First),
                };
            }
        }
        let number = |name| field(name).unwrap_or(FieldId::MAX);
        let resolve = |rule: &&Rule| ResolvedRule {
            defines: rule.defines,
            name: match rule.name {
                Name::Field(name) => {
                    ResolvedName::Field { field: number(name), only_first: true, alone: false }
                }
                Name::Fields(name) => {
                    ResolvedName::Field { field: number(name), only_first: false, alone: false }
                }
                Name::Alone(name) => {
                    ResolvedName::Field { field: number(name), only_first: false, alone: true }
                }
                Name::Node(kind) => ResolvedName::Node { kind, only_first: true },
                Name::Nodes(kind) => ResolvedName::Node { kind, only_first: false },
            },
            unless: rule
                .unless
                .iter()
                .map(|(unless, kind)| match *unless {
                    Unless::Has(name, node) => (ResolvedUnless::Has(number(name), node), *kind),
                    Unless::Lacks(name) => (ResolvedUnless::Lacks(number(name)), *kind),
                    other => (ResolvedUnless::Other(other), *kind),
                })
                .collect(),
            inside: rule.inside,
        };
        let rules = rules.iter().map(resolve).collect();
        Self { language, by_node, rules, through }
    }

    /// The rule for nodes of this kind.
    pub(crate) fn rule(&self, node: u16) -> Option<&ResolvedRule> {
        let index = *self.by_node.get(usize::from(node))?;
        self.rules.get(usize::from(index).checked_sub(1)?)
    }

    /// How to go on from a node of this kind that is around a name.
    pub(crate) fn through(&self, node: u16) -> Option<Through> {
        self.through.get(usize::from(node)).copied().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::grammars;

    #[test]
    fn every_name_in_a_table_is_one_of_its_grammar() {
        for (name, grammar) in grammars() {
            let language = Language::new(grammar.language);
            let has_node = |node: &str| {
                (0..language.node_kind_count() as u16).any(|id| language.node_kind_for_id(id) == Some(node))
            };
            let has_field = |field: &str| language.field_id_for_name(field).is_some();
            let rules: Vec<&Rule> = grammar.rules.iter().copied().flatten().collect();
            assert!(rules.len() < 255, "{name}: the number of a rule has one byte");
            for rule in rules {
                assert!(has_node(rule.node), "{name}: node {}", rule.node);
                match rule.name {
                    Name::Field(field) | Name::Fields(field) | Name::Alone(field) => {
                        assert!(
                            rule.defines == [None; 3] || has_field(field),
                            "{name}: {} field {field}",
                            rule.node
                        );
                    }
                    Name::Node(node) | Name::Nodes(node) => assert!(has_node(node), "{name}: node {node}"),
                }
                for (unless, _) in rule.unless {
                    match unless {
                        Unless::Has(field, node) => {
                            assert!(has_field(field), "{name}: {} field {field}", rule.node);
                            assert!(has_node(node), "{name}: node {node}");
                        }
                        Unless::Lacks(field) => {
                            assert!(has_field(field), "{name}: {} field {field}", rule.node)
                        }
                        Unless::EndsWith(node, inner) => {
                            assert!(has_node(node), "{name}: node {node}");
                            assert!(has_node(inner), "{name}: node {inner}");
                        }
                        Unless::Wrapped(node) | Unless::WrappedInType(node) | Unless::NameIsNot(node) => {
                            assert!(has_node(node), "{name}: node {node}");
                        }
                        Unless::Word(_) | Unless::ParentWord(_) => {}
                        Unless::Capitals | Unless::InBody | Unless::Otherwise => {}
                    }
                }
            }
            for (node, field) in grammar.through {
                assert!(has_node(node), "{name}: node {node}");
                assert!(field.is_empty() || has_field(field), "{name}: {node} field {field}");
            }
        }
    }
}
