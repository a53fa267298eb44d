//! The words in which a language's table says what its nodes define.

use crate::Kind;
use tree_sitter_language::LanguageFn;

/// Where a node is, as far as that makes a difference to what it defines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Outside all functions and types.
    Module = 0,
    /// Directly inside a type.
    Type = 1,
    /// Inside a function.
    Body = 2,
}

/// What is inside a node.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Inside {
    /// Nothing that would be defined: its children are not looked at.
    Nothing,
    /// More of what is around it.
    Same,
    /// The same, and to its children the node is not there: its parent is theirs.
    Transparent,
    /// Something else.
    Scope(Scope),
}

/// Which children of a node are its names: it defines one symbol for each.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Name {
    /// The first one in this field.
    Field(&'static str),
    /// All named ones in this field.
    Fields(&'static str),
    /// All named ones in this field; each is a whole definition by itself.
    Alone(&'static str),
    /// The first one that is a node of this kind.
    Node(&'static str),
    /// All that are nodes of this kind.
    Nodes(&'static str),
}

/// A reason to be of another kind than the rule says, or of none.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Unless {
    /// A child in the field is such a node.
    Has(&'static str, &'static str),
    /// There is no child in the field.
    Lacks(&'static str),
    /// The last child is such a node, and its first named child is such a node.
    EndsWith(&'static str, &'static str),
    /// The name is in such a node, the innermost of [`Grammar::through`].
    Wrapped(&'static str),
    /// The same, directly inside a type.
    WrappedInType(&'static str),
    /// The name is not such a node.
    NameIsNot(&'static str),
    /// A word between the node's start and its name.
    Word(&'static str),
    /// A word between the parent's start and the name.
    ParentWord(&'static str),
    /// The name has a capital and no small letter.
    Capitals,
    /// It is inside a function.
    InBody,
    /// Always.
    Otherwise,
}

/// What nodes of one kind define, and what is inside them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    /// The kind of node.
    pub node: &'static str,
    /// What it defines, by the scope that it is in.
    pub defines: [Option<Kind>; 3],
    /// Where its names are.
    pub name: Name,
    /// When it defines something else; the first that holds counts.
    pub unless: &'static [(Unless, Option<Kind>)],
    /// Where to look for more.
    pub inside: Inside,
}

/// A rule for nodes that define something, wherever they are, under the name in their field `name`. Nothing
/// else is looked for inside.
pub(crate) const fn define(node: &'static str, kind: Kind) -> Rule {
    Rule { node, defines: [Some(kind); 3], name: Name::Field("name"), unless: &[], inside: Inside::Nothing }
}

/// A rule for nodes that define nothing, but contain more of what is around them.
pub(crate) const fn descend(node: &'static str) -> Rule {
    Rule { node, defines: [None; 3], name: Name::Field("name"), unless: &[], inside: Inside::Same }
}

impl Rule {
    /// Directly inside a type it defines this.
    pub(crate) const fn in_type(mut self, kind: Kind) -> Self {
        self.defines[Scope::Type as usize] = Some(kind);
        self
    }

    /// Only directly inside a type it defines something.
    pub(crate) const fn only_in_type(mut self) -> Self {
        self.defines[Scope::Module as usize] = None;
        self.defines[Scope::Body as usize] = None;
        self
    }

    /// Inside a function it is not listed.
    pub(crate) const fn not_in_body(mut self) -> Self {
        self.defines[Scope::Body as usize] = None;
        self
    }

    /// Its names are elsewhere.
    pub(crate) const fn named(mut self, name: Name) -> Self {
        self.name = name;
        self
    }

    /// Sometimes it defines something else.
    pub(crate) const fn unless(mut self, unless: &'static [(Unless, Option<Kind>)]) -> Self {
        self.unless = unless;
        self
    }

    /// There is more inside, of what is around it.
    pub(crate) const fn and_inside(mut self) -> Self {
        self.inside = Inside::Same;
        self
    }

    /// There is more inside, and to that this node is not there.
    pub(crate) const fn transparent(mut self) -> Self {
        self.inside = Inside::Transparent;
        self
    }

    /// There is more inside, and that is directly in a type.
    pub(crate) const fn with_members(mut self) -> Self {
        self.inside = Inside::Scope(Scope::Type);
        self
    }

    /// There is more inside, and that is in a function.
    pub(crate) const fn with_body(mut self) -> Self {
        self.inside = Inside::Scope(Scope::Body);
        self
    }

    /// There is more inside, and that is in no type and no function.
    pub(crate) const fn with_module(mut self) -> Self {
        self.inside = Inside::Scope(Scope::Module);
        self
    }
}

/// One language's table.
pub(crate) struct Grammar {
    /// The parser's tables.
    pub language: LanguageFn,
    /// What its nodes define; a later rule for the same node replaces an earlier one. Nodes without a rule
    /// are not looked into.
    pub rules: &'static [&'static [Rule]],
    /// Nodes around a name, each with the field in which to go on; or `""`, for the first named child.
    pub through: &'static [(&'static str, &'static str)],
}
