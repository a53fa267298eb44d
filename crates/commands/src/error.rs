//! What can be wrong with manifests and with their folder.

use std::{io, path::PathBuf};

use pintle_positions::{Located, TextError};
use thiserror::Error;

/// A text that is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` is not a duration; write it as `1500ms`, `20s`, `2m`, `1.5h`, `1h 30m` or `0`")]
pub struct NotADuration(pub String);

/// Why the folder of manifests cannot be used.
#[derive(Debug, Error)]
pub enum FolderError {
    /// It is not there, or not for this user.
    #[error("the tools folder {} cannot be opened: {error}", folder.display())]
    NotOpened {
        /// The folder.
        folder: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It is something else.
    #[error("the tools folder {} is not a folder", .0.display())]
    NotAFolder(PathBuf),
    /// The tools could write to it.
    #[error(
        "the tools folder {} lies inside the root {}, where the tools could write manifests and so run any program; \
         move it outside, or choose a smaller --root",
        folder.display(),
        root.display()
    )]
    InsideRoot {
        /// The folder.
        folder: PathBuf,
        /// The root of the workspace.
        root: PathBuf,
    },
    /// Its entries cannot be listed.
    #[error("the tools folder {} cannot be read: {error}", folder.display())]
    NotRead {
        /// The folder.
        folder: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// One of its manifests cannot be used.
    #[error(transparent)]
    Manifest(#[from] Located<ManifestError>),
}

/// Why a manifest cannot be used.
#[derive(Debug, Error)]
pub enum ManifestError {
    /// Its file cannot be read.
    #[error("cannot read {}: {error}", file.display())]
    NotRead {
        /// The file.
        file: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It is a folder, a device or a pipe.
    #[error("{} is not a file; a manifest is a text file", .0.display())]
    NotAFile(PathBuf),
    /// It is much larger than any manifest.
    #[error("{} has more than {limit} bytes; no manifest needs as many", file.display())]
    TooLarge {
        /// The file.
        file: PathBuf,
        /// The largest size, in bytes.
        limit: u64,
    },
    /// It is a link to a file that the tools could change.
    #[error(
        "the manifest {} is a link to {}, which lies inside the root, where the tools could change it and so run any \
         program; copy it here instead",
        file.display(),
        target.display()
    )]
    LinkIntoRoot {
        /// The manifest.
        file: PathBuf,
        /// Where the link leads.
        target: PathBuf,
    },
    /// It is not TOML, or does not have a manifest's keys.
    #[error(transparent)]
    Text(#[from] TextError),
    /// The name cannot be a tool's.
    #[error(
        "`{name}` is not a valid tool name; write up to {longest} letters, digits, `_`, `-` and `.`, and begin with a \
         letter or a digit"
    )]
    BadName {
        /// The name.
        name: String,
        /// How many characters a name may have.
        longest: usize,
    },
    /// The name is a method of the protocol.
    #[error("`{0}` is a method of the protocol; choose another name")]
    ProtocolName(String),
    /// The name is that of a built-in tool.
    #[error("`{0}` is the name of a tool that Pintle has; choose another")]
    BuiltInName(String),
    /// The name is that of another manifest's tool.
    #[error("`{name}` is the name of another manifest's tool, too: {other}")]
    NameOfOther {
        /// The name.
        name: String,
        /// Where the other manifest has it.
        other: Box<Located<Here>>,
    },
    /// The description says nothing.
    #[error("this is empty; say what the tool does, for the model that chooses it")]
    EmptyDescription,
    /// The description is too long.
    #[error("this has {bytes} bytes; some clients cut it after {longest}")]
    LongDescription {
        /// Its length.
        bytes: usize,
        /// The longest one.
        longest: usize,
    },
    /// A list was expected.
    #[error("this is not a list; write {what} as one: {example}")]
    NotAList {
        /// What the list has.
        what: &'static str,
        /// How it is written.
        example: &'static str,
    },
    /// A text was expected in a list.
    #[error("this is {0}; write it in quotes: \"{0}\"")]
    NotAText(String),
    /// An argument has a NUL character.
    #[error("this holds a NUL character, which no argument of a program can hold")]
    NulCharacter,
    /// There is no program.
    #[error("this is empty; its first element is the program")]
    EmptyCommand,
    /// The caller would choose the program.
    #[error("the program is `{0}`, but it cannot be a field: callers would choose what is run")]
    ProgramIsField(String),
    /// The program has a path that depends on the working folder.
    #[error("`{0}` is a relative path; write an absolute one, or a name that is on the PATH")]
    RelativeProgram(String),
    /// The program is not installed.
    #[error("there is no program `{0}` on the server's PATH; install it, or write its path")]
    NoProgram(String),
    /// A field is a part of an argument.
    #[error(
        "`{{{name}}}` is only a part of `{element}`; a field fills a whole element, as in \"--option\", \"{{{name}}}\""
    )]
    PartOfElement {
        /// The field.
        name: String,
        /// The element.
        element: String,
    },
    /// A field may be left out of a call.
    #[error(
        "`{0}` may be absent, and then this element would be, too; add it to `required`, or give it a `default` (`[]` \
         for a list)"
    )]
    FieldMayBeAbsent(String),
    /// A field is none of the tool's.
    #[error(
        "`{name}` is no property of [input]{}; write `{{{{{name}}}}}` for the text `{{{name}}}` itself",
        near.as_ref().map(|near| format!(" (the nearest is `{near}`)")).unwrap_or_default()
    )]
    UnknownField {
        /// The field.
        name: String,
        /// The property that is spelt most like it.
        near: Option<String>,
    },
    /// A field never reaches the program.
    #[error("the command never gets `{0}`; put \"{{{0}}}\" into `command`, or set stdin = \"json\"")]
    UnusedField(String),
    /// The default of a field cannot be passed to the program, or its schema does not compile.
    #[error("{0}")]
    Refused(String),
    /// `stdin` has another value than the one that it takes.
    #[error("this can only be \"json\": all arguments as one JSON object; leave it out for no input")]
    BadStdin,
    /// A variable of the environment is a setting of the server.
    #[error("`{name}` is a setting of the server's own; no command gets a variable {prefix}…")]
    OwnVariable {
        /// The variable.
        name: String,
        /// How the server's own variables begin.
        prefix: &'static str,
    },
    /// A variable of the environment has no possible name.
    #[error("`{0}` is not the name of a variable; `env` lists names, and the server has the values")]
    BadVariable(String),
    /// The working folder is no path in the root.
    #[error("{0}; `cwd` is a folder in the root")]
    BadFolder(String),
    /// A duration without its unit.
    #[error("this is a number; write a duration, in quotes and with its unit: \"{0}s\"")]
    DurationIsNumber(String),
    /// Neither a number nor a text.
    #[error("this is no duration; write it in quotes, as \"1500ms\", \"20s\", \"2m\" or \"0\"")]
    DurationIsOther,
    /// A text that is not a duration.
    #[error(transparent)]
    NotADuration(#[from] NotADuration),
    /// The grace period is too long.
    #[error("this is longer than {0} s")]
    LongGrace(u64),
    /// A number is out of its bounds.
    #[error("this is {found}; it must be a number from 1 to {most}")]
    OutOfBounds {
        /// The value.
        found: String,
        /// The largest one.
        most: usize,
    },
    /// `[input]` lets unknown arguments through.
    #[error("unknown arguments are always refused; leave this out and name every property")]
    AdditionalProperties,
    /// `properties` is something else than a table.
    #[error("this is no table")]
    NotATable,
    /// What is required is not there.
    #[error("`{0}` is required but is no property of [input]; no call could be right")]
    UnknownRequired(String),
    /// A default is not a value of its property.
    #[error("the default does not match the property's own schema: {0}")]
    BadDefault(String),
    /// A schema is a union of several.
    #[error("[{0}] is a union; clients take only one plain object, with `properties`")]
    Union(&'static str),
    /// A schema is not that of an object.
    #[error("[{0}] has to be of type \"object\"")]
    NotAnObject(&'static str),
    /// An array without `items`.
    #[error("an array needs `items`: some model services refuse every tool if one has none")]
    ArrayWithoutItems,
}

/// Points to a location in a message about another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("here")]
pub struct Here;

/// What is wrong in a manifest, by the RFC 6901 pointer of what it is about.
#[derive(Debug)]
pub(crate) struct Wrong {
    pub(crate) pointer: String,
    pub(crate) error: ManifestError,
}

impl Wrong {
    pub(crate) fn at(pointer: impl Into<String>, error: impl Into<ManifestError>) -> Self {
        Self { pointer: pointer.into(), error: error.into() }
    }
}
