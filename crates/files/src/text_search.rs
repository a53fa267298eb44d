//! What a substitution needs of a search: which files have matches, and where they are in a text. The binary provides it, so
//! that this toolset does not depend on another.

use std::ops::Range;

use pintle_contract::{Fault, WorkspacePath};
use pintle_tool::CallContext;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// A search for text in files.
pub trait TextSearch: Send + Sync + 'static {
    /// Finds the files with matches, as they are now, among those that the caller may read. At most `most_files` are named.
    fn find(&self, query: &TextQuery, most_files: usize, call: &CallContext) -> Result<MatchingFiles, Fault>;
}

/// What to search for, with the arguments of the tool `search`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextQuery {
    /// What to search for.
    pub query: String,
    /// Whether `query` is a regular expression, not literal text.
    pub is_regex: bool,
    /// Whether case is ignored.
    pub case: Case,
    /// Whether only whole words match.
    pub is_word: bool,
    /// Globs of the files that are searched.
    pub globs: Vec<String>,
    /// Only files in this language are searched.
    pub language: Option<String>,
}

/// Whether upper and lower case letters match each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Case {
    /// Only if the query has no upper case letter.
    Smart,
    /// Never.
    #[default]
    Sensitive,
    /// Always.
    Insensitive,
}

// A derived schema would repeat the comments of the variants in the list of tools, which clients pay for in tokens.
impl JsonSchema for Case {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Case".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": ["smart", "sensitive", "insensitive"] })
    }
}

/// The files that have matches.
pub struct MatchingFiles {
    /// The first of them, in the order of their paths. `Err` has a name that no tool can take as a path.
    pub paths: Vec<Result<WorkspacePath, String>>,
    /// How many there are.
    pub files: u64,
    /// How many matching lines they have.
    pub lines: u64,
    /// Finds the matches in their text.
    pub matcher: Box<dyn LineMatcher>,
}

/// The groups of a match, as ranges of the text; the first is the whole match. Groups that have no part in it are `None`.
pub type Groups = [Option<Range<usize>>];

/// Finds all matches in the lines of a text.
pub trait LineMatcher: Send + Sync {
    /// How many groups a match has, the whole match included.
    fn groups(&self) -> usize;

    /// The number of the group with a name.
    fn group(&self, name: &str) -> Option<usize>;

    /// Passes all matches in whole lines, which begin at an offset of their file, to `take`.
    fn find(&self, text: &[u8], offset: u64, take: &mut dyn FnMut(&Groups)) -> Result<(), MatchError>;
}

/// Why the matches of a text are not known.
#[derive(Debug, PartialEq, Eq)]
pub enum MatchError {
    /// The call was cancelled or is past its deadline.
    Ended,
    /// A line has this many bytes, and may have at most so many.
    LongLine(usize, usize),
}
