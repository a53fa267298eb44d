//! From a tree to the definitions in it.

use crate::Kind;
use crate::grammar::{Resolved, ResolvedName, ResolvedRule, ResolvedUnless, Through};
use crate::rule::{Inside, Scope, Unless};
use crate::symbol::{Definition, is_a_name};
use tree_sitter::{Node, Tree, TreeCursor};

/// How many nodes are looked at between two questions whether to stop.
const NODES_BETWEEN_QUESTIONS: u32 = 4096;
/// The number of the nodes that hold what could not be parsed.
const ERROR_NODE: u16 = u16::MAX;
/// How much of a definition is searched for a word before its name; the rest is not worth the time.
const LONGEST_HEADER: usize = 256;
/// How many nodes a name can be wrapped in. A real one is in a handful.
const DEEPEST_NAME: usize = 64;

/// What `tree` defines, in the order of the names in the text; nothing if `has_ended` has said yes.
///
/// Depth costs no stack: a text decides how deep its tree is.
pub(crate) fn definitions(
    grammar: &Resolved,
    tree: &Tree,
    text: &[u8],
    has_ended: &dyn Fn() -> bool,
) -> Option<Vec<Definition>> {
    let mut walk = Walk { grammar, text, names: tree.walk(), found: Vec::new() };
    let mut cursor = tree.walk();
    let mut around = Vec::new();
    let mut here = Around { scope: Scope::Module, start: text.len() };
    let mut nodes = 0u32;
    if !cursor.goto_first_child() {
        return Some(Vec::new());
    }
    loop {
        nodes = nodes.wrapping_add(1);
        if nodes.is_multiple_of(NODES_BETWEEN_QUESTIONS) && has_ended() {
            return None;
        }
        let node = cursor.node();
        let inside = match grammar.rule(node.kind_id()) {
            Some(rule) => {
                walk.look(rule, node, here);
                rule.inside
            }
            None if node.kind_id() == ERROR_NODE => Inside::Same,
            None => Inside::Nothing,
        };
        let start = node.start_byte();
        let there = match inside {
            Inside::Nothing => None,
            Inside::Same => Some(Around { scope: here.scope, start }),
            Inside::Transparent => Some(here),
            Inside::Scope(scope) => Some(Around { scope, start }),
        };
        if let Some(there) = there
            && cursor.goto_first_child()
        {
            around.push(here);
            here = there;
            continue;
        }
        while !cursor.goto_next_sibling() {
            let Some(outer) = around.pop() else {
                let mut found = walk.found;
                found.sort_by_key(|definition| definition.name.start);
                found.dedup_by_key(|definition| definition.name.start);
                return Some(found);
            };
            here = outer;
            cursor.goto_parent();
        }
    }
}

/// What is around a node.
#[derive(Clone, Copy)]
struct Around {
    scope: Scope,
    /// The first byte of the parent. What is on top has none: the end of the text stands for it.
    start: usize,
}

/// A walk's state.
struct Walk<'a> {
    grammar: &'a Resolved,
    text: &'a [u8],
    /// Goes over the children of a node that defines something.
    names: TreeCursor<'a>,
    found: Vec<Definition>,
}

impl<'a> Walk<'a> {
    /// Notes what a node defines.
    fn look(&mut self, rule: &ResolvedRule, node: Node<'a>, around: Around) {
        let Some(kind) = rule.defines[around.scope as usize] else { return };
        self.names.reset(node);
        if !self.names.goto_first_child() {
            return;
        }
        loop {
            let child = self.names.node();
            let (is_name, is_last, alone) = match rule.name {
                ResolvedName::Field { field, only_first, alone } => {
                    let is_name = (only_first || child.is_named()) && self.names.field_id() == Some(field);
                    (is_name, only_first, alone)
                }
                ResolvedName::Node { kind, only_first } => (child.kind() == kind, only_first, false),
            };
            if is_name {
                let found = Found { node, name: self.innermost(child), around };
                if let Some(kind) = self.kind(rule, kind, &found)
                    && let name = found.name.0.byte_range()
                    && self.text.get(name.clone()).is_some_and(is_a_name)
                {
                    let end = if alone { child.end_byte() } else { node.end_byte() };
                    self.found.push(Definition { name, kind, end });
                }
            }
            if is_name && is_last || !self.names.goto_next_sibling() {
                return;
            }
        }
    }

    /// The name inside what is around it, and the innermost node around it.
    fn innermost(&self, mut node: Node<'a>) -> (Node<'a>, Option<Node<'a>>) {
        let mut wrapper = None;
        for _ in 0..DEEPEST_NAME {
            let next = match self.grammar.through(node.kind_id()) {
                Some(Through::Field(field)) => node.child_by_field_id(field.get()),
                Some(Through::First) => node.named_child(0),
                None => None,
            };
            let Some(next) = next else { break };
            wrapper = Some(node);
            node = next;
        }
        (node, wrapper)
    }

    /// What a name is, when all exceptions have been heard.
    fn kind(&self, rule: &ResolvedRule, kind: Kind, found: &Found<'a>) -> Option<Kind> {
        let holds = |unless: &ResolvedUnless| match unless {
            ResolvedUnless::Has(field, kind) => {
                found.node.child_by_field_id(field.get()).is_some_and(|child| child.kind() == *kind)
            }
            ResolvedUnless::Lacks(field) => found.node.child_by_field_id(field.get()).is_none(),
            ResolvedUnless::Other(other) => self.holds(*other, found),
        };
        match rule.unless.iter().find(|(unless, _)| holds(unless)) {
            Some((_, otherwise)) => *otherwise,
            None => Some(kind),
        }
    }

    fn holds(&self, unless: Unless, found: &Found<'a>) -> bool {
        let (name, wrapper) = found.name;
        let is_wrapped = |kind: &str| wrapper.is_some_and(|wrapper| wrapper.kind() == kind);
        let has_word = |start: usize, word: &str| {
            let end = name.start_byte().min(start + LONGEST_HEADER);
            words(self.text.get(start..end).unwrap_or_default()).any(|found| found == word.as_bytes())
        };
        match unless {
            Unless::Has(..) | Unless::Lacks(_) => false,
            Unless::EndsWith(kind, inner) => {
                let last =
                    found.node.child_count().checked_sub(1).and_then(|last| found.node.child(last as u32));
                last.filter(|last| last.kind() == kind)
                    .and_then(|last| last.named_child(0))
                    .is_some_and(|child| child.kind() == inner)
            }
            Unless::Wrapped(kind) => is_wrapped(kind),
            Unless::WrappedInType(kind) => found.around.scope == Scope::Type && is_wrapped(kind),
            Unless::NameIsNot(kind) => name.kind() != kind,
            Unless::Word(word) => has_word(found.node.start_byte(), word),
            Unless::ParentWord(word) => has_word(found.around.start, word),
            Unless::Capitals => self.text.get(name.byte_range()).is_some_and(is_in_capitals),
            Unless::InBody => found.around.scope == Scope::Body,
            Unless::Otherwise => true,
        }
    }
}

/// A name that was found, before it is known what it is.
struct Found<'a> {
    /// The node that defines it.
    node: Node<'a>,
    /// The name, and the innermost node around it.
    name: (Node<'a>, Option<Node<'a>>),
    around: Around,
}

/// The words of a text, without what is between them.
fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_').filter(|word| !word.is_empty())
}

/// Whether a name has a capital and no small letter. A single capital is no constant.
fn is_in_capitals(name: &[u8]) -> bool {
    name.len() > 1
        && name.iter().any(u8::is_ascii_uppercase)
        && !name.iter().any(|byte| byte.is_ascii_lowercase() || !byte.is_ascii())
}
