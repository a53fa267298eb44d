//! What sort of thing a symbol is.

/// What sort of thing a symbol is: what an editor's outline would show it as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A function that belongs to no type.
    Function,
    /// A function of a type; constructors and destructors too.
    Method,
    /// A class, a record, an actor, an object.
    Class,
    /// A struct.
    Struct,
    /// A union.
    Union,
    /// An enumeration.
    Enum,
    /// One alternative of an enumeration that can carry data. Where it is a mere named value, it is a
    /// [`Kind::Constant`].
    Variant,
    /// An interface or a protocol.
    Interface,
    /// A trait, a mixin, a concept.
    Trait,
    /// Another name for a type, or a type of no other kind.
    Type,
    /// A named value that does not change.
    Constant,
    /// A variable outside functions and types.
    Variable,
    /// A value that each instance of a type has: a field or a property.
    Field,
    /// A module, a namespace, a package.
    Module,
    /// A macro.
    Macro,
}

/// Each kind with its name, at its number: numbers are stored on disk, so rows are only ever added at the end.
const KINDS: [(Kind, &str); 15] = [
    (Kind::Function, "function"),
    (Kind::Method, "method"),
    (Kind::Class, "class"),
    (Kind::Struct, "struct"),
    (Kind::Union, "union"),
    (Kind::Enum, "enum"),
    (Kind::Variant, "variant"),
    (Kind::Interface, "interface"),
    (Kind::Trait, "trait"),
    (Kind::Type, "type"),
    (Kind::Constant, "constant"),
    (Kind::Variable, "variable"),
    (Kind::Field, "field"),
    (Kind::Module, "module"),
    (Kind::Macro, "macro"),
];

impl Kind {
    /// Its name, in lower case.
    pub fn name(self) -> &'static str {
        KINDS[self as usize].1
    }

    /// The kind with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        KINDS.iter().find(|row| row.1 == name).map(|row| row.0)
    }

    /// Its number, which stays the same for ever.
    pub fn id(self) -> u8 {
        self as u8
    }

    /// The kind with this number.
    pub fn from_id(id: u8) -> Option<Self> {
        KINDS.get(usize::from(id)).map(|row| row.0)
    }

    /// All kinds, in the order of their numbers.
    pub fn all() -> impl Iterator<Item = Self> {
        KINDS.iter().map(|row| row.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_found_again_by_its_name_and_its_number() {
        for kind in Kind::all() {
            assert_eq!(Kind::from_name(kind.name()), Some(kind));
            assert_eq!(Kind::from_id(kind.id()), Some(kind));
        }
        assert_eq!(Kind::from_id(KINDS.len() as u8), None);
        assert_eq!(Kind::from_name("Function"), None);
    }
}
