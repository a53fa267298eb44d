//! The types that settings have: how each is typed, written in the file, and shown.
//!
//! A value has two forms. The raw one is what was typed or written: its type is checked at once, in the file for all keys.
//! What it means is decided when somebody asks for the setting, so a mistake in a setting that a command does not use
//! does not stop the command.

use std::{
    num::IntErrorKind,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::{
    Arg, ArgAction, ArgMatches, Command,
    builder::{
        BoolishValueParser, OsStringValueParser, PossibleValue, PossibleValuesParser, StringValueParser,
        TypedValueParser,
    },
    error::{ContextKind, ContextValue},
    parser::ValueSource,
};
use pintle_commands::{NotADuration, duration};
use pintle_contract::Scopes;
use pintle_packs::{NotAPackName, PackName};
use thiserror::Error;

use crate::toolsets::{ToolsetError, Toolsets};

/// What a setting can be.
pub trait Value: Sized + 'static {
    /// How it is typed or written.
    type Raw: Raw;

    /// What is meant.
    fn mean(raw: Self::Raw) -> Result<Self, Meaningless>;

    /// How it is written, for help; none if there is nothing to say, as of an empty list.
    fn show(&self) -> Option<String>;
}

/// What is typed or written.
pub trait Raw: Sized + 'static {
    /// Adds to a flag how its value is read.
    fn describe(argument: Arg) -> Arg;

    /// The value of a flag or of its environment variable. An empty variable is one that is not set.
    fn typed(matches: &ArgMatches, id: &str) -> Option<Self>;

    /// The value of a key in the file.
    fn written(value: &toml::Value) -> Result<Self, WrongValue>;

    /// Whether a key in the file that has this value counts as not set.
    fn is_unset(&self) -> bool {
        false
    }

    /// The same, if paths in it are relative to a folder.
    fn relative_to(self, _folder: &Path) -> Self {
        self
    }
}

/// A value of the file that has the wrong type, or is none of the words that there are.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("is {found}; it takes {expected}")]
pub struct WrongValue {
    /// Which element of a list.
    pub index: Option<usize>,
    /// What was found.
    pub found: String,
    /// What would be taken.
    pub expected: String,
}

/// Why a raw value means nothing.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Meaningless {
    /// It is not a duration.
    #[error(transparent)]
    Duration(#[from] NotADuration),
    /// It is not the name of a pack.
    #[error(transparent)]
    Pack(#[from] NotAPackName),
    /// One of several scopes is none.
    #[error("{problem}")]
    Scope {
        /// Which.
        index: usize,
        /// Why.
        problem: String,
    },
    /// The toolsets cannot be had.
    #[error("{error}")]
    Toolsets {
        /// Which of the names is wrong; none if all of them are together.
        index: Option<usize>,
        /// Why.
        error: ToolsetError,
    },
}

impl Meaningless {
    /// Which element of a list is wrong.
    pub fn index(&self) -> Option<usize> {
        match self {
            Self::Duration(_) | Self::Pack(_) => None,
            Self::Scope { index, .. } => Some(*index),
            Self::Toolsets { index, .. } => *index,
        }
    }
}

/// A type of a few values that have words.
pub trait Words: Copy + PartialEq + Send + Sync + 'static {
    /// Each value, its word, and what it means.
    const WORDS: &'static [(Self, &'static str, &'static str)];
}

/// Reads one of the words of a type from the command line.
pub fn word<W: Words>() -> impl TypedValueParser<Value = W> {
    let words = W::WORDS.iter().map(|(_, word, help)| PossibleValue::new(*word).help(*help));
    PossibleValuesParser::new(words).try_map(|word| value_of(&word).ok_or(NoSuchWord))
}

#[derive(Debug, Error)]
#[error("this is none of the words")]
struct NoSuchWord;

fn value_of<W: Words>(word: &str) -> Option<W> {
    W::WORDS.iter().find(|(_, known, _)| *known == word).map(|(value, _, _)| *value)
}

impl<W: Words> Value for W {
    type Raw = W;

    fn mean(raw: W) -> Result<Self, Meaningless> {
        Ok(raw)
    }

    fn show(&self) -> Option<String> {
        W::WORDS.iter().find(|(value, _, _)| value == self).map(|(_, word, _)| (*word).to_owned())
    }
}

impl<W: Words> Raw for W {
    fn describe(argument: Arg) -> Arg {
        argument.value_parser(UnlessEmpty(word::<W>()))
    }

    fn typed(matches: &ArgMatches, id: &str) -> Option<Self> {
        one(matches, id)
    }

    fn written(value: &toml::Value) -> Result<Self, WrongValue> {
        let words = || W::WORDS.iter().map(|(_, word, _)| format!("\"{word}\"")).collect::<Vec<_>>();
        let wrong = || WrongValue {
            index: None,
            found: value.as_str().map_or_else(|| kind(value).to_owned(), |word| format!("\"{word}\"")),
            expected: match words().as_slice() {
                [one] => format!("only {one}"),
                several => format!("one of {}", several.join(", ")),
            },
        };
        value.as_str().and_then(value_of).ok_or_else(wrong)
    }
}

/// Implements [`Value`] for types that are meant as they are typed.
macro_rules! as_typed {
    ($($type:ty: $show:expr;)*) => {
        $(impl Value for $type {
            type Raw = Self;

            fn mean(raw: Self) -> Result<Self, Meaningless> {
                Ok(raw)
            }

            fn show(&self) -> Option<String> {
                let show: fn(&Self) -> Option<String> = $show;
                show(self)
            }
        })*
    };
}

as_typed! {
    bool: |is_set| is_set.then(|| "true".into());
    u64: |number| Some(number.to_string());
    usize: |number| Some(number.to_string());
    String: |text| Some(text.clone());
    PathBuf: |path| Some(path.display().to_string());
    Vec<String>: |texts| (!texts.is_empty()).then(|| texts.join(","));
    Address: |address| Some(address.0.clone());
}

impl Raw for bool {
    fn describe(argument: Arg) -> Arg {
        let parser = UnlessEmpty(BoolishValueParser::new());
        let argument = argument.num_args(0..=1).require_equals(true).default_missing_value("true");
        argument.hide_possible_values(true).value_parser(parser)
    }

    fn typed(matches: &ArgMatches, id: &str) -> Option<Self> {
        one(matches, id)
    }

    fn written(value: &toml::Value) -> Result<Self, WrongValue> {
        value.as_bool().ok_or_else(|| WrongValue::new(value, "true or false, without quotes"))
    }
}

/// Implements [`Raw`] for whole numbers.
macro_rules! numbers {
    ($($type:ty),*) => {
        $(impl Raw for $type {
            fn describe(argument: Arg) -> Arg {
                let parser = StringValueParser::new().try_map(|text| {
                    text.parse::<Self>().map_err(|error| match error.kind() {
                        IntErrorKind::PosOverflow => NotAWholeNumber::TooLarge,
                        _ if text.parse::<i64>().is_ok() => NotAWholeNumber::Negative,
                        _ => NotAWholeNumber::Other,
                    })
                });
                argument.value_parser(UnlessEmpty(parser))
            }

            fn typed(matches: &ArgMatches, id: &str) -> Option<Self> {
                one(matches, id)
            }

            fn written(value: &toml::Value) -> Result<Self, WrongValue> {
                let number = value.as_integer().and_then(|number| Self::try_from(number).ok());
                number.ok_or_else(|| WrongValue::new(value, "a whole number, without quotes"))
            }
        })*
    };
}

numbers!(u64, usize);

/// Why a text is not a number that a setting could have.
#[derive(Debug, Error)]
enum NotAWholeNumber {
    #[error("it is too large")]
    TooLarge,
    #[error("it is negative")]
    Negative,
    #[error("it is not a whole number")]
    Other,
}

impl Raw for String {
    fn describe(argument: Arg) -> Arg {
        argument.value_parser(UnlessEmpty(StringValueParser::new()))
    }

    fn typed(matches: &ArgMatches, id: &str) -> Option<Self> {
        one(matches, id)
    }

    fn written(value: &toml::Value) -> Result<Self, WrongValue> {
        value.as_str().map(str::to_owned).ok_or_else(|| WrongValue::new(value, "a string, in quotes"))
    }
}

/// An empty path is one that is not set, also as a flag and in the file.
impl Raw for PathBuf {
    fn describe(argument: Arg) -> Arg {
        argument.value_parser(UnlessEmpty(OsStringValueParser::new().map(PathBuf::from)))
    }

    fn typed(matches: &ArgMatches, id: &str) -> Option<Self> {
        one(matches, id).filter(|path: &Self| !path.as_os_str().is_empty())
    }

    fn written(value: &toml::Value) -> Result<Self, WrongValue> {
        String::written(value).map(Self::from)
    }

    fn is_unset(&self) -> bool {
        self.as_os_str().is_empty()
    }

    fn relative_to(self, folder: &Path) -> Self {
        folder.join(self)
    }
}

/// A flag is given several times, or once with commas.
impl Raw for Vec<String> {
    fn describe(argument: Arg) -> Arg {
        let parser = UnlessEmpty(StringValueParser::new());
        argument.value_parser(parser).value_delimiter(',').action(ArgAction::Append)
    }

    fn typed(matches: &ArgMatches, id: &str) -> Option<Self> {
        let given = matches.try_get_many::<Option<String>>(id).ok().flatten()?;
        let texts: Self = given.flatten().filter(|text| !text.is_empty()).cloned().collect();
        (!texts.is_empty()).then_some(texts)
    }

    fn written(value: &toml::Value) -> Result<Self, WrongValue> {
        let expected = "a list of strings: [\"…\", \"…\"]";
        let items = value.as_array().ok_or_else(|| WrongValue::new(value, expected))?;
        let text =
            |(index, item)| String::written(item).map_err(|wrong| WrongValue { index: Some(index), ..wrong });
        items.iter().enumerate().map(text).collect()
    }
}

/// An address to serve on, as it was written. An empty variable is one that is not set; an empty flag is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address(pub String);

impl Raw for Address {
    fn describe(argument: Arg) -> Arg {
        String::describe(argument)
    }

    fn typed(matches: &ArgMatches, id: &str) -> Option<Self> {
        String::typed(matches, id).filter(|address| !address.is_empty()).map(Self)
    }

    fn written(value: &toml::Value) -> Result<Self, WrongValue> {
        String::written(value).map(Self)
    }
}

/// A setting that need not be set.
impl<V: Value> Value for Option<V> {
    type Raw = V::Raw;

    fn mean(raw: V::Raw) -> Result<Self, Meaningless> {
        V::mean(raw).map(Some)
    }

    fn show(&self) -> Option<String> {
        self.as_ref().and_then(V::show)
    }
}

impl Value for Duration {
    type Raw = String;

    fn mean(raw: String) -> Result<Self, Meaningless> {
        Ok(duration(&raw)?)
    }

    fn show(&self) -> Option<String> {
        Some(shown_duration(*self))
    }
}

/// A duration as it is written.
pub fn shown_duration(duration: Duration) -> String {
    match (duration.as_millis(), duration.as_secs()) {
        (0, _) => "0".into(),
        (millis, seconds) if millis % 1000 == 0 => format!("{seconds}s"),
        (millis, _) => format!("{millis}ms"),
    }
}

impl Value for Scopes {
    type Raw = Vec<String>;

    fn mean(raw: Vec<String>) -> Result<Self, Meaningless> {
        // One by one, so that an error has the position of the one that is wrong.
        for (index, scope) in raw.iter().enumerate() {
            Self::parse([scope.as_str()])
                .map_err(|error| Meaningless::Scope { index, problem: error.to_string() })?;
        }
        let all = Self::parse(raw.iter().map(String::as_str));
        all.map_err(|error| Meaningless::Scope { index: 0, problem: error.to_string() })
    }

    fn show(&self) -> Option<String> {
        self.are_everything().then(|| "everything".into())
    }
}

impl Value for Toolsets {
    type Raw = Vec<String>;

    fn mean(raw: Vec<String>) -> Result<Self, Meaningless> {
        for (index, name) in raw.iter().enumerate() {
            Self::parse([name.as_str()])
                .map_err(|error| Meaningless::Toolsets { index: Some(index), error })?;
        }
        Self::parse(raw.iter().map(String::as_str))
            .map_err(|error| Meaningless::Toolsets { index: None, error })
    }

    fn show(&self) -> Option<String> {
        Some(self.to_string())
    }
}

/// What a pack is named with in the place of a folder.
const PACK: &str = "pack:";

/// A folder that is looked for in the root unless it is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AssetFolder {
    /// It is set.
    Set(PathBuf),
    /// It is that of an installed pack.
    Pack(PackName),
    /// It is here in the root, if it is there at all.
    InRoot(&'static str),
}

/// A folder, or `pack:` with the name of a pack, as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderOrPack(PathBuf);

impl FolderOrPack {
    fn pack(&self) -> Option<&str> {
        self.0.to_str()?.strip_prefix(PACK)
    }
}

impl Raw for FolderOrPack {
    fn describe(argument: Arg) -> Arg {
        PathBuf::describe(argument)
    }

    fn typed(matches: &ArgMatches, id: &str) -> Option<Self> {
        PathBuf::typed(matches, id).map(Self)
    }

    fn written(value: &toml::Value) -> Result<Self, WrongValue> {
        PathBuf::written(value).map(Self)
    }

    fn is_unset(&self) -> bool {
        self.0.is_unset()
    }

    fn relative_to(self, folder: &Path) -> Self {
        match self.pack() {
            Some(_) => self,
            None => Self(self.0.relative_to(folder)),
        }
    }
}

impl Value for AssetFolder {
    type Raw = FolderOrPack;

    fn mean(raw: FolderOrPack) -> Result<Self, Meaningless> {
        match raw.pack() {
            Some(name) => Ok(Self::Pack(name.parse()?)),
            None => Ok(Self::Set(raw.0)),
        }
    }

    fn show(&self) -> Option<String> {
        match self {
            Self::Set(folder) => folder.show(),
            Self::Pack(name) => Some(format!("{PACK}{name}")),
            Self::InRoot(folder) => Some(format!("{folder} in the root")),
        }
    }
}

impl WrongValue {
    /// A value of the wrong type.
    pub fn new(value: &toml::Value, expected: &str) -> Self {
        Self { index: None, found: kind(value).to_owned(), expected: expected.to_owned() }
    }
}

fn kind(value: &toml::Value) -> &'static str {
    match value {
        toml::Value::String(_) => "a string",
        toml::Value::Integer(number) if *number < 0 => "a negative number",
        toml::Value::Integer(_) => "a whole number",
        toml::Value::Float(number) if number.is_finite() => "a number with a fraction",
        toml::Value::Float(_) => "not a number that can be used",
        toml::Value::Boolean(_) => "true or false",
        toml::Value::Datetime(_) => "a date",
        toml::Value::Array(_) => "a list",
        toml::Value::Table(_) => "a table",
    }
}

/// The one value of a flag or its variable, if the command has the flag at all.
fn one<T: Clone + Send + Sync + 'static>(matches: &ArgMatches, id: &str) -> Option<T> {
    matches.try_get_one::<Option<T>>(id).ok().flatten().cloned().flatten()
}

/// Reads values as another parser does, but takes an empty environment variable for one that is not set: whoever starts
/// the program cannot always remove a variable. An error about a variable names it instead of the flag.
#[derive(Clone)]
struct UnlessEmpty<P>(P);

impl<P: TypedValueParser> TypedValueParser for UnlessEmpty<P> {
    type Value = Option<P::Value>;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<Self::Value, clap::Error> {
        self.0.parse_ref(command, argument, value).map(Some)
    }

    fn parse_ref_(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        value: &std::ffi::OsStr,
        source: ValueSource,
    ) -> Result<Self::Value, clap::Error> {
        if value.is_empty() && source == ValueSource::EnvVariable {
            return Ok(None);
        }
        self.0.parse_ref_(command, argument, value, source).map(Some).map_err(|mut error| {
            if source == ValueSource::EnvVariable
                && let Some(name) = argument.and_then(Arg::get_env)
            {
                let name = name.to_string_lossy().into_owned();
                error.insert(ContextKind::InvalidArg, ContextValue::String(name));
            }
            error
        })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        self.0.possible_values()
    }
}
