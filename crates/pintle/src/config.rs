//! `pintle.toml` as it is written: its keys are those of the settings, and four tables. What it means is decided in
//! `settings`.

#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
};

use pintle_contract::{nearest, pointer_segment};
use pintle_positions::{Located, Location, Position, Positions, TextError, text_of};
use thiserror::Error;
use toml::{Table, Value};

use crate::settings::{AnySetting, Raw as _, WrongValue, all_settings};

/// The table of timeouts, by the names of tools and `default`.
const TIMEOUTS: &str = "timeouts";
/// The table of files that are bound to schemas.
const BIND: &str = "bind";
const BIND_KEYS: [&str; 2] = ["path", "schema"];
/// The tables of paths that nobody may read or write.
const DENY: &str = "deny";
const DENY_KEYS: [&str; 2] = ["read", "write"];
/// The table of paths that may be written although they are denied by default.
const ALLOW: &str = "allow";
const ALLOW_KEYS: [&str; 1] = ["write"];

/// The file. Paths in it are relative to its folder.
#[derive(Debug, Default)]
pub struct ConfigFile {
    /// The values of settings, by key; each is of the type that its setting takes.
    values: Table,
    /// By tool name, and `default`.
    pub timeouts: BTreeMap<String, String>,
    pub bind: Vec<Bind>,
    pub access: PathRules,
    /// The file's own folder.
    pub folder: PathBuf,
    /// Where all of this stands in the file.
    positions: Positions,
}

/// Files that must match a schema.
#[derive(Clone, Debug)]
pub struct Bind {
    /// A glob over paths in the root.
    pub path: String,
    /// The schema's name.
    pub schema: String,
    pub path_set_at: Location,
    pub schema_set_at: Location,
}

/// The globs of `[[deny]]` and `[allow]`.
#[derive(Clone, Debug, Default)]
pub struct PathRules {
    pub deny_read: Vec<WrittenGlob>,
    pub deny_write: Vec<WrittenGlob>,
    pub allow_write: Vec<WrittenGlob>,
}

/// A glob, and where it was written.
#[derive(Clone, Debug)]
pub struct WrittenGlob {
    pub text: String,
    pub set_at: Location,
}

/// Why the file cannot be used.
#[derive(Debug, Error)]
pub enum ConfigError {
    #[error("{} is not a file", .0.display())]
    NotAFile(PathBuf),
    #[error("cannot read {}: {error}", file.display())]
    NotRead { file: PathBuf, error: io::Error },
    #[error(transparent)]
    Text(#[from] TextError),
    #[error("unknown key `{key}`{} (known: {})", nearest_known(*near), known.join(", "))]
    UnknownKey { key: String, near: Option<&'static str>, known: Vec<&'static str> },
    #[error("key `{0}` is missing")]
    MissingKey(&'static str),
    #[error("`{}` {wrong}", pointer.trim_start_matches('/'))]
    WrongValue { pointer: String, wrong: WrongValue },
}

impl ConfigFile {
    /// Where the file is, or would be.
    pub fn path(named: Option<&Path>) -> &Path {
        named.unwrap_or(Path::new("pintle.toml"))
    }

    /// Reads the file that was named, or `pintle.toml` in the current folder if there is one.
    pub fn load(named: Option<&Path>) -> Result<Self, Located<ConfigError>> {
        let path = Self::path(named);
        if std::fs::metadata(path).is_ok_and(|there| !there.is_file()) {
            return Err(Located::nowhere(ConfigError::NotAFile(path.to_owned())));
        }
        let bytes = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if named.is_none() && error.kind() == io::ErrorKind::NotFound => {
                return Ok(Self::default());
            }
            Err(error) => {
                return Err(Located::nowhere(ConfigError::NotRead { file: path.to_owned(), error }));
            }
        };
        Self::parse(&text_of(&bytes, path).map_err(|located| located.map(ConfigError::from))?, path)
    }

    /// Reads the text of a file. `Err` has the file, the line and the column of what is wrong.
    pub fn parse(text: &str, file: &Path) -> Result<Self, Located<ConfigError>> {
        let positions = Positions::find(text, file).map_err(|located| located.map(ConfigError::from))?;
        let table = toml::from_str(text).map_err(|error| {
            let position = error.span().map(|span| Position::of(text, span.start));
            positions.location(position).error(TextError::NotToml(error.message().to_owned()).into())
        })?;
        let mut check = Check { positions: &positions, problems: Vec::new() };
        check.keys(&table, "", &known_keys());
        for setting in all_settings().filter(|setting| setting.is_in_file()) {
            check.setting(setting, &table);
        }
        let timeouts = check.timeouts(&table);
        let bind = check.bind(&table);
        let access = check.access(&table);
        check.finish()?;
        let folder = file.parent().unwrap_or(Path::new("")).to_owned();
        Ok(Self { values: table, timeouts, bind, access, folder, positions })
    }

    /// The value of a key.
    pub fn value(&self, key: &str) -> Option<&Value> {
        self.values.get(key)
    }

    /// Where the value of a key was written, or an element of it.
    pub fn location(&self, key: &str, index: Option<usize>) -> Location {
        let element = index.map(|index| format!("/{index}")).unwrap_or_default();
        self.positions.value_location(&format!("/{}{element}", pointer_segment(key)))
    }

    /// Where the timeout of a tool was written.
    pub fn timeout_location(&self, tool: &str) -> Location {
        self.positions.value_location(&format!("/{TIMEOUTS}/{}", pointer_segment(tool)))
    }

    /// Where a tool was named that a timeout was set for.
    pub fn timeout_key_location(&self, tool: &str) -> Location {
        self.positions.key_location(&format!("/{TIMEOUTS}/{}", pointer_segment(tool)))
    }
}

/// All keys of the file.
fn known_keys() -> Vec<&'static str> {
    let settings = all_settings().filter(|setting| setting.is_in_file()).map(|setting| setting.key());
    settings.chain([TIMEOUTS, BIND, DENY, ALLOW]).collect()
}

/// Collects what is wrong with a file.
struct Check<'a> {
    positions: &'a Positions,
    /// With what decides which one is reported.
    problems: Vec<(Order, Position, ConfigError)>,
}

/// A misspelt key may leave a required one missing, and the unknown one is the cause, so it comes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Order {
    UnknownKey,
    Other,
}

impl Check<'_> {
    fn keys(&mut self, table: &Table, pointer: &str, known: &[&'static str]) {
        for key in table.keys().filter(|key| !known.contains(&key.as_str())) {
            let near = nearest(key, known.iter().copied());
            let error = ConfigError::UnknownKey { key: shortened(key), near, known: known.to_vec() };
            let position = self.positions.key(&format!("{pointer}/{}", pointer_segment(key)));
            self.report(Order::UnknownKey, position, error);
        }
    }

    fn setting(&mut self, setting: &dyn AnySetting, table: &Table) {
        let Some(value) = table.get(setting.key()) else { return };
        if let Err(wrong) = setting.check_written(value) {
            self.wrong_value(format!("/{}", setting.key()), wrong);
        }
    }

    fn timeouts(&mut self, table: &Table) -> BTreeMap<String, String> {
        let Some(timeouts) = table.get(TIMEOUTS) else { return BTreeMap::new() };
        let pointer = format!("/{TIMEOUTS}");
        let Some(timeouts) = self.table(timeouts, &pointer) else { return BTreeMap::new() };
        let read = timeouts.iter().map(|(tool, timeout)| {
            (tool.clone(), self.text(timeout, format!("{pointer}/{}", pointer_segment(tool))))
        });
        read.collect()
    }

    fn bind(&mut self, table: &Table) -> Vec<Bind> {
        let mut bound = Vec::new();
        for (pointer, binding) in self.tables(table, BIND, "tables: [[bind]]") {
            self.keys(binding, &pointer, &BIND_KEYS);
            let [path, schema] = BIND_KEYS.map(|key| {
                let Some(value) = binding.get(key) else {
                    self.report(Order::Other, self.positions.value(&pointer), ConfigError::MissingKey(key));
                    return (String::new(), Location::default());
                };
                let pointer = format!("{pointer}/{key}");
                let location = self.positions.value_location(&pointer);
                (self.text(value, pointer), location)
            });
            bound.push(Bind { path: path.0, schema: schema.0, path_set_at: path.1, schema_set_at: schema.1 });
        }
        bound
    }

    fn access(&mut self, table: &Table) -> PathRules {
        let mut rules = PathRules::default();
        for (pointer, deny) in self.tables(table, DENY, "tables: [[deny]]") {
            self.keys(deny, &pointer, &DENY_KEYS);
            rules.deny_read.extend(self.globs(deny, &pointer, "read"));
            rules.deny_write.extend(self.globs(deny, &pointer, "write"));
        }
        let pointer = format!("/{ALLOW}");
        let allow = table.get(ALLOW).and_then(|allow| self.table(allow, &pointer));
        if let Some(allow) = allow {
            self.keys(allow, &pointer, &ALLOW_KEYS);
            rules.allow_write = self.globs(allow, &pointer, "write");
        }
        rules
    }

    fn globs(&mut self, table: &Table, pointer: &str, key: &str) -> Vec<WrittenGlob> {
        let Some(value) = table.get(key) else { return Vec::new() };
        let pointer = format!("{pointer}/{key}");
        match Vec::<String>::written(value) {
            Ok(globs) => {
                let set_at = |index: usize| self.positions.value_location(&format!("{pointer}/{index}"));
                let globs = globs.into_iter().enumerate();
                globs.map(|(index, text)| WrittenGlob { text, set_at: set_at(index) }).collect()
            }
            Err(wrong) => {
                self.wrong_value(pointer, wrong);
                Vec::new()
            }
        }
    }

    /// The tables of an array, with their pointers.
    fn tables<'t>(&mut self, table: &'t Table, key: &str, wanted: &'static str) -> Vec<(String, &'t Table)> {
        let Some(value) = table.get(key) else { return Vec::new() };
        let Some(elements) = value.as_array() else {
            self.wrong_value(format!("/{key}"), WrongValue::new(value, wanted));
            return Vec::new();
        };
        let mut tables = Vec::new();
        for (index, element) in elements.iter().enumerate() {
            let pointer = format!("/{key}/{index}");
            if let Some(table) = self.table(element, &pointer) {
                tables.push((pointer, table));
            }
        }
        tables
    }

    fn table<'t>(&mut self, value: &'t Value, pointer: &str) -> Option<&'t Table> {
        let table = value.as_table();
        if table.is_none() {
            self.wrong_value(pointer.to_owned(), WrongValue::new(value, "a table"));
        }
        table
    }

    fn text(&mut self, value: &Value, pointer: String) -> String {
        String::written(value).unwrap_or_else(|wrong| {
            self.wrong_value(pointer, wrong);
            String::new()
        })
    }

    fn wrong_value(&mut self, pointer: String, wrong: WrongValue) {
        let pointer = wrong.index.map_or(pointer.clone(), |index| format!("{pointer}/{index}"));
        let position = self.positions.value(&pointer);
        self.report(Order::Other, position, ConfigError::WrongValue { pointer, wrong });
    }

    fn report(&mut self, order: Order, position: Option<Position>, error: ConfigError) {
        let position = position.unwrap_or(Position { line: 1, column: 1 });
        self.problems.push((order, position, error));
    }

    /// Of several errors the first in the file is reported.
    fn finish(self) -> Result<(), Located<ConfigError>> {
        let first = self.problems.into_iter().min_by_key(|(order, position, _)| (*order, *position));
        match first {
            Some((_, position, error)) => Err(self.positions.location(Some(position)).error(error)),
            None => Ok(()),
        }
    }
}

fn nearest_known(near: Option<&str>) -> String {
    near.map(|near| format!("; the nearest known one is `{near}`")).unwrap_or_default()
}

/// The head of a key that may be long.
fn shortened(key: &str) -> String {
    const SHOWN: usize = 80;
    match key.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &key[..end]),
        None => key.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        ConfigFile::parse(text, Path::new("p.toml")).expect_err("an error").to_string()
    }

    #[test]
    fn an_unknown_key_is_named_with_its_position_and_the_nearest_one() {
        let problem = problem("root = \".\"\n\n  log_fil = \"x\"\n");
        let expected = "p.toml: line 3, column 3: unknown key `log_fil`; the nearest known one is `log_file`";
        assert!(problem.starts_with(expected), "{problem}");
        let problem = self::problem("config = \"x\"");
        let expected = "p.toml: line 1, column 1: unknown key `config` (known: root, ";
        assert!(problem.starts_with(expected), "{problem}");
    }

    #[test]
    fn what_is_wrong_in_one_of_several_tables_is_reported_where_it_stands() {
        let good = "[[bind]]\npath = \"a\"\nschema = \"lamp\"\n";
        for (second, expected) in [
            ("[[bind]]\npath = \"b\"\nschemas = \"lamp\"\n", "line 6, column 1: unknown key `schemas`"),
            ("[[bind]]\npath = \"b\"\nschema = 7\n", "line 6, column 10: `bind/1/schema`"),
            ("[[bind]]\npath = \"b\"\n", "line 4, column 1: key `schema` is missing"),
            ("[[bind]]\npath = 7\nschema = 7\n", "line 5, column 8: `bind/1/path`"),
            (
                "[[bind]]\npath = \"b\"\nschema = 1979-05-27\n",
                "line 6, column 10: `bind/1/schema` is a date; it takes a string, in quotes",
            ),
            ("[[bind]]\nschema = \"a\"\nschema = \"b\"\n", "line 6, column 1: duplicate key"),
        ] {
            let problem = problem(&format!("{good}{second}"));
            assert!(problem.starts_with(&format!("p.toml: {expected}")), "{second}: {problem}");
        }
        for (text, expected) in [
            ("bind = 5", "line 1, column 8: `bind` is a whole number; it takes tables: [[bind]]"),
            ("bind = [5]", "line 1, column 9: `bind/0` is a whole number; it takes a table"),
            ("deny = 5", "line 1, column 8: `deny` is a whole number; it takes tables: [[deny]]"),
            (
                "[[deny]]\nread = \".env\"",
                "line 2, column 8: `deny/0/read` is a string; it takes a list of strings: [\"…\", \"…\"]",
            ),
            (
                "[allow]\nwrite = [5]",
                "line 2, column 10: `allow/write/0` is a whole number; it takes a string, in quotes",
            ),
            ("timeouts = 5", "line 1, column 12: `timeouts` is a whole number; it takes a table"),
            (
                "[timeouts]\nsearch = 2",
                "line 2, column 10: `timeouts/search` is a whole number; it takes a string, in quotes",
            ),
        ] {
            assert_eq!(problem(text), format!("p.toml: {expected}"));
        }
    }

    #[test]
    fn of_several_errors_the_first_in_the_file_is_reported() {
        // By its pointer the eleventh table, `bind/10`, would stand before the third, `bind/2`.
        let good = "[[bind]]\npath = \"a\"\nschema = \"lamp\"\n";
        let bad = "[[bind]]\npath = 7\nschema = \"lamp\"\n";
        let first = problem(&[good, good, bad, &good.repeat(7), bad].concat());
        assert!(first.starts_with("p.toml: line 8, column 8: `bind/2/path`"), "{first}");
        // A misspelt key is the cause of one that is missing.
        let cause = problem("[[bind]]\nschema = 7\npaths = \"a\"\n");
        assert!(cause.starts_with("p.toml: line 3, column 1: unknown key `paths`"), "{cause}");
    }

    #[test]
    fn a_wrong_value_of_each_kind_is_reported_with_its_position() {
        for (text, expected) in [
            (
                "running = \"4\"",
                "line 1, column 11: `running` is a string; it takes a whole number, without quotes",
            ),
            ("running = -4", "line 1, column 11: `running` is a negative number; it takes a whole number"),
            ("running = 1.5", "line 1, column 11: `running` is a number with a fraction"),
            ("running = nan", "line 1, column 11: `running` is not a number that can be used"),
            (
                "\n\nkeep_running = 1",
                "line 3, column 16: `keep_running` is a whole number; it takes true or false, without quotes",
            ),
            (
                "\nenvelope = \"x\"",
                "line 2, column 12: `envelope` is \"x\"; it takes one of \"enforce\", \"shadow\"",
            ),
            (
                "auth = true",
                "line 1, column 8: `auth` is true or false; it takes one of \"local\", \"jwks\", \"none\"",
            ),
            (
                "scope = [\n  \"read:/\",\n  5,\n]",
                "line 3, column 3: `scope/1` is a whole number; it takes a string, in quotes",
            ),
            ("scope = \"read:/\"", "line 1, column 9: `scope` is a string; it takes a list of strings"),
            ("root = []", "line 1, column 8: `root` is a list; it takes a string, in quotes"),
            ("drain = 1979-05-27", "line 1, column 9: `drain` is a date; it takes a string, in quotes"),
            ("drain = ", "line 1, column 9: "),
        ] {
            let problem = problem(text);
            assert!(problem.starts_with(&format!("p.toml: {expected}")), "{problem}");
        }
    }
}
