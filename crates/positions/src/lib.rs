//! Where in a TOML file each key and each value stands, so that every error about one of them has a file, a line and a
//! column.

use std::{
    collections::HashMap,
    fmt::Display,
    path::{Path, PathBuf},
};

use pintle_schema::SchemaRegistry;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
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

/// Where a setting was written, if it was written in the configuration file and not on the command line or in the
/// environment.
#[derive(Clone, Debug, Default)]
pub struct SetAt(Option<String>);

impl SetAt {
    /// An error about the setting, with its position where it has one.
    pub fn problem(&self, problem: impl Display) -> String {
        match &self.0 {
            Some(position) => format!("{position}: {problem}"),
            None => problem.to_string(),
        }
    }
}

impl Position {
    /// The position of an offset in bytes.
    pub fn of(text: &str, offset: usize) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let line = before.rsplit('\n').next().unwrap_or_default();
        Self { line: before.matches('\n').count() + 1, column: line.chars().count() + 1 }
    }

    /// An error at this position of a file.
    pub fn problem(self, file: &Path, problem: impl Display) -> String {
        format!("{}: {problem}", self.within(file))
    }

    fn within(self, file: &Path) -> String {
        format!("{}: line {}, column {}", file.display(), self.line, self.column)
    }
}

impl Positions {
    /// Finds all positions in the text of a file. `Err` says why it is not TOML, with the position.
    pub fn find(text: &str, file: &Path) -> Result<Self, String> {
        let document = DeTable::parse(text).map_err(|error| syntax_problem(text, file, &error))?;
        let mut found = Self { file: file.to_owned(), ..Self::default() };
        found.add_table(document.get_ref(), "", text);
        Ok(found)
    }

    fn add_table(&mut self, table: &DeTable<'_>, pointer: &str, text: &str) {
        for (key, value) in table.iter() {
            let pointer = format!("{pointer}/{}", escape(key.get_ref()));
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

    /// An error in the file, at a position where it has one.
    pub fn problem(&self, position: Option<Position>, problem: impl Display) -> String {
        match position {
            Some(position) => position.problem(&self.file, problem),
            None => format!("{}: {problem}", self.file.display()),
        }
    }

    /// Reads a text whose keys and types are those of `T`, and no others. `Err` has the position of what is wrong.
    pub fn read_strictly<T: DeserializeOwned + JsonSchema>(
        &self,
        text: &str,
        file: &Path,
    ) -> Result<T, String> {
        let table: toml::Table = toml::from_str(text).map_err(|error| syntax_problem(text, file, &error))?;
        if let Some((pointer, problem)) = unusable(&table) {
            return Err(self.problem(self.value(&pointer), problem));
        }
        let value = serde_json::to_value(table).map_err(|error| error.to_string())?;
        let schema = schemars::schema_for!(T).to_value();
        let schema = SchemaRegistry::default().load(&schema).map_err(|fault| fault.to_string())?;
        // A misspelt key may leave a required one missing, and the unknown one is the cause. Of several errors the
        // first in the file is reported.
        let mismatches = schema.mismatches(&value, "key").into_iter().map(|mismatch| {
            let is_unknown = mismatch.message.starts_with("unknown");
            let position = match is_unknown {
                true => self.key(&mismatch.path),
                false => self.value(&mismatch.path),
            };
            // What is missing from the file as a whole stands nowhere.
            (!is_unknown, position.or(Some(Position { line: 1, column: 1 })), mismatch.message)
        });
        match mismatches.min() {
            Some((_, position, problem)) => Err(self.problem(position, problem)),
            None => serde_json::from_value(value).map_err(|error| self.problem(None, error)),
        }
    }

    /// Where the key at the end of a pointer was written.
    pub fn key_set_at(&self, pointer: &str) -> SetAt {
        SetAt(self.key(pointer).map(|position| position.within(&self.file)))
    }

    /// Where the value that a pointer leads to was written.
    pub fn set_at(&self, pointer: &str) -> SetAt {
        SetAt(self.value(pointer).map(|position| position.within(&self.file)))
    }
}

/// Why a text is not TOML, with the position.
fn syntax_problem(text: &str, file: &Path, error: &toml::de::Error) -> String {
    let offset = error.span().map_or(0, |span| span.start);
    Position::of(text, offset).problem(file, error.message())
}

/// A key as a segment of a JSON pointer.
pub fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// The text of a file, without the byte order mark that some editors begin it with.
pub fn text_of(bytes: &[u8], file: &Path) -> Result<String, String> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.strip_prefix('\u{feff}').unwrap_or(text).to_owned()),
        Err(error) => {
            let before = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
            let problem = "this byte is not UTF-8; save the file as UTF-8";
            Err(Position::of(&before, before.len()).problem(file, problem))
        }
    }
}

/// The first value that no setting can have, with its pointer: JSON, in which the settings are checked, has no dates
/// and no numbers without end.
fn unusable(table: &toml::Table) -> Option<(String, &'static str)> {
    fn within(value: &toml::Value, pointer: String) -> Option<(String, &'static str)> {
        match value {
            toml::Value::Datetime(_) => Some((pointer, "this is a date; write a text, in quotes")),
            toml::Value::Float(float) if !float.is_finite() => {
                Some((pointer, "this is not a number that can be used; write digits"))
            }
            toml::Value::Array(items) => {
                items.iter().enumerate().find_map(|(index, item)| within(item, format!("{pointer}/{index}")))
            }
            toml::Value::Table(table) => {
                table.iter().find_map(|(key, value)| within(value, format!("{pointer}/{}", escape(key))))
            }
            _ => None,
        }
    }
    table.iter().find_map(|(key, value)| within(value, format!("/{}", escape(key))))
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
            assert!(problem.starts_with(position), "{text}: {problem}");
        }
    }

    #[test]
    fn a_file_that_is_not_utf_8_is_reported_where_it_is_not() {
        let told = text_of(b"a = 1\nb = \"\xff\"", Path::new("p.toml")).expect_err("not text");
        assert!(told.starts_with("p.toml: line 2, column 6: "), "{told}");
        assert_eq!(text_of("\u{feff}a = 1".as_bytes(), Path::new("p.toml")), Ok("a = 1".into()));
    }
}
