//! A client of MCP servers, and the rules by which it takes a list of tools.

use pintle_contract::nearest;
use serde::Serialize;

use crate::clients::CLIENTS;

/// A program that lists a server's tools for a model, or a model's API that such programs send the list to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client {
    /// The name on the command line.
    pub name: &'static str,
    /// The name in sentences.
    pub title: &'static str,
    /// What it puts before a tool's name, with `SERVER` for the name that its user gives the server.
    pub prefix: &'static str,
    /// What it refuses, cuts, rewrites or harms. Of two rules with the same check the more severe is first.
    pub rules: &'static [ClientRule],
}

/// One thing that a client does not take as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientRule {
    /// What is looked for.
    pub check: Check,
    /// How bad it is.
    pub severity: Severity,
    /// What happens then, in words that follow the client's name.
    pub effect: &'static str,
    /// Where this is known from.
    pub source: &'static str,
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Something is cut, rewritten or degraded, or depends on the model or the version.
    Warning,
    /// The client refuses the tool, the list or the session.
    Error,
}

/// What a rule looks for. Lengths are in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// A name with other characters than ASCII letters, digits and these.
    NameCharacters(&'static str),
    /// A name that begins with neither a letter nor an underscore.
    NameStart,
    /// A name that, with the client's prefix, is longer.
    NameLength(usize),
    /// Two names that are the same, for some clients once other characters than ASCII letters, digits and these are `_`.
    DuplicateName(Option<&'static str>),
    /// More tools.
    ToolCount(usize),
    /// Names, descriptions and input schemas that are longer together.
    ListSize(usize),
    /// A longer description.
    DescriptionLength(usize),
    /// Longer instructions of the server.
    InstructionsLength(usize),
    /// One of these keywords at the root of an input schema.
    RootUnion(&'static [&'static str]),
    /// An input schema whose root has not `"type": "object"`.
    InputRoot,
    /// An output schema whose root has not `"type": "object"`.
    OutputRoot,
    /// An input schema that is none by JSON Schema 2020-12.
    InvalidSchema,
    /// An argument, at the root, whose name has other characters or is longer.
    ArgumentName(&'static str, usize),
    /// `$schema`.
    DollarSchema,
    /// `$ref`.
    Reference,
    /// This keyword anywhere but at the root.
    Union(&'static str),
    /// An array without `items`.
    ArrayItems,
    /// A list of types.
    TypeList,
    /// A value in `enum` that is no text.
    EnumType,
    /// More values in all enums of a tool.
    EnumSize(usize),
    /// More levels of objects.
    Nesting(usize),
    /// More properties in a tool.
    PropertyCount(usize),
    /// An integer beyond 2^53 - 1.
    UnsafeNumber,
    /// An output schema.
    OutputSchema,
}

impl Check {
    /// The rule's name in findings.
    pub const fn id(self) -> &'static str {
        match self {
            Self::NameCharacters(_) => "name-characters",
            Self::NameStart => "name-start",
            Self::NameLength(_) => "name-length",
            Self::DuplicateName(_) => "duplicate-name",
            Self::ToolCount(_) => "tool-count",
            Self::ListSize(_) => "list-size",
            Self::DescriptionLength(_) => "description-length",
            Self::InstructionsLength(_) => "instructions-length",
            Self::RootUnion(_) => "root-union",
            Self::InputRoot => "input-root",
            Self::OutputRoot => "output-root",
            Self::InvalidSchema => "invalid-schema",
            Self::ArgumentName(..) => "argument-name",
            Self::DollarSchema => "dollar-schema",
            Self::Reference => "reference",
            Self::Union(_) => "union",
            Self::ArrayItems => "array-items",
            Self::TypeList => "type-list",
            Self::EnumType => "enum-type",
            Self::EnumSize(_) => "enum-size",
            Self::Nesting(_) => "nesting",
            Self::PropertyCount(_) => "property-count",
            Self::UnsafeNumber => "unsafe-number",
            Self::OutputSchema => "output-schema",
        }
    }
}

/// No client has this name.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("unknown client {name:?}{}; known are: {}", suggestion(.nearest), known())]
pub struct UnknownClient {
    name: String,
    nearest: Option<&'static str>,
}

fn suggestion(nearest: &Option<&'static str>) -> String {
    nearest.map_or_else(String::new, |nearest| format!(", did you mean {nearest:?}?"))
}

fn known() -> String {
    let names: Vec<&str> = CLIENTS.iter().map(|client| client.name).collect();
    names.join(", ")
}

/// The client of this name.
pub fn client_named(name: &str) -> Result<&'static Client, UnknownClient> {
    CLIENTS.iter().find(|client| client.name == name).ok_or_else(|| UnknownClient {
        name: name.to_owned(),
        nearest: nearest(name, CLIENTS.iter().map(|client| client.name)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_is_found_by_its_name() {
        for client in CLIENTS {
            assert_eq!(client_named(client.name), Ok(client));
        }
    }

    #[test]
    fn an_unknown_name_gets_a_suggestion_and_the_list() {
        let message = client_named("cluade-code").expect_err("unknown").to_string();
        assert!(
            message.starts_with(r#"unknown client "cluade-code", did you mean "claude-code"?; known are: "#),
            "{message}"
        );
        for client in CLIENTS {
            assert!(message.contains(client.name), "{message} lacks {}", client.name);
        }
        let message = client_named("emacs").expect_err("unknown").to_string();
        assert!(message.starts_with(r#"unknown client "emacs"; known are: "#), "{message}");
    }
}
