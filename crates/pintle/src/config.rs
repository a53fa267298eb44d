//! `pintle.toml` as it is written. What it means is decided in `settings`.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use clap::ValueEnum;
use pintle_positions::{Positions, SetAt, text_of};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::cli::{ArgumentsHow, Auth, Envelope, IndexHow, LogLevel, NameSpelling, ProgressWhen, ResultsHow};

/// The keys of the file. Paths are relative to the file's folder.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FileConfig {
    pub root: Option<PathBuf>,
    pub state_dir: Option<PathBuf>,
    pub tools: Option<PathBuf>,
    pub keep_running: Option<bool>,
    pub schemas_dir: Option<PathBuf>,
    pub examples_dir: Option<PathBuf>,
    pub backend_url: Option<String>,
    pub backend_assets_path: Option<String>,
    pub allow_unvalidated: Option<bool>,
    pub max_file_bytes: Option<u64>,
    #[schemars(with = "Word<IndexHow>")]
    pub index: Option<Word<IndexHow>>,
    pub http: Option<String>,
    #[schemars(with = "Word<Auth>")]
    pub auth: Option<Word<Auth>>,
    pub allow_origin: Vec<String>,
    pub allow_host: Vec<String>,
    pub scope: Option<Vec<String>>,
    pub ready_file: Option<PathBuf>,
    pub log_file: Option<PathBuf>,
    #[schemars(with = "Word<LogLevel>")]
    pub log_level: Option<Word<LogLevel>>,
    pub deterministic: Option<bool>,
    #[schemars(with = "Word<Envelope>")]
    pub envelope: Option<Word<Envelope>>,
    #[schemars(with = "Word<ProgressWhen>")]
    pub progress: Option<Word<ProgressWhen>>,
    pub toolsets: Vec<String>,
    #[schemars(with = "Word<NameSpelling>")]
    pub tool_names: Option<Word<NameSpelling>>,
    #[schemars(with = "Word<ArgumentsHow>")]
    pub arguments: Option<Word<ArgumentsHow>>,
    #[schemars(with = "Word<ResultsHow>")]
    pub results: Option<Word<ResultsHow>>,
    pub max_request_bytes: Option<usize>,
    pub max_result_bytes: Option<usize>,
    pub drain: Option<String>,
    pub write_timeout: Option<String>,
    pub running: Option<usize>,
    pub waiting: Option<usize>,
    /// By tool name, and `default`.
    pub timeouts: BTreeMap<String, String>,
    pub bind: Vec<Bind>,
    /// Where all of this stands in the file.
    #[serde(skip)]
    pub positions: Positions,
}

/// Files that must match a schema.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bind {
    /// A glob over paths in the root.
    pub path: String,
    /// The schema's name.
    pub schema: String,
    #[serde(skip)]
    pub path_set_at: SetAt,
    #[serde(skip)]
    pub schema_set_at: SetAt,
}

/// One of the words that the command line takes for the same setting.
#[derive(Clone, Copy, Debug)]
pub struct Word<T>(pub T);

impl<'de, T: ValueEnum> Deserialize<'de> for Word<T> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        T::from_str(&word, false).map(Self).map_err(serde::de::Error::custom)
    }
}

impl<T: ValueEnum> JsonSchema for Word<T> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        std::any::type_name::<T>().into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let words = T::value_variants().iter().filter_map(ValueEnum::to_possible_value);
        let words: Vec<String> = words.map(|word| word.get_name().to_owned()).collect();
        schemars::json_schema!({ "enum": words })
    }
}

impl FileConfig {
    /// Where the file is, or would be.
    pub fn path(named: Option<&Path>) -> &Path {
        named.unwrap_or(Path::new("pintle.toml"))
    }

    /// Reads the file that was named, or `pintle.toml` in the current folder if there is one.
    pub fn load(named: Option<&Path>) -> Result<Self, String> {
        let path = Self::path(named);
        if std::fs::metadata(path).is_ok_and(|there| !there.is_file()) {
            return Err(format!("{} is not a file", path.display()));
        }
        let bytes = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if named.is_none() && error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Self::default());
            }
            Err(error) => return Err(format!("cannot read {}: {error}", path.display())),
        };
        let config = Self::parse(&text_of(&bytes, path)?, path)?;
        Ok(config.relative_to(path.parent().unwrap_or(Path::new(""))))
    }

    /// Reads the text of a file. `Err` has the file, the line and the column of what is wrong.
    fn parse(text: &str, file: &Path) -> Result<Self, String> {
        let positions = Positions::find(text, file)?;
        let config: Self = positions.read_strictly(text, file)?;
        Ok(config.with(positions))
    }

    fn with(mut self, positions: Positions) -> Self {
        for (index, bind) in self.bind.iter_mut().enumerate() {
            bind.path_set_at = positions.set_at(&format!("/bind/{index}/path"));
            bind.schema_set_at = positions.set_at(&format!("/bind/{index}/schema"));
        }
        Self { positions, ..self }
    }

    fn relative_to(mut self, folder: &Path) -> Self {
        let paths = [
            &mut self.root,
            &mut self.state_dir,
            &mut self.tools,
            &mut self.schemas_dir,
            &mut self.examples_dir,
            &mut self.ready_file,
            &mut self.log_file,
        ];
        for path in paths.into_iter().flatten() {
            *path = folder.join(&*path);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        FileConfig::parse(text, Path::new("p.toml")).expect_err("an error")
    }

    #[test]
    fn an_unknown_key_is_named_with_its_position_and_the_nearest_one() {
        let told = problem("root = \".\"\n\n  log_fil = \"x\"\n");
        let expected = "p.toml: line 3, column 3: unknown key `log_fil`; the nearest known one is `log_file`";
        assert!(told.starts_with(expected), "{told}");
    }

    #[test]
    fn what_is_wrong_in_one_of_several_tables_is_reported_where_it_stands() {
        let good = "[[bind]]\npath = \"a\"\nschema = \"lamp\"\n";
        for (second, expected) in [
            ("[[bind]]\npath = \"b\"\nschemas = \"lamp\"\n", "line 6, column 1: unknown key `schemas`"),
            ("[[bind]]\npath = \"b\"\nschema = 7\n", "line 6, column 10: `/bind/1/schema`"),
            ("[[bind]]\npath = \"b\"\n", "line 4, column 1: key `schema` is missing"),
            ("[[bind]]\npath = 7\nschema = 7\n", "line 5, column 8: `/bind/1/path`"),
            ("[[bind]]\nschema = 1979-05-27\n", "line 5, column 10: this is a date"),
            ("[[bind]]\nschema = \"a\"\nschema = \"b\"\n", "line 6, column 1: duplicate key"),
        ] {
            let told = problem(&format!("{good}{second}"));
            assert!(told.starts_with(&format!("p.toml: {expected}")), "{second}: {told}");
        }
    }

    #[test]
    fn of_several_errors_the_first_in_the_file_is_reported() {
        // By its pointer the eleventh table, `/bind/10`, would stand before the third, `/bind/2`.
        let good = "[[bind]]\npath = \"a\"\nschema = \"lamp\"\n";
        let bad = "[[bind]]\npath = 7\nschema = \"lamp\"\n";
        let told = problem(&[good, good, bad, &good.repeat(7), bad].concat());
        assert!(told.starts_with("p.toml: line 8, column 8: `/bind/2/path`"), "{told}");
        // A misspelt key is the cause of one that is missing.
        let told = problem("[[bind]]\nschema = 7\npaths = \"a\"\n");
        assert!(told.starts_with("p.toml: line 3, column 1: unknown key `paths`"), "{told}");
    }

    #[test]
    fn a_wrong_type_or_word_is_named_with_its_position() {
        for (text, expected) in [
            ("running = \"4\"", "p.toml: line 1, column 11: `/running`"),
            ("\nenvelope = \"x\"", "p.toml: line 2, column 12: `/envelope`"),
            ("scope = [\n  \"read:/\",\n  5,\n]", "p.toml: line 3, column 3: `/scope/1`"),
            ("running = nan", "p.toml: line 1, column 11: this is not a number"),
            ("[timeouts]\nsearch = 2", "p.toml: line 2, column 10: `/timeouts/search`"),
            ("drain = ", "p.toml: line 1, column 9: "),
        ] {
            let told = problem(text);
            assert!(told.starts_with(expected), "{told}");
        }
    }

    #[test]
    fn every_key_is_read_and_paths_are_relative_to_the_file() {
        let text =
            "root = \"here\"\nlog_level = \"off\"\nenvelope = \"shadow\"\n[timeouts]\nsearch = \"2s\"\n";
        let config =
            FileConfig::parse(text, Path::new("p.toml")).expect("reads").relative_to(Path::new("/etc/p"));
        assert_eq!(config.root.as_deref(), Some(Path::new("/etc/p/here")));
        assert_eq!(config.log_level.map(|word| word.0), Some(LogLevel::Off));
        assert_eq!(config.timeouts["search"], "2s");
    }
}
