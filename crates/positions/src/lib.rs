//! Where in a TOML file each key and each value stands, so that every error about one of them has a file, a line and a
//! column.

use std::{
    collections::HashMap,
    fmt::{self, Display},
    path::{Path, PathBuf},
};

use pintle_contract::pointer_segment;
use pintle_schema::SchemaRegistry;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use thiserror::Error;
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

/// The positions of all keys and values of a TOML file, by RFC 6901 pointer.
#[derive(Clone, Debug, Default)]
pub struct Positions {
    file: PathBuf,
    keys: HashMap<String, Position>,
    values: HashMap<String, Position>,
}

/// A position in a text: the line, and the column in characters, both from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column, in characters.
    pub column: usize,
}

/// Where something stands: in a file, and at which position of it, or in an environment variable; nowhere, if it was
/// typed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Location {
    /// The path of the file, or the name of the variable.
    source: Option<PathBuf>,
    position: Option<Position>,
}

/// An error together with where its cause stands. Boxed, so that results stay small.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located<E>(Box<LocatedError<E>>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct LocatedError<E> {
    location: Location,
    error: E,
}

/// Why the text of a file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TextError {
    /// It is not UTF-8.
    #[error("this byte is not UTF-8; save the file as UTF-8")]
    NotUtf8,
    /// It is not TOML. The parser's own message says why.
    #[error("{0}")]
    NotToml(String),
    /// A value is a date, which no key takes.
    #[error("this is a date; write a string, in quotes")]
    Date,
    /// A value is infinite or not a number.
    #[error("this is not a number that can be used; write digits")]
    NotFinite,
    /// Keys or types are not those that the file may have.
    #[error("{0}")]
    Mismatch(String),
}

impl Location {
    /// An environment variable.
    pub fn variable(name: &str) -> Self {
        Self { source: Some(name.into()), position: None }
    }

    /// An error about what stands here.
    pub fn error<E>(&self, error: E) -> Located<E> {
        Located(Box::new(LocatedError { location: self.clone(), error }))
    }
}

impl<E> Located<E> {
    /// An error about something that stands in no file.
    pub fn nowhere(error: E) -> Self {
        Location::default().error(error)
    }

    /// The same location with another error.
    pub fn map<F>(self, change: impl FnOnce(E) -> F) -> Located<F> {
        let LocatedError { location, error } = *self.0;
        location.error(change(error))
    }
}

impl<E: Display> Display for Located<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LocatedError { location, error } = &*self.0;
        if let Some(source) = &location.source {
            write!(f, "{}: ", source.display())?;
        }
        if let Some(Position { line, column }) = location.position {
            write!(f, "line {line}, column {column}: ")?;
        }
        error.fmt(f)
    }
}

impl<E: std::error::Error + 'static> std::error::Error for Located<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.error.source()
    }
}

impl Position {
    /// The position of an offset in bytes.
    pub fn of(text: &str, offset: usize) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let line = before.rsplit('\n').next().unwrap_or_default();
        Self { line: before.matches('\n').count() + 1, column: line.chars().count() + 1 }
    }

    /// The location of this position in a file.
    pub fn within(self, file: &Path) -> Location {
        Location { source: Some(file.to_owned()), position: Some(self) }
    }
}

impl Positions {
    /// Finds all positions in the text of a file. `Err` says why it is not TOML, with the position.
    pub fn find(text: &str, file: &Path) -> Result<Self, Located<TextError>> {
        let document = DeTable::parse(text).map_err(|error| syntax_error(text, file, &error))?;
        let mut found = Self { file: file.to_owned(), ..Self::default() };
        found.add_table(document.get_ref(), "", text);
        Ok(found)
    }

    fn add_table(&mut self, table: &DeTable<'_>, pointer: &str, text: &str) {
        for (key, value) in table.iter() {
            let pointer = format!("{pointer}/{}", pointer_segment(key.get_ref()));
            self.keys.insert(pointer.clone(), Position::of(text, key.span().start));
            self.add_value(value, pointer, text);
        }
    }

    fn add_value(&mut self, value: &Spanned<DeValue<'_>>, pointer: String, text: &str) {
        match value.get_ref() {
            DeValue::Table(table) => self.add_table(table, &pointer, text),
            DeValue::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.add_value(item, format!("{pointer}/{index}"), text);
                }
            }
            _ => {}
        }
        self.values.insert(pointer, Position::of(text, value.span().start));
    }

    /// The position of the key at the end of a pointer.
    pub fn key(&self, pointer: &str) -> Option<Position> {
        self.keys.get(pointer).copied()
    }

    /// The position of the value that a pointer leads to.
    pub fn value(&self, pointer: &str) -> Option<Position> {
        self.values.get(pointer).copied()
    }

    /// The location of a position, or of the file as a whole.
    pub fn location(&self, position: Option<Position>) -> Location {
        Location { source: Some(self.file.clone()), position }
    }

    /// Where the key at the end of a pointer was written; nowhere, if it was not.
    pub fn key_location(&self, pointer: &str) -> Location {
        self.key(pointer).map(|position| position.within(&self.file)).unwrap_or_default()
    }

    /// Where the value that a pointer leads to was written; nowhere, if it was not.
    pub fn value_location(&self, pointer: &str) -> Location {
        self.value(pointer).map(|position| position.within(&self.file)).unwrap_or_default()
    }

    /// Reads a text whose keys and types are those of `T`, and no others.
    pub fn read_strictly<T: DeserializeOwned + JsonSchema>(
        &self,
        text: &str,
        file: &Path,
    ) -> Result<T, Located<TextError>> {
        let table: toml::Table = toml::from_str(text).map_err(|error| syntax_error(text, file, &error))?;
        if let Some((pointer, error)) = unusable(&table) {
            return Err(self.value_location(&pointer).error(error));
        }
        let of_file = |message: String| self.location(None).error(TextError::Mismatch(message));
        let value = serde_json::to_value(table).map_err(|error| of_file(error.to_string()))?;
        let schema = schemars::schema_for!(T).to_value();
        let schema = SchemaRegistry::default().load(&schema).map_err(|fault| of_file(fault.to_string()))?;
        // A misspelt key may leave a required one missing, and the unknown one is the cause. Of several errors the
        // first in the file is reported.
        let mismatches = schema.mismatches(&value, "key").into_iter().map(|mismatch| {
            let position = match mismatch.is_unknown_member {
                true => self.key(&mismatch.path),
                false => self.value(&mismatch.path),
            };
            // What is missing from the file as a whole stands nowhere.
            let position = position.unwrap_or(Position { line: 1, column: 1 });
            (!mismatch.is_unknown_member, position, mismatch.message)
        });
        match mismatches.min() {
            Some((_, position, message)) => {
                Err(position.within(&self.file).error(TextError::Mismatch(message)))
            }
            None => serde_json::from_value(value).map_err(|error| of_file(error.to_string())),
        }
    }
}

/// Why a text is not TOML, with the position.
fn syntax_error(text: &str, file: &Path, error: &toml::de::Error) -> Located<TextError> {
    let offset = error.span().map_or(0, |span| span.start);
    Position::of(text, offset).within(file).error(TextError::NotToml(error.message().to_owned()))
}

/// The text of a file, without the byte order mark that some editors begin it with.
pub fn text_of(bytes: &[u8], file: &Path) -> Result<String, Located<TextError>> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.strip_prefix('\u{feff}').unwrap_or(text).to_owned()),
        Err(error) => {
            let before = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
            Err(Position::of(&before, before.len()).within(file).error(TextError::NotUtf8))
        }
    }
}

/// The first value that no key takes, with its pointer: JSON, in which keys and types are checked, has no dates and no
/// infinite numbers.
fn unusable(table: &toml::Table) -> Option<(String, TextError)> {
    fn within(value: &toml::Value, pointer: String) -> Option<(String, TextError)> {
        match value {
            toml::Value::Datetime(_) => Some((pointer, TextError::Date)),
            toml::Value::Float(float) if !float.is_finite() => Some((pointer, TextError::NotFinite)),
            toml::Value::Array(items) => {
                items.iter().enumerate().find_map(|(index, item)| within(item, format!("{pointer}/{index}")))
            }
            toml::Value::Table(table) => table
                .iter()
                .find_map(|(key, value)| within(value, format!("{pointer}/{}", pointer_segment(key)))),
            _ => None,
        }
    }
    table.iter().find_map(|(key, value)| within(value, format!("/{}", pointer_segment(key))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_and_every_value_has_the_position_at_which_it_is_written() {
        let text = "root = \".\"\n\n[[bind]]\npath = \"a\"\nschema = 'é'\n  [[bind]]\n\"path\"   =   \"b\"\n\
                    [timeouts]\n\"a/b\" = \"1s\"\ndefault.x = 3\n";
        let positions = Positions::find(text, Path::new("p.toml")).expect("TOML");
        let at = |position: Option<Position>| position.map(|position| (position.line, position.column));
        for (pointer, key, value) in [
            ("/root", Some((1, 1)), Some((1, 8))),
            ("/bind/0", None, Some((3, 1))),
            ("/bind/0/path", Some((4, 1)), Some((4, 8))),
            ("/bind/0/schema", Some((5, 1)), Some((5, 10))),
            ("/bind/1", None, Some((6, 3))),
            ("/bind/1/path", Some((7, 1)), Some((7, 14))),
            ("/timeouts", Some((8, 2)), Some((8, 1))),
            ("/timeouts/a~1b", Some((9, 1)), Some((9, 9))),
            ("/timeouts/default/x", Some((10, 9)), Some((10, 13))),
            ("/none", None, None),
        ] {
            assert_eq!(at(positions.key(pointer)), key, "the key {pointer}");
            assert_eq!(at(positions.value(pointer)), value, "the value {pointer}");
        }
        let inline = "scope = [\n  'é', \"x\",\n]\nbind = [{ path = \"a\" }]\n";
        let positions = Positions::find(inline, Path::new("p.toml")).expect("TOML");
        assert_eq!(at(positions.value("/scope/1")), Some((2, 8)));
        assert_eq!(at(positions.value("/bind/0")), Some((4, 9)));
        assert_eq!(at(positions.key("/bind/0/path")), Some((4, 11)));
    }

    #[test]
    fn what_is_not_toml_is_reported_with_file_line_and_column() {
        for (text, position) in [
            ("a = 1\nb = [1,\n", "p.toml: line 2, column 8: "),
            ("a = 1\nb = é", "p.toml: line 2, column 5: "),
        ] {
            let problem = Positions::find(text, Path::new("p.toml")).expect_err("not TOML");
            assert!(problem.to_string().starts_with(position), "{text}: {problem}");
        }
    }

    #[test]
    fn a_file_that_is_not_utf_8_is_reported_where_it_is_not() {
        let error = text_of(b"a = 1\nb = \"\xff\"", Path::new("p.toml")).expect_err("not text");
        assert!(error.to_string().starts_with("p.toml: line 2, column 6: "), "{error}");
        assert_eq!(text_of("\u{feff}a = 1".as_bytes(), Path::new("p.toml")), Ok("a = 1".into()));
    }
}
